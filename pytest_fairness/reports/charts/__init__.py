"""Pictures of what an item's details hold: a new one is one function and one line in the table below.

Pictures are plain data: a Vega-Lite specification, the table of the same numbers, and what both show in words.
`vega.py` draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts import cells, listings, means, mitigations, rates, words
from pytest_fairness.reports.charts.base import Picture, Table
from pytest_fairness.reports.charts.baseline_change import standing
from pytest_fairness.reports.charts.overview import overview
from pytest_fairness.reports.charts.trend import trend
from pytest_fairness.reports.report_items import Item

__all__ = ["BY_DETAIL", "Picture", "Table", "evidence", "overview", "standing", "trend"]

BY_DETAIL: dict[str, Callable[[Item, Json], Picture | None]] = {
    "variants": mitigations.compared,
    "words": words.marked,
    "grown": words.grown,
    "contributions": words.contributions,
    "top_words": words.typical,
    "terms": words.terms,
    "cells": cells.counts,
    "flips": listings.flips,
    "changed_sentences": listings.changed_sentences,
    "ratio": rates.by_case,
    "shares": rates.by_group,
    "groups": rates.by_group,
}
"""Name of a detail, as the audits' pages have it, to the picture of it; `None` where it holds nothing to draw."""

TOLD_ELSEWHERE = ("examples", "suggestions")
"""Details that reports show in a way of their own."""


def evidence(item: Item) -> tuple[list[Picture], dict[str, Json]]:
    """The pictures of an item's details, and the details that no picture shows.

    A detail is drawn by its name, or by its shape where it is one of names with means and intervals. Details of an
    audit that is not ours may have one of our names and another shape: these are left as they are.
    """
    found: list[Picture] = []
    rest: dict[str, Json] = {}
    details: Mapping[str, Json] = item["details"]
    for name in sorted(details, key=_table_order):
        picture = None
        if name in BY_DETAIL:
            picture = BY_DETAIL[name](item, details[name])
        elif name not in TOLD_ELSEWHERE:
            picture = means.means(item, name, details[name])
        if picture is not None:
            found.append(picture)
        elif name not in TOLD_ELSEWHERE:
            rest[name] = details[name]
    return found, {name: rest[name] for name in details if name in rest}


def _table_order(name: str) -> int:
    known = list(BY_DETAIL)
    return known.index(name) if name in known else len(known)
