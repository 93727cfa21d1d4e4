"""The decision rule's error rates, by simulation, and its properties."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits.base import Outcome, decide
from pytest_fairness.stats import intervals

TOLERANCE, ALPHA, BETA = 0.1, 0.01, 0.05
ERRORS = [0.01, 0.03, 0.05, 0.0631, 0.08, 0.1, 0.2]


def outcomes(
    change: float, error: float, runs: int = 20_000, *, requires_lower_bound: bool = False
) -> Counter[Outcome]:
    estimates = np.random.default_rng(0).normal(change, error, runs)
    return Counter(
        decide(
            estimate,
            error,
            threshold=TOLERANCE,
            accepted=2 * TOLERANCE,
            significant=intervals.upper_tail(estimate / error) <= ALPHA,
            requires_lower_bound=requires_lower_bound,
            alpha=ALPHA,
            beta=BETA,
        ).outcome
        for estimate in estimates.tolist()
    )


@pytest.mark.parametrize("error", ERRORS)
def test_error_rates_hold_at_every_size(error: float) -> None:
    assert outcomes(0.0, error)["beyond"] <= 1.2 * ALPHA * 20_000
    assert outcomes(2 * TOLERANCE, error)["within"] <= 1.06 * BETA * 20_000
    assert outcomes(TOLERANCE, error, requires_lower_bound=True)["beyond"] <= 1.2 * ALPHA * 20_000


def test_at_the_size_that_is_advised_both_are_decided() -> None:
    error = 2 * TOLERANCE / (intervals.quantile(1 - ALPHA) + intervals.quantile(0.8))
    assert outcomes(2 * TOLERANCE, error)["beyond"] == pytest.approx(0.8 * 20_000, rel=0.02)
    assert outcomes(0.0, error)["within"] > 0.9 * 20_000


@given(st.floats(-1, 1), st.floats(1e-6, 1), st.booleans(), st.booleans())
def test_only_what_exceeds_the_threshold_is_beyond_and_only_what_does_not_is_within(
    estimate: float, error: float, significant: bool, requires_lower_bound: bool
) -> None:
    found = decide(
        estimate,
        error,
        threshold=0.1,
        accepted=0.2,
        significant=significant,
        requires_lower_bound=requires_lower_bound,
        alpha=0.01,
        beta=0.05,
    )
    assert found.outcome != "beyond" or (significant and estimate > 0.1)
    assert found.outcome != "within" or (estimate <= 0.1 + 1e-9 and (found.upper_bound or 0) <= 0.2 + 1e-9)
    assert found.times_more_units >= 1


def test_without_an_error_nothing_is_acceptable() -> None:
    found = decide(
        0.0, None, threshold=0.1, accepted=0.2, significant=False, requires_lower_bound=False, alpha=0.01, beta=0.05
    )
    assert (found.outcome, found.upper_bound) == ("unclear", None)


def test_few_degrees_of_freedom_widen_both_bounds() -> None:
    def outcome(degrees: float | None, estimate: float) -> Outcome:
        return decide(
            estimate,
            0.1,
            threshold=0.1,
            accepted=0.2,
            significant=True,
            requires_lower_bound=True,
            alpha=0.01,
            beta=0.05,
            degrees_of_freedom=degrees,
        ).outcome

    assert [outcome(degrees, 0.0) for degrees in (None, 4)] == ["within", "unclear"]
    assert [outcome(degrees, 0.4) for degrees in (None, 4)] == ["beyond", "unclear"]
