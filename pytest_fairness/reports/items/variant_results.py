"""Results of a probe's variants, read from an item's details, and sentences about the results."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.items.report_items import Item

Variant = Mapping[str, Json]
"""Result of one variant; see `run.measuring.variants.with_variants`."""


def variants_of(item: Item) -> dict[str, Variant]:
    """Return each variant's result by the variant's name.

    Variants with less bias come first, then variants with an unclear effect, with more bias, and with an error.
    """
    details = item["details"].get("variants")
    if not isinstance(details, Mapping):
        return {}
    variants = {str(name): part for name, part in details.items() if isinstance(part, Mapping)}
    return dict(sorted(variants.items(), key=lambda pair: (*_rank(pair[1]), pair[0])))


def sentences(item: Item) -> list[str]:
    """Return a sentence for each variant: its effect on bias, and its cost in quality and unusable answers."""
    return [f"variant {name}: {_sentence(item, variant)}" for name, variant in variants_of(item).items()]


def _rank(variant: Variant) -> tuple[int, float]:
    order = ("lower", "unclear", "higher")
    effect = variant.get("effect")
    return order.index(effect) if effect in order else len(order), variant.get("change") or 0.0


def _sentence(item: Item, variant: Variant) -> str:
    if "error" in variant:
        return f"not measured: {variant['error']}"
    change, ends = variant.get("change") or 0.0, variant.get("change_interval")
    span = "" if not ends else f" [{number(min(map(abs, ends)))}, {number(max(map(abs, ends)))}]"
    match variant.get("effect"):
        case "lower":
            text = f"less bias, by {number(abs(change))}{span}"
        case "higher":
            text = f"more bias, by {number(abs(change))}{span}"
        case _:
            signed = "" if not ends else f" [{number(ends[0])}, {number(ends[1])}]"
            text = f"no significant change, {'+' if change > 0 else ''}{number(change)}{signed}"
            text += f", because {variant['unclear']}" if variant.get("unclear") else ""
    text += f"; value {number(variant.get('value'))} instead of {number(item['value'])}"
    return "; ".join([text, *_cost(variant)])


def _cost(variant: Variant) -> list[str]:
    quality, unusable = variant.get("quality"), variant.get("unusable")
    parts = []
    if isinstance(quality, Mapping):
        ends = quality.get("interval")
        span = "" if not ends else f", change [{number(ends[0])}, {number(ends[1])}]"
        parts.append(
            f"{quality.get('measure')} {number(quality.get('value'))} instead of {number(quality.get('own'))}{span}"
        )
    if isinstance(unusable, Mapping) and (unusable.get("share") or unusable.get("own")):
        parts.append(f"unusable answers {unusable['share']:.0%} instead of {unusable['own']:.0%}")
    return parts
