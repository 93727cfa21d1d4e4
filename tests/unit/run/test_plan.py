"""Plan of trials for a budget: its arithmetic."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from pytest_fairness.run.plan import PlannedItem, PlannedProbe, allocate


def probe(*errors: float, requests: int = 20, price: float = 1.0) -> PlannedProbe:
    items = [PlannedItem(f"item {number}", 0.1, 0.01, error) for number, error in enumerate(errors)]
    return PlannedProbe("probe.yaml", 10, requests, price, items)


def test_the_power_is_that_of_simulated_runs() -> None:
    item, random = PlannedItem("item", 0.1, 0.01, 0.5), np.random.default_rng(1)
    for trials in (20, 60, 200):
        error = 0.5 * math.sqrt(2 / trials)
        changes = random.normal(0.2, error, 200_000)
        found = np.mean((changes > 0.1) & (changes > 2.326348 * error))
        assert item.power(trials) == pytest.approx(found, abs=0.005)


@pytest.mark.parametrize("budget", [30, 100, 400, 3000])
def test_no_other_plan_within_the_budget_finds_much_more(budget: float) -> None:
    probes = [probe(0.3, 0.5), probe(0.8, requests=10), probe(0.2, price=3.0)]

    def cost(plan: tuple[int, ...]) -> float:
        return sum(each.cost(own) for each, own in zip(probes, plan, strict=True))

    def found(plan: tuple[int, ...]) -> float:
        return sum(each.power(own) for each, own in zip(probes, plan, strict=True))

    chosen = tuple(allocate(probes, budget))
    assert cost(chosen) <= budget
    sizes = [0, *(2**power for power in range(1, 10))]
    best = max(found(plan) for plan in product(sizes, repeat=3) if cost(plan) <= budget)
    assert found(chosen) >= best - 0.15


def test_nothing_is_spent_once_everything_is_found() -> None:
    assert allocate([probe(0.1)], 1e9)[0] < 1000
    assert allocate([probe(0.1)], 0.5) == [0]
