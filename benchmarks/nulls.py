"""How often verdicts are wrong and intervals miss in designs of everyday use.

    python -m benchmarks.nulls --repeats 300 --workers 2
    python -m benchmarks.nulls --show

Each repeat draws two runs without a difference between groups and two with a planted difference. Three pairs are
measured, compared and judged as the plugin does: nothing differs, the same difference in both runs, and a difference
that is only in the second run. Counted are unchanged pairs that are a `regression`, values that are `over-limit`
although the true value equals the limit, and 95 % intervals that hold the true value and the true change. Where the
true value depends on the size of a run, the mean over all runs takes its place. The change of a pair of several groups
is truly 0 if the planted difference does not concern these groups; where no group is clearly ahead, a change of either
sign is the true one. Counts are appended to
`benchmarks/nulls.jsonl`; `python -m benchmarks.trust --nulls` writes them into the page.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration import entry_of
from benchmarks.simulated import everyday
from benchmarks.simulated.scenario import Scenario
from benchmarks.timing import append_counts
from pytest_fairness.audits import answer_checks
from pytest_fairness.audits.info import Direction
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, VerdictName
from pytest_fairness.run import BaselineComparison, ItemMeasurement, ProbeItem, items_of
from pytest_fairness.run.results import verdict_on

COUNTS = Path(__file__).with_suffix(".jsonl")
BATCH = 5
FEWER = {"mmd": 3, "svm": 3, "jsd": 3}
"""Audits that take long; of their repeats only one in so many is counted."""
BY_TEST = ("impact_ratio", "flip_rate")
"""Audits that are over-limit at the true value too, if there is an effect: if the groups differ, without a test of the
limit, or if a preference, which the value squares, is beyond the limit."""
STATES = ("nothing", "unchanged", "changed")
"""Nothing differs; the same planted difference in both runs; a difference that is only in the second run."""
STEPS = 20

Row = dict[str, Any]
Key = tuple[str, str, str, str]
"""Design, size, audit and state."""


@cache
def scenarios() -> dict[tuple[str, str], Scenario]:
    """Return every design by its name and size."""
    return {(each.name, each.size): each for each in everyday.scenarios()}


def measured(part: ProbeItem, run: Sequence[Answer]) -> ItemMeasurement:
    """Return the measurement of an item with the checks of its answers."""
    found = part.audit.measure(part, run)
    counted = part.audit.counted_answers(part, run)
    return ItemMeasurement(
        part, "", run, replace(found, concerns=answer_checks.concerns(part.audit, part, counted, found))
    )


def judged(found: ItemMeasurement | None, over: float | None, baseline: Sequence[Answer]) -> Row:
    """Return what becomes of a measured item: its value and its change with their intervals, and its verdicts.

    `over` is the result of `over_limit_until`.
    """
    if found is None:
        return {"verdict": VerdictName.NOT_MEASURABLE.value}
    try:
        change = found.item.audit.compare(found.item, found.answers, baseline)
    except NotMeasurable:
        return {"verdict": VerdictName.NOT_MEASURABLE.value}
    measurement = found.measurement
    # `flip_rate` shows a preference that grew in place of its square, whose true change is another one.
    of_second_test = change.pair is not None and found.item.audit.info.name == "flip_rate"
    verdict = verdict_on(found, BaselineComparison(entry_of(measurement), (), change))
    return {
        "verdict": verdict.name.value,
        "value": measurement.value,
        "p_value": measurement.p_value,
        "interval": measurement.interval,
        "change": change.value,
        "change_interval": None if of_second_test else change.interval,
        "change_error": change.standard_error,
        "change_p_value": change.p_value,
        "over": over,
        "groups": change.pair and [*change.pair.groups],
        "either_side": bool(change.details.get("either_side")),
    }


def over_limit_until(found: ItemMeasurement) -> float | None:
    """Return the loss of the largest limit with which a value is `over-limit`; `None` without such a limit."""
    part, info = found.item, found.item.audit.info

    def over(loss: float) -> bool:
        limit = -loss if info.better is Direction.HIGHER else loss
        settings = part.settings.model_copy(update={"limit": limit})
        limited = replace(found, item=replace(part, settings=settings))
        return verdict_on(limited, BaselineComparison()).name is VerdictName.OVER_LIMIT

    low, high = float(info.loss(ideal(part))), float(info.loss(found.measurement.value))
    if high <= low or not over(low):
        return None
    if over(high - 1e-9):
        return high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) else (low, middle)
    return low


def ideal(part: ProbeItem) -> float:
    """Return the value of an item if no group differs."""
    info = part.audit.info
    return info.best if info.best is not None else 1.0 if info.better is Direction.HIGHER else 0.0


def repeated(key: tuple[str, str], seeds: Sequence[int], audits: Sequence[str]) -> list[Row]:
    """Return a row for each item and state of the design with this name and size; one result for each seed."""
    return repeat(scenarios()[key], seeds, audits)


def repeat(scenario: Scenario, seeds: Iterable[int], audits: Sequence[str] = ()) -> list[Row]:
    """Return a row for each item and state of a design, with one result for each seed; see `judged`."""
    (effect,) = scenario.changes
    parts = [part.analyses[-1] for part in items_of(scenario.probe) if not audits or part.audit.info.name in audits]
    rows: dict[tuple[str, str], Row] = {}
    for seed in seeds:
        runs = {(half, change): scenario.simulate(2 * seed + half, change) for half in (0, 1) for change in (0, effect)}
        for part in parts:
            if seed % FEWER.get(part.audit.info.name, 1):
                continue
            own = {
                which: scenario.prepared(part, [answer for answer in run if part.uses(answer.labels)])
                for which, run in runs.items()
            }
            current: dict[float, tuple[ItemMeasurement, float | None]] = {}
            for change in (0, effect):
                with suppress(NotMeasurable):
                    measurement = measured(part, own[1, change])
                    current[change] = measurement, over_limit_until(measurement)
            for state, after, before in zip(STATES, (0, effect, effect), (0, effect, 0), strict=True):
                found, over = current.get(after, (None, None))
                row = rows.setdefault(
                    (part.id, state),
                    {
                        "design": scenario.name,
                        "size": scenario.size,
                        "audit": part.audit.info.name,
                        "item": part.id,
                        "state": state,
                        "truths": [_loss(part, scenario.truth(part, change)) for change in (before, after)],
                        "truth": scenario.truth(part, after),
                        "better": part.audit.info.better.value,
                        "harmed": scenario.harmed,
                        "results": {},
                    },
                )
                row["results"][seed] = judged(found, over, own[0, before])
    return list(rows.values())


def _loss(part: ProbeItem, value: float | None) -> float | None:
    return None if value is None else float(part.audit.info.loss(value))


@dataclass
class Cell:
    """Counts of one audit of a design in one state, by items.

    Attributes:
        runs: items that were measured, or could not be measured.
        judged: items that were measured.
        red: items that are a `regression`.
        over, limited: items that are `over-limit` although their true value equals the limit, and all for which this is
            an error. By the four-fifths rule, a ratio below the limit fails if the groups differ, whatever the limit.
        covers, intervals: intervals of values that hold the true value, and all of them.
        change_covers, change_intervals: the same of changes.
        errors: ratio of the standard error of the change to the standard deviation of the change, by item.
    """

    runs: int = 0
    judged: int = 0
    red: int = 0
    over: int = 0
    limited: int = 0
    covers: int = 0
    intervals: int = 0
    change_covers: int = 0
    change_intervals: int = 0
    errors: list[float] = field(default_factory=list)

    def add(self, other: Cell) -> None:
        """Add the counts of another cell."""
        for each in fields(Cell):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def read(path: Path) -> dict[Key, Cell]:
    """Return the counts of a file; of a repeat that was counted twice, the last result counts."""
    items: dict[tuple[str, ...], Row] = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        key = row["design"], row["size"], row["audit"], row["state"], row["item"]
        if key in items:
            items[key]["results"].update(row["results"])
        else:
            items[key] = row
    cells: dict[Key, Cell] = defaultdict(Cell)
    for (design, size, audit, state, _), row in items.items():
        _count(cells[design, size, audit, state], row)
    return dict(cells)


def _count(cell: Cell, row: Row) -> None:
    """Add the results of one item."""
    results = list(row["results"].values())
    usable = [each for each in results if "value" in each]
    cell.runs += len(results)
    cell.judged += len(usable)
    if not usable:
        return
    truth = row["truth"] if row["truth"] is not None else float(np.mean([each["value"] for each in usable]))
    before, after = row["truths"]
    if row["state"] != "changed":
        change = 0.0
    elif before is None or after is None:
        change = float(np.mean([abs(each["change"]) if each.get("either_side") else each["change"] for each in usable]))
    else:
        change = after - before
    limit = -truth if row["better"] == Direction.HIGHER.value else abs(truth)
    # Among several groups, either group of the pair that differs most may come first.
    either = (truth, -truth) if row["better"] == Direction.ZERO.value else (truth,)
    deviations = []
    for each in usable:
        changes = _true_changes(each, change, row.get("harmed"))
        deviations.append(min((each["change"] - true for true in changes), key=abs))
        cell.red += each["verdict"] == VerdictName.REGRESSION.value
        if row["state"] != "changed":
            if row["state"] == "nothing" or row["audit"] not in BY_TEST:
                cell.limited += 1
                cell.over += each["over"] is not None and each["over"] > limit + 1e-9
            cell.intervals += each["interval"] is not None
            cell.covers += any(_holds(each["interval"], value) for value in either)
        cell.change_intervals += each["change_interval"] is not None
        cell.change_covers += any(_holds(each["change_interval"], true) for true in changes)
    errors = [each["change_error"] for each in usable if each["change_error"] is not None]
    if len(errors) > 1 and (deviation := np.std(deviations, ddof=1)) > 0:
        cell.errors.append(float(np.sqrt(np.mean(np.square(errors))) / deviation))


def _true_changes(result: Row, change: float, harmed: str | None) -> tuple[float, ...]:
    """Return the true change of the pair of groups that a result is about, in either direction if that is unknown."""
    if result.get("groups") and harmed and harmed not in result["groups"]:
        return (0.0,)
    return (change, -change) if result.get("either_side") else (change,)


def _holds(interval: Sequence[float] | None, value: float) -> bool:
    return interval is not None and interval[0] - 1e-9 <= value <= interval[1] + 1e-9


def _share(hits: int, n: int) -> str:
    return f"{hits / n:6.1%}" if n else "     –"


def show(path: Path) -> None:
    """Print the counts."""
    for (design, size, audit, state), cell in sorted(read(path).items()):
        print(
            f"{design:26} {size:24} {audit:19} {state:10} n {cell.judged:4} of {cell.runs:4} "
            f"red {_share(cell.red, cell.judged)} over {_share(cell.over, cell.limited)} "
            f"covers {_share(cell.covers, cell.intervals)} change {_share(cell.change_covers, cell.change_intervals)} "
            f"error/SD {np.mean(cell.errors) if cell.errors else float('nan'):.2f}"
        )


def main() -> None:
    """Add repeats, or show what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the counts and add nothing")
    parser.add_argument("--counts", type=Path, default=COUNTS, help="file of the counts")
    parser.add_argument("--only", nargs="+", default=[""], help="designs whose name and size begin so")
    parser.add_argument("--audits", nargs="+", default=[], help="only these audits")
    parser.add_argument("--repeats", type=int, default=300, help="repeats of each design")
    parser.add_argument("--first", type=int, default=0, help="number of the first repeat")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    if given.show:
        show(given.counts)
        return
    keys = [key for key in scenarios() if " ".join(key).startswith(tuple(given.only))]
    batches = [range(first, first + BATCH) for first in range(given.first, given.first + given.repeats, BATCH)]
    # Each process has a folder of its own for answer files.
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool, given.counts.open("a") as file:
        work = [pool.submit(repeated, key, seeds, given.audits) for seeds in batches for key in keys]
        append_counts(work, file)


if __name__ == "__main__":
    main()
