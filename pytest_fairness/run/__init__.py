"""Runs without pytest: answers of targets, measurements, comparisons with baselines, and verdicts."""

from __future__ import annotations

from pytest_fairness.run.engines import open_judge
from pytest_fairness.run.items import MAX_ALPHA, ProbeItem, items_of
from pytest_fairness.run.measuring import ItemMeasurement, read_all
from pytest_fairness.run.results import BaselineComparison, error_result, measured_only, result_of
from pytest_fairness.run.run import Run

__all__ = [
    "MAX_ALPHA",
    "BaselineComparison",
    "ItemMeasurement",
    "ProbeItem",
    "Run",
    "error_result",
    "items_of",
    "measured_only",
    "open_judge",
    "read_all",
    "result_of",
]
