"""One item of the HTML report, with its charts, examples and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import Chart, as_float, interval_of
from pytest_fairness.reports.html.examples import Example
from pytest_fairness.reports.html.sheets import Sheet
from pytest_fairness.reports.items.report_items import Item

OUTCOMES = ("failed", "error", "inconclusive", "known", "measured", "passed")
"""Outcomes of items, the worst first."""


@dataclass(frozen=True)
class Figure:
    """Chart with its drawing, if it has one.

    Attributes:
        chart: caption, description and table.
        drawn: an SVG element; empty for a chart without a drawing.
        left_out: number of further rows of the table, which only the JSON report has.
    """

    chart: Chart
    drawn: str
    left_out: int


@dataclass(frozen=True)
class ChangeChart:
    """Small chart of a change and its interval. The unit of its scale is the tolerance.

    The scale goes from `LOWEST` to `HIGHEST`; numbers outside of it are drawn near its ends.

    Attributes:
        low, value, high: positions of the interval's bounds and of the change on the scale, in percent of its length.
    """

    LOWEST: ClassVar[float] = -1.0
    HIGHEST: ClassVar[float] = 3.0

    low: float
    value: float
    high: float

    @classmethod
    def of(cls, item: Item) -> Self | None:
        """Return the chart of an item's change and interval; `None` if the item has no change or no tolerance."""
        tolerance, change = as_float(item["tolerance"]), item["change"] or {}
        moved = as_float(change.get("value"))
        if moved is None or not tolerance:
            return None
        low, high = interval_of(change.get("interval")) or (moved, moved)
        return cls(*(cls._place(end / tolerance) for end in (low, moved, high)))

    @classmethod
    def _place(cls, tolerances: float) -> float:
        share = (tolerances - cls.LOWEST) / (cls.HIGHEST - cls.LOWEST)
        return round(100 * max(0.04, min(0.96, share)), 1)


@dataclass(frozen=True)
class ReportItem:
    """One item of the report.

    Attributes:
        name: HTML anchor of the item.
        item: the item of the report document.
        outcome: outcome of the item.
        display_outcome: outcome that selects the item's colour and shape; see `headline.display_outcome`.
        verdict: symbol and word of the verdict.
        title: title of the audit.
        line: finding as one line.
        reason: reason of the verdict.
        probe, audit, groups: positions of the item's probe, audit and groups in the lists of the page's filters.
        full: whether the item is shown with its examples, tables and charts.
        change_chart: chart of the change in the list of items; `None` without a chart.
        contributors: phrases of `top_contributors`, if the change is significant.
        figures: charts of the details.
        facts, sheets: details without a chart: plain values by name, and tables; see `sheets.facts_and_sheets`.
        answers: names of the groups whose numbers of answers are shown.
        found, to_try: description of the failed item's finding, and suggestions; see `suggestions.suggestions`.
    """

    name: str
    item: Item
    outcome: str
    display_outcome: str
    verdict: str
    title: str
    line: str
    reason: str
    probe: int
    audit: int
    groups: Sequence[int]
    full: bool
    change_chart: ChangeChart | None = None
    contributors: Sequence[str] = ()
    baseline_change: Figure | None = None
    trend: Figure | None = None
    figures: Sequence[Figure] = ()
    examples: Sequence[Example] = ()
    facts: Mapping[str, Json] = field(default_factory=dict)
    sheets: Sequence[Sheet] = ()
    answers: Sequence[str] = ()
    found: str = ""
    to_try: Sequence[Mapping[str, Json]] = ()


def has_changed(item: Item) -> bool:
    """Return whether the 95 % confidence interval of the change excludes 0, or the change is significant."""
    change = item["change"] or {}
    low, high = interval_of(change.get("interval")) or (0.0, 0.0)
    return bool(change.get("significant")) or low > 0 or high < 0
