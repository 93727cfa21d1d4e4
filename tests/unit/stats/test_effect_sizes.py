"""Effect sizes, by published numbers and by their properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from pytest_fairness.audits import info, registry

shares = st.floats(0, 1)
differences = st.floats(-100, 100)
spreads = st.floats(0.01, 100)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # Cohen 1988, table 6.2.2: φ is 1.571 at .50, 1.369 at .40, 1.159 at .30, 0.451 at .05, 0 at 0 and 3.142 at 1.
        (0.5, 0.4, 0.202),
        (0.5, 0.3, 0.412),
        (0.3, 0.05, 0.708),
        (1.0, 0.0, 3.142),
        (0.4, 0.5, -0.202),
    ],
)
def test_cohens_h_is_that_of_cohens_table(first: float, second: float, expected: float) -> None:
    assert info.cohens_h_of_shares(first, second) == pytest.approx(expected, abs=0.001)


@given(shares, shares)
def test_cohens_h_changes_its_sign_with_the_order_of_the_shares(first: float, second: float) -> None:
    assert info.cohens_h_of_shares(first, second) == -info.cohens_h_of_shares(second, first)
    assert info.cohens_h_of_shares(1 - second, 1 - first) == pytest.approx(
        info.cohens_h_of_shares(first, second), abs=1e-7
    )


@given(shares, shares, shares)
def test_cohens_h_grows_with_the_first_share(low: float, high: float, other: float) -> None:
    low, high = sorted((low, high))
    assert info.cohens_h_of_shares(low, other) <= info.cohens_h_of_shares(high, other)


def test_a_bound_beyond_1_counts_as_1() -> None:
    assert info.cohens_h_of_shares(1.2, -0.1) == pytest.approx(math.pi)


def test_d_from_an_error_is_cohens_d_of_the_samples() -> None:
    random = np.random.default_rng(7)
    first, second = random.normal(1, 2, 40), random.normal(0, 2, 40)
    error = math.sqrt(first.var(ddof=1) / 40 + second.var(ddof=1) / 40)
    pooled = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    difference = first.mean() - second.mean()
    assert info.d_from_error(difference, error, 40, 40) == pytest.approx(difference / pooled)


def test_a_difference_is_divided_by_the_pooled_standard_deviation() -> None:
    assert info.standardized_difference(1.0, [3.0, 4.0]) == pytest.approx(1 / math.sqrt(12.5))


@given(differences, spreads)
def test_a_standardized_difference_does_not_depend_on_the_unit(difference: float, spread: float) -> None:
    one = info.standardized_difference(difference, [spread, spread])
    assert one == pytest.approx(info.standardized_difference(100 * difference, [100 * spread, 100 * spread]))
    assert one == -info.standardized_difference(-difference, [spread, spread])


def test_a_difference_without_any_spread_is_infinite_and_none_is_0() -> None:
    assert info.standardized_difference(0.2, [0.0, 0.0]) == math.inf
    assert info.standardized_difference(-0.2, [0.0, 0.0]) == -math.inf
    assert info.standardized_difference(0.0, [0.0, 0.0]) == 0
    assert info.share_of_variance(0.1, 0.0) == 1
    assert info.share_of_variance(0.0, 0.0) == 0


def test_the_share_of_variance_is_eta_squared_of_two_groups() -> None:
    random = np.random.default_rng(3)
    first, second = random.normal(0, 1, (2, 50_000, 3)) + np.array([[[0.5, 0, 0]], [[0, 0, 0]]])
    every = np.concatenate([first, second])
    between = sum(50_000 * ((group.mean(axis=0) - every.mean(axis=0)) ** 2).sum() for group in (first, second))
    whole = ((every - every.mean(axis=0)) ** 2).sum()
    distance = ((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum()
    variance = first.var(axis=0).sum() / 2 + second.var(axis=0).sum() / 2
    assert info.share_of_variance(float(distance), float(variance)) == pytest.approx(between / whole)


@given(st.floats(-1, 10), st.floats(-1, 10), spreads)
def test_the_share_of_variance_grows_with_the_distance(low: float, high: float, variance: float) -> None:
    low, high = sorted((low, high))
    shares_found = [info.share_of_variance(distance, variance) for distance in (low, high)]
    assert 0 <= shares_found[0] <= shares_found[1] < 1


# Derived cut-offs


def information(d: float) -> float:
    """Return the bits that a draw from one of two normal distributions gives about which of the two it is from."""

    def density(x: float) -> float:
        sides = norm.pdf(x, -d / 2), norm.pdf(x, d / 2)
        mean = sum(sides) / 2
        return float(sum(side * math.log2(side / mean) / 2 for side in sides if side))

    return float(quad(density, -10, 10)[0])


@pytest.mark.parametrize(("place", "d"), list(enumerate((0.2, 0.5, 0.8))))
def test_the_cut_offs_of_texts_are_those_of_cohens_d(place: int, d: float) -> None:
    known = {name: registry.get("generation", name).info.effect for name in ("svm", "jsd", "mmd")}
    cut_offs = {name: effect.cutoffs[place] for name, effect in known.items() if effect is not None}
    assert cut_offs["svm"] == pytest.approx(norm.cdf(d / 2), abs=0.005)
    assert cut_offs["jsd"] == pytest.approx(information(d), abs=0.0005)
    assert cut_offs["mmd"] == pytest.approx(info.share_of_variance(d**2, 1.0), abs=0.0025)
