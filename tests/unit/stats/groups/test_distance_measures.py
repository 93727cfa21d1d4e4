"""Spreads of several numbers, signed by a pattern, and the standard error of their growth."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pytest_fairness.stats import gaps
from pytest_fairness.stats.gaps import DistanceMeasure, largest_difference
from pytest_fairness.stats.ranked_lists import similarities
from tests.support.oracles import vector, vectors

SIZE = st.integers(2, 6)
NUMBERS = SIZE.flatmap(lambda size: arrays(np.float64, (2, size), elements=st.floats(0, 1, width=16)))
MEANS = arrays(np.float64, st.integers(2, 7), elements=st.floats(0, 1, width=16))
KINDS = ["range", "standard deviation", "mean deviation"]


def distance_measure_of(kind: str, count: int) -> DistanceMeasure:
    match kind:
        case "range":
            return largest_difference(list(combinations(range(count), 2)))
        case "standard deviation":
            return gaps.STANDARD_DEVIATION
        case _:
            return gaps.MEAN_DEVIATION


@pytest.mark.parametrize("kind", KINDS)
@given(runs=NUMBERS)
def test_the_gradient_gives_the_size_of_the_pattern_itself(kind: str, runs: np.ndarray) -> None:
    measure = distance_measure_of(kind, len(runs[0]))
    assert float(measure.gradient(runs[0]) @ runs[0]) == pytest.approx(float(measure.size(runs[0])), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(runs=NUMBERS)
def test_a_signed_size_is_the_size_where_the_pattern_is_not_reversed(kind: str, runs: np.ndarray) -> None:
    """It is never larger than the size, and the negative size of the reversed pattern."""
    pattern, numbers = runs
    measure = distance_measure_of(kind, len(pattern))
    signed = measure.signed(pattern)
    assert float(signed(pattern)) == pytest.approx(float(measure.size(pattern)), abs=1e-9)
    assert float(signed(-pattern)) == pytest.approx(-float(measure.size(pattern)), abs=1e-9)
    assert float(signed(numbers)) <= float(measure.size(numbers)) + 1e-9 or measure.gradient(pattern) @ numbers < 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_signed_size_of_two_numbers_is_their_difference(kind: str) -> None:
    measure = distance_measure_of(kind, 2)
    signed, part = measure.signed(np.array([0.6, 0.5])), 1.0 if kind == "range" else 0.5
    for first, second in ((0.7, 0.5), (0.5, 0.5), (0.4, 0.8)):
        assert float(signed(np.array([first, second]))) == pytest.approx(part * (first - second))


def test_undefined_numbers_are_left_out() -> None:
    measure = distance_measure_of("range", 3)
    assert float(measure.size(np.array([0.2, np.nan, 0.5]))) == pytest.approx(0.3)
    signed = measure.signed(np.array([0.2, np.nan, 0.5]))
    assert float(signed(np.array([0.5, np.nan, 0.4]))) == pytest.approx(-0.1)


@pytest.mark.parametrize("measure", [gaps.STANDARD_DEVIATION, gaps.MEAN_DEVIATION])
@given(MEANS, arrays(np.float64, 7, elements=st.floats(-1, 1, width=16)))
def test_gradients_agree_with_finite_differences(
    measure: DistanceMeasure, means: np.ndarray, direction: np.ndarray
) -> None:
    """The distance measures are smooth where no two means are equal and none equals the mean of all."""
    direction = direction[: len(means)]
    centred = np.abs(means - means.mean())
    apart = np.abs(np.subtract.outer(means, means))[~np.eye(len(means), dtype=bool)]
    assume(min(apart.min(), centred.min()) >= 1e-3)
    step = 1e-6
    moved = (measure.size(means + step * direction) - measure.size(means - step * direction)) / (2 * step)
    assert moved == pytest.approx(measure.gradient(means) @ direction, abs=1e-4)


@pytest.mark.parametrize("measure", [gaps.STANDARD_DEVIATION, gaps.MEAN_DEVIATION])
def test_the_gradient_of_equal_means_is_that_of_the_first_mean_moving_up(measure: DistanceMeasure) -> None:
    equal = np.full(4, 0.5)
    moved = equal + np.array([0.1, 0, 0, 0])
    assert measure.size(moved) - measure.size(equal) == pytest.approx(0.1 * measure.gradient(equal)[0])


@pytest.mark.parametrize(
    ("current", "baseline"), [((0.0, 0.1, 0.4), (0.0, 0.2, 0.1)), ((0.0, 0.2, 0.3), (0.0, 0.2, 0.1))]
)
def test_the_error_is_the_standard_deviation_of_growth_over_runs(
    current: tuple[float, ...], baseline: tuple[float, ...]
) -> None:
    """Other groups may be furthest apart in one run than in the other."""
    random = np.random.default_rng(3)
    measure, error = distance_measure_of("range", 3), 0.02
    grown, errors = [], []
    for _ in range(500):
        runs = [np.array(means) + random.normal(0, error, 3) for means in (current, baseline)]
        size = measure.signed((runs[0] + runs[1]) / 2)
        grown.append(float(size(runs[0]) - size(runs[1])))
        errors.append(gaps.growth_error(size, runs[0], runs[1], 2 * error**2 * np.eye(3), random))
    assert np.mean(grown) == pytest.approx(max(current) - max(baseline), abs=0.01)
    assert np.mean(errors) / np.std(grown) == pytest.approx(1, abs=0.12)


@pytest.mark.parametrize("name", ["two_values", "all_equal", "one_value", "three_values_extreme"])
def test_snsr_and_snsv_agree_with_the_worked_vectors(name: str) -> None:
    case = vector("snsr_snsv", name)
    means = np.array(case["input"]["sim_by_value"])
    assert gaps.value_range(means) == pytest.approx(case["expected"]["SNSR"], abs=case["tol"])
    assert gaps.value_sd(means) == pytest.approx(case["expected"]["SNSV"], abs=case["tol"])


@pytest.mark.parametrize(
    ("name", "measure", "variant"),
    [
        ("jaccard", "jaccard", "normalized"),
        ("serp", "serp", "normalized"),
        ("serp_code", "serp", "langfair"),
        ("prag", "prag", "normalized"),
        ("prag_langfair", "prag", "langfair"),
    ],
)
def test_snsr_of_lists_agrees_with_the_worked_example_of_langfair(name: str, measure: Any, variant: Any) -> None:
    case = vector("snsr_snsv", "langfair_fixture")
    given_, expected = case["input"], case["expected"]
    artists = sorted(given_["neutral"])
    means = np.array(
        [
            similarities(
                [given_[value][artist] for artist in artists],
                [given_["neutral"][artist] for artist in artists],
                measure=measure,
                variant=variant,
                k=given_["K"],
            ).mean()
            for value in ("male", "female")
        ]
    )
    assert sorted(means) == pytest.approx(sorted(expected["sim"][name]), abs=case["tol"])
    assert gaps.value_range(means) == pytest.approx(expected["snsr"][name], abs=case["tol"])
    assert gaps.value_sd(means) == pytest.approx(expected["snsv"][name], abs=case["tol"])


@given(MEANS)
def test_snsv_lies_within_its_bounds_by_snsr_and_number_of_values(means: Any) -> None:
    n, width, sd = len(means), gaps.value_range(means), gaps.value_sd(means)
    most = math.sqrt((n // 2) * ((n + 1) // 2)) / n
    assert width / math.sqrt(2 * n) - 1e-9 <= sd <= width * most + 1e-9 <= width / 2 + 2e-9
    assert 0.5 - 1e-9 <= gaps.evenness(means) <= 1 + 1e-9


def test_the_bounds_of_snsv_agree_with_the_worked_vector() -> None:
    case = vector("snsr_snsv", "feasibility_bound")
    for count in case["input"]["n_values"]:
        extreme = np.array([0.0] * (count // 2) + [1.0] * (count - count // 2))
        flat = np.array([0.0, 1.0] + [0.5] * (count - 2))
        expected = case["expected"]
        assert gaps.value_sd(extreme) == pytest.approx(expected["max_SNSV_over_SNSR"][str(count)], abs=1e-9)
        assert gaps.value_sd(flat) == pytest.approx(expected["min_SNSV_over_SNSR"][str(count)], abs=1e-9)


@pytest.mark.parametrize("vector", vectors("pafs"))
def test_pafs_agrees_with_the_worked_vectors(vector: dict[str, Any]) -> None:
    means = np.array(vector["input"]["sim_by_personality"])
    assert gaps.evenness(means) == pytest.approx(vector["expected"]["PAFS"], abs=vector["tol"])
