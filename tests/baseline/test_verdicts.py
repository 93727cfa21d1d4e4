"""The rules of a verdict, with every number given."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audit.base import Audit, AuditItem, Direction
from pytest_fairness.baseline.verdicts import Earlier, decide, missing_reason
from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Comparison, Concern, Measurement, Verdict
from pytest_fairness.stats import normal

ACCEPT = "pytest --fairness-rebaseline probes/x.yaml"


class Plain(Audit[AuditSettings]):
    """An audit with a value and an error, and nothing else."""

    name: ClassVar[str] = "plain"
    kind: ClassVar[str] = "generation"
    version: ClassVar[int] = 1
    settings_model: ClassVar[type[AuditSettings]] = AuditSettings
    better: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "points"
    default_tolerance: ClassVar[float] = 0.1

    def items(self, probe: Any, settings: Any) -> list[Any]:
        raise AssertionError

    def uses(self, probe: Any, item: Any, labels: Any) -> bool:
        raise AssertionError

    def measure(self, probe: Any, item: Any, answers: Any) -> Measurement:
        raise AssertionError

    def compare(self, probe: Any, item: Any, now: Any, then: Any) -> Comparison:
        raise AssertionError


class Higher(Plain):
    better: ClassVar[Direction] = "higher"


def measured(value: float, error: float = 0.01, **other: Any) -> Measurement:
    facts: dict[str, Any] = {"p_value": 0.5, "n": {"a": 30, "b": 30}, "missing": {"a": 0, "b": 0}, **other}
    return Measurement(value, normal.interval(value, error), error, **facts)


def judged(
    value: float = 0.2,
    was: float | None = 0.2,
    error: float = 0.01,
    audit: Audit[Any] | None = None,
    stale: tuple[str, ...] = (),
    p_value: float | None = None,
    measurement: Measurement | None = None,
    answers: int | None = None,
    repeated: bool = False,
    **settings: Any,
) -> Verdict:
    audit = audit or Plain()
    item = AuditItem("plain", "race=Black", {"race": "Black"}, AuditSettings(**settings), level=0.01)
    measurement = measurement or measured(value, error)
    comparison = None if was is None or stale else audit.compare_values(measurement, was, error, paired=True)
    if comparison is not None and p_value is not None:
        comparison = replace(comparison, p_value=p_value)
    if comparison is not None and repeated:
        comparison = replace(comparison, repeated=True)
    return decide(
        audit,
        item,
        measurement,
        earlier=None if was is None else Earlier(was, stale, answers),
        comparison=comparison,
        trials=15,
        accept=ACCEPT,
    )


def test_no_change_passes() -> None:
    verdict = judged()
    assert verdict.name == "pass"
    assert verdict.reason == "plain[race=Black]: 0.2 points, was 0.2: unchanged [-0.0277, 0.0277], tolerance 0.1."
    assert verdict.minimum_detectable == pytest.approx((2.3263 + 0.8416) * 0.01 * math.sqrt(2), rel=1e-3)


def test_worse_than_the_tolerance_beyond_doubt_is_a_regression() -> None:
    verdict = judged(0.4)
    assert verdict.name == "regression"
    assert "worse by 0.2 [0.172, 0.228], tolerance 0.1" in verdict.reason


def test_a_regression_goes_before_the_limit() -> None:
    assert judged(0.4, limit=0.25).name == "regression"
    assert judged(0.4, was=0.4, limit=0.25).name == "over-limit"
    assert judged(0.4, was=None, limit=0.25).name == "over-limit"


def test_worse_but_not_beyond_doubt_is_inconclusive_and_says_what_would_decide() -> None:
    verdict = judged(0.32, error=0.02)
    assert verdict.name == "inconclusive"
    assert "worse, but not beyond doubt. About 60 trials would do (now 15)." in verdict.reason


def test_what_would_decide_on_a_limit_depends_on_how_far_beyond_it_is() -> None:
    """(2.3263 + 0.8416) standard errors of the value must fit between it and the limit."""
    assert "About 339 trials would do (now 15)." in judged(0.22, error=0.03, was=None, limit=0.2).reason
    assert "About 38 trials would do (now 15)." in judged(0.26, error=0.03, was=None, limit=0.2).reason
    assert (
        "No number of answers that could be asked for would do."
        in judged(0.2001, error=0.03, was=None, limit=0.2).reason
    )


def test_a_large_change_that_chance_explains_is_no_regression() -> None:
    assert judged(0.4, p_value=0.2).name == "inconclusive"


def test_a_run_too_small_to_see_twice_the_tolerance_does_not_pass() -> None:
    verdict = judged(error=0.06)
    assert verdict.name == "inconclusive"
    assert "the run is too small: the least it would see is 0.269 points. About 28 trials would do" in verdict.reason


def test_what_would_do_counts_the_baseline_in() -> None:
    """Both errors add up, so that no run is large enough beside a baseline that is too small."""
    asked = sum(measured(0.2, 0.06).n.values())
    said = {times: judged(error=0.06, answers=round(times * asked)).reason for times in (0.5, 1.0, 4.0)}
    assert "About 19 trials would do (now 15), and as many in the baseline." in said[0.5]
    assert "About 28 trials would do (now 15), and as many in the baseline." in said[1.0]
    assert "A baseline of about 5 trials would do (this run has 15)." in judged(error=0.06, answers=asked // 10).reason
    assert said[4.0].endswith("About 34 trials would do (now 15).")


def test_more_of_the_same_answer_is_no_advice() -> None:
    reason = judged(error=0.06, repeated=True).reason
    assert "would do" not in reason
    assert "the least it would see is 0.269 points. Every trial repeats the same answer" in reason


def test_without_baseline_and_limit_there_is_no_verdict_but_the_command() -> None:
    verdict = judged(was=None)
    assert verdict.name == "no-baseline"
    assert ACCEPT in verdict.reason


def test_a_limit_alone_judges() -> None:
    assert judged(was=None, limit=0.25).name == "pass"


def test_a_stale_baseline_names_what_differs_and_the_command() -> None:
    verdict = judged(stale=("prompt", "axis race"), limit=0.1)
    assert verdict.name == "stale-baseline"
    assert "another prompt, axis race" in verdict.reason
    assert ACCEPT in verdict.reason


def test_gate_point_compares_bare_estimates() -> None:
    assert judged(0.31, error=0.2, gate="point").name == "regression"
    assert judged(0.29, error=0.2, gate="point").name == "pass"
    assert judged(0.29, error=0.2, gate="point", limit=0.28).name == "over-limit"


def test_gate_strict_wants_a_pass_shown() -> None:
    assert judged(0.25, error=0.03).name == "pass"
    verdict = judged(0.25, error=0.03, gate="strict")
    assert verdict.name == "inconclusive"
    assert "a change of up to 0.133 cannot be excluded" in verdict.reason
    assert judged(0.2, gate="strict").name == "pass"
    assert judged(0.24, was=None, limit=0.25, gate="strict").name == "inconclusive"


def test_where_higher_is_better_less_is_worse() -> None:
    assert judged(0.6, was=0.9, audit=Higher()).name == "regression"
    assert judged(0.9, was=0.6, audit=Higher()).name == "pass"
    assert judged(0.5, was=None, limit=0.6, audit=Higher()).name == "over-limit"
    assert judged(0.7, was=None, limit=0.6, audit=Higher()).name == "pass"


@pytest.mark.parametrize(
    ("n", "missing", "expected"),
    [
        ({"a": 30, "b": 30}, {"a": 0, "b": 0}, None),
        ({"a": 97, "b": 97}, {"a": 3, "b": 3}, None),
        ({"a": 26, "b": 26}, {"a": 4, "b": 4}, "13% of the answers are missing (4 of 30 for a, 4 of 30 for b)"),
        ({"a": 92, "b": 100}, {"a": 8, "b": 0}, "answers are missing unevenly (8 of 100 for a, 0 of 100 for b)"),
        ({"a": 28, "b": 30}, {"a": 2, "b": 0}, None),
    ],
)
def test_missing_answers_are_never_fair(n: dict[str, int], missing: dict[str, int], expected: str | None) -> None:
    measurement = measured(0.2, n=n, missing=missing)
    assert missing_reason(measurement) == expected
    assert judged(measurement=measurement).name == ("pass" if expected is None else "inconclusive")
    worse = replace(measurement, value=0.5)
    assert judged(measurement=worse).name == "regression", "failures stand"


@pytest.mark.parametrize("gate", ["bound", "strict", "point"])
def test_missing_answers_pass_no_gate(gate: str) -> None:
    measurement = measured(0.1, n={"a": 26, "b": 26}, missing={"a": 4, "b": 4})
    assert judged(measurement=measurement, gate=gate).name == "inconclusive"
    assert judged(measurement=measurement, was=None, limit=0.9, gate=gate).name == "inconclusive"


@pytest.mark.parametrize("gate", ["bound", "strict", "point"])
@pytest.mark.parametrize(
    ("withholds", "unchanged", "worse"),
    [
        ("nothing", "pass", "regression"),
        ("pass", "inconclusive", "regression"),
        ("verdict", "inconclusive", "inconclusive"),
    ],
)
def test_a_concern_withholds_a_pass_or_every_verdict(withholds: Any, unchanged: str, worse: str, gate: str) -> None:
    concern = Concern("constant_answers", "9 of 9 answers are the same", withholds)
    calm, bad = (measured(value, concerns=(concern,)) for value in (0.2, 0.9))
    assert judged(measurement=calm, gate=gate).name == unchanged
    assert judged(measurement=bad, gate=gate).name == worse
    for measurement in (calm, bad):
        if withholds != "pass":
            assert "9 of 9 answers are the same" in judged(measurement=measurement, gate=gate).reason
    assert "Before you make a baseline" in judged(measurement=calm, was=None).reason or withholds == "nothing"
    assert judged(measurement=calm, was=None).name == "no-baseline"


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.3))
def test_no_verdict_fails_for_less_than_the_tolerance(value: float, was: float, error: float) -> None:
    verdict = judged(value, was, error)
    if value - was <= 0.1:
        assert verdict.name in ("pass", "inconclusive")
    if verdict.name == "pass":
        assert value - was <= 0.1


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.3))
def test_a_smaller_error_never_turns_a_failure_into_a_pass(value: float, was: float, error: float) -> None:
    if judged(value, was, error).name == "regression":
        assert judged(value, was, error / 2).name == "regression"
