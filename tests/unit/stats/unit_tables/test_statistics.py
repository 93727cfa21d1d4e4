"""Statistics of column means: their gradients against finite differences, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_fairness.stats.unit_statistics import (
    Evenness,
    LargestGap,
    ShareDifferenceOfAnswers,
    ShareGap,
    SignedGap,
    StandardDeviation,
)
from pytest_fairness.stats.unit_tables import (
    DistanceFromMiddle,
    Mean,
    Ratio,
    Sample,
    ShareDifference,
    TwoSidedShareDifference,
    UnitChange,
    UnitStatistic,
)

STEP = 1e-6
FOUR = np.array([0.31, 0.74, 0.52, 0.13])


def loss(statistic: UnitStatistic, means: np.ndarray) -> float:
    """Return the number of which `loss_gradient` is the gradient."""
    if statistic.distance is not None:
        return float(statistic.distance.size(statistic.groups(means)))
    value = float(statistic.value(means))
    return -value if isinstance(statistic, Mean) and statistic.higher_is_better else value


@pytest.mark.parametrize(
    ("statistic", "means"),
    [
        (Mean(), FOUR[:1]),
        (Mean(higher_is_better=True), FOUR[:1]),
        (DistanceFromMiddle(100.0, ("stereotype", "anti-stereotype")), np.array([37.0])),
        (ShareDifference(), FOUR[:2]),
        (TwoSidedShareDifference(), FOUR[:2]),
        (Ratio(), FOUR[:2]),
        (LargestGap(4), FOUR),
        (SignedGap(4), FOUR),
        (SignedGap(4, quantities=2), np.array([0.3, 0.1, 0.2, 0.55])),
        (ShareGap(1, 2), FOUR),
        (ShareGap(2, 2), np.array([0.3, 0.1, 0.2, 0.35, 0.5, 0.5, 0.4, 0.6])),
        (StandardDeviation(), FOUR),
        (Evenness(), FOUR),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, UnitStatistic) else None,
)
def test_the_gradient_of_the_loss_agrees_with_finite_differences(statistic: UnitStatistic, means: np.ndarray) -> None:
    moved = [means + STEP * column for column in np.eye(len(means))]
    expected = [(loss(statistic, each) - loss(statistic, means)) / STEP for each in moved]
    assert statistic.loss_gradient(means) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    ("statistic", "true", "columns"),
    [
        (Mean(), 0.3, [0.3]),
        (LargestGap(3), 0.4, [0.3, 0.5, 0.7]),
        (StandardDeviation(), 0.2 * (2 / 3) ** 0.5, [0.3, 0.5, 0.7]),
    ],
)
def test_the_interval_covers_the_true_value(statistic: UnitStatistic, true: float, columns: list[float]) -> None:
    random = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        rows = (random.random((200, len(columns))) < columns).astype(float)
        low, high = statistic.interval(Sample(rows, rows.mean(axis=0)))
        held += low <= true <= high
    assert held / 400 > 0.92, "0.95, and what 400 tables leave open"


@pytest.mark.parametrize("statistic", [SignedGap(2), ShareDifferenceOfAnswers()])
def test_the_direction_of_a_gap_is_independent_of_its_change_from_a_larger_baseline(statistic: UnitStatistic) -> None:
    random, units, trials = np.random.default_rng(3), 60, 10
    changes, p_values = [], []
    for seed in range(300):
        chance = random.uniform(0.3, 0.7, (units, 1))
        current = random.binomial(1, chance, (units, 2)).astype(float)
        baseline = random.binomial(trials, chance, (units, 2)) / trials
        if isinstance(statistic, ShareDifferenceOfAnswers):
            current, baseline = (np.hstack([rows, np.ones((units, 2))]) for rows in (current, baseline))
        change = UnitChange.of(
            statistic, current, baseline, least_error=0.1, seed=str(seed), baseline_weight=trials / (1 + trials)
        )
        changes.append(change.value / change.standard_error)
        p_values.append(change.p_value)
    assert np.mean(changes) == pytest.approx(0, abs=0.15)
    assert np.std(changes) == pytest.approx(1, abs=0.12)
    assert np.mean(np.array(p_values) <= 0.05) == pytest.approx(0.05, abs=0.03)
