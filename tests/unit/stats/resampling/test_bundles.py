"""Relabelling of bundles of units, in comparison with the relabelling of single units."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_fairness.stats import resampling
from pytest_fairness.stats import strata as stratified_difference
from pytest_fairness.stats.resampling import Bundles
from pytest_fairness.stats.strata import cell_sizes, odds_ratio, permuted_differences, precision


def units(seed: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    strata = random.integers(0, 5, number)
    marked = random.random(number) < 0.2 + 0.1 * strata
    return random.gamma(1.0, size=number) + strata + 0.05 * marked, marked, strata


@pytest.mark.parametrize("number", [3_000, 5_003])
def test_relabellings_keep_the_size_of_each_group_in_each_stratum(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "PACKS", 100)
    _, marked, strata = units(1, number)
    found = Bundles.of(marked, strata, np.random.default_rng(0))
    first = np.unique(found.numbers, return_index=True)[1]
    assert (marked[first][found.numbers] == marked).all()
    assert (strata[first][found.numbers] == strata).all()
    assert found.sizes.tolist() == np.bincount(found.numbers).tolist()
    labels = found.relabellings(50, np.random.default_rng(2))
    assert len(found.sizes) < 600
    assert len({row.tobytes() for row in labels}) == 50
    for stratum in range(5):
        own = strata[first] == stratum
        assert {*(labels[:, own] @ found.sizes[own]).tolist()} == {float(np.count_nonzero(marked[strata == stratum]))}
    columns = np.stack([marked, strata], axis=1).astype(np.float64)
    sums = found.indicator() @ columns
    assert sums.sum(axis=0).tolist() == columns.sum(axis=0).tolist()
    parts = [found.indicator(start, start + 1000) @ columns[start : start + 1000] for start in range(0, number, 1000)]
    assert np.sum(parts, axis=0).tolist() == sums.tolist()


def test_the_null_distribution_is_that_of_single_units(monkeypatch: pytest.MonkeyPatch) -> None:
    values, marked, strata = units(2, 6_000)
    alone, _ = resampling.relabellings(marked, strata, 1999, np.random.default_rng(1))
    sums = alone @ values
    monkeypatch.setattr(resampling, "PACKS", 400)
    spreads, means = [], []
    for seed in range(10):
        found = Bundles.of(marked, strata, np.random.default_rng(seed))
        drawn = found.relabellings(1999, np.random.default_rng(seed)) @ np.bincount(found.numbers, values)
        spreads.append(drawn.std())
        means.append(drawn.mean())
    assert np.mean(spreads) == pytest.approx(sums.std(), rel=0.05)
    assert max(abs(spread / sums.std() - 1) for spread in spreads) < 0.15
    assert means == pytest.approx([sums.mean()] * 10, abs=4 * sums.std() / np.sqrt(400))


def test_differences_and_odds_ratios_of_many_units(monkeypatch: pytest.MonkeyPatch) -> None:
    values, marked, strata = units(3, 8_000)
    weights = precision(*cell_sizes(marked, strata, 5))
    counts = np.stack([np.round(values), 40 + np.round(values)], axis=1)

    def measured() -> tuple[float, float, list[float]]:
        null, exact = permuted_differences(values, marked, strata, weights, 999, np.random.default_rng(4))
        assert not exact
        _, interval, p_value = odds_ratio(counts, marked, strata, 999, np.random.default_rng(5))
        assert interval is not None
        assert p_value is not None
        return float(null.std()), p_value, interval

    sd, p_value, interval = measured()
    monkeypatch.setattr(stratified_difference, "LARGEST_UNBUNDLED", 4_000)
    monkeypatch.setattr(resampling, "PACKS", 1_000)
    bundled = measured()
    assert bundled[0] != sd
    assert bundled[0] == pytest.approx(sd, rel=0.12)
    assert bundled[1] == pytest.approx(p_value, abs=0.05)
    assert np.log(bundled[2]) == pytest.approx(np.log(interval), abs=0.2 * np.log(interval[1] / interval[0]))
