"""Trials of each probe with which a run of a given budget finds most (`--fairness-plan`), from recorded errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.baselines.entries import Entry
from pytest_fairness.baselines.files import read_baseline
from pytest_fairness.errors import counted
from pytest_fairness.option_types import Budget
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.records import Request
from pytest_fairness.reports.formatting import money, printable
from pytest_fairness.run import variants
from pytest_fairness.run.forecast import Forecaster, requests_by_key
from pytest_fairness.run.items import ProbeItem
from pytest_fairness.run.run import Run
from pytest_fairness.stats import intervals
from pytest_fairness.targets.base import Target

TIMES = 2
"""Size of the change that a plan wants to find, in tolerances: the smallest change that a pass excludes."""
TRIALS = sorted({size for step in range(4 * 17) if (size := round(2 ** (step / 4))) <= MAX_TRIALS})
"""Numbers of trials that a plan chooses from; neighbours differ by at most a fifth."""
LEAST_GAIN = 0.01
"""Smallest gain in the summed power of a probe's items for which a plan spends more."""


@dataclass(frozen=True)
class PlannedItem:
    """An item whose error is known from its baseline.

    Attributes:
        id: name of the item.
        tolerance, alpha: largest change that is allowed, and the level of its test.
        error_of_one: standard error of a value measured with one trial; it falls with the root of the trials.
    """

    id: str
    tolerance: float
    alpha: float
    error_of_one: float

    def power(self, trials: float) -> float:
        """Return the chance, 0..1, to find a change of `TIMES` tolerances; run and baseline have these trials."""
        error = self.error_of_one * math.sqrt(2 / trials)
        needed = max(intervals.quantile(1 - self.alpha) * error, self.tolerance)
        return intervals.upper_tail((needed - TIMES * self.tolerance) / error)


@dataclass(frozen=True)
class PlannedProbe:
    """A probe with its items; without items, it keeps its trials, for the `reason`.

    Attributes:
        file: path of the probe file.
        trials, requests: present number of trials, and of requests with them.
        price: price of a request, in the unit of the budget.
    """

    file: str
    trials: int
    requests: int
    price: float
    items: Sequence[PlannedItem]
    reason: str = ""

    def cost(self, trials: int) -> float:
        return self.price * self.requests * trials / self.trials

    def power(self, trials: int) -> float:
        """Return the sum of the items' chances."""
        return sum(item.power(trials) for item in self.items) if trials else 0.0


def allocate(probes: Sequence[PlannedProbe], budget: float) -> list[int]:
    """Return the number of trials of each probe, 0 for none, with which the summed chances of all items are largest.

    The largest gain per cost is bought first; a gain may need many trials, because few of them find nothing.
    """
    trials = [0] * len(probes)
    while True:
        left = budget - sum(probe.cost(own) for probe, own in zip(probes, trials, strict=True))
        gains = [
            (gain / cost, place, more)
            for place, probe in enumerate(probes)
            for more in TRIALS
            if more > trials[place]
            and (cost := probe.cost(more) - probe.cost(trials[place])) <= left
            and (gain := probe.power(more) - probe.power(trials[place])) > LEAST_GAIN
        ]
        if not gains:
            return trials
        _, place, trials_of_place = max(gains)
        trials[place] = trials_of_place


def plan_lines(
    run: Run, forecaster: Forecaster, selected: Iterable[tuple[str, Sequence[ProbeItem], Target | None]], budget: Budget
) -> list[str]:
    """Return the plan as lines, with the YAML to paste into each probe.

    Args:
        selected: file, items and target of each probe; `None` for a target that a fixture provides.
    """
    lines = [
        f"plan for {budget}: most chances to find a change of {TIMES} tolerances, with a new baseline of the same size"
    ]
    free, spent = list[PlannedProbe](), 0.0
    for path, items, target in selected:
        file = printable(path)
        probe = _planned(run, forecaster, file, items, target, budget)
        if probe is None:
            lines.append(f"  {file}: not planned, because the cost of a request is not known (fairness_prices)")
        elif probe.items:
            free.append(probe)
        else:
            spent += probe.cost(probe.trials)
            lines.append(f"  {file}: stays at {counted(probe.requests, 'request')}, because {probe.reason}")
    chosen = allocate(free, budget.amount - spent)
    spent += sum(probe.cost(own) for probe, own in zip(free, chosen, strict=True))
    for probe, own in zip(free, chosen, strict=True):
        if not own:
            lines.append(f"  {probe.file}: the budget is too small to find anything in it")
            continue
        chances = sorted((item.power(own), item.id) for item in probe.items)
        found = f"finds {chances[0][1]} in {min(chances[0][0], 0.99):.0%} of runs"
        found += f", its other items in {min(chances[1][0], 0.99):.0%} or more" if chances[1:] else ""
        requests = counted(round(probe.requests * own / probe.trials), "request")
        lines.append(f"  {probe.file}: {requests} (now {probe.requests:,}) {found}")
        lines.append(f"    trials: {own}")
    described = money(spent) if budget.is_money else f"{spent:,.0f} requests"
    return [*lines, f"the plan needs {described} a run"]


def _planned(
    run: Run, forecaster: Forecaster, file: str, items: Sequence[ProbeItem], target: Target | None, budget: Budget
) -> PlannedProbe | None:
    """Return the probe as a plan sees it; `None` if its requests have no known price."""
    if not items[0].asks:
        return PlannedProbe(file, 1, 0, 0.0, (), "its answers are in a file")
    requests: dict[str, Request] = {}
    for item in items:
        for final in (item.analyses[-1], *variants.further_items(item.analyses[-1])):
            requests |= requests_by_key(final.prompts(), target)
    price = forecaster.price_of_request(target, requests) if budget.is_money else 1.0
    if price is None:
        return None
    trials = max(item.analyses[-1].trial_count for item in items)
    baseline = read_baseline(run.settings.baselines, items[0].baseline_name)
    entries: Mapping[str, Entry] = {} if baseline is None else baseline.items
    known = [
        PlannedItem(item.id, tolerance, item.alpha, entry.standard_error * math.sqrt(sum(entry.n.values()) / per_trial))
        for item in items
        if item.audit.counted == "trials"
        and (entry := entries.get(item.id)) is not None
        and entry.standard_error
        and (tolerance := item.audit.tolerance_of(item.settings))
        and (per_trial := sum(1 for _ in item.analyses[-1].prompts()) / item.analyses[-1].trial_count)
    ]
    reason = "it has no baseline yet" if not entries else "its audits have no error that more trials make smaller"
    return PlannedProbe(file, trials, len(requests), price, known, "" if known else reason)
