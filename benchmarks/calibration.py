"""How often verdicts are wrong: false alarms when nothing changed, and planted changes that are found.

    python -m benchmarks.calibration --repeats 300 --workers 2
    python -m benchmarks.calibration --show

Models are pretended, so that the truth is known; one part resamples recorded answers of the embedded model. Every
repeat draws two runs of one model, a baseline and a present one, measures, compares and judges them as the plugin
does, and judges them by the rules that are pasted from papers and tutorials as well. Counts are appended to
`benchmarks/calibration.jsonl`, so that repeats add up; `--show` makes the tables of them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulated import (
    choices,
    designs,
    pairs,
    ranked,
    recommender,
    refused,
    scored,
    scores,
    selections,
    sentences,
    spoken,
    stories,
    texts,
)
from benchmarks.simulated.scenario import Scenario
from benchmarks.timing import append_counts
from pytest_fairness.baselines.entries import Entry
from pytest_fairness.baselines.verdicts import tolerance_of
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Comparison, Measurement, VerdictName
from pytest_fairness.run import BaselineComparison, ItemMeasurement, ProbeItem, items_of
from pytest_fairness.run.results import verdict_on
from pytest_fairness.stats.intervals import wilson

COUNTS = Path(__file__).with_suffix(".jsonl")
FAILED = (VerdictName.REGRESSION, VerdictName.OVER_LIMIT)
WHOLE = "whole probe"
BATCH = 10
UNCHANGED, CHANGED = 300, 100
"""Repeats where nothing changed, and of each planted change, unless less is asked for."""

Row = dict[str, Any]


@cache
def scenarios() -> dict[tuple[str, str], Scenario]:
    """Every pretended model by its name and size."""
    kinds = (
        texts,
        ranked,
        choices,
        scored,
        scores,
        refused,
        recommender,
        pairs,
        spoken,
        sentences,
        stories,
        designs,
        selections,
    )
    return {(each.name, each.size): each for kind in kinds for each in kind.scenarios()}


def naive(part: ProbeItem, current: Measurement, baseline: Measurement) -> dict[str, bool]:
    """What the rules that are pasted from papers and tutorials say: whether they raise an alarm."""
    audit, tolerance = part.audit, tolerance_of(part.audit, part)
    alarms = {
        "value > baseline + tolerance": audit.info.loss(current.value) > audit.info.loss(baseline.value) + tolerance
    }
    match audit.info.name:
        case "jsd":
            alarms["divergence > 0.10"] = current.details["bits"] > 0.10
        case "svm":
            alarms["accuracy > 0.80"] = current.details["accuracy"] > 0.80
        case "marked_words":
            alarms["any |z| > 1.96"] = bool(current.details["words"])
        case "robustness":
            alarms["similarity < 0.59"] = current.value < 0.59
    return alarms


@dataclass(frozen=True)
class Judged:
    """What became of one item.

    Attributes:
        verdict: its name.
        moved: by how many tolerances the item is worse than the baseline; by how many words for `marked_words`.
        alarms: what naive rules say.
        asked: the answers that it took.
        decides: whether nothing more need be asked.
        change: since the baseline; `None` where nothing was compared.
    """

    verdict: VerdictName
    moved: float
    alarms: dict[str, bool]
    asked: set[tuple[str, int]]
    decides: bool
    change: Comparison | None = None


def judged(part: ProbeItem, current: Sequence[Answer], baseline: Sequence[Answer]) -> Judged:
    """Look at an item as often as its probe says, until its verdict is no longer open."""
    last = part.analyses[-1]
    used = [answer for answer in baseline if last.uses(answer.labels)]
    try:
        # A baseline is made of everything that may be asked.
        earlier = last.audit.measure(last, used)
    except NotMeasurable:
        return Judged(VerdictName.NOT_MEASURABLE, float("nan"), {}, set(), decides=False)
    for look in part.analyses:
        found = looked_at(look, current, baseline, earlier)
        if found.decides:
            break
    return found


def looked_at(part: ProbeItem, current: Sequence[Answer], baseline: Sequence[Answer], earlier: Measurement) -> Judged:
    """The verdict on as many of this run's answers as the look takes, against all of the baseline's."""
    trials = part.stage.trials
    current = [answer for answer in current if trials is None or answer.trial < trials]
    runs = [[answer for answer in run if part.uses(answer.labels)] for run in (current, baseline)]
    asked = {(json.dumps(dict(answer.labels), sort_keys=True), answer.trial) for answer in runs[0]}
    try:
        present = part.audit.measure(part, runs[0])
        if part.probe.sampling.temperature == 0:
            concerns = part.audit.concerns(part, runs[0], present)
            present = replace(present, concerns=tuple(concerns))
        comparison = part.audit.compare(part, *runs)
    except NotMeasurable:
        return Judged(VerdictName.NOT_MEASURABLE, float("nan"), {}, asked, decides=False)
    measured, before = (
        ItemMeasurement(part, "", runs[0], present),
        BaselineComparison(entry_of(earlier), (), comparison),
    )
    return Judged(
        verdict_on(measured, before).name,
        comparison.value / (tolerance_of(part.audit, part) or 1.0),
        naive(part, present, earlier),
        asked,
        verdict_on(measured, before).name is not VerdictName.INCONCLUSIVE,
        comparison,
    )


def entry_of(earlier: Measurement) -> Entry:
    """Return the entry of a baseline with this measurement."""
    return Entry.measured(earlier, target="", sampling={}, fingerprint={}, date="")


def errors(change: Comparison | None) -> dict[str, float]:
    """Return sums from which follow how well the standard error and the interval of the change are known."""
    if change is None or change.standard_error is None or change.interval is None:
        return {}
    low, high = change.interval
    return {
        "errors": 1,
        "change": change.value,
        "change squared": change.value**2,
        "error squared": change.standard_error**2,
        "covers 0": low <= 0 <= high,
    }


def repeated(key: tuple[str, str], change: float, seeds: Sequence[int]) -> list[Row]:
    """Return the rows of the scenario with this name and size, which no other process can be sent."""
    return repeat(scenarios()[key], change, seeds)


def repeat(scenario: Scenario, change: float, seeds: Sequence[int]) -> list[Row]:
    """Judge pairs of runs, one a seed; one row for each item of the probe, and one for the whole of it."""
    parts = items_of(scenario.probe)
    counted: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
    moves: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for seed in seeds:
        baseline, current = scenario.simulate(2 * seed, 0.0), scenario.simulate(2 * seed + 1, change)
        failed, naive_failed = False, False
        asked: set[tuple[str, int]] = set()
        for part in parts:
            planted = change > 0 and (part.subject or "") in scenario.planted
            found = judged(part, *(scenario.prepared(part, run) for run in (current, baseline)))
            count = counted[part.audit.info.name, planted]
            count["n"] += 1
            count[found.verdict.value] += 1
            count.update(f"naive: {rule}" for rule, alarm in found.alarms.items() if alarm)
            count.update(f"rule: {rule}" for rule in found.alarms)
            moves[part.audit.info.name, planted].append(found.moved)
            count.update(errors(found.change))
            asked |= found.asked
            failed |= found.verdict in FAILED
            naive_failed |= found.alarms.get("value > baseline + tolerance", False)
        counted[WHOLE, change > 0]["n"] += 1
        counted[WHOLE, change > 0]["asked"] += len(asked)
        counted[WHOLE, change > 0]["regression"] += failed
        counted[WHOLE, change > 0]["naive: value > baseline + tolerance"] += naive_failed
        counted[WHOLE, change > 0]["rule: value > baseline + tolerance"] += 1
    return [
        {
            "scenario": scenario.name,
            "size": scenario.size,
            "change": change,
            "audit": name,
            "planted": planted,
            "first": seeds[0],
            "counts": dict(count),
            "moved": float(np.nanmean(moves[name, planted])) if np.isfinite(moves[name, planted]).any() else None,
        }
        for (name, planted), count in counted.items()
    ]


def tasks(
    only: str, repeats: int, planted_repeats: int, changes: Sequence[float]
) -> Iterator[tuple[tuple[str, str], float, list[int]]]:
    """What is still to be done, in batches of seeds."""
    done = (
        {
            (row["scenario"], row["size"], row["change"], row["first"])
            for row in (json.loads(line) for line in COUNTS.read_text().splitlines())
        }
        if COUNTS.exists()
        else set()
    )
    for key, scenario in scenarios().items():
        if not " ".join(key).startswith(only):
            continue
        for change in (0.0, *scenario.changes):
            if changes and change not in changes:
                continue
            for first in range(0, planted_repeats if change else repeats, BATCH):
                if (*key, change, first) not in done:
                    yield key, change, list(range(first, first + BATCH))


def show() -> None:
    """Print what the counts say, with 95 % intervals."""
    total: dict[tuple[str, str, float, str, bool], Counter[str]] = defaultdict(Counter)
    moved: dict[tuple[str, str, float, str, bool], list[float]] = defaultdict(list)
    for line in COUNTS.read_text().splitlines():
        row = json.loads(line)
        key = row["scenario"], row["size"], row["change"], row["audit"], row["planted"]
        total[key].update(row["counts"])
        if row["moved"] is not None:
            moved[key].append(row["moved"])
    for key in sorted(total):
        count = total[key]
        n, failed = count["n"], sum(count[name.value] for name in FAILED)
        low, high = wilson(failed, n, 1.96)
        rules = "  ".join(
            f"{rule.removeprefix('rule: ')}: {count['naive: ' + rule.removeprefix('rule: ')] / known:.2f}"
            for rule, known in sorted(count.items())
            if rule.startswith("rule: ")
        )
        worse = f"{np.mean(moved[key]):+.2f}" if moved[key] else ""
        print(
            f"{key[0]:15} {key[1]:12} {key[2]:5} {key[3]:13} {'planted' if key[4] else '':8} n {n:5} "
            f"moved {worse:6} fail {failed / n:.4f} [{low:.3f}, {high:.3f}] "
            f"pass {count['pass'] / n:.2f} open {count['inconclusive'] / n:.2f} asked {count['asked'] / n:.0f}  {rules}"
        )


def main() -> None:
    """Add repeats, or show what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the tables and add nothing")
    parser.add_argument("--only", default="", help="models whose name and size begin so")
    parser.add_argument("--repeats", type=int, default=UNCHANGED, help="pairs of runs without a change")
    parser.add_argument("--planted", type=int, default=CHANGED, help="pairs of runs for each planted change")
    parser.add_argument("--change", type=float, nargs="+", default=[], help="only these, 0 for none; all by default")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    if given.show:
        show()
        return
    with ProcessPoolExecutor(given.workers) as pool, COUNTS.open("a") as file:
        work = [pool.submit(repeated, *task) for task in tasks(given.only, given.repeats, given.planted, given.change)]
        append_counts(work, file)


if __name__ == "__main__":
    main()
