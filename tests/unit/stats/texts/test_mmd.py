"""The unbiased squared maximum mean discrepancy, against its definition and against chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pytest_fairness.stats import resampling, two_samples

Floats = Any


def by_definition(kernel: Floats, first: Floats, second: Floats) -> float:
    """Gretton et al. 2012, equation 3, pair by pair."""
    within = [
        sum(kernel[i, j] for i in side for j in side if i != j) / (len(side) * (len(side) - 1))
        for side in (first, second)
    ]
    return float(sum(within) - 2 * sum(kernel[i, j] for i in first for j in second) / (len(first) * len(second)))


def combined(kernel: Floats, strata: Floats, marked: Floats) -> float:
    """The estimate over several strata, pair by pair."""
    sides = [[np.flatnonzero((strata == s) & (marked == side)) for side in (True, False)] for s in np.unique(strata)]
    precision = np.array([len(x) * len(y) / (len(x) + len(y)) for x, y in sides])
    weights = precision / precision.sum()
    measured = [index for index, (x, y) in enumerate(sides) if min(len(x), len(y)) > 1]
    within = sum(weights[i] * by_definition(kernel, *sides[i]) for i in measured)
    within /= sum(weights[i] for i in measured) or 1.0
    between = 0.0
    for s, (x, y) in enumerate(sides):
        for t, (u, v) in enumerate(sides):
            if s != t:
                alike = kernel[np.ix_(x, u)].mean() + kernel[np.ix_(y, v)].mean()
                between += weights[s] * weights[t] * (alike - kernel[np.ix_(x, v)].mean() - kernel[np.ix_(y, u)].mean())
    if len(sides) == 1:
        return float(within)
    count = 1 / float((weights**2).sum())
    share = 0.5 / count**0.5
    within_weight = share + (1 - share) / count if measured else 0.0
    return float(within_weight * within + (1 - within_weight) * between / (1 - (weights**2).sum()))


def estimates(vectors: Floats, strata: Floats, first: Floats, second: Floats) -> Floats:
    return two_samples.mmd_estimates(vectors @ vectors.T, strata, first, second)


def drawn(seed: int, sizes: list[tuple[int, int]], dimensions: int = 4) -> tuple[Floats, Floats, Floats]:
    """Vectors without any difference between samples, their strata, and who is in the first sample."""
    random = np.random.default_rng(seed)
    strata = np.repeat(np.arange(len(sizes)), [m + n for m, n in sizes])
    marked = np.concatenate([np.repeat([True, False], [m, n]) for m, n in sizes])
    return random.normal(size=(len(strata), dimensions)), strata, marked


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4))
def test_all_labellings_at_once_agree_with_the_definition(seed: int, sizes: list[tuple[int, int]]) -> None:
    if len(sizes) == 1:
        sizes = [(sizes[0][0] + 1, sizes[0][1] + 1)]
    vectors, strata, marked = drawn(seed, sizes)
    kernel = vectors @ vectors.T
    labels, _ = resampling.relabellings(marked, strata, 5, np.random.default_rng(seed))
    expected = [combined(kernel, strata, row) for row in labels]
    np.testing.assert_allclose(two_samples.mmd_estimates(kernel, strata, labels, ~labels), expected, atol=1e-9)


def test_units_of_neither_sample_do_not_count() -> None:
    vectors, strata, marked = drawn(3, [(6, 7), (5, 8)])
    left_out = np.random.default_rng(0).random(len(marked)) < 0.3
    kept = ~left_out
    alone = estimates(vectors[kept], strata[kept], marked[kept][None], ~marked[kept][None])
    assert estimates(vectors, strata, (marked & kept)[None], (~marked & kept)[None]) == pytest.approx(alone)


def test_chance_gives_zero_on_average_and_every_p_value_alike() -> None:
    values, p_values = [], []
    for seed in range(300):
        vectors, strata, marked = drawn(seed, [(5, 7), (6, 3), (1, 1)])
        value = float(estimates(vectors, strata, marked[None], ~marked[None])[0])
        labels, exact = resampling.relabellings(marked, strata, 199, np.random.default_rng(seed))
        values.append(value)
        p_values.append(resampling.p_value(estimates(vectors, strata, labels, ~labels), value, exact=exact))
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(len(values))
    for level in (0.1, 0.5, 0.9):
        assert np.mean(np.array(p_values) <= level) == pytest.approx(level, abs=0.1)


@pytest.mark.parametrize(("shifts", "expected"), [((1.0, 1.0), 1.0), ((1.0, -1.0), 0.5 / 2**0.5)])
def test_equal_differences_count_in_full_and_opposite_ones_in_part(
    shifts: tuple[float, float], expected: float
) -> None:
    values = []
    for seed in range(200):
        vectors, strata, marked = drawn(seed, [(10, 10), (10, 10)], dimensions=1)
        vectors[marked, 0] += np.array(shifts)[strata[marked]]
        values.append(estimates(vectors, strata, marked[None], ~marked[None])[0])
    assert np.mean(values) == pytest.approx(expected, abs=4 * np.std(values) / np.sqrt(len(values)))


@pytest.mark.parametrize("shift", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("sizes", [[(20, 20)], [(5, 5), (8, 4), (6, 6)]])
def test_the_standard_error_is_the_spread_of_the_estimate(shift: float, sizes: list[tuple[int, int]]) -> None:
    values, errors = [], []
    for seed in range(300):
        vectors, strata, marked = drawn(seed, sizes, dimensions=6)
        vectors[marked, 0] += shift
        values.append(float(estimates(vectors, strata, marked[None], ~marked[None])[0]))
        errors.append(
            two_samples.mmd_standard_error(
                vectors @ vectors.T, strata, marked, ~marked, 99, np.random.default_rng(seed)
            )
        )
    assert 0.9 < np.sqrt(np.mean(np.square(errors))) / np.std(values) < 1.3


def test_the_standard_error_is_right_if_the_samples_differ_strongly() -> None:
    """Permutations of samples that differ vary more than either sample; this must not be subtracted."""
    values, errors = [], []
    for seed in range(400):
        vectors, strata, marked = drawn(seed, [(9, 9)])
        vectors[marked, 0] += 8
        values.append(float(estimates(vectors, strata, marked[None], ~marked[None])[0]))
        errors.append(
            two_samples.mmd_standard_error(
                vectors @ vectors.T, strata, marked, ~marked, 99, np.random.default_rng(seed)
            )
        )
    assert 0.95 < np.sqrt(np.mean(np.square(errors))) / np.std(values) < 1.1


@pytest.mark.parametrize("sizes", [[(9, 12)], [(3, 3)] * 6, [(1, 1)] * 12, [(5, 4), (1, 2), (1, 1)]])
def test_vectors_without_the_difference_differ_as_by_chance(sizes: list[tuple[int, int]]) -> None:
    vectors, strata, marked = drawn(4, sizes)
    vectors[marked, 0] += 3
    kernel = vectors @ vectors.T
    alike = two_samples.without_difference(kernel, strata, marked, ~marked)
    before, after = (
        float(two_samples.mmd_estimates(each, strata, marked[None], ~marked[None])[0]) for each in (kernel, alike)
    )
    assert before > 4
    assert abs(after) < 0.3 * before
    for stratum in np.unique(strata):
        own = np.ix_(strata == stratum, strata == stratum)
        # The length of the mean vector of a stratum stays, and so does its product with that of every other one.
        np.testing.assert_allclose(alike[own].mean(), kernel[own].mean())


def test_an_estimate_for_each_stratum_that_has_one() -> None:
    vectors, strata, marked = drawn(1, [(5, 5), (1, 4), (6, 2)])
    kernel = vectors @ vectors.T
    found = two_samples.mmd_within_strata(kernel, strata, marked, ~marked)
    assert found == pytest.approx(
        {
            each: by_definition(
                kernel, np.flatnonzero((strata == each) & marked), np.flatnonzero((strata == each) & ~marked)
            )
            for each in (0, 2)
        }
    )


def test_contributions_are_differences_of_means_and_keep_opposite_ones() -> None:
    values, strata, marked = drawn(2, [(4, 4)])
    plain = values[marked].mean(axis=0) - values[~marked].mean(axis=0)
    np.testing.assert_allclose(two_samples.mmd_contributions(csr_array(values), strata, marked, ~marked), np.abs(plain))
    values, strata, marked = drawn(2, [(200, 200), (200, 200)], dimensions=2)
    values[marked, 0] += np.where(strata[marked] == 0, 3.0, -3.0)
    first, second = two_samples.mmd_contributions(csr_array(values), strata, marked, ~marked)
    assert first > 5 * second
