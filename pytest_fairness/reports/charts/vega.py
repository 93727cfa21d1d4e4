"""Pictures drawn as SVG by Vega (Satyanarayan et al. 2017), through vl-convert: no browser, no network.

Colours stay the page's CSS variables, so that a picture follows light, dark and print; there is no inline style, so
that the page's security policy can forbid it.
"""

from __future__ import annotations

from html import escape

from pytest_fairness.reports.charts.base import Picture, Spec

WIDTH, ROW = 520, 22
"""Of a picture, and the height of one of its rows, in pixels before scaling."""

SPARE = 1.2
"""Pixels left for each letter of a name: the reader's font may be wider than the one that is measured here."""

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
    },
    "legend": {"aria": False, "labelColor": "var(--text)", "labelFontSize": 12},
}


def svg(picture: Picture, name: str) -> str:
    """The picture as an SVG element, with its caption as title and what it shows as description.

    Args:
        picture: one that has a `spec`.
        name: unique on its page.
    """
    # Deferred: an extra, and 30 MB.
    import vl_convert

    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": WIDTH,
        "height": {"step": ROW},
        "padding": {"left": 4 + SPARE * _longest_name(picture.spec), "right": 16, "top": 4, "bottom": 2},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": None,
        "config": CONFIG,
        **picture.spec,
    }
    drawn = vl_convert.vegalite_to_svg(spec, vl_version="6.4", allowed_base_urls=[])
    start = drawn.index("<svg")
    head, body = drawn[start : drawn.index(">", start)], drawn[drawn.index(">", start) + 1 :]
    return (
        f'{head} role="img" aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{escape(picture.title)}</title>'
        f'<desc id="{name}-text">{escape(picture.text)}</desc>{body}'
    )


def _longest_name(spec: Spec) -> int:
    return max((min(28, len(str(row.get("name", "")))) for row in spec["data"]["values"]), default=0)
