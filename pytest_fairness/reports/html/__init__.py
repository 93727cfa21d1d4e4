"""HTML report: one self-contained file, which needs no network access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.html.page import render
from pytest_fairness.reports.html.view import View

__all__ = ["report"]


def report(
    document: Mapping[str, Json], trends: Mapping[tuple[str, str], Sequence[Mapping[str, Json]]] | None = None
) -> str:
    """Return the HTML report of one run. Text from models and probes is escaped.

    Args:
        document: the report document.
        trends: values of the last runs, including this run, by probe and item id, the oldest first; see `charts.trend`.
    """
    return render("report.html.j2", view=View(document, trends or {}))
