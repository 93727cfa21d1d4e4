"""The report as one HTML file that needs nothing else: no network, no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.html.page import render
from pytest_fairness.reports.html.view import View

__all__ = ["report"]


def report(
    document: Mapping[str, Json], trends: Mapping[tuple[str, str], Sequence[Mapping[str, Json]]] | None = None
) -> str:
    """The report page of one run.

    Args:
        document: the report document.
        trends: earlier and this run's points by probe and item, oldest first; see `pictures.trend`.

    Returns:
        a complete HTML document. Everything that a model or a probe wrote is in it as text only.
    """
    return render("report.html.j2", view=View(document, trends or {}))
