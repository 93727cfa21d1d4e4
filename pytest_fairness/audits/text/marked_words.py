"""Audit `marked_words`: words that one group's texts use more, or less, by log-odds with a Dirichlet prior.

The method comes from Monroe, Colaresi and Quinn 2008 ("Fightin' Words"), as used by Cheng, Durmus and Jurafsky 2023
("Marked Personas"). With their critical value, |z| > 1.96, at least one word is significant in most comparisons of a
group with itself; see `words.association` for the critical value of this audit. Against a baseline, the audit tests
whether the difference between the groups' shares of documents with a word grew; see `words.growth`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_fairness.audits.base import WordRows
from pytest_fairness.audits.decision_rules import GrownWords
from pytest_fairness.audits.effects import LARGEST_H_OF_WORDS
from pytest_fairness.audits.findings import details_of, plain_words
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text.concerns import repeated_or_one_sided, sampled_texts
from pytest_fairness.audits.text.groups import TextItem, groups_by_axis, is_compared, names_of
from pytest_fairness.audits.text.text_audit import TextAudit
from pytest_fairness.audits.text.words.association import (
    association_details,
    associations,
    significant_words,
    z_of_words,
)
from pytest_fairness.audits.text.words.group_counts import GroupCounts
from pytest_fairness.audits.text.words.growth import growth_details, growth_tests
from pytest_fairness.audits.text.words.languages import language_of
from pytest_fairness.audits.text.words.settings import MarkedWordsSettings
from pytest_fairness.audits.text.words.usage import SIDES
from pytest_fairness.records import Answers, Comparison, Concern, ItemResult, Json, Measurement

NAMED_WORDS = 3
"""Largest number of words that a phrase names."""


class MarkedWords(TextAudit[MarkedWordsSettings]):
    """Number of words that the marked group's texts use significantly more or less (family-wise over all words)."""

    info = AuditInfo(
        name="marked_words",
        title="Words that mark a group",
        question="Which words does one group get more often than the other?",
        formula="δ = ln[(y₁ + α) / (n₁ + α₀ − y₁ − α)] − ln[(y₂ + α) / (n₂ + α₀ − y₂ − α)];  "
        "z = δ / √(1/(y₁ + α) + 1/(y₂ + α));  y = occurrences of the word in a group’s texts, n = number of words of "
        "these texts, α = prior count of the word, α₀ = sum of the prior counts",
        meaning="Number of words whose |z| exceeds the critical value: the (1 − alpha) quantile of the largest |z| "
        "with permuted labels. Tolerance: number of words that may grow. A word grows if the groups' shares of texts "
        "with the word differ more than in the baseline.",
        source="Monroe, Colaresi and Quinn 2008, “Fightin’ Words”; Cheng, Durmus and Jurafsky 2023, “Marked Personas”; "
        "Westfall and Young 1993 on testing many words at once",
        better=Direction.LOWER,
        unit="significant words",
        tolerance=0,
        tolerance_of_value=False,
        best_is_decidable=True,
        value_range=(0, math.inf),
        charts={"words": "marked_words", "grown": "grown_words"},
        effect=LARGEST_H_OF_WORDS,
    )
    version = 8
    settings_model = MarkedWordsSettings
    grows_with_size = True
    rule = GrownWords()

    def uses(self, item: TextItem[MarkedWordsSettings], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to a compared group or, with a pooled prior, to any group."""
        return item.settings.prior == "pooled" or is_compared(item, labels)

    def counted_answers(self, item: TextItem[MarkedWordsSettings], answers: Answers) -> Answers:
        """Return the answers of the compared groups; see `Audit.counted_answers`."""
        return [answer for answer in answers if is_compared(item, answer.labels)]

    def measure(self, item: TextItem[MarkedWordsSettings], answers: Answers) -> Measurement:
        """Return the number of words whose |z| exceeds the critical value; see `Audit.measure`."""
        corpus = GroupCounts.of(item, answers)
        tests = associations(corpus, item.settings, item.alpha, f"{item.seed}/measure")
        details, groups = association_details(corpus, tests), corpus.groups.values()
        n = {name: count for each in groups for name, count in each.usable.items()}
        missing = {name: count for each in groups for name, count in each.missing.items()}
        value, p_value = float(len(significant_words(details))), max(test.p_value for test in tests)
        return Measurement(value, None, None, p_value, n=n, missing=missing, details=details)

    def compare(self, item: TextItem[MarkedWordsSettings], current: Answers, baseline: Answers) -> Comparison:
        """Return the number of words that became more typical of a group, significantly and by at least `min_share`."""
        groups, before = groups_by_axis(item, current), groups_by_axis(item, baseline)
        tests = growth_tests(groups, before, item.alpha, f"{item.seed}/compare")
        details = growth_details(tests, names_of(groups), item.settings.min_share)
        return Comparison(float(len(details["grown"])), p_value=max(test.p_value for test in tests), details=details)

    def unread_worsening(
        self,
        item: TextItem[MarkedWordsSettings],
        measurement: Measurement,
        shares: Mapping[str, float],
        scale: float,
        *,
        other_side: bool = False,
    ) -> float:
        """Return 1 word if the unread texts alone can hold a new word in `min_share` of a group's texts, else 0."""
        return float(max(shares.values()) >= item.settings.min_share)

    def concerns(
        self, item: TextItem[MarkedWordsSettings], answers: Answers, measurement: Measurement
    ) -> list[Concern]:
        """Return the concerns about the compared groups, for each axis of the item; see `Audit.concerns`."""
        groups = groups_by_axis(item, answers).values()
        return list(
            dict.fromkeys(
                concern for each in groups for concern in [*repeated_or_one_sided(each), *sampled_texts(each)]
            )
        )

    def word_rows(self, item: TextItem[MarkedWordsSettings], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        """Return a row for each tested word; see `Audit.word_rows`."""
        corpus = GroupCounts.of(item, answers)
        z, significant = z_of_words(corpus, item.settings), significant_words(details)
        return corpus.usage.rows("z", z, names_of(corpus.groups), significant)

    def describe(self, measurement: Measurement) -> str:
        """Return the number of significant words as a phrase."""
        return f"{measurement.value:.0f} significant {_word_or_words(measurement.value)}"

    def describe_change(self, comparison: Comparison) -> str:
        """Return a phrase that names the words that grew, with the share of texts that contain them, by group.

        If the answers of the baseline are missing, the phrase only says how the number of significant words changed.
        """
        details = comparison.details
        if "grown" not in details:
            change = f"the number of significant words changed by {comparison.value:+.0f}"
            return f"{change} (without the baseline's answers, these words cannot be named)"
        return _describe_growth(details)

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return each word's z-score (log-odds ratio divided by its standard deviation)."""
        return {word["word"]: word["z"] for word in measurement.details["words"]}

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the z-score of each significant word."""
        return significant_words(measurement.details)

    def top_words(self, result: ItemResult) -> tuple[list[str], list[str]]:
        """Return the words of the marked and of the unmarked group that grew or, if no word grew, are significant.

        Function words are left out, unless there are no other words.
        """
        words = {word["word"]: word["side"] for word in _grown_or_significant(details_of(result))}
        content_words = language_of(details_of(result)).content_words(words)
        by_side = {side: plain_words(word for word in content_words if words[word] == side) for side in SIDES}
        return by_side["marked"], by_side["unmarked"]

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the words whose use grew since the baseline, else the significant words; content words come first."""
        words = _grown_or_significant({**measurement.details, **(comparison.details if comparison else {})})
        is_function_word = language_of(measurement.details).is_function_word
        return sorted((str(word["word"]) for word in words), key=is_function_word)


def _grown_or_significant(details: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """Return the words that grew since the baseline or, if no word grew, the significant words."""
    return details.get("grown") or [word for word in details.get("words", ()) if word["significant"]]


def _describe_growth(details: Mapping[str, Json]) -> str:
    """Return a phrase that names the words that grew, with the share of texts that contain them by group and run."""
    groups = details["groups"]
    names = {"marked": groups["marked"], "unmarked": f"the unmarked group ({groups['unmarked']})"}
    grown = {side: [word for word in details["grown"] if word["side"] == side] for side in SIDES}
    smallest = f"{100 * details['min_share']:.3g} percentage points"
    phrases = [
        f"{len(own)} {_word_or_words(len(own))} grew for {names[side]}: {_words_with_shares(own)}"
        for side, own in grown.items()
        if own
    ] or [f"no word grew by {smallest} or more"]
    if less := details["grown_by_less"]:
        phrases.append(f"words that grew significantly, but by less than {smallest}: {_words_with_shares(less)}")
    return "; ".join(phrases)


def _word_or_words(number: float) -> str:
    return "word" if number == 1 else "words"


def _words_with_shares(words: Sequence[Mapping[str, Any]]) -> str:
    """Return a list of words, each with the shares of texts that contain it, by group and run.

    Only the first word's shares name the groups.
    """
    shown: list[str] = []
    for word in words[:NAMED_WORDS]:
        own, others = (word[side] for side in (SIDES if word["side"] == "marked" else SIDES[::-1]))
        whose = ("", "") if shown else (" of this group's texts", " of the other group's texts")
        shown.append(
            f"{word['word']} ({own[0]:.0%} → {own[1]:.0%}{whose[0]}, {others[0]:.0%} → {others[1]:.0%}{whose[1]})"
        )
    more = f" and {len(words) - NAMED_WORDS} more" if len(words) > NAMED_WORDS else ""
    return f"{', '.join(shown)}{more}"
