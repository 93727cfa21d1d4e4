"""How items of the report document are read and ordered, alike in every report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.formatting import number, printable

Item = Mapping[str, Json]
"""An item of the report document."""

UNMARKED = "the unmarked group"

WORST_FIRST = [
    VerdictName.REGRESSION,
    VerdictName.OVER_LIMIT,
    VerdictName.STALE_BASELINE,
    VerdictName.NO_BASELINE,
    VerdictName.ERROR,
    VerdictName.NOT_MEASURABLE,
    VerdictName.INCONCLUSIVE,
    VerdictName.PASS,
]


def rank(item: Item) -> tuple[int, float, str]:
    """Sorts the worst verdict first, within it the change that most exceeds its tolerance."""
    change, tolerance = item["change"], item["tolerance"]
    worse = (change["value"] or 0.0) / (tolerance or 1.0) if change else 0.0
    return WORST_FIRST.index(VerdictName(item["verdict"])), -worse, item["nodeid"]


def outcome(item: Item) -> str:
    """How pytest counts the item: `passed`, `failed`, `inconclusive` or `error`."""
    return VerdictName(item["verdict"]).outcome


def reason(item: Item) -> str:
    """The reason without the item's id at its head, which not every reason has."""
    text: str = item["reason"]
    return text.removeprefix(f"{item['id']}: ")


def served_changes(items: Iterable[Item]) -> list[str]:
    """Return one sentence for each change of the models behind a target's name since the baseline."""
    found = {item["details"].get("served_model_changed") for item in items} - {None}
    return [f"served model changed: {printable(change)}" for change in sorted(map(str, found))]


def significant_within_tolerance(items: Iterable[Item]) -> list[str]:
    """Return one sentence for each item that passed although it is significantly worse than its baseline."""
    return [
        f"{printable(item['id'])}: significantly worse, within tolerance (by {number(item['change']['value'])} of "
        f"{number(item['tolerance'])})"
        for item in items
        if item["verdict"] == VerdictName.PASS and item["change"] and item["change"].get("significant")
        if item["change"]["value"] > 0
    ]


def target_of(name: str) -> str | None:
    """The name of the target that an item's id ends in, where there are several."""
    head, at, target = name.rpartition("@")
    # Labels, which may hold anything, stand in brackets.
    return target if head and at and "]" not in target else None


def sides(item: Item) -> tuple[str, str]:
    """Names of the marked and the unmarked group, as far as the item tells."""
    groups: Sequence[str] = list(item["n"]) or list(item["missing"])
    values = list(item["labels"].values())
    # The groups of an intersection are named by all its values: "Black woman".
    names = [" ".join(map(str, values[:count])) for count in range(len(values), 1, -1)]
    marked = next((name for name in [*names, *values] if name in groups), None)
    others = [group for group in groups if group != marked]
    return marked or "the marked group", others[0] if marked and len(others) == 1 else UNMARKED


def as_unmarked(name: str) -> str:
    """Return the name of the unmarked group with the words that it is that."""
    return name if name == UNMARKED else f"{UNMARKED} ({name})"


def mappings(value: Json) -> list[Mapping[str, Json]]:
    """Those members of a list that are mappings; none of anything else."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list | tuple) else []
