"""How much faster many lists are compared than by LangFair, on the same lists, with the same numbers.

    pip install --no-deps langfair
    python benchmarks/lists.py

Without its dependencies LangFair lacks most of itself; what compares lists needs NumPy alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_fairness.stats.gaps import value_range, value_sd
from pytest_fairness.stats.ranked_lists import Measure, Pairs

LEAST = 20
K = 25
NAMES: dict[Measure, str] = {"jaccard": "Jaccard", "serp": "SERP", "prag": "PRAG"}
Table = dict[str, tuple[float, float]]
"""SNSR and SNSV by measure."""


def main() -> None:
    """Measure, print the ratios, and end with 1 if one is too low or a number differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=500, help="each of them makes two pairs of lists")
    parser.add_argument("--repeats", type=int, default=5, help="of which the fastest counts")
    given = parser.parse_args()
    try:
        from langfair.metrics.recommendation import RecommendationMetrics
    except ImportError:
        sys.exit("LangFair is not installed: pip install --no-deps langfair")

    random = np.random.default_rng(1)
    titles = [f"Song number {number}" for number in range(2 * K)]

    def lists() -> dict[str, list[str]]:
        return {
            str(number): [titles[place] for place in random.permutation(2 * K)[:K]] for number in range(given.entities)
        }

    neutral, groups = lists(), [lists(), lists()]
    metrics: Any = RecommendationMetrics()

    def theirs() -> Table:
        found = metrics.evaluate_against_neutral(group_dict_list=groups, neutral_dict=neutral)
        return {name: (float(part["SNSR"]), float(part["SNSV"])) for name, part in found.items()}

    def ours() -> Table:
        pairs = Pairs(
            [items for group in groups for items in group.values()],
            [items for _ in groups for items in neutral.values()],
            variant="langfair",
            k=K,
        )
        means = {name: pairs.similarities(measure).reshape(2, -1).mean(axis=1) for measure, name in NAMES.items()}
        return {name: (float(value_range(mean)), float(value_sd(mean))) for name, mean in means.items()}

    (their_seconds, their_table), (own_seconds, own_table) = (fastest(each, given.repeats) for each in (theirs, ours))
    for name, numbers in own_table.items():
        np.testing.assert_allclose(numbers, their_table[name], rtol=0, atol=1e-12)
        print(f"{name:8} SNSR {numbers[0]:.6f} SNSV {numbers[1]:.6f}, the same by both")
    ratio = their_seconds / own_seconds
    print(
        f"{2 * given.entities} pairs of {K} by all three measures: {1000 * own_seconds:.1f} ms, "
        f"LangFair {1000 * their_seconds:.1f} ms, {ratio:.0f} times (at least {LEAST})"
    )
    sys.exit(ratio < LEAST)


def fastest(work: Callable[[], Table], repeats: int) -> tuple[float, Table]:
    """Seconds of the fastest repeat, and the result."""
    seconds, result = float("inf"), dict[str, tuple[float, float]]()
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - started)
    return seconds, result


if __name__ == "__main__":
    main()
