"""Requests to a judge model that classifies a free answer, and its votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_fairness.answers import choices, reading
from pytest_fairness.answers.refusals import is_refusal
from pytest_fairness.probes.counterfactual import judge_prompt
from pytest_fairness.probes.counterfactual.judge_prompt import NONE
from pytest_fairness.records import Answer, Judged, Judging, Request, Response, Status


def request(judging: Judging, text: str, vote: int) -> Request:
    """Return the request for one vote on an answer; equal answers have equal requests, and each vote is a trial."""
    return Request(judge_prompt.filled(judging, reading.whole_characters(text)), trial=vote)


def vote(judging: Judging, response: Response | None) -> str | None:
    """Return the choice that the judge named; `None` if it named none or several, or did not answer."""
    if response is None:
        return None
    named = choices.read(reading.whole_characters(response.text), (*judging.choices, NONE))
    return None if named == NONE else named


def needed(answer: Answer) -> bool:
    """Return whether an answer has a text to be judged."""
    return answer.text is not None and bool(answer.text.strip())


def decided(answer: Answer, judged: Judged) -> Answer:
    """Return the answer with the choice of more than half of the votes, or as refused or unreadable."""
    choice = judged.majority
    if choice is not None:
        return replace(answer, status=Status.OK, content=choice, judged=judged)
    refused = answer.text is not None and is_refusal(answer.text)
    return replace(answer, status=Status.REFUSED if refused else Status.UNREADABLE, content=None, judged=judged)


def requests(judging: Judging, answers: Sequence[Answer]) -> list[list[Request]]:
    """Return the requests for each answer, one for each vote; none for an empty or missing answer."""
    return [
        [request(judging, answer.text or "", number) for number in range(judging.votes)] if needed(answer) else []
        for answer in answers
    ]
