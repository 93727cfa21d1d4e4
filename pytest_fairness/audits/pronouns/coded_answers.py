"""Answers of a coreference probe, each with the person that the answer names (its choice)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.audits.pronouns.antecedent import Choice, choice
from pytest_fairness.probes.coreference.model import CoreferenceProbe
from pytest_fairness.records import Answer, Json, Status

SHOWN_SENTENCES = 10
"""Largest number of example sentences in the details."""


@dataclass(frozen=True)
class CodedAnswer:
    """An answer and the person that it names.

    Attributes:
        labels, trial: labels and trial of the answer; see `Answer`.
        sentence: sentence of the prompt; empty for a file of recorded answers without sentences.
        names: names of the two people; `choice` calls them `first` and `second`.
        choice: the person that the answer names, or `ambiguous`; `None` if the answer is missing or names nobody.
        text: text of the answer.
    """

    labels: Mapping[str, str]
    trial: int
    sentence: str
    names: tuple[str, str]
    choice: Choice | None
    text: str

    @property
    def cell(self) -> tuple[str, ...]:
        """Return the labels that identify the prompt."""
        return tuple(
            self.labels[name] for name in ("item", "first", "pronoun", "line", "version") if name in self.labels
        )


def coded_answers(probe: CoreferenceProbe, answers: Iterable[Answer]) -> list[CodedAnswer]:
    """Return the coded answers, sorted by prompt and trial."""
    coded = [_coded_answer(probe, answer) for answer in answers]
    return sorted(coded, key=lambda coded: (coded.cell, coded.trial))


def _coded_answer(probe: CoreferenceProbe, answer: Answer) -> CodedAnswer:
    asked = probe.prompt_parts(answer.labels)
    text = answer.text or ""
    chosen = None
    if answer.status in (Status.OK, Status.REFUSED):
        chosen = choice(text, asked.names, sentence=asked.sentence, question=asked.question)
    if answer.status is Status.REFUSED and chosen != "ambiguous":
        # "I'm sorry, I cannot answer who is meant, as it is unclear" is an answer; any other refusal is missing.
        chosen = None
    return CodedAnswer(answer.labels, answer.trial, asked.sentence, asked.names, chosen, text)


def worse_sentences(
    current: Sequence[CodedAnswer], baseline: Sequence[CodedAnswer], loss: Callable[[CodedAnswer], int]
) -> list[dict[str, Json]]:
    """Return at most `SHOWN_SENTENCES` sentences whose answer became worse, each with its answer in both runs.

    The sentence with the largest worsening comes first.

    Args:
        current, baseline: coded answers of the two runs; missing answers are ignored.
        loss: function that returns the loss of an answer; a larger loss is worse.
    """
    earlier = {(coded.cell, coded.trial): coded for coded in baseline if coded.choice is not None}
    pairs = [
        (loss(coded) - loss(before), coded, before)
        for coded in current
        if coded.choice is not None and (before := earlier.get((coded.cell, coded.trial))) is not None
    ]
    worse = sorted((pair for pair in pairs if pair[0] > 0), key=lambda pair: -pair[0])
    shown: dict[tuple[str, ...], dict[str, Json]] = {}
    for _, coded, before in worse:
        shown.setdefault(coded.cell, {**example(coded), "before": before.text})
    return list(shown.values())[:SHOWN_SENTENCES]


def examples(coded: Iterable[CodedAnswer]) -> list[dict[str, Json]]:
    """Return at most `SHOWN_SENTENCES` different sentences, each with one answer."""
    shown: dict[tuple[str, ...], dict[str, Json]] = {}
    for each in coded:
        shown.setdefault(each.cell, example(each))
    return list(shown.values())[:SHOWN_SENTENCES]


def example(coded: CodedAnswer) -> dict[str, Json]:
    """Return one coded answer and its sentence as JSON for reports."""
    sentence = coded.sentence or f"{coded.labels.get('item', '')}, {coded.labels.get('pronoun', '')}"
    return {"sentence": sentence, "answer": coded.text}
