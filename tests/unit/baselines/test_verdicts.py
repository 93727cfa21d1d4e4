"""The rules of a verdict, with every number given."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits.base import Audit, AuditItem
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.rules import SignificantChange
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import Comparison, Concern, Contributor, Measurement, Reversal, Verdict
from pytest_fairness.stats import intervals
from tests.support.corpora import PROBE

ACCEPT = "pytest --fairness-rebaseline probes/x.yaml"


class Plain(Audit[Any, AuditSettings]):
    """An audit with a value and an error, and nothing else."""

    info = AuditInfo(
        name="plain",
        title="A test's audit",
        better=Direction.LOWER,
        unit="points",
        tolerance=0.1,
        value_range=(-math.inf, math.inf),
    )
    rule = SignificantChange()
    kind: ClassVar[str] = "generation"
    version: ClassVar[int] = 1
    settings_model: ClassVar[type[AuditSettings]] = AuditSettings

    def items(self, probe: Any, settings: Any) -> list[Any]:
        raise AssertionError

    def uses(self, item: Any, labels: Any) -> bool:
        raise AssertionError

    def measure(self, item: Any, answers: Any) -> Measurement:
        raise AssertionError

    def compare(self, item: Any, now: Any, then: Any) -> Comparison:
        raise AssertionError


class Higher(Plain):
    info = replace(Plain.info, better=Direction.HIGHER)


def measured(value: float, error: float = 0.01, **other: Any) -> Measurement:
    facts: dict[str, Any] = {"p_value": 0.001, "n": {"a": 30, "b": 30}, "missing": {"a": 0, "b": 0}, **other}
    return Measurement(value, intervals.interval(value, error), error, **facts)


def judged(
    value: float = 0.2,
    was: float | None = 0.2,
    error: float = 0.01,
    audit: Audit[Any, Any] | None = None,
    stale: tuple[str, ...] = (),
    p_value: float | None = None,
    measurement: Measurement | None = None,
    answers: int | None = None,
    trials: int | None = 15,
    **settings: Any,
) -> Verdict:
    audit = audit or Plain()
    item = AuditItem(PROBE, "plain", "race=Black", {"race": "Black"}, AuditSettings(**settings), alpha=0.01)
    measurement = measurement or measured(value, error)
    comparison = None if was is None or stale else audit.compare_values(measurement, was, error, from_answers=True)
    if comparison is not None and p_value is not None:
        comparison = replace(comparison, p_value=p_value)
    return decide(
        audit,
        item,
        measurement,
        baseline=None if was is None else BaselineEntry(was, stale, {} if answers is None else {"a": answers}),
        comparison=comparison,
        trials=trials,
        accept=ACCEPT,
    )


def test_a_comparison_of_values_says_why_answers_are_not_compared() -> None:
    audit, measurement = Plain(), measured(0.2, 0.01)
    comparison = audit.compare_values(measurement, 0.2, 0.01, from_answers=False)

    def reason(comparison: Comparison) -> str:
        item = AuditItem(PROBE, "plain", "race=Black", {"race": "Black"}, AuditSettings(), alpha=0.01)
        baseline = BaselineEntry(0.2)
        return decide(
            audit, item, measurement, baseline=baseline, comparison=comparison, trials=15, accept=ACCEPT
        ).reason

    assert "(only the stored value is compared: the baseline's answers are absent)" in reason(comparison)
    few = replace(comparison, not_compared="only 3 records are usable")
    assert "(only the stored value is compared: only 3 records are usable)" in reason(few)


def test_no_change_passes_and_says_what_is_excluded() -> None:
    verdict = judged()
    assert verdict.name == "pass"
    assert verdict.reason == (
        "plain[race=Black]: 0.2 points, was 0.2: unchanged, tolerance 0.1. "
        "With 95 % confidence, the item is not worse by more than 0.0233."
    )
    assert verdict.upper_bound == pytest.approx(1.6449 * 0.01 * math.sqrt(2), rel=1e-3)
    # Four of five estimates of it exceed the tolerance.
    assert verdict.minimum_detectable == pytest.approx(0.1 + 0.8416 * 0.01 * math.sqrt(2), rel=1e-3)


def test_significantly_worse_by_more_than_the_tolerance_is_a_regression() -> None:
    verdict = judged(0.4)
    assert verdict.name == "regression"
    assert "worse by 0.2, tolerance 0.1; significant (p < 0.001, alpha 0.01)" in verdict.reason
    assert verdict.significant


def test_significantly_worse_within_the_tolerance_is_a_pass_with_a_note() -> None:
    verdict = judged(0.28, p_value=0.001)
    assert verdict.name == "pass"
    assert verdict.reason.endswith(
        "The item is significantly worse than the baseline, but within the tolerance (p = 0.001)."
    )
    assert verdict.significant
    assert not judged(0.28, p_value=0.05).significant


def test_a_regression_goes_before_the_limit() -> None:
    assert judged(0.4, limit=0.25).name == "regression"
    assert judged(0.4, was=0.4, limit=0.25).name == "over-limit"
    assert judged(0.4, was=None, limit=0.25).name == "over-limit"


def test_worse_but_not_significantly_is_inconclusive_and_says_what_would_decide() -> None:
    verdict = judged(0.32, error=0.05)
    assert verdict.name == "inconclusive"
    assert "worse than the baseline, but not significantly (p = 0.045, alpha 0.01). Needs about" in verdict.reason
    assert verdict.undecided == "needs p ≤ 0.01, has 0.045; about 53 trials would decide"


def test_causes_are_named_only_of_what_is_significant() -> None:
    class Explained(Plain):
        def contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[Contributor]:
            return [Contributor("wrench")]

    audit = Explained()
    for verdict in (judged(0.4, audit=audit), judged(0.4, was=None, limit=0.25, audit=audit)):
        assert list(verdict.contributors) == ["wrench"]
        assert "Top contributors: wrench." in verdict.reason
    for verdict in (
        judged(0.32, error=0.05, audit=audit),
        judged(0.31, error=0.2, audit=audit, gate="point"),
        judged(0.29, error=0.2, audit=audit, was=None, gate="point", limit=0.28),
    ):
        assert not verdict.contributors
        assert "Top contributors" not in verdict.reason


def test_gate_bound_wants_proof_that_the_change_exceeds_the_tolerance() -> None:
    assert judged(0.32, error=0.02).name == "regression"
    verdict = judged(0.32, error=0.02, gate="bound")
    assert verdict.name == "inconclusive"
    assert "significantly worse than the baseline, but not shown to exceed the tolerance. Needs about" in verdict.reason
    assert judged(0.32, error=0.002, gate="bound").name == "regression"


def test_what_would_decide_on_a_limit_depends_on_how_far_beyond_it_is() -> None:
    """(2.3263 + 0.8416) standard errors of the value must fit between it and the limit."""
    assert "Needs about 85 trials to decide; this run had 15." in judged(0.24, error=0.03, was=None, limit=0.2).reason
    assert "Needs about 38 trials to decide; this run had 15." in judged(0.26, error=0.03, was=None, limit=0.2).reason


@pytest.mark.parametrize("value", [0.2001, 0.21, 0.229])
def test_a_value_at_its_limit_gets_no_number_of_answers(value: float) -> None:
    """The distance is noise, so that a number computed from it would be another one in each run."""
    verdict = judged(value, error=0.03, was=None, limit=0.2)
    assert "exceeds the limit by less than its standard error, so that no number of answers is sure" in verdict.reason
    assert "Needs about" not in verdict.reason
    assert verdict.undecided is not None
    assert "not significantly; no number of answers is sure to decide; choose a `limit` of 0.2" in verdict.undecided


class Records(Plain):
    counted = "records"


@given(
    value=st.floats(0.0, 0.6),
    error=st.floats(0.01, 0.5),
    p_value=st.floats(0.02, 0.5),
    limit=st.sampled_from([None, 0.1, 0.3]),
    better=st.sampled_from([Direction.LOWER, Direction.HIGHER]),
    trials=st.sampled_from([None, 40]),
)
def test_the_named_setting_can_be_decided_by_the_same_answers(
    value: float, error: float, p_value: float, limit: float | None, better: Direction, trials: int | None
) -> None:
    """Answers in a file, and records, may be all that there are: the advice must work without more of them."""
    audit = Records()
    audit.info = replace(Plain.info, better=better)  # type: ignore[misc]
    given_: dict[str, Any] = {"value": value, "error": error, "audit": audit, "trials": trials}
    given_ |= {"was": 0.2, "p_value": p_value} if limit is None else {"was": None, "limit": limit}
    verdict = judged(**given_)
    if verdict.name != "inconclusive":
        return
    found = re.search(
        r"A `(tolerance|limit)` of (-?[\d.e-]+) or (more|less) can be decided at this size", verdict.reason
    )
    assert found is not None, verdict.reason
    assert judged(**given_ | {found[1]: float(found[2])}).name == "pass", verdict.reason


def test_a_tolerance_of_0_gets_no_number_of_answers() -> None:
    for value in (0.19, 0.2, 0.205):
        verdict = judged(value, error=0.03, tolerance=0)
        assert "No feasible number of answers would give a decision. A `tolerance` of" in verdict.reason


def test_a_large_change_that_chance_explains_is_no_regression() -> None:
    assert judged(0.4, p_value=0.2).name == "inconclusive"


def test_a_run_that_cannot_exclude_twice_the_tolerance_does_not_pass() -> None:
    verdict = judged(error=0.1)
    assert verdict.name == "inconclusive"
    assert "the item may be worse by up to 0.233 (95 % confidence); a pass needs at most 0.2." in verdict.reason
    assert judged(0.25, error=0.1, was=None, limit=0.3).name == "pass"
    verdict = judged(0.25, error=0.2, was=None, limit=0.3)
    assert (
        "the value may exceed the limit by up to 0.279 (95 % confidence); a pass needs at most 0.2." in verdict.reason
    )


def test_an_estimate_without_a_known_error_does_not_pass() -> None:
    measurement = replace(measured(0.2), standard_error=None, interval=None)
    for verdict in (judged(measurement=measurement), judged(was=None, limit=0.3, measurement=measurement)):
        assert verdict.name == "inconclusive"
        assert "a pass needs the standard error of the value, which is unknown" in verdict.reason


def test_a_run_reaches_a_decision_at_the_size_that_it_asks_for() -> None:
    """At that size, a change by twice the tolerance is found in 80 % of runs; no change then passes more often."""
    asked_for = int(judged(error=0.1).reason.split("Needs about ")[1].split()[0])
    error = 0.1 * math.sqrt(15 / asked_for) * math.sqrt(2)
    assert (intervals.quantile(0.99) + intervals.quantile(0.8)) * error == pytest.approx(0.2, rel=0.05)


def test_the_advice_counts_the_baseline_in() -> None:
    """Both errors add up, so that no run is large enough beside a baseline that is too small."""
    asked = sum(measured(0.2, 0.1).n.values())
    said = {times: judged(error=0.1, answers=round(times * asked)).reason for times in (0.5, 1.0, 40.0)}
    assert "Needs about 51 trials to decide, and as many in the baseline; this run had 15." in said[0.5]
    assert "Needs about 76 trials to decide, and as many in the baseline; this run had 15." in said[1.0]
    assert "Needs a baseline of about 8 trials to decide; this run had 15." in judged(error=0.1, answers=3).reason
    assert "Needs about 84 trials to decide; this run had 15." in said[40.0]


def test_a_gap_that_changed_sides_is_a_regression() -> None:
    audit, item = Plain(), AuditItem(PROBE, "plain", None, {}, AuditSettings(), alpha=0.01)

    def name(value: float, p_value: float) -> str:
        reversal = Reversal(value, p_value, "40% of Black and 10% of White, before 10% and 40%")
        comparison = Comparison(0.0, (-0.02, 0.02), 0.01, 0.5, reversal=reversal)
        verdict = decide(
            audit, item, measured(value), baseline=BaselineEntry(value), comparison=comparison, trials=15, accept=ACCEPT
        )
        assert ("the advantage changed sides: 40% of Black" in verdict.reason) == (verdict.name == "regression")
        return verdict.name

    assert name(0.3, 0.001) == "regression"
    assert name(0.3, 0.02) == "inconclusive", "chance may have done it, or not"
    assert name(0.1, 0.001) == "pass", "a gap within the tolerance"


def test_without_baseline_and_limit_there_is_no_verdict_but_the_command() -> None:
    verdict = judged(was=None)
    assert verdict.name == "no-baseline"
    assert ACCEPT in verdict.reason
    assert verdict.undecided is None
    assert judged(was=None, measurement=measured(0.2, missing={"a": 40, "b": 40})).undecided == (
        "57% of the answers are missing (40 of 70 for a, 40 of 70 for b)"
    )


def test_a_limit_alone_judges() -> None:
    assert judged(was=None, limit=0.25).name == "pass"


def test_a_stale_baseline_names_what_differs_and_the_command() -> None:
    verdict = judged(stale=("prompt", "axis race"), limit=0.1)
    assert verdict.name == "stale-baseline"
    assert "prompt, axis race" in verdict.reason
    assert verdict.undecided == "changed since the baseline was made: prompt, axis race"
    assert ACCEPT in verdict.reason


def test_gate_point_compares_bare_estimates() -> None:
    assert judged(0.31, error=0.2, gate="point").name == "regression"
    assert judged(0.29, error=0.2, gate="point").name == "pass"
    assert judged(0.29, error=0.2, gate="point", limit=0.28).name == "over-limit"


def test_gate_strict_wants_a_pass_shown() -> None:
    assert judged(0.25, error=0.03).name == "pass"
    verdict = judged(0.25, error=0.03, gate="strict")
    assert verdict.name == "inconclusive"
    assert "the item may be worse by up to 0.12 (95 % confidence); a pass needs at most 0.1." in verdict.reason
    assert judged(0.2, gate="strict").name == "pass"
    assert judged(0.24, was=None, limit=0.25, gate="strict").name == "inconclusive"


def test_where_higher_is_better_less_is_worse() -> None:
    assert judged(0.6, was=0.9, audit=Higher()).name == "regression"
    assert judged(0.9, was=0.6, audit=Higher()).name == "pass"
    assert judged(0.5, was=None, limit=0.6, audit=Higher()).name == "over-limit"
    assert judged(0.7, was=None, limit=0.6, audit=Higher()).name == "pass"


@pytest.mark.parametrize("gate", ["significant", "bound", "strict", "point"])
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
