"""What a report says of a probe's variants: out of an item's details, in words."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.report_items import Item

Variant = Mapping[str, Json]
"""What was found of one variant; see `run.variants`."""


def of(item: Item) -> dict[str, Variant]:
    """What was found of each variant, by name; those first that lower bias, the most first."""
    details = item["details"].get("variants")
    if not isinstance(details, Mapping):
        return {}
    found = {str(name): part for name, part in details.items() if isinstance(part, Mapping)}
    return dict(sorted(found.items(), key=lambda pair: (*_rank(pair[1]), pair[0])))


def sentences(item: Item) -> list[str]:
    """A sentence on each variant: whether it lowers bias, by how much, and at what price."""
    return [f"variant {name}: {_told(item, variant)}" for name, variant in of(item).items()]


def _rank(variant: Variant) -> tuple[int, float]:
    order = ("lower", "unclear", "higher")
    effect = variant.get("effect")
    return order.index(effect) if effect in order else len(order), variant.get("change") or 0.0


def _told(item: Item, variant: Variant) -> str:
    if "error" in variant:
        return f"not measured: {variant['error']}"
    change, ends = variant.get("change") or 0.0, variant.get("change_interval")
    span = "" if not ends else f" [{number(min(map(abs, ends)))}, {number(max(map(abs, ends)))}]"
    match variant.get("effect"):
        case "lower":
            told = f"less bias, by {number(abs(change))}{span}"
        case "higher":
            told = f"more bias, by {number(abs(change))}{span}"
        case _:
            signed = "" if not ends else f" [{number(ends[0])}, {number(ends[1])}]"
            told = f"no significant change, {'+' if change > 0 else ''}{number(change)}{signed}"
            told += f", as {variant['unclear']}" if variant.get("unclear") else ""
    told += f": {number(variant.get('value'))} in place of {number(item['value'])}"
    return "; ".join([told, *_price(variant)])


def _price(variant: Variant) -> list[str]:
    quality, unusable = variant.get("quality"), variant.get("unusable")
    parts = []
    if isinstance(quality, Mapping):
        ends = quality.get("interval")
        span = "" if not ends else f", change [{number(ends[0])}, {number(ends[1])}]"
        parts.append(
            f"{quality.get('measure')} {number(quality.get('value'))} in place of {number(quality.get('own'))}{span}"
        )
    if isinstance(unusable, Mapping) and (unusable.get("share") or unusable.get("own")):
        parts.append(f"unusable answers {unusable['share']:.0%} in place of {unusable['own']:.0%}")
    return parts
