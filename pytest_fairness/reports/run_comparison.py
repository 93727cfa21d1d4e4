"""What changed between two runs, out of their report documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_fairness.records import Interval, Json, VerdictName
from pytest_fairness.reports.report_items import WORST_FIRST, Item

State = Literal["worse", "new", "gone", "better", "moved", "same"]
"""What became of an item: `worse` and `better` are other verdicts, `moved` is a value whose 95 % interval of the
difference leaves 0 out."""

ORDER: Sequence[State] = ("worse", "new", "gone", "moved", "better", "same")
"""As items are listed."""

FACTS = ("target", "tool", "started", "seconds")
COUNTS = ("total", "passed", "failed", "inconclusive", "errors")
Z = 1.959964
"""Of a two-sided 95 % interval of the normal distribution."""


@dataclass(frozen=True)
class Moved:
    """One item in two runs.

    Attributes:
        probe, id: its names.
        state: what became of it.
        old, new: the item in either document; `None` where it is not.
        difference: new value minus old value; `None` where one is missing.
        interval: 95 % of the difference, as of independent runs; `None` where a standard error is missing.
    """

    probe: str
    id: str
    state: State
    old: Item | None
    new: Item | None
    difference: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Changes:
    """What changed between two runs.

    Attributes:
        items: all items of either, what matters most first.
        facts: rows of a name and both runs' values: targets, dates, counts and requests.
    """

    items: Sequence[Moved]
    facts: Sequence[tuple[str, Json, Json]]

    def count(self, state: State) -> int:
        """How many items came to this."""
        return sum(item.state == state for item in self.items)

    @property
    def told(self) -> Sequence[Moved]:
        """The items that are not the same."""
        return [item for item in self.items if item.state != "same"]


def compare(old: Mapping[str, Json], new: Mapping[str, Json]) -> Changes:
    """Compare two report documents; items are the same by probe and id."""
    before, after = ({(item["probe"], item["id"]): item for item in document["items"]} for document in (old, new))
    items = [_moved(*key, before.get(key), after.get(key)) for key in sorted({*before, *after})]
    facts: list[tuple[str, Json, Json]] = [
        *((name, old[name], new[name]) for name in FACTS),
        *((name, old["summary"][name], new["summary"][name]) for name in COUNTS),
        *(
            (
                name.replace("_", " ")
                if name in ("prompt_tokens", "completion_tokens", "cost")
                else f"requests {name}",
                count,
                new["requests"][name],
            )
            for name, count in old["requests"].items()
        ),
    ]
    return Changes(sorted(items, key=_rank), facts)


def _moved(probe: str, name: str, old: Item | None, new: Item | None) -> Moved:
    if old is None or new is None:
        return Moved(probe, name, "new" if old is None else "gone", old, new, None, None)
    difference, interval = _difference(old, new)
    places = [WORST_FIRST.index(VerdictName(item["verdict"])) for item in (old, new)]
    state: State = "same"
    if places[0] != places[1]:
        state = "worse" if places[1] < places[0] else "better"
    elif interval is not None and not interval[0] <= 0 <= interval[1]:
        state = "moved"
    return Moved(probe, name, state, old, new, difference, interval)


def _difference(old: Item, new: Item) -> tuple[float | None, Interval | None]:
    if old["value"] is None or new["value"] is None:
        return None, None
    difference = float(new["value"] - old["value"])
    if old["standard_error"] is None or new["standard_error"] is None:
        # Of a count, say, every difference is one.
        return difference, None
    reach = Z * math.hypot(old["standard_error"], new["standard_error"])
    return difference, (difference - reach, difference + reach)


def _rank(item: Moved) -> tuple[int, int, str, str]:
    verdict = WORST_FIRST.index(VerdictName(item.new["verdict"])) if item.new else len(WORST_FIRST)
    return ORDER.index(item.state), verdict, item.probe, item.id
