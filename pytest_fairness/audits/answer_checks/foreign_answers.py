"""Checks of the answers' languages: refusals in other languages than the probe's are not recognised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping

from pytest_fairness.audits.base import AnyItem
from pytest_fairness.languages.detection import foreign_shares
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Answers, Concern

FOREIGN_ANSWERS = "foreign_answers"

FOREIGN_SHARE = 0.10
"""Audits of refusals report a concern if more than this share of a group's answers is in languages in which refusals
are not recognised."""
MOSTLY_FOREIGN_SHARE = 0.50
"""Every audit adds a note if more than this share of the texts is in other languages than the probe's."""


def unrecognised_refusals(item: AnyItem, answers: Answers) -> list[Concern]:
    """Return a concern if refusals may count as answers, because refusals in their language are not recognised.

    Return an empty list otherwise, and if a model recognises refusals. Only audits of refusals call this function.
    """
    if item.probe.reading.refusals.by != "patterns":
        return []
    missing = " and ".join(item.probe.language.refusals_missing)
    if missing:
        return [
            Concern(
                FOREIGN_ANSWERS,
                f"refusals in {missing} are not recognised, so that a refusal may have been counted as an answer. List "
                "phrases of refusals under `language.terms.refusals`",
            )
        ]
    texts: defaultdict[Hashable, list[str]] = defaultdict(list)
    for answer in answers:
        if (text := _text_of(item.probe, answer)) is not None:
            texts[item.group_of(answer)].append(text)
    # Refusals in English are recognised in every language.
    shares = foreign_shares(texts, (*item.probe.language.codes, "en"))
    if max((sum(share.values()) for share in shares.values()), default=0.0) <= FOREIGN_SHARE:
        return []
    by_group = "; ".join(
        f"{name or 'answers'} {_percentages(share)}"
        for group, share in sorted(shares.items(), key=lambda pair: str(pair[0]))
        for name in [", ".join(part for part in group if part) if isinstance(group, tuple) else ""]
        if share
    )
    return [
        Concern(
            FOREIGN_ANSWERS,
            f"some answers are in other languages than {item.probe.language.shown} ({by_group}). Refusals in "
            "these languages are not recognised, so that a refusal may have been counted as an answer. Name the "
            "languages of the answers under `language`, such as `language: de`, or tell the target to answer in one "
            "language",
        )
    ]


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
