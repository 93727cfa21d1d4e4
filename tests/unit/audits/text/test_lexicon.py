"""The audit `lexicon`: rates of declared words, stems and phrases, document by document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.audits import registry
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.lexicon import LexiconSettings
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.records import Answer, Measurement, Status, Verdict
from tests.support.corpora import PROBE

AUDIT = registry.get("generation", "lexicon")
AGENTIC = ["lead*", "confident*", "takes charge"]
FILLERS = ("the", "team", "met", "early", "and", "talked", "about", "plans", "for", "next", "week", "before", "lunch")


def item(terms: Sequence[str] = AGENTIC, alpha: float = 0.01, **given_: Any) -> AuditItem[GenerationProbe, Any]:
    lexicon = LexiconSettings(lexicons={"agentic": tuple(terms)}, **given_)
    labels = {"race": "Black", "lexicon": "agentic"}
    return AuditItem(PROBE, "lexicon", "race=Black,lexicon=agentic", labels, lexicon, alpha, seed="letters/lexicon")


def answer(race: str, text: str, trial: int, gender: str = "man") -> Answer:
    return Answer({"race": race, "gender": gender}, trial, text, Status.OK, text)


def letters(black: Sequence[str], white: Sequence[str], gender: str = "man") -> list[Answer]:
    return [
        answer(race, text, trial, gender)
        for race, texts in (("Black", black), ("White", white))
        for trial, text in enumerate(texts)
    ]


def drawn(seed: int, extra: float = 0.0, base: float = 3.0, trials: int = 40, length: int = 60) -> list[Answer]:
    """One run: per 100 words `base` terms for everybody, and `extra` more of them for Black people."""
    random = np.random.default_rng(seed)
    run = []
    for race in ("White", "Black"):
        for gender in ("man", "woman"):
            for trial in range(trials):
                rate = (base + (extra if race == "Black" else 0.0)) / 100
                said = [
                    str(random.choice(["leader", "confidently"])) if random.random() < rate else str(word)
                    for word in random.choice(FILLERS, length)
                ]
                run.append(answer(race, " ".join(said), trial, gender))
    return run


def judge(now: list[Answer], then: list[Answer] | None, **given_: Any) -> Verdict:
    subject = item(**given_)
    measured = measure(now, subject)
    return decide(
        AUDIT,
        subject,
        measured,
        baseline=None if then is None else BaselineEntry(AUDIT.measure(subject, then).value),
        comparison=None if then is None else AUDIT.compare(subject, now, then),
        trials=15,
        accept="pytest --fairness-rebaseline",
    )


def measure(run: list[Answer], subject: AuditItem[GenerationProbe, Any]) -> Measurement:
    measured = AUDIT.measure(subject, run)
    return replace(measured, concerns=tuple(AUDIT.concerns(subject, run, measured)))


# Values


def test_the_gap_is_the_difference_of_the_mean_rates_per_100_words() -> None:
    # Rates of the marked: 1 of 4 words and 0 of 2; of the unmarked: 2 of 10 and 0 of 5.
    black = ["A leader at work", "Nothing here"] * 4
    white = ["Leading teams confidently all day and every day of May", "No words like that occur"] * 4
    measured = AUDIT.measure(item(), letters(black, white))
    assert measured.value == pytest.approx(25 / 2 - 20 / 2)
    assert measured.details["rates"] == pytest.approx({"Black": 12.5, "White": 10.0})
    assert measured.details["occurrences"] == {"Black": 4, "White": 8}
    assert measured.details["tokens"] == {"Black": 24, "White": 60}
    assert measured.details["texts_with_terms"] == {"Black": 0.5, "White": 0.5}
    # Two samples of 8, with 25 and 0, 20 and 0, four times each.
    variances = [
        sum((rate - mean) ** 2 for rate in rates) / 7 for mean, rates in ((12.5, [25, 0] * 4), (10, [20, 0] * 4))
    ]
    assert measured.standard_error == pytest.approx(math.sqrt(sum(variance / 8 for variance in variances)))
    # Odds of 4 : 20 against 8 : 52.
    assert measured.details["odds_ratio"]["value"] == pytest.approx((4 / 20) / (8 / 52))


def test_strata_are_compared_within_themselves() -> None:
    # Women get 10 more per 100 words, men 10 fewer, and there are more men in one group than in the other.
    women = letters(["leader " + "x " * 9] * 8, ["y " * 10] * 8, "woman")
    men = letters(["x " * 10] * 8, ["leader " + "y " * 9] * 4, "man")
    measured = AUDIT.measure(item(), women + men)
    # Weights are 1 / (1/8 + 1/8) = 4 for women and 1 / (1/8 + 1/4) = 8/3 for men.
    assert measured.value == pytest.approx(10 * (4 - 8 / 3) / (4 + 8 / 3))


def test_texts_that_are_paired_by_strata_have_the_error_of_paired_differences() -> None:
    rng = np.random.default_rng(5)
    run, differences = [], []
    for number in range(12):
        counts = rng.integers(0, 6, 2)
        texts = ["leader " * count + "x " * (20 - count) for count in counts]
        run += [
            replace(each, labels={**each.labels, "gender": f"s{number}"}) for each in letters([texts[0]], [texts[1]])
        ]
        differences.append(5.0 * (counts[0] - counts[1]))
    measured = AUDIT.measure(item(), run)
    assert measured.value == pytest.approx(np.mean(differences))
    assert measured.standard_error == pytest.approx(np.std(differences, ddof=1) / math.sqrt(12))
    assert measured.degrees_of_freedom == pytest.approx(11)


@pytest.mark.parametrize(
    ("text", "hits", "terms"),
    [
        ("A leader leads; LEADING misleads.", 3, ["lead*"]),
        ("She takes\ncharge and takes charges", 1, ["takes charge"]),
        ("a leader among leaders", 2, ["lead*", "leader", "leaders"]),
        ("take-charge people", 1, ["take charge"]),
        ("Takes charge of what he takes", 2, ["take*", "takes charge"]),
        ("self-confident", 0, ["confident*"]),
        ("Marie\N{RIGHT SINGLE QUOTATION MARK}s leader\N{RIGHT SINGLE QUOTATION MARK}s chair", 1, ["leader"]),
        ("a woman leads women", 2, ["woman", "women"]),
        ("takes full charge; taking charge", 1, ["tak* charge"]),
    ],
)
def test_words_stems_and_phrases_are_counted_once_each(text: str, hits: int, terms: list[str]) -> None:
    padded = letters([text] * 8, ["nothing of that kind"] * 8)
    assert AUDIT.measure(item(terms), padded).details["occurrences"]["Black"] == 8 * hits


def test_terms_that_name_groups_are_counted_whatever_is_anonymised() -> None:
    texts = letters(["Her womanly manner, a black woman"] * 8, ["A lamp, a chair, and a desk"] * 8)
    assert AUDIT.measure(item(["womanly", "her"]), texts).value == pytest.approx(200 / 6)


def test_terms_that_make_the_gap_and_those_that_never_occur_are_told() -> None:
    of = item(["lead*", "confident*", "decisve"])
    measured = AUDIT.measure(of, drawn(1, extra=3))
    assert {term["term"] for term in measured.details["terms"]} == {"lead*", "confident*"}
    assert sum(term["gap"] for term in measured.details["terms"]) == pytest.approx(measured.value)
    assert measured.details["unused_terms"] == ["decisve"]
    assert AUDIT.explanation(of, measured).contributors[0].name in ("lead*", "confident*")


# Properties


texts = st.lists(st.sampled_from(["leader", "confident", "warm", "a", "b"]), min_size=1, max_size=8).map(" ".join)
sides = st.lists(texts, min_size=8, max_size=10)


@given(sides, sides, st.randoms())
@settings(max_examples=20, deadline=None)
def test_exchanged_groups_turn_the_sign_and_order_does_not_matter(
    black: list[str], white: list[str], random: Any
) -> None:
    run = letters(black, white)
    measured = AUDIT.measure(item(), run)
    turned = AUDIT.measure(item(), letters(white, black))
    assert turned.value == pytest.approx(-measured.value, abs=1e-9)
    assert turned.standard_error == pytest.approx(measured.standard_error)
    shuffled = list(run)
    random.shuffle(shuffled)
    assert AUDIT.measure(item(), shuffled) == measured
    assert AUDIT.value(item(), run) == measured.value
    compared = AUDIT.compare(item(), run, letters(white, black))
    assert compared == AUDIT.compare(item(), shuffled, letters(white, black))
    if len(black) == len(white):
        assert compared.value == pytest.approx(0, abs=1e-9)


# Verdicts


def test_a_planted_gap_is_a_regression_and_names_its_terms() -> None:
    verdict = judge(drawn(1, extra=4), drawn(2))
    assert verdict.name == "regression"
    assert "Top contributors" in verdict.reason
    assert "lead*" in verdict.reason


def test_a_gap_to_the_other_side_is_a_regression_too() -> None:
    assert judge(drawn(1, extra=-3, base=4), drawn(2, base=4)).name == "regression"


@pytest.mark.parametrize("seed", range(3))
def test_no_change_is_not_red(seed: int) -> None:
    assert judge(drawn(10 + seed), drawn(20 + seed)).name.outcome != "failed"
    assert judge(drawn(10 + seed, extra=3), drawn(20 + seed, extra=3)).name.outcome != "failed"


def test_a_run_compared_with_itself_has_not_changed() -> None:
    run = drawn(6, extra=2)
    assert AUDIT.compare(item(), run, run).value == 0


def test_runs_of_different_sizes_are_compared_at_equal_size() -> None:
    assert judge(drawn(1, trials=8), drawn(2, trials=60)).name.outcome != "failed"
    assert judge(drawn(1, extra=9, trials=12), drawn(2, trials=60)).name == "regression"


def test_gaps_that_are_near_zero_together_are_known_no_better_than_others() -> None:
    """Under swaps the difference of the gaps' sizes is at most their sum, which may be small by chance."""
    now, then = drawn(1, extra=2, base=5), drawn(2, extra=-2, base=5)
    errors = [AUDIT.measure(item(), run).standard_error or 0.0 for run in (now, then)]
    assert AUDIT.compare(item(), now, then).standard_error == pytest.approx(math.hypot(*errors))


def test_a_gap_that_changed_sides_is_a_regression() -> None:
    verdict = judge(drawn(1, extra=3, base=5), drawn(2, extra=-3, base=5))
    comparison = AUDIT.compare(item(), drawn(1, extra=3, base=5), drawn(2, extra=-3, base=5))
    assert comparison.reversal is not None
    assert comparison.reversal.value == pytest.approx(3, abs=1.5)
    assert comparison.reversal.p_value < 0.01
    assert verdict.name == "regression"
    assert "more for White; now they are used" in verdict.reason


def test_a_limit_is_exceeded_by_a_clear_gap_only() -> None:
    assert judge(drawn(3, extra=5), None, limit=1.0).name == "over-limit"
    assert judge(drawn(3), None, limit=1.0).name.outcome != "failed"


@pytest.mark.parametrize("then", [None, "the same"])
def test_a_lexicon_of_which_nothing_occurs_does_not_pass(then: str | None) -> None:
    run = drawn(1)
    verdict = judge(run, None if then is None else drawn(2), terms=["leeder", "confidant"], limit=1.0)
    assert verdict.name == "inconclusive"
    assert "none of the 2 terms of the lexicon agentic occurs in any answer" in verdict.reason


def test_too_few_documents_are_not_measured() -> None:
    with pytest.raises(NotMeasurable, match="each group needs 8"):
        AUDIT.measure(item(), letters(["leader"] * 7, ["leader"] * 9))


def test_runs_without_a_stratum_in_common_are_not_compared() -> None:
    now, then = (letters(["leader x"] * 8, ["x y"] * 8, gender) for gender in ("man", "woman"))
    with pytest.raises(BaselineStale, match="list of prompts or strata"):
        AUDIT.compare(item(), now, then)


def test_an_odds_ratio_that_is_not_defined_is_none() -> None:
    measured = AUDIT.measure(item(), letters(["leader x"] * 8, ["x y"] * 8))
    assert measured.details["odds_ratio"] == {"value": None, "interval": None, "p_value": None}


def test_the_odds_ratio_has_an_interval_and_a_test_by_document() -> None:
    """Every word of one text counts once in a ratio of words, and as one text in a test by document."""
    one_wordy = letters(["leader " * 30] + ["x y z " * 10] * 11, ["leader x y z " * 2] + ["x y z " * 10] * 11)
    odds: Mapping[str, Any] = AUDIT.measure(item(), one_wordy).details["odds_ratio"]
    assert odds["value"] > 10
    assert odds["p_value"] > 0.3
    planted = AUDIT.measure(item(), drawn(3, extra=4)).details["odds_ratio"]
    assert planted["interval"][0] > 1.5
    assert planted["p_value"] < 0.01
