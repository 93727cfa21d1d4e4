"""Change of a gap between two runs of different sizes, by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_fairness.stats.unit_statistics import LargestGap
from pytest_fairness.stats.unit_tables import UnitChange


@pytest.mark.parametrize("trials", [1, 10])
def test_equal_groups_do_not_seem_to_drift_apart_from_a_larger_baseline(trials: int) -> None:
    changes = []
    for seed in range(300):
        random = np.random.default_rng(seed)
        current, baseline = (random.normal(0, 0.1, size=(30, 2, size)).mean(axis=2) for size in (1, trials))
        changes.append(
            UnitChange.of(
                LargestGap(2),
                current,
                baseline,
                least_error=0.0,
                seed=str(seed),
                baseline_weight=trials / (1 + trials),
            )
        )
    values = np.array([change.value for change in changes])
    assert abs(values.mean()) < 3 * values.std() / np.sqrt(len(values))
    assert np.mean([change.standard_error for change in changes]) == pytest.approx(values.std(), rel=0.1)
    assert np.mean([change.p_value <= 0.05 for change in changes]) < 0.09
