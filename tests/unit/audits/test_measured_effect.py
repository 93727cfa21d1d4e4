"""Effect sizes of measurements: whether a difference is found, its size in words, and what could have been found."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits import registry
from pytest_fairness.audits.info import Direction, cohens_g, cohens_h
from pytest_fairness.records import Concern, Effect, Evidence, Measurement, Size
from pytest_fairness.run.items import effect_of

SHARES = cohens_h("both shares")
HALF = cohens_g("share − 1/2", scale=1.0, no_effect=0.5)


def measured(value: float, error: float | None = 0.01, p_value: float | None = 0.001, **more: Any) -> Measurement:
    interval = None if error is None else (value - 1.96 * error, value + 1.96 * error)
    evidence = Evidence(effect_basis=(0.5 + value / 2, 0.5 - value / 2))
    given_ = {"n": {"woman": 50, "man": 50}, "missing": {}, "evidence": evidence, **more}
    return Measurement(value=value, interval=interval, standard_error=error, p_value=p_value, **given_)


def effect(measurement: Measurement, doubt: Concern | None = None, known: Any = SHARES) -> Effect:
    found = effect_of(known, Direction.ZERO.loss, measurement, doubt)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "size"), [(0.05, Size.SMALL), (0.15, Size.SMALL), (0.3, Size.MODERATE), (0.5, Size.LARGE)]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_found_difference_has_the_size_of_its_effect(value: float, size: Size, sign: int) -> None:
    found = effect(measured(sign * value))
    assert found.size is size
    assert found.value == pytest.approx(sign * 2 * math.asin(value))
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1]


def test_a_difference_below_the_first_cut_off_is_called_small_and_says_so() -> None:
    assert effect(measured(0.05)).description == (
        "small difference (Cohen’s h 0.1 [0.061, 0.14], below the cut-off 0.2 for a small effect)"
    )
    assert effect(measured(0.5)).description == "large difference (Cohen’s h 1 [1, 1.1])"


@pytest.mark.parametrize(
    "measurement",
    [measured(0.05, error=0.04), measured(0.3, p_value=0.2), measured(0.0), measured(0.3, None, p_value=0.051)],
    ids=["interval with 0", "test", "no difference", "test alone"],
)
def test_a_difference_that_is_not_significant_is_none_however_large(measurement: Measurement) -> None:
    found = effect(measurement)
    assert found.size is Size.NONE
    assert found.description.startswith("no difference found (Cohen’s h ")


def test_no_difference_comes_with_the_smallest_that_would_have_been_found() -> None:
    found = effect(measured(0.01, error=0.1))
    # (1.96 + 0.84) standard errors around shares of one half.
    assert found.detectable == pytest.approx(2 * math.asin(0.2802), rel=1e-3)
    assert found.description == (
        "no difference found (Cohen’s h 0.02 [-0.37, 0.41]); 100 answers can show a difference of about 0.57 (moderate)"
    )


DOUBTS = {
    withholds: Concern("missing_answers", "30 % of the answers are missing", withholds)
    for withholds in ("pass", "test", "verdict")
}


@pytest.mark.parametrize("doubt", DOUBTS.values(), ids=DOUBTS)
def test_doubtful_answers_never_show_that_there_is_no_difference(doubt: Concern) -> None:
    found = effect(measured(0.0), doubt)
    assert (found.size, found.description) == (None, "size not known: 30 % of the answers are missing")


@pytest.mark.parametrize(("withholds", "size"), [("pass", Size.LARGE), ("test", None), ("verdict", None)])
def test_a_found_difference_stands_unless_the_test_is_in_doubt(withholds: str, size: Size | None) -> None:
    found = effect(measured(0.5), DOUBTS[withholds])
    assert found.size is size
    assert found.description.endswith("30 % of the answers are missing")


def test_a_one_sided_test_does_not_hide_a_difference_to_the_other_side() -> None:
    against = measured(0.3, p_value=0.999)
    found = effect_of(HALF, Direction.LOWER.loss, against, None)
    assert found is not None
    assert found.size is Size.MODERATE
    assert found.value == pytest.approx(-0.2)
    along = effect_of(HALF, Direction.LOWER.loss, replace(against, value=0.7, interval=(0.68, 0.72)), None)
    assert along is not None
    assert along.size is Size.NONE


def test_an_infinite_effect_is_large_and_null_in_json() -> None:
    info = registry.get("recommendation", "snsr").info
    flat = measured(0.4, evidence=Evidence(effect_basis=(0.0, 0.0)))
    found = effect_of(info.effect, Direction.LOWER.loss, flat, None)
    assert found is not None
    assert (found.size, found.value, found.to_json()["value"]) == (Size.LARGE, math.inf, None)


def test_an_audit_that_compares_no_groups_has_no_effect_size() -> None:
    single = measured(1.2, evidence=Evidence(effect_basis=(0.3,)))
    known = registry.get("recommendation", "uncertainty").info.effect
    assert effect_of(known, Direction.LOWER.loss, single, None) is None
    assert registry.get("recommendation", "robustness").info.effect is None


@given(st.floats(-0.9, 0.9), st.floats(-0.9, 0.9))
def test_effects_are_symmetric_and_a_larger_value_is_no_smaller_effect(first: float, second: float) -> None:
    sizes = [effect(measured(value, details={"shares": [0.5]})) for value in sorted((abs(first), abs(second)))]
    assert sizes[0].value <= sizes[1].value
    mirrored = effect(measured(-first, details={"shares": [0.5]}))
    assert mirrored.value == pytest.approx(-effect(measured(first, details={"shares": [0.5]})).value)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in registry.AUDITS.items() for name in names])
def test_every_audit_documents_its_cut_offs(kind: str, name: str) -> None:
    info = registry.get(kind, name).info
    known = info.effect
    if known is None:
        assert len(info.no_effect_size) > 10
        return
    small, moderate, large = known.cutoffs
    assert 0 < small < moderate < large
    assert len(known.formula) > 10
    assert len(known.source) > 10
    assert [known.size(known.cutoffs[place]) for place in range(3)] == [Size.SMALL, Size.MODERATE, Size.LARGE]
