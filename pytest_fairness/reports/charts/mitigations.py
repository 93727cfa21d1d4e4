"""The variants of a probe side by side: by how much each moves an item's value, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports import variant_results
from pytest_fairness.reports.charts.base import SHOWN, Picture, Spec, Table, finite, pair, rule, whiskers
from pytest_fairness.reports.report_items import Item

_HEAD = ("variant", "effect", "value", "change", "from", "to", "p", "unusable", "quality", "change of quality")


def compared(item: Item, _detail: Json) -> Picture | None:
    """The change from the probe's own wording, with its interval; left of 0 is less bias."""
    found = variant_results.of(item)
    if not found:
        return None
    told = " ".join(f"{sentence.removeprefix('variant ')}." for sentence in variant_results.sentences(item))
    return Picture(
        "Variants against the probe’s own wording, left of 0: less bias",
        told,
        Table(_HEAD, [_row(name, variant) for name, variant in found.items()]),
        _spec(found),
    )


def _row(name: str, variant: Mapping[str, Json]) -> list[Json]:
    if "error" in variant:
        return [name, f"not measured: {variant['error']}", *[None] * (len(_HEAD) - 2)]
    quality, unusable = (
        part if isinstance(part := variant.get(key), Mapping) else {} for key in ("quality", "unusable")
    )
    low, high = pair(variant.get("change_interval")) or (None, None)
    numbers = (variant.get("change"), low, high, variant.get("p_value"), unusable.get("share"))
    return [name, variant.get("effect"), variant.get("value"), *numbers, quality.get("value"), quality.get("change")]


def _spec(found: Mapping[str, Mapping[str, Json]]) -> Spec:
    rows: list[Spec] = []
    for name, variant in found.items():
        change, ends = finite(variant.get("change")), pair(variant.get("change_interval"))
        if change is not None:
            rows.append({"name": name, "mean": change, **({"low": ends[0], "high": ends[1]} if ends else {})})
    if not rows:
        return {}
    spec = whiskers(rows[:SHOWN], "change")
    spec["layer"] += rule(0, "own wording")
    return spec
