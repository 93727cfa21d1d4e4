"""Charts of an item's details. A new chart is one function and one line in `BY_DETAIL`.

A chart is plain data: a Vega-Lite specification, a table of the same numbers, and a description in words.
`vega.py` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts import cells, listings, means, mitigations, rates, words
from pytest_fairness.reports.charts.base import Chart, Table
from pytest_fairness.reports.charts.baseline_change import baseline_change
from pytest_fairness.reports.charts.overview import overview
from pytest_fairness.reports.charts.trend import trend
from pytest_fairness.reports.report_items import Item

__all__ = ["BY_DETAIL", "Chart", "Table", "baseline_change", "detail_charts", "overview", "trend"]

BY_DETAIL: dict[str, Callable[[Item, Json], Chart | None]] = {
    "variants": mitigations.compared,
    "words": words.marked,
    "grown": words.grown,
    "contributions": words.contributions,
    "top_words": words.distinguishing,
    "terms": words.terms,
    "cells": cells.counts,
    "flips": listings.flips,
    "changed_sentences": listings.changed_sentences,
    "ratio": rates.by_case,
    "shares": rates.by_group,
    "groups": rates.by_group,
}
"""Chart function by the name of a detail; the function returns `None` for a detail without content."""

SHOWN_ELSEWHERE = ("examples", "suggestions")
"""Details that reports show elsewhere."""


def detail_charts(item: Item) -> tuple[list[Chart], dict[str, Json]]:
    """Return the charts of an item's details, and the details that no chart shows.

    The name of a detail selects its chart. A detail with another name gets a chart if it maps names to means. A detail
    of a third-party audit may have a known name and an unknown structure; it gets no chart.
    """
    found: list[Chart] = []
    rest: dict[str, Json] = {}
    details: Mapping[str, Json] = item["details"]
    for name in sorted(details, key=_order):
        chart = None
        if name in BY_DETAIL:
            chart = BY_DETAIL[name](item, details[name])
        elif name not in SHOWN_ELSEWHERE:
            chart = means.means(item, name, details[name])
        if chart is not None:
            found.append(chart)
        elif name not in SHOWN_ELSEWHERE:
            rest[name] = details[name]
    return found, {name: rest[name] for name in details if name in rest}


def _order(name: str) -> int:
    known = list(BY_DETAIL)
    return known.index(name) if name in known else len(known)
