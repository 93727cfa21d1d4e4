"""Comparison of two report documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_fairness.records import Interval, Json, VerdictName
from pytest_fairness.reports.items.report_items import WORST_FIRST, Item
from pytest_fairness.stats.intervals import normal

State = Literal["worse", "new", "removed", "better", "value changed", "unchanged"]
"""State of an item in the new run.

`worse` and `better` refer to the verdict. `value changed` means that the verdict is the same, but the 95 % confidence
interval of the difference excludes 0.
"""

ORDER: Sequence[State] = ("worse", "new", "removed", "value changed", "better", "unchanged")
"""Order in which items are listed."""

FACTS = ("target", "target_version", "commit", "tool", "started", "seconds")
"""Keys of facts about runs in the report document. Reports of earlier versions lack some facts."""
NAMES = {
    "target_version": "version of the target",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "cost": "cost",
    "oldest_reused": "oldest reused answer",
    "known": "known failures",
}
"""Names of facts by key.

A fact that is not listed is shown by its key; if it is a fact about requests, by `requests` and its key.
"""
COUNTS = ("total", "passed", "failed", "inconclusive", "errors", "known")


@dataclass(frozen=True)
class ItemComparison:
    """Comparison of one item between two runs.

    Attributes:
        probe, id: name of the probe and id of the item.
        state: how the item changed.
        old, new: the item in the old and the new report document; `None` if it is absent there.
        difference: new value minus old value; `None` if a value is missing.
        interval: 95 % confidence interval of the difference, as if the runs were independent; `None` if a value or
            a standard error is missing.
    """

    probe: str
    id: str
    state: State
    old: Item | None
    new: Item | None
    difference: float | None
    interval: Interval | None


@dataclass(frozen=True)
class RunComparison:
    """Comparison of two runs.

    Attributes:
        items: all items of both runs, ordered by state.
        facts: targets, dates, counts and requests of both runs; each fact has a name, an old value and a new value.
    """

    items: Sequence[ItemComparison]
    facts: Sequence[tuple[str, Json, Json]]

    def count(self, state: State) -> int:
        """Return the number of items with this state."""
        return sum(item.state == state for item in self.items)

    @property
    def changed_items(self) -> Sequence[ItemComparison]:
        """Return the items that changed, appeared or disappeared."""
        return [item for item in self.items if item.state != "unchanged"]


def compare(old: Mapping[str, Json], new: Mapping[str, Json]) -> RunComparison:
    """Return the comparison of two report documents, whose items are matched by probe and id."""
    old_items, new_items = (
        {(item["probe"], item["id"]): item for item in document["items"]} for document in (old, new)
    )
    items = [_change(*key, old_items.get(key), new_items.get(key)) for key in sorted({*old_items, *new_items})]
    facts: list[tuple[str, Json, Json]] = [
        *((NAMES.get(name, name), old.get(name), new.get(name)) for name in FACTS),
        *((NAMES.get(name, name), old["summary"].get(name, 0), new["summary"].get(name, 0)) for name in COUNTS),
        *(
            (NAMES.get(name, f"requests {name}"), count, new["requests"][name])
            for name, count in old["requests"].items()
            if name != "failures"  # their number is a fact of its own
        ),
    ]
    return RunComparison(sorted(items, key=_sort_key), facts)


def _change(probe: str, name: str, old: Item | None, new: Item | None) -> ItemComparison:
    if old is None or new is None:
        return ItemComparison(probe, name, "new" if old is None else "removed", old, new, None, None)
    difference, interval = _difference(old, new)
    ranks = [WORST_FIRST.index(VerdictName(item["verdict"])) for item in (old, new)]
    state: State = "unchanged"
    if ranks[0] != ranks[1]:
        state = "worse" if ranks[1] < ranks[0] else "better"
    elif interval is not None and not interval[0] <= 0 <= interval[1]:
        state = "value changed"
    return ItemComparison(probe, name, state, old, new, difference, interval)


def _difference(old: Item, new: Item) -> tuple[float | None, Interval | None]:
    if old["value"] is None or new["value"] is None:
        return None, None
    difference = float(new["value"] - old["value"])
    if old["standard_error"] is None or new["standard_error"] is None:
        return difference, None
    return difference, normal.interval(difference, math.hypot(old["standard_error"], new["standard_error"]))


def _sort_key(item: ItemComparison) -> tuple[int, int, str, str]:
    verdict = WORST_FIRST.index(VerdictName(item.new["verdict"])) if item.new else len(WORST_FIRST)
    return ORDER.index(item.state), verdict, item.probe, item.id
