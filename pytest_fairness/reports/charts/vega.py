"""Rendering of charts as SVG by Vega (Satyanarayan et al. 2017) through vl-convert, without browser or network.

Colours are CSS variables of the page, so that a chart follows light mode, dark mode and print. The SVG contains no
inline style, because the page's content security policy forbids it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from html import escape

from pytest_fairness.records import without_nonfinite
from pytest_fairness.reports.charts.base import Chart, Spec

WIDTH, ROW = 520, 22
"""Width of a chart and height of one of its rows, in pixels before scaling."""

LETTER_PADDING = 1.2
"""Additional pixels for each letter of a name, because the reader's font may be wider than vl-convert's font."""

KEPT = 32
"""Number of drawings that are kept for equal charts; drawing takes about 20 ms."""

CONFIG: Spec = {
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "mark": {"aria": False},
    "axis": {
        "aria": False,
        "labelColor": "var(--text)",
        "titleColor": "var(--text)",
        "gridColor": "var(--line)",
        "tickColor": "var(--quiet)",
        "domainColor": "var(--quiet)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": 200,
        "labelOverlap": "greedy",
        "labelSeparation": 8,
    },
    "legend": {"aria": False, "labelColor": "var(--text)", "labelFontSize": 12},
}


def svg(chart: Chart, name: str) -> str:
    """Return the chart as an SVG element with title and description.

    Args:
        chart: a chart with a `spec`.
        name: prefix of the element's ids, unique on the page.
    """
    longest_name = max((min(28, len(str(row.get("name", "")))) for row in chart.spec["data"]["values"]), default=0)
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": WIDTH,
        "height": {"step": ROW},
        "padding": {"left": 4 + LETTER_PADDING * longest_name, "right": 16, "top": 4, "bottom": 2},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": None,
        "config": CONFIG,
        **chart.spec,
    }
    # Deferred: vl-convert is an optional dependency of 30 MB.
    import vl_convert

    drawn = _drawn(vl_convert.vegalite_to_svg, json.dumps(without_nonfinite(spec)))
    start = drawn.index("<svg")
    head, body = drawn[start : drawn.index(">", start)], drawn[drawn.index(">", start) + 1 :]
    return (
        f'{head} role="img" aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{escape(chart.title)}</title>'
        f'<desc id="{name}-text">{escape(chart.text)}</desc>{body}'
    )


@lru_cache(KEPT)
def _drawn(draw: Callable[..., str], spec: str) -> str:
    """Return the SVG for a specification in JSON; equal specifications are drawn only once."""
    return draw(spec, vl_version="6.4", allowed_base_urls=[])
