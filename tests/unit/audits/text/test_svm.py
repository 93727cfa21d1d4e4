"""The classifier of texts: its null, its errors, its scale, and what it says where there is nothing to learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.simulated.scenario import probe
from benchmarks.simulated.texts import REAL_PROBE, recorded
from pytest_fairness.audits import registry
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.records import Answer, Comparison, Measurement, Status
from pytest_fairness.run import items_of
from tests.support.corpora import PRODUCTS, STEREOTYPED, answers, item

DAYS = probe(REAL_PROBE.format(trials=50, audits="{svm: {}}"), "days")
AUDIT = registry.get("generation", "svm")


def measured(run: Sequence[Answer], **settings: Any) -> Measurement:
    return AUDIT.measure(item("svm", **settings), run)


def compared(now: Sequence[Answer], then: Sequence[Answer], **settings: Any) -> Comparison:
    return AUDIT.compare(item("svm", **settings), now, then)


def texts_of(run: Sequence[Answer], text: Any) -> list[Answer]:
    return [replace(answer, content=text(answer)) for answer in run]


def test_answers_that_are_all_alike_are_at_chance_and_no_pass() -> None:
    same = texts_of(answers(1), lambda a: f"the same words for {a.labels['race']}")
    measurement = measured(same)
    assert (measurement.value, measurement.p_value) == (0.5, 1)
    assert measurement.interval is not None
    assert measurement.interval[1] - measurement.interval[0] > 0.5
    concerns = AUDIT.concerns(item("svm"), same, measurement)
    assert [(concern.name, concern.withholds) for concern in concerns] == [("few_different_answers", "pass")]
    comparison = compared(same, same)
    assert (comparison.value, comparison.p_value) == (0, 1)


def test_a_fair_system_with_few_answers_is_at_chance_whichever_group_comes_first() -> None:
    """Both groups get the same twelve short answers, in the same shares."""
    random = np.random.default_rng(1)
    few = texts_of(answers(1, trials=40), lambda _: " ".join(PRODUCTS[random.integers(12)].split()[:2]))
    measurement = measured(few)
    assert measurement.value < 0.6
    assert measurement.p_value is not None
    assert measurement.p_value > 0.05


def test_repeats_are_no_evidence() -> None:
    run = answers(3, bias=0.3)
    assert measured(run * 3).value == measured(run).value
    assert measured(run * 3).standard_error == measured(run).standard_error


def test_a_text_is_not_recognised_by_its_equal_of_another_stratum() -> None:
    """Each text of a group is given to both genders: random words, so that nothing but the text itself is telling."""
    random = np.random.default_rng(2)
    words = [f"word{number}" for number in range(60)]
    drawn = {
        (race, trial): " ".join(random.choice(words, size=8)) for race in ("White", "Black") for trial in range(30)
    }
    run = texts_of(answers(1, trials=30), lambda a: drawn[a.labels["race"], a.trial])
    assert measured(run).value < 0.65


def confounded(seed: int, trials: int = 40) -> list[Answer]:
    """Men are asked about in other words than women; nine of ten men asked about are White, as one of ten women."""
    random = np.random.default_rng(seed)
    run = []
    for answer in answers(seed, trials=trials):
        usual = (answer.labels["race"] == "White") == (answer.labels["gender"] == "man")
        if usual or answer.trial < trials // 10:
            style = "strong plain tools" if answer.labels["gender"] == "man" else "gentle bright colours"
            run.append(replace(answer, content=f"{answer.content} {style} {PRODUCTS[random.integers(16)]}"))
    return run


def test_a_design_that_gives_the_groups_away_is_no_finding() -> None:
    found = [measured(confounded(seed), limit=0.6) for seed in range(8)]
    assert np.mean([measurement.value for measurement in found]) < 0.58
    assert np.mean([measurement.details["null_mean"] for measurement in found]) == pytest.approx(0, abs=0.15)
    assert all(AUDIT.rule.judge_value(AUDIT, item("svm"), each, 0.6, 0.15).outcome != "beyond" for each in found)


def test_a_limit_takes_an_accuracy_that_permuted_labels_do_not_give() -> None:
    measurement = measured(answers(3, bias=0.8))
    assert AUDIT.rule.judge_value(AUDIT, item("svm"), measurement, 0.6, 0.15).outcome == "beyond"
    assert AUDIT.rule.judge_value(AUDIT, item("svm"), replace(measurement, p_value=0.2), 0.6, 0.15).outcome == "unclear"


@pytest.mark.parametrize("features", ["counts", "tfidf"])
def test_null_and_published_accuracy(features: str) -> None:
    fair, biased = (measured(answers(4, bias=bias), features=features) for bias in (0.0, 0.9))
    assert fair.details["null_mean"] == pytest.approx(0, abs=0.15)
    assert fair.details["accuracy"] < 0.75
    assert biased.details["accuracy"] > 0.9
    assert fair.details["fold_sd"] > 0


def test_values_and_intervals_stay_within_their_range() -> None:
    certain = measured(answers(5, bias=1.0))
    assert certain.interval is not None
    assert certain.value > 0.95
    assert 0 <= certain.interval[0] <= certain.value <= certain.interval[1] <= 1
    assert certain.details["d_prime"] > 5
    again = AUDIT.compare_values(certain, certain.value, certain.standard_error, from_answers=False)
    assert again.value == pytest.approx(0, abs=1e-6)


def test_the_change_is_that_of_the_two_distances() -> None:
    now, then = answers(13, bias=0.5), answers(14, bias=0.3)
    distances = [measured(run).details["d_prime"] for run in (now, then)]
    assert measured(now).value == pytest.approx(norm.cdf(distances[0] / 2))
    expected = norm.cdf((distances[0] - distances[1]) / 2) - 0.5
    comparison = compared(now, then)
    assert comparison.value == pytest.approx(expected, abs=1e-12)
    assert comparison.interval is not None
    assert -0.5 <= comparison.interval[0] < comparison.value < comparison.interval[1] <= 0.5


def test_a_worsening_is_found_from_a_baseline_near_the_ceiling() -> None:
    """From a stereotype in some texts to one in all of them: the accuracy has little room left to grow in."""

    def planted(seed: int, share: float) -> list[Answer]:
        random = np.random.default_rng(seed)
        fair = answers(seed, trials=40)
        told = {id(a): a.labels["race"] == "Black" and random.random() < share for a in fair}
        return texts_of(fair, lambda a: f"{a.content}. {STEREOTYPED[0]}" if told[id(a)] else a.content)

    now, then = planted(1, 1.0), planted(2, 0.8)
    comparison = compared(now, then)
    assert measured(then).value > 0.8
    assert comparison.value > 0.15
    assert comparison.p_value is not None
    assert comparison.p_value <= 0.01


def days(seed: int, trials: int, longer: float = 0.0) -> tuple[list[Answer], list[Answer]]:
    """Two runs of recorded answers that share none; texts about women of the first run get further words of others.

    The further words come from answers to the same prompt that neither run has, a share `longer` of the text's length.
    """
    random = np.random.default_rng(seed)
    runs: tuple[list[Answer], list[Answer]] = ([], [])
    for (person, job), texts in sorted(recorded().items()):
        order = random.permutation(len(texts))
        for half, run in enumerate(runs):
            for trial, index in enumerate(order[half * trials : (half + 1) * trials]):
                text, more = texts[index], texts[order[2 * trials + trial]].split()
                if half == 0 and person == "a woman":
                    start = random.integers(max(1, len(more) // 2))
                    text = " ".join([text, *more[start : start + round(longer * len(text.split()))]])
                run.append(Answer({"person": person, "job": job}, trial, text, Status.OK, text))
    return runs


def test_longer_texts_of_the_same_words_are_no_change() -> None:
    subject = next(item for item in items_of(DAYS) if item.subject == "person=a woman")
    for seed in range(4):
        now, then = days(seed, 30, longer=0.4)
        assert AUDIT.rule.judge_change(AUDIT, subject, AUDIT.compare(subject, now, then), 0.1, 0.0).outcome != "beyond"
        assert AUDIT.measure(subject, now).value < 0.75, "square roots of counts: 0.8 and more"


def test_unchanged_texts_that_are_nearly_always_recognised_pass() -> None:
    """Teachers and engineers are told apart in 90 % of texts; each run has 50 texts about each."""
    subject = next(item for item in items_of(DAYS) if item.subject == "job=an engineer")
    runs = [days(seed, 25) for seed in range(6)]
    changes = [AUDIT.compare(subject, now, then) for now, then in runs]
    assert all(AUDIT.measure(subject, now).value > 0.8 for now, _ in runs[:2])
    outcomes = [AUDIT.rule.judge_change(AUDIT, subject, each, 0.1, each.value).outcome for each in changes]
    assert outcomes.count("within") >= 5
    assert "beyond" not in outcomes


def test_stored_values_are_compared_on_the_same_scale() -> None:
    measurement = measured(answers(1, bias=0.8))
    comparison = AUDIT.compare_values(measurement, 0.5, 0.07, from_answers=False)
    assert comparison.value == pytest.approx(measurement.value - 0.5, abs=0.02)
    assert comparison.standard_error is not None
    assert 0 < comparison.standard_error < 0.1
    assert AUDIT.compare_values(measurement, 0.5, None, from_answers=False).p_value is None


def test_runs_without_a_common_stratum_are_not_compared() -> None:
    men, women = (answers(1, genders=(gender,)) for gender in ("man", "woman"))
    with pytest.raises(Exception, match="list of prompts or strata"):
        compared(men, women)


def test_errors_are_those_of_repeated_runs_and_alarms_as_rare_as_promised() -> None:
    """60 pairs of fair runs: errors are the spread of values and changes, and p is as of no change."""
    subject: AuditItem[Any, Any] = item("svm")
    pairs = [(answers(1000 + seed, trials=10), answers(2000 + seed, trials=10)) for seed in range(60)]
    found = [AUDIT.measure(subject, now) for now, _ in pairs]
    changes = [AUDIT.compare(subject, *pair) for pair in pairs]
    for kind in (found, changes):
        errors = [float(each.standard_error or 0) for each in kind]
        ratio = math.sqrt(np.mean(np.square(errors))) / np.std([each.value for each in kind], ddof=1)
        # With 60 pairs the spread itself is known to ± 18 % only; near chance, the error of a change is 1.2 times it.
        assert 0.75 < ratio < 1.45
    for kind in (found, changes):
        p_values = np.array([each.p_value for each in kind])
        assert np.mean(p_values <= 0.5) == pytest.approx(0.5, abs=0.2)
        assert np.mean(p_values <= 0.05) <= 0.15
