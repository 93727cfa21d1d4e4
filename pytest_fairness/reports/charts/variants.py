"""Chart of a probe's variants: how each variant changes the bias, the unusable answers and the quality."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import (
    SHOWN,
    Chart,
    Spec,
    Table,
    as_float,
    interval_of,
    interval_plot,
    reference_line,
)
from pytest_fairness.reports.items import variant_results
from pytest_fairness.reports.items.report_items import Item

HEADINGS = ("variant", "effect", "value", "change", "from", "to", "p", "unusable", "quality", "change in quality")


def compared(item: Item, _detail: Json) -> Chart | None:
    """Return a chart of the change of bias from the original prompt to each variant; `None` without variants."""
    variants = variant_results.variants_of(item)
    if not variants:
        return None
    text = " ".join(f"{sentence.removeprefix('variant ')}." for sentence in variant_results.sentences(item))
    return Chart(
        "Variants compared with the original prompt; below 0 is less bias",
        text,
        Table(HEADINGS, [_row(name, variant) for name, variant in variants.items()]),
        _spec(variants),
    )


def _row(name: str, variant: Mapping[str, Json]) -> list[Json]:
    if "error" in variant:
        return [name, f"not measured: {variant['error']}", *[None] * (len(HEADINGS) - 2)]
    quality, unusable = (
        detail if isinstance(detail := variant.get(key), Mapping) else {} for key in ("quality", "unusable")
    )
    low, high = interval_of(variant.get("change_interval")) or (None, None)
    numbers = (variant.get("change"), low, high, variant.get("p_value"), unusable.get("share"))
    return [name, variant.get("effect"), variant.get("value"), *numbers, quality.get("value"), quality.get("change")]


def _spec(variants: Mapping[str, Mapping[str, Json]]) -> Spec:
    rows: list[Spec] = []
    for name, variant in variants.items():
        change, ends = as_float(variant.get("change")), interval_of(variant.get("change_interval"))
        if change is not None:
            rows.append({"name": name, "mean": change, **({"low": ends[0], "high": ends[1]} if ends else {})})
    if not rows:
        return {}
    spec = interval_plot(rows[:SHOWN], "change")
    spec["layer"] += reference_line(0, "original prompt")
    return spec
