"""Checks that the keys of a coreference probe fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_fairness.probes import checks
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.checks import Content
from pytest_fairness.probes.diagnostics import Diagnostic

COLUMNS = ("item", "first", "pronoun", "text", "trial", "masculine", "feminine")
"""Column names of an answer file for ambiguous sentences."""
WINOBIAS_COLUMNS = ("line", "version", "text", "trial")
"""Column names of an answer file for WinoBias sentences."""


def diagnostics(data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for items, audits and columns that contradict each other; see `ContentChecks`."""
    winobias = isinstance(data.get("items"), Mapping)
    ambiguous = {"sentences": "ambiguous sentences, a list under `items`"}
    answerable = {"winobias": "sentences with a right answer, `items: {winobias: [pro file, anti file]}`"}
    yield from checks.unmet_needs(audits, ambiguous if winobias else answerable)
    cure = "a list of sentences, `{winobias: [pro file, anti file]}`, or `responses:` with recorded answers"
    yield from checks.missing_keys(data, {"items": cure})
    yield from checks.unknown_columns(data, WINOBIAS_COLUMNS if winobias else COLUMNS)
    yield from checks.forbid_strata(data, "answers are compared only with answers to the same sentence")
