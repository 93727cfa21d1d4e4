"""Answers that are read from responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from pytest_fairness.records.plain_json import Json


class Status(StrEnum):
    """Status of an answer. Only `OK` is measured; the others are missing, and counted by group."""

    OK = "ok"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Judging:
    """Instructions for a judge model that reads free answers.

    Attributes:
        question: the question without the description of the person, so that the judge does not know the group.
        choices: the choices that an answer may state.
        votes: number of votes on each answer; odd.
    """

    question: str
    choices: tuple[str, ...]
    votes: int


@dataclass(frozen=True, slots=True)
class Judged:
    """Reading of an answer by a judge model: the model's name, and the choice of each vote, `None` for no choice."""

    by: str
    votes: tuple[str | None, ...]

    @property
    def majority(self) -> str | None:
        """Return the choice of more than half of the votes; `None` if there is none."""
        return next((vote for vote in self.votes if vote and 2 * self.votes.count(vote) > len(self.votes)), None)

    def to_json(self) -> dict[str, Json]:
        """Return plain JSON, from which `from_json` makes an equal object."""
        return {"by": self.by, "votes": list(self.votes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the object that `to_json` wrote."""
        return cls(data["by"], tuple(data["votes"]))


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer that was read from a response: the unit of measuring.

    Attributes:
        labels: as in `Prompt`.
        trial: number of the draw within its cell, from 0.
        text: text of the response; `None` if the request failed.
        status: whether the answer can be measured.
        content: data read from the text: a string for `text` and `json` (keys and values joined), a list of strings for
            `list` and `titles`, one of the choices if there are any, the known log-probabilities for `likelihood`;
            `None` unless `status` is `OK`.
        judged: reading of the judge model, if there is one; `content` is its majority then.
        truncated: whether the target cut the text off at `max_tokens` (finish reason `length`).
        error: why the request failed.
        served: model that answered; see `Response.served`.
        embedding: vector of the text that the audit has embedded, as little-endian 32-bit numbers; `None` if the audit
            embeds nothing, or no word is left to embed.
    """

    labels: Mapping[str, str]
    trial: int
    text: str | None
    status: Status
    content: Json = None
    judged: Judged | None = None
    truncated: bool = False
    error: str | None = None
    served: str | None = None
    embedding: bytes | None = field(default=None, repr=False)

    @property
    def usable(self) -> bool:
        """Return whether the answer can be measured."""
        return self.status is Status.OK
