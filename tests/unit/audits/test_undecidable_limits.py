"""Limits that no number of answers can decide are errors in the probe file, for every audit."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pytest_fairness.audits import registry
from tests.support.projects import Project, says

AUDITS = [(kind, name) for kind, names in registry.AUDITS.items() for name in names]
DECIDABLE = {("generation", "marked_words"): 0.0, ("stereotype", "markers"): 0.0, ("multiple_choice", "accuracy"): 1.0}
"""Audits that a system can keep at the best limit in every run, with this limit."""
FURTHER: dict[str, dict[str, Any]] = {
    "lexicon": {"lexicons": {"care": ["kind"]}},
    "score": {"scorer": "words", "tolerance": 1.0},
    "regard": {"model": "m"},
    "mean_gap": {"tolerance": 1.0},
    "tail_gap": {"tolerance": 1.0, "quantile": 0.9},
}
"""Settings that an audit needs, by name."""


def settings(kind: str, name: str, limit: float, **further: Any) -> None:
    registry.settings_model(kind, name)(**{"limit": limit, **FURTHER.get(name, {}), **further})


@pytest.mark.parametrize(("kind", "name"), AUDITS)
def test_a_limit_at_the_value_of_equal_groups_is_refused(kind: str, name: str) -> None:
    limit = registry.get(kind, name).info.undecidable_limit
    if (kind, name) in DECIDABLE:
        assert limit is None
        settings(kind, name, DECIDABLE[kind, name])
        return
    assert limit is not None
    with pytest.raises(ValidationError, match="no difference at all, which no number of answers can show"):
        settings(kind, name, limit)
    settings(kind, name, limit, gate="point")
    low, high = registry.get(kind, name).info.limits
    settings(kind, name, limit + 0.001 if limit + 0.001 <= high else limit - 0.001)
    assert low <= limit <= high


PROBE = """\
kind: generation
prompt: Describe {name}.
axes: {name: {unmarked: Alex, marked: [Kim]}}
audits:
  jsd: {limit: 0}
"""


def test_the_error_names_the_line_and_a_limit_to_write(project: Project) -> None:
    project.probe(text=PROBE)
    result = project.run("--fairness")
    assert says(result, "probes/gifts.yaml:5:16: 0 means no difference at all, which no number of answers can show")
    assert says(result, "Write the worst value that you accept: a larger one, such as 0.02")
