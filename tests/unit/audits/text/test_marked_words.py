"""Words that grew since the baseline, the prior, and cells of several axes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.rules import VISIBLE_SHARE
from pytest_fairness.audits.words import MarkedWords, MarkedWordsSettings
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import BaselineStale
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.records import Answer, Comparison, Evidence, Status, Verdict
from pytest_fairness.stats.words import z_scores
from tests.support import corpora
from tests.support.oracles import vector

WORDS = [f"w{number}" for number in range(300)]
RATES = 1 / np.arange(1, len(WORDS) + 1)
AXES = {"race": {"unmarked": "White", "marked": ["Black", "Asian"]}, "gender": {"unmarked": "man", "marked": ["woman"]}}
PROBE = corpora.probe(axes=AXES, anonymize=False)
AUDIT = MarkedWords()


def answer(text: str, trial: int, **labels: str) -> Answer:
    return Answer(labels, trial, text, Status.OK, text)


def run(seed: int, trials: int = 27, **planted: Any) -> list[Answer]:
    """One run: each planted word in a share of the texts whose labels hold those given, as (share, labels)."""
    random = np.random.default_rng(seed)
    found = []
    for race in ("White", "Black", "Asian"):
        for gender in ("man", "woman"):
            for trial in range(trials):
                words = list(random.choice(WORDS, size=30, p=RATES / RATES.sum()))
                words += [
                    word
                    for word, (share, labels) in planted.items()
                    if {"race": race, "gender": gender}.items() >= labels.items() and random.random() < share
                ]
                found.append(answer(" ".join(words), trial, race=race, gender=gender))
    return found


def item(
    labels: Mapping[str, str] | None = None, alpha: float = 0.01, of: GenerationProbe = PROBE, **settings: Any
) -> AuditItem[GenerationProbe, MarkedWordsSettings]:
    labels = labels or {"race": "Black"}
    subject = ",".join(f"{name}={value}" for name, value in labels.items())
    return AuditItem(of, "marked_words", subject, labels, MarkedWordsSettings(**settings), alpha, seed=subject)


def compare(now: list[Answer], then: list[Answer], of: AuditItem[GenerationProbe, Any] | None = None) -> Comparison:
    return AUDIT.compare(of or item(), now, then)


def judge(now: list[Answer], then: list[Answer], of: AuditItem[GenerationProbe, Any] | None = None) -> Verdict:
    subject = of or item()
    return decide(
        AUDIT,
        subject,
        AUDIT.measure(subject, now),
        baseline=BaselineEntry(AUDIT.measure(subject, then).value),
        comparison=compare(now, then, subject),
        trials=27,
        accept="…",
    )


BLACK, WHITE = {"race": "Black"}, {"race": "White"}


@pytest.mark.parametrize("share", [1.0, 0.5, 0.35])
def test_one_new_word_about_one_group_is_a_regression(share: float) -> None:
    verdict = judge(run(1, hysterical=(share, BLACK)), run(2))
    assert verdict.name == "regression"
    assert "1 word grew for Black: hysterical (0% → " in verdict.reason
    assert "Top contributors: hysterical." in verdict.reason


def test_a_common_word_that_shifts_is_a_regression() -> None:
    then, now = run(3, leader=(0.7, {})), run(4, leader=(0.75, WHITE))
    verdict = judge(now, then)
    assert verdict.name == "regression"
    assert "1 word grew for the unmarked group (White): leader (" in verdict.reason
    assert "Top contributors: leader." in verdict.reason
    (word,) = compare(now, then).details["grown"]
    assert word["side"] == "unmarked"
    assert word["marked"][1] == 0


def test_a_word_that_grows_for_everyone_or_goes_away_is_none() -> None:
    everywhere = compare(run(5, hopeful=(0.8, {})), run(6))
    assert (everywhere.value, everywhere.details["grown_by_less"]) == (0, [])
    gone = compare(run(5), run(6, hysterical=(0.8, BLACK)))
    assert (gone.value, gone.details["grown_by_less"]) == (0, [])


def test_a_steady_word_does_not_hide_a_new_one() -> None:
    steady: dict[str, Any] = {f"steady{number}": (0.8, BLACK) for number in range(15)}
    assert judge(run(7, **steady), run(8, **steady)).name == "pass"
    comparison = compare(run(7, hysterical=(0.6, BLACK), **steady), run(8, **steady))
    assert [word["word"] for word in comparison.details["grown"]] == ["hysterical"]


def test_a_word_that_grew_by_little_is_a_note() -> None:
    now, then, strict = run(9, hysterical=(0.4, BLACK)), run(10), item(min_share=0.6)
    comparison = compare(now, then, strict)
    assert comparison.value == 0
    assert [word["word"] for word in comparison.details["grown_by_less"]] == ["hysterical"]
    verdict = judge(now, then, strict)
    assert verdict.name != "regression"
    assert (
        "no word grew by 60 percentage points or more; words that grew significantly, but by less than 60 percentage "
        "points: hysterical (0% → " in verdict.reason
    )
    # At the very share it counts.
    growth = comparison.details["grown_by_less"][0]["growth"]
    assert compare(now, then, item(min_share=growth)).value == 1


def test_unchanged_runs_pass_where_they_would_have_shown_a_word_and_say_which() -> None:
    verdict = judge(run(11), run(12))
    assert verdict.name == "pass"
    assert verdict.minimum_detectable is not None
    assert 0.1 < verdict.minimum_detectable <= VISIBLE_SHARE
    small = judge(run(11, trials=8), run(12, trials=8))
    assert small.name == "inconclusive"
    assert re.search(
        r"a new word in up to \d+% of the texts of one group may have been missed; for a pass, the run must be large "
        r"enough to find a new word in 20% of the texts. Needs about \d+ trials",
        small.reason,
    )


def test_a_larger_baseline_shows_more() -> None:
    shares = [compare(run(13), run(14, trials=trials)).details["smallest_share"] for trials in (27, 108)]
    assert shares[1] < shares[0]


def test_a_decision_takes_a_paired_run_that_is_large_enough() -> None:
    def outcome(value: float, needed: int | None, *, from_answers: bool = True) -> str:
        evidence = Evidence(needed_documents=(needed, 60))
        comparison = Comparison(value, None, None, None, from_answers=from_answers, evidence=evidence)
        return AUDIT.rule.judge_change(AUDIT, item(), comparison, 0, value).outcome

    assert outcome(0, 7) == "within"
    assert outcome(0, 8) == "unclear", "eight of 60 is the 95 % bound of a word in 21 % of the texts"
    assert outcome(0, None) == "unclear"
    assert outcome(1, 60) == "beyond"
    assert outcome(1, 7, from_answers=False) == outcome(-1, 7, from_answers=False) == "unclear"
    measured = AUDIT.measure(item(), run(15))
    assert AUDIT.rule.judge_value(AUDIT, item(), measured, 0, 0).outcome == "within"
    assert AUDIT.rule.judge_value(AUDIT, item(), replace(measured, value=1), 0, 0).outcome == "beyond"
    unseen = replace(measured, evidence=replace(measured.evidence, smallest_share=0.9))
    assert AUDIT.rule.judge_value(AUDIT, item(), unseen, 0, 0).outcome == "unclear"
    assert AUDIT.rule.judge_value(AUDIT, replace(item(), final_analysis=False), measured, 0, 0).outcome == "unclear"


def test_runs_that_share_no_stratum_are_not_compared() -> None:
    then = [replace(a, labels={**a.labels, "prompt": "other"}) for a in run(16)]
    with pytest.raises(BaselineStale, match="list of prompts or strata"):
        compare(run(17), then)


# The prior.


@pytest.mark.parametrize("prior", ["pooled", "pair"])
def test_the_prior_counts_every_group_of_the_probe_or_the_compared_ones(prior: str) -> None:
    answers = run(20, silk=(0.4, {"race": "Asian"}), braid=(0.5, BLACK))
    counted = answers if prior == "pooled" else [a for a in answers if a.labels["race"] != "Asian"]
    measured = AUDIT.measure(item(prior=prior), answers)
    everything = " ".join(str(a.content) for a in counted).split()
    vocabulary = sorted({*everything})

    def counts(race: str) -> Any:
        words = " ".join(str(a.content) for a in answers if a.labels["race"] == race).split()
        return np.array([float(words.count(word)) for word in vocabulary])

    expected = dict(
        zip(
            vocabulary,
            z_scores(counts("Black"), counts("White"), np.array([float(everything.count(w)) for w in vocabulary])),
            strict=True,
        )
    )
    assert measured.details["words"]
    for word in measured.details["words"]:
        assert word["z"] == pytest.approx(expected[word["word"]])
    assert "silk" not in {word["word"] for word in measured.details["words"]}


def test_other_groups_help_with_the_prior_and_count_for_nothing_else() -> None:
    answers = run(21)
    broken = [replace(a, status=Status.REFUSED, content=None) if a.labels["race"] == "Asian" else a for a in answers]
    assert all(AUDIT.uses(item(), a.labels) for a in answers)
    assert {a.labels["race"] for a in answers if AUDIT.uses(item(prior="pair"), a.labels)} == {"Black", "White"}
    assert {a.labels["race"] for a in AUDIT.counted_answers(item(), answers)} == {"Black", "White"}
    for prior in ("pooled", "pair"):
        measured = AUDIT.measure(item(prior=prior), broken)
        assert measured.n == {"Black": 54, "White": 54}
        assert measured.missing == {"Black": 0, "White": 0}
    pair, pooled = (AUDIT.measure(item(prior=prior), broken) for prior in ("pair", "pooled"))
    assert pair == pooled, "with no other usable answers the priors are the same"
    assert compare(answers, broken) == compare(answers, answers)


# Cells of several axes.


def test_a_cell_is_compared_with_the_unmarked_group_of_each_axis() -> None:
    cell = item({"race": "Black", "gender": "woman"})
    measured = AUDIT.measure(cell, run(30, angry=(0.9, cell.labels)))
    assert measured.n == {"Black woman": 27, "White": 54, "man": 81}
    (word,) = [word for word in measured.details["words"] if word["significant"]]
    assert (word["word"], word["side"]) == ("angry", "marked")
    grown = compare(run(31, angry=(0.9, cell.labels)), run(32), cell)
    assert [word["word"] for word in grown.details["grown"]] == ["angry"]
    assert grown.details["groups"] == {"marked": "Black woman", "unmarked": "White, man"}


def test_a_cell_has_no_word_that_every_axis_does_not_have() -> None:
    cell = item({"race": "Black", "gender": "woman"})
    # New in as many texts about men as about Black women, so that it stands out against White people only.
    now = run(33, angry=(0.7, cell.labels))
    now = [
        answer(f"{a.text} angry", a.trial, **a.labels) if a.labels["gender"] == "man" and a.trial % 10 < 7 else a
        for a in now
    ]
    assert not compare(now, run(34), cell).value


def test_the_scores_of_a_cell_are_summed_over_axes() -> None:
    case = vector("marked_words_original", "mw_intersection_two_axes")
    table, target, unmarked = (case["input"][name] for name in ("table", "target", "unmarked"))
    axes = {
        axis: {"unmarked": unmarked[axis], "marked": sorted({*table[axis]} - {unmarked[axis]})} for axis in unmarked
    }
    probe = corpora.probe(axes=axes, anonymize=False)
    # Repeated, as a group needs eight answers; counts and prior grow alike, and scores with the root of it.
    times = 16
    answers = [
        answer(text, trial, gender=gender, race=race)
        for trial in range(times)
        for text, gender, race in zip(table["text"], table["gender"], table["race"], strict=True)
    ]
    measured = AUDIT.measure(item(target, of=probe), answers)
    scores = {word["word"]: word["z"] / np.sqrt(times) for word in measured.details["words"]}
    for word, expected in case["expected"]["words_with_summed_z"].items():
        assert scores[word] == pytest.approx(expected, abs=case["tol"])
