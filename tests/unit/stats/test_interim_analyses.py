"""Interim analyses of growing data, against scipy's multivariate normal distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from pytest_fairness.stats import intervals, resampling


def test_a_single_analysis_has_the_whole_alpha() -> None:
    assert resampling.interim_alphas([1.0], 0.01) == [0.01]


@pytest.mark.parametrize("shares", [(0.5, 1.0), (0.25, 0.5, 1.0), (8 / 60, 12 / 60, 18 / 60, 27 / 60, 40 / 60, 1.0)])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_all_analyses_together_reject_with_alpha(shares: tuple[float, ...], alpha: float) -> None:
    bounds = [intervals.quantile(1 - each) for each in resampling.interim_alphas(shares, alpha)]
    correlation = np.array([[np.sqrt(min(one, other) / max(one, other)) for one in shares] for other in shares])
    none = multivariate_normal.cdf(bounds, np.zeros(len(shares)), correlation, maxpts=2_000_000, abseps=1e-6)
    assert 1 - none == pytest.approx(alpha, rel=2e-3)


def test_an_analysis_spends_the_square_of_its_share() -> None:
    (first, _) = resampling.interim_alphas([0.5, 1.0], 0.01)
    assert first == pytest.approx(0.01 / 4, rel=1e-6)


@given(
    st.lists(st.floats(0.02, 0.98), min_size=1, max_size=6, unique_by=lambda share: round(share * 50)),
    st.floats(1e-4, 0.1),
)
@settings(max_examples=25, deadline=None)
def test_an_analysis_has_at_least_its_increment_and_less_than_alpha(earlier: list[float], alpha: float) -> None:
    shares = [0.0, *sorted(earlier), 1.0]
    for before, share, found in zip(shares, shares[1:], resampling.interim_alphas(shares[1:], alpha), strict=False):
        assert alpha * (share**2 - before**2) * (1 - 1e-6) <= found < alpha
