"""Charts of an item's details.

To add a chart, write a function and add a line to `CHARTS`; an audit names its charts in `AuditInfo`.

A chart is plain data: a Vega-Lite specification, a table of the same numbers, and a description in words.
`vega.py` draws the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts import cells, distributions, listings, means, rates, variants, words
from pytest_fairness.reports.charts.base import Chart, Table
from pytest_fairness.reports.charts.baseline_change import baseline_change
from pytest_fairness.reports.charts.trend import trend
from pytest_fairness.reports.items.report_items import Item

__all__ = ["CHARTS", "Chart", "Table", "baseline_change", "detail_charts", "trend"]

CHARTS: dict[str, Callable[[Item, Json], Chart | None]] = {
    "variants": variants.compared,
    "marked_words": words.marked,
    "grown_words": words.grown,
    "word_contributions": words.contributions,
    "word_weights": words.distinguishing,
    "function_words": words.function_words,
    "term_rates": words.terms,
    "answer_counts": cells.counts,
    "flips": listings.flips,
    "changed_sentences": listings.changed_sentences,
    "changed_questions": listings.changed_questions,
    "stereotype_ratios": rates.by_case,
    "shares": rates.by_group,
    "impact_ratios": rates.impact_ratios,
    "distribution": distributions.by_group,
}
"""Function of each chart, by the chart's name in `AuditInfo.charts`; the function returns `None` for a detail that it
cannot draw."""

CHARTS_OF_OLD_REPORTS = {
    "words": "marked_words",
    "grown": "grown_words",
    "contributions": "word_contributions",
    "top_words": "word_weights",
    "terms": "term_rates",
    "cells": "answer_counts",
    "flips": "flips",
    "changed_sentences": "changed_sentences",
    "ratio": "stereotype_ratios",
    "shares": "shares",
    "groups": "shares",
}
"""Names of charts by the name of a detail, for report documents of earlier versions, whose audits name no charts."""

SHOWN_ELSEWHERE = ("examples", "intersections", "placebo", "suggestions")
"""Details without a chart, because reports show them elsewhere."""


def detail_charts(item: Item, method: Mapping[str, Json]) -> tuple[list[Chart], dict[str, Json]]:
    """Return the charts of an item's details, and the details that no chart shows.

    A detail that maps names to means gets a chart of the means, even if the audit names no chart for the detail.

    Args:
        item: item of the report document.
        method: description of the item's audit in the report document.
    """
    # Items of every audit may have the detail `variants`.
    names = {"variants": "variants", **method.get("charts", CHARTS_OF_OLD_REPORTS)}
    details = {name: detail for name, detail in item["details"].items() if name not in SHOWN_ELSEWHERE}
    order = [*(name for name in names if name in details), *(name for name in details if name not in names)]
    drawn = {
        name: CHARTS[names[name]](item, details[name])
        if names.get(name) in CHARTS
        else means.means(item, name, details[name])
        for name in order
    }
    return (
        [chart for chart in drawn.values() if chart is not None],
        {name: detail for name, detail in details.items() if drawn[name] is None},
    )
