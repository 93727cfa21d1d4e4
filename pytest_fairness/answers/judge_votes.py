"""Having a judge model read a free answer: its votes, read by rule as one of the choices, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_fairness.answers import choices, reading
from pytest_fairness.answers.refusals import is_refusal
from pytest_fairness.probes.counterfactual import judge_prompt
from pytest_fairness.probes.counterfactual.judge_prompt import NONE
from pytest_fairness.records import Answer, Judged, Judging, Request, Response, Status


def request(judging: Judging, text: str, vote: int) -> Request:
    """What the judge is asked about an answer; the same for equal answers, and a further draw for each vote."""
    return Request(judge_prompt.filled(judging, reading.whole_characters(text)), trial=vote)


def vote(judging: Judging, response: Response | None) -> str | None:
    """The choice that the judge named; `None` where it named none, several, or did not answer."""
    if response is None:
        return None
    named = choices.read(reading.whole_characters(response.text), (*judging.choices, NONE))
    return None if named == NONE else named


def needed(answer: Answer) -> bool:
    """Whether there is anything to read."""
    return answer.text is not None and bool(answer.text.strip())


def decided(answer: Answer, judged: Judged) -> Answer:
    """The answer as the judge read it: the choice of more than half of the votes, or none."""
    choice = judged.majority
    if choice is not None:
        return replace(answer, status=Status.OK, content=choice, judged=judged)
    refused = answer.text is not None and is_refusal(answer.text)
    return replace(answer, status=Status.REFUSED if refused else Status.UNREADABLE, content=None, judged=judged)


def requests(judging: Judging, answers: Sequence[Answer]) -> list[list[Request]]:
    """The questions about each answer, one a vote; none about an answer that is empty or never came."""
    return [
        [request(judging, answer.text or "", number) for number in range(judging.votes)] if needed(answer) else []
        for answer in answers
    ]
