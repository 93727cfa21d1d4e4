"""Evidence of many runs: equal to an integral over all changes, rarely large by chance, and precise about parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from pytest_fairness.stats.nights import Change, Evidence, evidence, false_failures_a_year


def integrated(changes: list[Change], tolerance: float) -> float:
    """Return the e-value by numerical integration over the prior, with the whole covariance matrix."""
    values, answers, baseline = (
        np.array([getattr(change, name) for change in changes]) for name in ("value", "answers", "baseline_answers")
    )
    parts = np.array([change.part for change in changes])
    variance = np.mean([change.error**2 for change in changes] / (1 / answers + 1 / baseline))
    covariance = np.diag(variance / answers) + (parts[:, None] == parts[None, :]) * variance / baseline.mean()
    precision, total, runs = np.linalg.inv(covariance), 0.0, np.arange(len(values))
    for chance, scale, drift in ((0.65, 2.0 * tolerance, False), (0.35, 0.02 * tolerance, True)):
        sizes = np.linspace(0, 10 * scale, 100_001)
        for first in runs:
            pattern = np.where(runs >= first, runs - first + 1.0 if drift else 1.0, 0.0)
            score, information = pattern @ precision @ values, pattern @ precision @ pattern
            density = 2 * norm.pdf(sizes, 0, scale) * np.exp(score * sizes - information * sizes**2 / 2)
            total += chance * 100 / (100 + first) / (101 + first) * trapezoid(density, sizes)
    return float(total)


def year(
    nights: int, worse: float = 0.0, first: int = 0, *, parts: int = 1, answers: int = 60, seed: int = 0
) -> list[Change]:
    """Return nights of a full size of 60 answers, whose change has an error of .8 tolerances."""
    random = np.random.default_rng(seed)
    error = 0.8 / 2**0.5 * (60 / answers) ** 0.5
    of_baseline = 0.8 / 2**0.5 * parts**0.5
    levels = random.normal(0, of_baseline, parts)
    return [
        Change(
            float(random.normal(worse * (night >= first), error) - levels[night % parts]),
            float(np.hypot(error, of_baseline)),
            answers,
            60 / parts,
            night % parts,
        )
        for night in range(nights)
    ]


@pytest.mark.parametrize("parts", [1, 3])
def test_evidence_is_the_likelihood_ratio_averaged_over_the_prior(parts: int) -> None:
    changes = year(9, 1.5, 5, parts=parts, answers=60 // parts)
    assert evidence(changes, 1.0, parts).e_value == pytest.approx(integrated(changes, 1.0), rel=1e-6)


def test_a_tolerance_is_only_a_unit() -> None:
    changes = year(20, 1.0, 10)
    scaled = [Change(0.1 * each.value, 0.1 * each.error, each.answers, each.baseline_answers) for each in changes]
    assert evidence(scaled, 0.1).e_value == pytest.approx(evidence(changes, 1.0).e_value)


def test_evidence_of_nothing_has_a_mean_of_at_most_one() -> None:
    found = [evidence(year(30, seed=seed), 1.0).e_value for seed in range(400)]
    assert np.mean(found) < 1
    assert sum(each >= 20 for each in found) <= 400 / 20


def first_found(changes: list[Change], alpha: float = 0.0025, parts: int = 1) -> int | None:
    for count in range(1, len(changes) + 1):
        found = evidence(changes[:count], 1.0, parts)
        if found.e_value >= 1 / alpha and found.worsening > 1:
            return count
    return None


def test_a_sudden_change_is_found_in_the_run_it_began() -> None:
    delays, places = [], []
    for seed in range(20):
        changes = year(70, 2.0, 50, seed=seed)
        night = first_found(changes)
        assert night is not None
        assert night > 50
        delays.append(night - 50)
        places.append(abs(evidence(changes, 1.0).first - 50))
    assert np.median(delays) <= 3
    assert np.median(places) <= 1


def test_a_slow_drift_is_found() -> None:
    nights = []
    for seed in range(20):
        changes = [
            Change(each.value + 4 * (night + 1) / 250, each.error, each.answers, each.baseline_answers)
            for night, each in enumerate(year(120, seed=seed))
        ]
        nights.append(first_found(changes) or 120)
    assert np.median(nights) <= 75
    assert evidence(changes, 1.0).drift


def test_a_quarter_of_the_answers_takes_more_nights_but_decides() -> None:
    quarters = [year(140, 2.0, 100, parts=4, answers=15, seed=seed) for seed in range(20)]
    delays = [(first_found(each, parts=4) or 140) - 100 for each in quarters]
    assert np.median(delays) <= 10
    found = evidence(quarters[0][:100], 1.0, 4)
    assert found.window >= 4
    assert found.level_error <= 1 / 1.64


def test_the_window_is_the_fewest_runs_that_can_exclude_twice_the_tolerance() -> None:
    windows = [evidence(year(count), 1.0).window for count in (1, 2, 10, 100)]
    assert windows[0] == 1
    assert windows[-1] == 1  # with many runs before it, one run is precise enough
    assert evidence([Change(0.0, 3.0, 10, 10)] * 40, 1.0).window > 5


def test_a_deterministic_target_gives_no_evidence_but_any_change_of_it_does() -> None:
    same = [Change(0.0, 0.0, 10, 10)] * 9
    assert evidence(same, 0.1).e_value < 1
    moved: Evidence = evidence([*same, Change(0.3, 0.0, 10, 10)], 0.1)
    assert moved.e_value > 1e6
    assert moved.first == 9


def test_false_failures_of_single_runs_are_bounded_by_alpha_and_by_the_tolerance() -> None:
    assert false_failures_a_year([(1.0, 0.0, 0.01)]) == pytest.approx(2.5)
    assert false_failures_a_year([(0.5, 2.0, 0.01)]) == pytest.approx(250 * float(norm.sf(4)))
    assert false_failures_a_year([(0.0, 1.0, 0.01)]) == 0
