"""Base class of `marked_words`: which words reports name, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_fairness.audits.base import SettingsT
from pytest_fairness.audits.findings import details_of, plain_words
from pytest_fairness.audits.text.text_audit import TextAudit
from pytest_fairness.audits.text.words.association import significant_words
from pytest_fairness.audits.text.words.growth import SIDES
from pytest_fairness.audits.text.words.languages import language_of
from pytest_fairness.records import Comparison, ItemResult, Json, Measurement

NAMED_WORDS = 3


class WordsExplanation(TextAudit[SettingsT]):
    """Base class of `marked_words`: the methods that name words in reports.

    The words come from the details `words` of a measurement and `grown` of a comparison.
    """

    def describe(self, measurement: Measurement) -> str:
        """Return the number of significant words as a phrase."""
        return f"{measurement.value:.0f} significant {_word_or_words(measurement.value)}"

    def describe_change(self, comparison: Comparison) -> str:
        """Return a phrase that names the words that grew, with the share of texts that contain them, by group.

        If the answers of the baseline are missing, the phrase only has the difference between the numbers of words.
        """
        details = comparison.details
        if "grown" not in details:
            number = f"{comparison.value:+.0f} {_word_or_words(abs(comparison.value))}"
            return f"{number} (without the baseline's answers, these words cannot be named)"
        return _describe_growth(details)

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return each word's z-score (log-odds ratio divided by its standard deviation)."""
        return {word["word"]: word["z"] for word in measurement.details["words"]}

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the z-score of each significant word."""
        return significant_words(measurement.details)

    def top_words(self, result: ItemResult) -> tuple[list[str], list[str]]:
        """Return words of the marked and of the unmarked group: the words whose use grew since the baseline.

        If the use of no word grew, return the significant words.

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
    """Return a phrase that names the words that grew, with their shares of texts in both runs, by group."""
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
        whose = ("", "") if shown else (" of this group's texts", " of the other group's")
        shown.append(
            f"{word['word']} ({own[0]:.0%} → {own[1]:.0%}{whose[0]}, {others[0]:.0%} → {others[1]:.0%}{whose[1]})"
        )
    more = f" and {len(words) - NAMED_WORDS} more" if len(words) > NAMED_WORDS else ""
    return f"{', '.join(shown)}{more}"
