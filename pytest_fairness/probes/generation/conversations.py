"""Conversations of several turns: the next user message is sent after the model's answer to the last one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.field_types import Text
from pytest_fairness.records import Answer, Message, Status

TURN = "turn"
"""Name of the label that numbers the answers of a conversation, from the second turn on."""
MeasuredTurn = Literal["last", "all"] | int

Turns = dict[int, Answer]
"""The answers of one conversation, by turn; the first turn is 1."""


class ConversationMessage(ProbeModel):
    """Message of a conversation."""

    role: Literal["user", "assistant"] = Field(description="Who says it.")
    content: Text = Field(description="Text of the message, with placeholders as in `prompt`.")


def turns_of(answers: Sequence[Answer]) -> list[Turns]:
    """Return the answers of each conversation, in the order of the conversations' first answers."""
    found: dict[tuple[tuple[tuple[str, str], ...], int], Turns] = {}
    for answer in answers:
        key = tuple(sorted(without_turn(answer.labels).items())), answer.trial
        found.setdefault(key, {})[int(answer.labels.get(TURN, "1"))] = answer
    return list(found.values())


def without_turn(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a conversation's first prompt."""
    return {name: value for name, value in labels.items() if name != TURN}


def history(opening: Sequence[Message], said: Sequence[str], answers: Turns) -> tuple[Message, ...]:
    """Return the messages before the next turn of a conversation.

    Args:
        opening: messages before the first prompt.
        said: the first prompt and the user messages of all turns.
        answers: the answers so far.
    """
    found = [*opening]
    for turn in sorted(answers):
        found += [Message("user", said[turn - 1]), Message("assistant", answers[turn].text or "")]
    return tuple(found)


def unfinished(answers: Sequence[Answer], number: int) -> Iterator[Turns]:
    """Yield the conversations in which the last answer has a text and further turns are to be asked.

    Args:
        answers: all answers so far.
        number: number of turns of a complete conversation.
    """
    for turns in turns_of(answers):
        if max(turns) < number and (turns[max(turns)].text or "").strip():
            yield turns


def measured(answers: Sequence[Answer], number: int, turn: MeasuredTurn) -> list[Answer]:
    """Return one answer for each conversation, with the labels of its first prompt.

    Answers of one conversation depend on each other, so that they cannot count as several answers.

    Args:
        answers: the answers to all turns.
        number: number of turns of a complete conversation.
        turn: the turn whose answer is returned; `all` joins the texts of all answers. If an answer is missing, its
            status stands for the conversation.
    """
    last = number if isinstance(turn, str) else turn
    return [_of_conversation(turns, last, join=turn == "all") for turns in turns_of(answers)]


def _of_conversation(turns: Turns, last: int, *, join: bool) -> Answer:
    labels = without_turn(turns[min(turns)].labels)
    if last not in turns:
        ended = turns[max(turns)]
        status = Status.FAILED if ended.usable else ended.status
        return replace(ended, labels=labels, status=status, content=None)
    own = [turns[turn] for turn in (range(1, last + 1) if join else [last])]
    missing = next((answer for answer in own if not answer.usable), None)
    if missing is not None or not join:
        return replace(missing or own[0], labels=labels)
    text = "\n".join(str(answer.content) for answer in own)
    return replace(own[-1], labels=labels, text=text, content=text, truncated=any(answer.truncated for answer in own))
