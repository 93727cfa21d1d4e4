"""Conversion between answers and the rows of baselines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_fairness.answers import judge_votes, reading
from pytest_fairness.baselines.answer_sets import Row
from pytest_fairness.errors import BaselineStale
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Judged, Status


def answer_from(row: Row, probe: Probe) -> Answer:
    """Return the answer in a baseline's row, parsed by the same rules as current answers."""
    prompt = probe.reading.recorded_prompt(row.labels, row.trial)
    answer = reading.recorded(prompt, row.text, probe.language, refused=row.refused)
    if row.judged is None:
        return answer
    judged = Judged.from_json(row.judged)
    if probe.reading.judging is None:
        return judge_votes.with_refusal_class(answer, judged)
    return judge_votes.with_majority_choice(answer, judged, probe.language)


def require_same_judge(current: Iterable[Answer], baseline: Iterable[Answer]) -> None:
    """Raise `BaselineStale` if the answers of two runs were classified by different models."""
    first, second = ({answer.judged.by for answer in run if answer.judged} for run in (current, baseline))
    if first != second:
        raise BaselineStale(["judge model"])


def row_from(answer: Answer, probe: Probe) -> Row:
    """Return an answer as a row of a baseline; `answer_from` restores the answer from this row.

    The text of an unusable answer can give another status when it is parsed again. Then the row is marked as `refused`
    if the answer is a refusal; otherwise the row has no text.
    """
    judged = answer.judged.to_json() if answer.judged else None
    row = Row(dict(answer.labels), answer.trial, answer.text, judged)
    # The row does not hold the finish reason. A usable text is parsed in the same way without it.
    if answer.status is Status.OK or answer_from(row, probe).status is answer.status:
        return row
    # The target may have reported a refusal that cannot be recognised from the text.
    refused = answer.refused
    return replace(row, text=answer.text if refused else None, judged=None, refused=refused)
