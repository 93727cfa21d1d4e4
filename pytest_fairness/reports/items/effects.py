"""Effect sizes and p-values of the report document's items, as short texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_fairness.plurals import counted
from pytest_fairness.records import Size
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.items.report_items import Item

UNKNOWN = "unknown"
"""Word for the size of an effect that cannot be determined, for example with too few answers."""
FOUND = (Size.LARGE, Size.MODERATE, Size.SMALL)
"""Sizes of effects that count as differences."""
_ORDER = (*FOUND, UNKNOWN, Size.NONE, "")


def size_of(item: Item) -> str:
    """Return the size of an item's effect as a word: `none` to `large`, or `UNKNOWN`; empty without an effect size."""
    effect = item.get("effect")
    return "" if effect is None else effect["size"] or UNKNOWN


def largest_first(items: Sequence[Item]) -> list[Item]:
    """Return the items sorted by the size of the effect in words: large to small, unknown, none, no effect size."""
    return sorted(items, key=lambda item: (_ORDER.index(size_of(item)), item["nodeid"]))


def effect_text(item: Item) -> str:
    """Return the effect size with its symbol, as `h 0.62`; an empty text if the item has no effect size."""
    effect = item.get("effect")
    if effect is None:
        return ""
    value = "infinite" if effect["value"] is None else number(effect["value"])
    return f"{effect['name'].removeprefix('Cohen’s ')} {value}"


def p_text(item: Item) -> str:
    """Return the p-value as text; an empty text if the item has no test."""
    p_value = item["p_value"]
    return "" if p_value is None else "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def sizes(items: Sequence[Item]) -> str:
    """Return the number of measured items by size of effect: `3 measurements, without verdicts: 1 large difference, …`.

    Args:
        items: items that were measured without verdicts, or could not be measured.
    """
    counts = Counter(size_of(item) for item in items if item["value"] is not None)
    parts = [counted(counts[size], f"{size} difference") for size in FOUND if counts[size]]
    rest = {Size.NONE: "without a difference", UNKNOWN: "of unknown size", "": "without an effect size"}
    parts += [f"{counts[size]:,} {phrase}" for size, phrase in rest.items() if counts[size]]
    unmeasured = len(items) - counts.total()
    more = f"; {counted(unmeasured, 'item')} could not be measured" if unmeasured else ""
    return f"{counted(counts.total(), 'measurement')}, without verdicts: {', '.join(parts)}{more}"
