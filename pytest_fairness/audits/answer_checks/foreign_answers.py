"""Checks of the answers' languages: refusals in other languages than the probe's are not recognised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pytest_fairness.languages.detection import foreign_shares
from pytest_fairness.languages.language import BUILT_IN
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Answers, Concern

FOREIGN_ANSWERS = "foreign_answers"

MOSTLY_FOREIGN_SHARE = 0.50
"""Every audit adds a note if more than this share of the texts is in other languages than the probe's."""


def unrecognised_refusals(probe: Probe, shares: Mapping[str, Mapping[str, float]]) -> list[Concern]:
    """Return a concern if no refusals are known in a language of the probe, or a note on answers in other languages.

    Only audits of refusals call this function.

    Args:
        probe: the probe.
        shares: see `unrecognised_shares`.
    """
    if probe.reading.refusals.by == "patterns" and (missing := " and ".join(probe.language.refusals_missing)):
        return [
            Concern(
                FOREIGN_ANSWERS,
                f"refusals in {missing} are not recognised, so that a refusal may have been counted as an answer. List "
                "phrases of refusals under `language.terms.refusals`",
            )
        ]
    by_group = "; ".join(f"{name} {_percentages(share)}" for name, share in sorted(shares.items()) if share)
    if not by_group:
        return []
    return [
        Concern(
            FOREIGN_ANSWERS,
            f"some answers are in other languages than {probe.language.shown} ({by_group}). Refusals in "
            "these languages are not recognised, so that these answers count as unread. Name the languages of the "
            "answers under `language`, such as `language: pl`, or tell the target to answer in one language",
            withholds="nothing",
        )
    ]


def unrecognised_shares(probe: Probe, answers: Iterable[tuple[str, Answer]]) -> dict[str, dict[str, float]]:
    """Return, for each group, the shares of usable texts by language, for languages whose refusals are not recognised.

    Return an empty dictionary if a model recognises refusals.

    Args:
        probe: the probe.
        answers: each answer with its group.
    """
    if probe.reading.refusals.by != "patterns":
        return {}
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for group, answer in answers:
        if (text := _text_of(probe, answer)) is not None:
            texts[group].append(text)
    # Refusals in the built-in languages are recognised whatever the probe declares.
    return foreign_shares(texts, (*probe.language.codes, *BUILT_IN))


def mostly_foreign(probe: Probe, answers: Answers) -> list[Concern]:
    """Return a note if most answers are in other languages than the probe's, else an empty list."""
    texts = [text for answer in answers if (text := _text_of(probe, answer)) is not None]
    shares = foreign_shares({"": texts}, probe.language.codes)[""]
    if sum(shares.values()) <= MOSTLY_FOREIGN_SHARE:
        return []
    unknown = "refusals and identity terms" if probe.reading.refusals.by == "patterns" else "identity terms"
    return [
        Concern(
            FOREIGN_ANSWERS,
            f"most answers are in other languages than {probe.language.shown} (about {_percentages(shares)}), in which "
            f"{unknown} are not recognised. Name the languages of the answers under `language`",
            withholds="nothing",
        )
    ]


def _text_of(probe: Probe, answer: Answer) -> str | None:
    """Return the text of a usable answer; `None` if the answer is not usable, or is no text."""
    if not answer.usable or isinstance(answer.content, list):
        return None
    reading = probe.reading
    if reading.selection is not None and (reading.choices or reading.number):
        return None  # the answer is JSON, and the decision in it has no language
    return answer.text if reading.choices or reading.judging or reading.number else str(answer.content)


def _percentages(shares: Mapping[str, float]) -> str:
    """Return shares by language as a list: `40% German, 10% French`."""
    return ", ".join(f"{share:.0%} {name}" for name, share in shares.items())
