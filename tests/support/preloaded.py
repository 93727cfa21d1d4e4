"""What the server of `processes` does once, in place of each process that it forks."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_fairness.extensions import installed
from pytest_fairness.kinds import KINDS
from pytest_fairness.languages import ENGLISH, other_language
from pytest_fairness.targets.http_client import Connection
from pytest_fairness.targets.web import ServerErrors

sys.path.insert(0, str(Path(__file__).parents[2]))  # as pytest does for `tests`
from tests.support import quick_runs

REFUSALS = ENGLISH.refusals
"""The patterns of refusals: compiling them takes a tenth of a short run."""
LANGUAGE = other_language("all of these words are in English", ("en",))
"""No other language: loading the model that says so takes two thirds of a short run."""

for kind in KINDS.values():
    kind.model.model_rebuild()  # pydantic otherwise builds the validator of a model at the first probe
installed()
Connection("http://localhost", ServerErrors("", "", "", str), headers={}, timeout=1, max_bytes=1)  # reads certificates
quick_runs.prepare_forks()
