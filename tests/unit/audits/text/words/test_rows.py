"""Full word tables: every word with its uses by group and the audit's statistic, as the measurement has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_fairness.audits import registry
from pytest_fairness.audits.documents import Usage, as_written
from pytest_fairness.audits.word_counts import WordCounts
from pytest_fairness.records import Answer
from tests.support import corpora

ANSWERS = corpora.answers(1, bias=0.5)


def rows_and_details(name: str, **settings: Any) -> tuple[list[dict[str, Any]], Any]:
    audit, item = registry.get("generation", name), corpora.item(name, **settings)
    details = audit.measure(item, ANSWERS).details
    return audit.word_rows(item, ANSWERS, details), details


def test_a_row_counts_the_uses_and_the_texts_of_both_groups() -> None:
    rows, _ = rows_and_details("jsd")
    row = next(row for row in rows if row["word"] == "braids")
    texts = [answer.text or "" for answer in ANSWERS if answer.labels["race"] == "Black"]
    assert (row["marked"], row["unmarked"], row["side"], row["statistic"]) == ("Black", "White", "Black", "bits")
    assert row["uses_marked"] == sum(text.split().count("braids") for text in texts) > 0
    assert row["texts_marked"] == sum("braids" in text.split() for text in texts)
    assert row["share_marked"] == row["texts_marked"] / len(texts)
    assert (row["uses_unmarked"], row["texts_unmarked"], row["share_unmarked"]) == (0, 0, 0)
    assert row["significant"] is None


@pytest.mark.parametrize("name", ["jsd", "marked_words", "mmd", "svm"])
def test_a_word_is_on_the_side_of_the_group_that_uses_it_more(name: str) -> None:
    """Also a word that is only used together with stronger words, so that a classifier may give it any weight."""
    audit: Any = registry.get("generation", name)
    item = corpora.item(name)
    random, told = np.random.default_rng(2), [f"ornament{letter}" for letter in "abcdefghijklmnop"]

    def text(answer: Answer) -> str:
        # Half of the texts about Black customers name all ornaments twice, and porcelain; the others name eight.
        more = [*told * 2, "porcelain"] if answer.trial % 2 else random.choice(told, 8).tolist()
        return " ".join([str(answer.content), *(more if answer.labels["race"] == "Black" else ())])

    run = [replace(answer, content=text(answer)) for answer in corpora.answers(2)]
    measurement = audit.measure(item, run)
    rows = audit.word_rows(item, run, measurement.details)
    used_by_one = [row for row in rows if (row["uses_marked"] == 0) != (row["uses_unmarked"] == 0)]
    assert "porcelain" in {row["word"] for row in used_by_one}
    for row in used_by_one:
        assert row["side"] == (row["marked"] if row["uses_marked"] else row["unmarked"]), row
        assert row["value"] >= 0 if row["uses_marked"] else row["value"] <= 0
    weights, named = audit.word_weights(measurement), {row["word"]: row for row in rows}
    assert weights
    assert all(named[word]["side"] == ("Black" if weight > 0 else "White") for word, weight in weights.items())


def test_a_rate_counts_all_words_of_a_groups_texts_and_equal_rates_are_told_apart_by_texts() -> None:
    texts = WordCounts.of([["tea", "tea", "cup"], ["tea", "cup", "pot"], ["cup", "pot"], ["cup", "cup", "pot", "tea"]])
    usage = Usage.of(texts, np.array([True, True, False, False]), ["cup", "pot", "tea"])
    np.testing.assert_array_equal(usage.uses, [[2, 1, 3], [3, 2, 1]])
    np.testing.assert_array_equal(usage.texts, [[2, 1, 2], [2, 2, 1]])
    np.testing.assert_array_equal(usage.sides, [-1, -1, 1])
    np.testing.assert_array_equal(usage.signed(np.array([1.0, -2.0, -3.0])), [-1, -2, 3])
    equal = Usage.of(
        WordCounts.of([["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]]), np.array([1, 1, 0, 0], bool), ["a", "b"]
    )
    np.testing.assert_array_equal(equal.sides, [-1, -1])


def test_the_statistics_are_those_of_the_measurement_and_the_strongest_word_comes_first() -> None:
    rows, details = rows_and_details("jsd")
    values = {row["word"]: row["value"] for row in rows}
    assert len(rows) == details["words"] > 20
    for word in details["contributions"]:
        assert values[word["word"]] == pytest.approx(word["bits"] * (-1 if word["side"] == "unmarked" else 1))
    assert [abs(row["value"]) for row in rows] == sorted((abs(row["value"]) for row in rows), reverse=True)

    rows, details = rows_and_details("marked_words")
    values = {row["word"]: row["value"] for row in rows}
    assert len(rows) == details["vocabulary"]
    assert {word["word"]: pytest.approx(word["z"]) for word in details["words"]}.items() <= values.items()
    assert {row["word"] for row in rows if row["significant"]} == {
        word["word"] for word in details["words"] if word["significant"]
    }
    for word in details["words"]:
        row = next(row for row in rows if row["word"] == word["word"])
        assert (row["uses_marked"], row["uses_unmarked"]) == (word["marked"], word["unmarked"])
        assert row["texts_marked"] + row["texts_unmarked"] == word["documents"]

    for name in ("svm", "mmd"):
        rows, details = rows_and_details(name)
        values = {row["word"]: row["value"] for row in rows}
        for side, sign in (("marked", 1), ("unmarked", -1)):
            for word in details["top_words"][side]:
                assert values[word["word"]] == pytest.approx(sign * word["weight"])


def test_a_lexicon_has_a_row_for_each_term_that_occurs() -> None:
    audit = registry.get("generation", "lexicon")
    settings = audit.settings_model.model_validate({"lexicons": {"hair": ["braid*", "curls", "wig"]}})
    item = next(item for item in audit.items(corpora.PROBE, settings) if "race" in item.labels)
    details = audit.measure(item, ANSWERS).details
    rows = audit.word_rows(item, ANSWERS, details)
    assert {row["word"]: row["value"] for row in rows} == {
        term["term"]: pytest.approx(term["gap"]) for term in details["terms"]
    }
    assert all(row["uses_marked"] > 0 and row["uses_unmarked"] == 0 for row in rows)


def test_an_intersection_is_compared_with_the_unmarked_group_of_each_axis() -> None:
    probe = corpora.probe(
        axes={"race": {"unmarked": "White", "marked": ["Black"]}, "gender": {"unmarked": "man", "marked": ["woman"]}},
        intersections=[["race", "gender"]],
    )
    audit = registry.get("generation", "marked_words")
    item = next(item for item in audit.items(probe, corpora.item("marked_words").settings) if len(item.labels) == 2)
    details = audit.measure(item, ANSWERS).details
    rows = audit.word_rows(item, ANSWERS, details)
    assert {(row["marked"], row["unmarked"]) for row in rows} == {("Black woman", "White, man")}
    for word in details["words"]:
        row = next(row for row in rows if row["word"] == word["word"])
        assert row["value"] == pytest.approx(word["z"])
        assert row["texts_marked"] + row["texts_unmarked"] == word["documents"]


def test_an_audit_without_a_statistic_of_words_has_no_rows() -> None:
    audit, item = registry.get("generation", "refusals"), corpora.item("refusals")
    assert audit.word_rows(item, ANSWERS, {}) == []


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["Tie it.", "a tie", "the tie"], "tie"),
        (["Tie it.", "Tie them.", "a tie"], "Tie"),
        (["TIE", "tie", "Tie"], "TIE"),
        (["T\u00adie", "Tie"], "Tie"),
        (["nothing"], "tie"),
    ],
)
def test_a_word_is_shown_as_it_is_written_most_often_and_then_as_sorted_first(texts: list[str], shown: str) -> None:
    run = [replace(answer, content=text) for answer, text in zip(corpora.answers(1), texts, strict=False)]
    found = {"top": {"marked": [{"word": "tie", "weight": 1.0}]}, "n": 3}
    expected = {"top": {"marked": [{"word": shown, "weight": 1.0}]}, "n": 3}
    assert as_written(found, corpora.item("jsd").probe, run) == expected
