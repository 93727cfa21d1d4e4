"""The whole sentence, without pytest: what is asked of whom, what came back, what it measures, what it was before."""

from __future__ import annotations

from pytest_fairness.run.audit_function import Audited, audit
from pytest_fairness.run.judging import open_judge
from pytest_fairness.run.probe_items import MAX_ALPHA, Before, Measured, ProbeItem, items_of, read_all
from pytest_fairness.run.results import judge, unjudged
from pytest_fairness.run.run import Run

__all__ = [
    "MAX_ALPHA",
    "Audited",
    "Before",
    "Measured",
    "ProbeItem",
    "Run",
    "audit",
    "items_of",
    "judge",
    "open_judge",
    "read_all",
    "unjudged",
]
