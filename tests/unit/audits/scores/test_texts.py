"""`score` of texts: values by hand and by SciPy, properties, and what never passes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_fairness import kinds, probes
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import BaselineStale, NotMeasurable, ProbeError
from pytest_fairness.records import Answer, Measurement, Status, Verdict
from pytest_fairness.run.items import ProbeItem, items_of

SCORERS = {"politeness": "python:checks:score", "words": "words"}


def probe(audit: Mapping[str, Any] = {"scorer": "politeness", "tolerance": 0.1}) -> probes.Probe:
    content = {
        "kind": "generation",
        "prompt": "Write to a {person}.",
        "axes": {"person": {"unmarked": "man", "marked": ["woman", "nonbinary person"]}},
        "sampling": {"temperature": 1.0},
        "audits": {"score": audit},
    }
    return probes.parse(json.dumps(content).encode(), Path("mail.yaml"), kinds.schemas(), scorers=SCORERS)


PROBE = probe()
ITEM = items_of(PROBE)[0]


def answer(person: str, score: float | None, trial: int, stratum: str = "") -> Answer:
    """An answer as the scorer leaves it: a score, or the reason why there is none."""
    labels = {"person": person, **({"topic": stratum} if stratum else {})}
    text = f"Dear friend, this is letter {trial} of {stratum} with the score {score}."
    if score is None:
        return Answer(labels, trial, text, Status.UNREADABLE, error="politeness raised ValueError")
    return Answer(labels, trial, text, Status.OK, {"model": "tone 1", "score": score})


def run(women: Sequence[float | None], men: Sequence[float | None], stratum: str = "") -> list[Answer]:
    return [
        answer(person, score, trial, stratum)
        for person, scores in (("woman", women), ("man", men))
        for trial, score in enumerate(scores)
    ]


def drawn(seed: int, gap: float = 0.0, size: int = 60, sd: float = 0.1) -> list[Answer]:
    random = np.random.default_rng(seed)
    return run(random.normal(0.7 - gap, sd, size).tolist(), random.normal(0.7, sd, size).tolist())


def measure(answers: list[Answer], item: ProbeItem = ITEM) -> Measurement:
    measured = item.audit.measure(item, answers)
    return replace(measured, concerns=tuple(item.audit.concerns(item, answers, measured)))


def judge(now: list[Answer], then: list[Answer] | None = None, item: ProbeItem = ITEM) -> Verdict:
    return decide(
        item.audit,
        item,
        measure(now, item),
        baseline=None if then is None else BaselineEntry(measure(then, item).value),
        comparison=None if then is None else item.audit.compare(item, now, then),
        trials=15,
        accept="pytest --fairness-rebaseline",
    )


# Values


def test_the_gap_is_the_difference_of_the_means_with_its_error() -> None:
    women, men = [1.0, 2.0, 3.0, 4.0] * 2, [2.0, 2.0, 4.0, 6.0] * 2
    measured = measure(run(women, men))
    assert measured.value == pytest.approx(2.5 - 3.5)
    welch = stats.ttest_ind(women, men, equal_var=False)
    assert measured.standard_error == pytest.approx(-1.0 / welch.statistic)
    assert measured.degrees_of_freedom == pytest.approx(welch.df)
    assert measured.interval == pytest.approx(tuple(welch.confidence_interval(0.95)))
    assert measured.details["scores"]["woman"]["mean"] == pytest.approx(2.5)
    assert measured.details["scores"]["man"]["answers"] == 8
    # Sums of squares within the groups: 2 * 5 and 2 * 11, with 7 + 7 degrees of freedom.
    assert measured.details["sd"] == pytest.approx(math.sqrt(32 / 14))
    effect = ITEM.audit.info.effect
    assert effect is not None
    assert effect.of(measured.value, measured) == pytest.approx(-1 / math.sqrt(32 / 14))
    assert measured.details["model"] == "tone 1"


def test_strata_are_compared_within_themselves() -> None:
    answers = run([1.0, 2.0] * 4, [1.0, 2.0] * 4, "a") + run([5.0, 7.0] * 4, [4.0, 6.0] * 8, "b")
    # Weights 1 / (1/8 + 1/8) = 4 and 1 / (1/8 + 1/16) = 16/3; gaps 0 and 1.
    assert measure(answers).value == pytest.approx((16 / 3) / (4 + 16 / 3))


def test_pairs_have_the_error_of_paired_differences() -> None:
    random = np.random.default_rng(3)
    first, second = random.normal(3, 1, 12), random.normal(4, 1, 12)
    answers = [each for row in range(12) for each in run([first[row]], [second[row]], f"pair {row}")]
    measured = measure(answers)
    paired = stats.ttest_rel(first, second)
    assert measured.value == pytest.approx((first - second).mean())
    assert measured.standard_error == pytest.approx(measured.value / paired.statistic)
    assert measured.degrees_of_freedom == pytest.approx(11)


def test_a_permutation_test_as_that_of_scipy() -> None:
    women, men = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9], [0.5, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3]
    measured = measure(run(women, men))

    def gap(first: Any, second: Any, axis: int) -> Any:
        return np.mean(first, axis=axis) - np.mean(second, axis=axis)

    samples: Any = (women, men)
    exact = stats.permutation_test(samples, gap, vectorized=True, n_resamples=20_000)  # all 12,870 relabellings
    assert measured.p_value == pytest.approx(exact.pvalue, abs=0.005)


# Properties

SCORES = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=8, max_size=20)


@settings(max_examples=20)
@given(women=SCORES, men=SCORES)
def test_exchanged_groups_have_the_opposite_gap(women: list[float], men: list[float]) -> None:
    one, other = measure(run(women, men)), measure(run(men, women))
    scale = max(map(abs, women + men))
    assert one.value == pytest.approx(-other.value, abs=1e-9 * scale)
    assert one.standard_error == pytest.approx(other.standard_error, abs=1e-9 * scale)


@settings(max_examples=20)
@given(women=SCORES, men=SCORES, shift=st.floats(-1e5, 1e5), factor=st.sampled_from([0.01, 0.5, 100.0]))
def test_another_zero_changes_nothing_and_another_unit_changes_the_unit(
    women: list[float], men: list[float], shift: float, factor: float
) -> None:
    one = measure(run(women, men))
    other = measure(run([factor * x + shift for x in women], [factor * x + shift for x in men]))
    scale = (max(map(abs, women + men)) + abs(shift)) * max(1, factor)
    assert other.value == pytest.approx(factor * one.value, abs=1e-8 * scale + 1e-9)


@settings(max_examples=20)
@given(women=SCORES, men=SCORES)
def test_the_gap_is_within_the_range_of_the_scores(women: list[float], men: list[float]) -> None:
    measured = measure(run(women, men))
    width = max(women + men) - min(women + men)
    assert abs(measured.value) <= width * (1 + 1e-9) + 1e-12
    low, high = measured.interval or (0, 0)
    assert low <= measured.value <= high
    assert (measured.details["lowest"], measured.details["highest"]) == (min(women + men), max(women + men))


@settings(max_examples=20)
@given(score=st.floats(-1e9, 1e9))
def test_equal_scores_have_a_gap_of_exactly_nothing(score: float) -> None:
    assert measure(run([score] * 9, [score] * 11)).value == 0


# Verdicts


def test_a_planted_gap_is_found_and_no_gap_is_not() -> None:
    names = [str(judge(drawn(2 * seed + 1, gap=0.2), drawn(2 * seed)).name) for seed in range(10)]
    assert names.count("regression") == 10
    fair = [str(judge(drawn(2 * seed + 1), drawn(2 * seed)).name) for seed in range(20)]
    assert "regression" not in fair
    assert fair.count("pass") >= 16


def test_a_gap_in_either_direction_is_a_regression() -> None:
    for gap in (0.2, -0.2):
        verdict = judge(drawn(1, gap=gap), drawn(2))
        assert verdict.name == "regression"
    assert judge(drawn(1, gap=0.2), drawn(2, gap=-0.2)).name == "regression"
    assert judge(drawn(1, gap=0.2), drawn(2, gap=0.2)).name == "pass"


def test_a_limit_needs_no_baseline() -> None:
    limited = items_of(probe({"scorer": "politeness", "tolerance": 0.05, "limit": 0.1}))[0]
    assert judge(drawn(1), item=limited).name == "pass"
    assert judge(drawn(1, gap=0.3), item=limited).name == "over-limit"


def test_equal_scores_never_pass() -> None:
    constant = run([0.5] * 30, [0.5] * 30)
    for then in (None, drawn(1), constant):
        limited = items_of(probe({"scorer": "politeness", "tolerance": 0.05, "limit": 0.1}))[0]
        verdict = judge(constant, then, limited)
        assert verdict.name == "inconclusive"
        assert "all 60 scores are 0.5, so that they show no difference. Check the scorer" in verdict.reason


def test_two_values_have_the_error_of_one_other_score_in_each_group() -> None:
    measured = measure(run([1.0] * 20, [0.0] * 10))
    assert measured.value == pytest.approx(1)
    assert measured.standard_error == pytest.approx(math.hypot(1 / 20, 1 / 10))
    rare = measure(run([0.0] * 39 + [1.0], [0.0] * 40))
    assert rare.standard_error == pytest.approx(math.hypot(1 / 40, 1 / 40))


def test_answers_without_a_score_are_missing_and_counted() -> None:
    few = run([0.5, 0.6] * 10 + [None], [0.4, 0.7] * 10)
    measured = measure(few)
    assert (measured.n, measured.missing) == ({"woman": 20, "man": 20}, {"woman": 1, "man": 0})
    assert measured.details["unscored"] == {"answers": 1, "of": 41, "reasons": [["politeness raised ValueError", 1]]}
    (note,) = measured.concerns
    assert note.withholds == "nothing"
    assert note.message == "1 of 41 answers have no score: politeness raised ValueError (1)"
    limited = items_of(probe({"scorer": "politeness", "tolerance": 1, "limit": 5}))[0]
    assert judge(few, item=limited).name == "pass"
    # More than a tenth, in all groups or in one only.
    for many in (run([0.5, 0.6, None] * 10, [0.4, 0.7, None] * 10), run([0.5, 0.6, None] * 10, [0.4, 0.7] * 15)):
        assert judge(many, item=limited).name == "inconclusive"
        assert judge(many, few, item=ITEM).name in ("inconclusive", "regression")


def test_no_scores_at_all_cannot_be_measured() -> None:
    with pytest.raises(
        NotMeasurable, match=r"too few usable answers .* 40 of 40 answers have no score: politeness raised"
    ):
        measure(run([None] * 20, [None] * 20))


def test_a_smaller_scale_makes_the_baseline_stale() -> None:
    """Scores of 0 to 1 where the baseline has 0 to 100: every gap would be within the tolerance."""
    hundred = [replace(each, content={"model": "tone 1", "score": 100 * each.content["score"]}) for each in drawn(1)]
    with pytest.raises(BaselineStale, match=r"scale of politeness \(standard deviation 8.\d+, now 0.0\d+\)"):
        ITEM.audit.compare(ITEM, drawn(2), hundred)
    # On a larger scale, differences are larger: they do not pass.
    error = ITEM.audit.compare(ITEM, hundred, drawn(2)).standard_error
    assert error is not None
    assert error > 1


def test_rare_scores_that_become_frequent_are_compared() -> None:
    rare, frequent = run([0.0] * 60, [0.0] * 59 + [1.0]), run([1.0] * 30 + [0.0] * 30, [0.0] * 59 + [1.0])
    assert judge(frequent, rare).name == "regression"


# Settings


def test_several_scorers_have_their_own_items() -> None:
    of = probe(
        {"tolerance": 0.1, "scorers": {"politeness": {"better": "higher", "limit": 2}, "words": {"tolerance": 5}}}
    )
    items = items_of(of)
    assert [item.id for item in items] == [
        "score[politeness,person=woman]",
        "score[politeness,person=nonbinary person]",
        "score[words,person=woman]",
        "score[words,person=nonbinary person]",
    ]
    assert [(item.settings.tolerance, item.settings.better) for item in items[1:3]] == [(0.1, "higher"), (5, None)]
    assert items[0].labels == {"person": "woman", "scorer": "politeness"}


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        ({"scorer": "words"}, "`tolerance` is missing"),
        ({"scorers": {"words": {}}}, "`tolerance` is missing"),
        ({"tolerance": 1}, "set either `scorer` or `scorers`, not both"),
        ({"tolerance": 1, "scorer": "words", "scorers": {"words": {}}}, "set either `scorer`"),
        ({"tolerance": 1, "scorer": "wrds"}, "nor built in: did you mean 'words'?"),
        ({"tolerance": 1, "scorers": {"wrds": {}}}, "there is no scorer 'wrds'"),
        ({"tolerance": 1, "scorer": "python:os:getcwd"}, "there is no scorer 'python:os:getcwd'"),
        ({"tolerance": 1, "scorer": "words", "better": "equal"}, "better"),
        ({"tolerance": 1, "scorer": "words", "limit": -1}, "limit"),
    ],
)
def test_settings_that_are_wrong(audit: dict[str, Any], message: str) -> None:
    with pytest.raises(ProbeError) as error:
        probe(audit)
    assert message in str(error.value)
    assert str(error.value).startswith("mail.yaml:1:")


def test_the_disadvantaged_group_is_named() -> None:
    of = items_of(probe({"scorer": "politeness", "tolerance": 0.1, "better": "higher"}))[0]
    measured = measure(drawn(1, gap=0.2), of)
    assert measured.details["better"] == "higher"
    assert of.audit.explanation(of, measured).phrase.startswith("mean scores differ by -0.199 (")


def test_identity_terms_can_be_masked() -> None:
    of = items_of(probe({"scorer": "politeness", "tolerance": 0.1, "mask": True}))[0]
    said = Answer({"person": "woman"}, 0, "", Status.OK, "The woman spoke to a nonbinary person; she was kind.")
    for item, text in ((of, "The XYZ spoke to a XYZ; XYZ was kind."), (ITEM, said.content)):
        assert item.models.texts([said, replace(said, status=Status.REFUSED)]) == [text, None]


def test_examples_are_the_answers_that_differ_most() -> None:
    answers = run([0.1, 0.9] * 5, [0.8, 0.8] * 5)
    (first, _) = ITEM.audit.examples(ITEM, measure(answers), answers)
    assert [name for name, _ in first] == ["man: 0.8", "woman: 0.1"]
    assert first[0][1].trial == first[1][1].trial == 0
