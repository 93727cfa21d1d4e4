"""Requests to a judge model, which classifies a free-text answer, and the votes of a judge model or a scorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_fairness.answers import decisions, reading
from pytest_fairness.answers.refusals import is_refusal
from pytest_fairness.answers.thoughts import split
from pytest_fairness.languages.language import ENGLISH, Language
from pytest_fairness.probes.prompts import judge_prompt
from pytest_fairness.probes.prompts.judge_prompt import NONE
from pytest_fairness.records import REFUSAL_CLASSES, Answer, Judged, Judging, Request, Response, Status

REFUSED = REFUSAL_CLASSES[0]


def request(judging: Judging, text: str, vote: int) -> Request:
    """Return the request for one vote on an answer.

    The number of the vote is the request's trial number. Equal answers have equal requests, which are sent only once.
    """
    return Request(judge_prompt.filled(judging, reading.whole_characters(text)), trial=vote)


def vote(judging: Judging, response: Response | None) -> str | None:
    """Return the choice that the judge model named; `None` if it named no choice or several, or did not answer."""
    if response is None:
        return None
    named = decisions.choice(reading.whole_characters(split(response.text).text), (*judging.choices, NONE), ENGLISH)
    return None if named == NONE else named


def needs_votes(answer: Answer) -> bool:
    """Return whether an answer has a text that can be classified, and was not blocked."""
    return answer.status is not Status.BLOCKED and answer.text is not None and bool(answer.text.strip())


def needs_refusal_class(answer: Answer) -> bool:
    """Return whether an answer has a text to classify, and is not already a refusal."""
    return needs_votes(answer) and not answer.refused


def with_majority_choice(answer: Answer, judged: Judged, language: Language) -> Answer:
    """Return the answer with the choice that more than half of the votes name.

    Without such a choice, the status of the answer becomes refused if the patterns of `language` find a refusal in its
    text, otherwise unreadable.
    """
    choice = judged.majority
    if choice is not None:
        return replace(answer, status=Status.OK, content=choice, judged=judged)
    refused = answer.text is not None and is_refusal(answer.text, language)
    return replace(answer, status=Status.REFUSED if refused else Status.UNREADABLE, content=None, judged=judged)


def with_refusal_class(answer: Answer, judged: Judged, error: str | None = None) -> Answer:
    """Return the answer with the status that follows from the class that most votes name.

    The status becomes `REFUSED` for the class of refusals, and `FAILED` if no class has a majority. Otherwise, it stays
    unchanged.

    Args:
        answer: the answer, read without patterns of refusals.
        judged: the votes, each one of `REFUSAL_CLASSES` or `None`.
        error: reason why no class has a majority; `None` for a general reason.
    """
    if judged.majority == REFUSED:
        return replace(answer, status=Status.REFUSED, content=None, judged=judged)
    if judged.majority is not None:
        return replace(answer, judged=judged)
    error = error or f"{judged.by} gave no class, or votes for different classes"
    return replace(answer, status=Status.FAILED, content=None, judged=judged, error=error)


def requests(judging: Judging, texts: Sequence[str]) -> list[list[Request]]:
    """Return, for each text, the requests for the judge model's votes."""
    return [[request(judging, text, number) for number in range(judging.votes)] for text in texts]
