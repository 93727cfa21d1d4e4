"""Shared by all tests: pytest's own test bench, and modules that can be imported only once in a process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio._backends._asyncio  # noqa: F401 - see below
import httpcore2  # noqa: F401
import numpy as np  # noqa: F401
import openai  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import sklearn.linear_model
import sklearn.model_selection  # noqa: F401
import vl_convert  # noqa: F401
from _pytest.pytester import SysModulesSnapshot
from hypothesis import settings

# A run of pytest inside a test forgets afterwards what it imported first. Compiled modules cannot be loaded twice, and
# what the HTTP client imports when it first connects would be there twice, its exceptions no longer recognised.
from pytest_fairness import kinds, probes
from tests.support.projects import Project

kinds.schemas()
for name in probes.__all__:
    getattr(probes, name)

COMPILED = ("torch", "transformers", "tokenizers", "safetensors", "xllamacpp", "gguf", "scipy", "sklearn", "numpy")
"""Packages that crash the process when they are loaded a second time; not all are installed or worth loading here."""


def _snapshot(pytester: pytest.Pytester) -> SysModulesSnapshot:
    """Return pytester's snapshot of the imported modules, after which compiled packages stay imported."""
    return SysModulesSnapshot(preserve=lambda name: name.partition(".")[0] in COMPILED)


setattr(pytest.Pytester, "_Pytester__take_sys_modules_snapshot", _snapshot)  # noqa: B010 - a private method

pytest_plugins = ["pytester"]

SLOW = (
    "integration/",
    "unit/asking/test_kill.py",
    "unit/asking/test_system_limits.py",
    "unit/audits/test_counterfactual_audits.py",
    "unit/audits/test_flip_direction.py",
    "unit/audits/test_generation_audits.py",
    "unit/audits/test_markers.py",
    "unit/audits/test_mmd.py",
    "unit/audits/test_recommendation_audits.py",
    "unit/audits/test_svm.py",
    "unit/audits/test_unit_audit.py",
    "unit/baselines/test_bounds.py",
    "unit/scorers/test_classifier.py",
    "unit/targets/test_local.py",
    "unit/targets/test_transformers.py",
)
"""Tests that `-m "not slow"` leaves out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by its file."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)


# How long an example takes says something of the machine, which may have other things to do, and nothing of the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A shell has what it runs in the background ignore Ctrl-C, and so do all its children; here it is sent on purpose.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on, or reaches, what the environment of its user names."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ANTHROPIC_", "PYTEST_FAIRNESS_", "PYTEST_ADDOPTS", "GITHUB_")) or name == "CI":
            monkeypatch.delenv(name)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """An empty project of a user, with an application to audit in `app.py`."""
    return Project(pytester)


@pytest.fixture(scope="session")
def regard_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small text classifier with real weights."""
    from tests.support.classifiers import train

    return train(tmp_path_factory.mktemp("models") / "regard")
