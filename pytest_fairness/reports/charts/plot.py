"""Class `Plot`: a chart for a notebook or a file, with fixed colours instead of CSS variables."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from pytest_fairness.atomic import replace_file
from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.charts import vega
from pytest_fairness.reports.charts.base import Chart, Spec
from pytest_fairness.reports.tables import html_format

COLOURS = {
    "page": "#ffffff",
    "text": "#1a1f26",
    "line": "#d5dbe1",
    "quiet": "#6d7882",
    "first": "#1461b0",
    "second": "#a8480a",
    "band": "#dcebdd",
    "passed": "#17692b",
    "failed": "#b3161f",
    "inconclusive": "#7a5600",
    "error": "#7a2a8c",
    "known": "#0a6070",
}
"""Colours of the HTML report in light mode, by the names of its CSS variables."""


@dataclass(frozen=True, repr=False)
class Plot:
    """Chart of an item, which a notebook shows; `save("words.svg")` writes the chart to a file.

    Attributes:
        chart: title, description in words, table of the numbers, and Vega-Lite specification.
    """

    chart: Chart

    def __repr__(self) -> str:
        return f"<Plot {self.title!r}>"

    @property
    def title(self) -> str:
        """Return the caption."""
        return self.chart.title

    @property
    def spec(self) -> Spec:
        """Return the Vega-Lite specification, for other tools such as Altair; empty if the chart is only a table."""
        coloured: Spec = json.loads(_coloured(json.dumps(self.chart.spec)))
        return coloured

    def svg(self) -> str:
        """Return the chart as SVG.

        Raises:
            FairnessError: the chart consists of a table only, or the extra `report` is not installed.
        """
        if not self.chart.spec:
            raise FairnessError(f"{self.title!r} is a table without a drawing. Its numbers are in `plot.chart.table`.")
        try:
            # A white background, because the colours are made for light mode.
            drawn = vega.svg(replace(self.chart, spec={**self.chart.spec, "background": "#ffffff"}), "plot")
        except ImportError as error:
            raise FairnessError(
                "A drawing needs the package vl-convert-python, which is not installed. Install the extra `report`: "
                'pip install "pytest-fairness[report]"'
            ) from error
        return _coloured(drawn)

    def save(self, path: str | Path) -> None:
        """Write the chart to a file in the format of its suffix: `.svg`, `.png` or `.pdf`.

        Raises:
            FairnessError: the chart cannot be drawn (see `svg`), the suffix is unknown, or the file cannot be written.
        """
        path = Path(path)
        drawn = self.svg()
        # Deferred: vl-convert is an optional dependency of 30 MB.
        import vl_convert

        match path.suffix.lower():
            case ".svg":
                data = drawn.encode()
            case ".png":
                data = vl_convert.svg_to_png(drawn, scale=2)
            case ".pdf":
                data = vl_convert.svg_to_pdf(drawn)
            case _:
                raise FairnessError(f"{path}: the suffix selects the format of a chart and must be .svg, .png or .pdf.")
        try:
            replace_file(path, data)
        except OSError as error:
            raise FairnessError(f"{path}: cannot be written ({error.strerror or error}). Name another file.") from error

    def _repr_html_(self) -> str:
        try:
            drawn = self.svg()
        except FairnessError:
            drawn = html_format.table(self.chart.table.columns, self.chart.table.rows)
        return f"<figure><figcaption>{escape(self.title)}</figcaption>{drawn}</figure>"


def _coloured(text: str) -> str:
    return re.sub(r"var\(--([a-z-]+)\)", lambda name: COLOURS[name[1]], text)
