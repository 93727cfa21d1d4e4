"""Answers, which are parsed from responses, and classifications of answers by a judge model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from pytest_fairness.records.requests import Json, with_thoughts


class Status(StrEnum):
    """Status of an answer.

    Most audits measure only answers with the status `OK`, and count all other answers as missing. Audits such as
    `refusals` and `shortfall` also measure refusals.

    `REFUSED`: the text is a refusal. `BLOCKED`: the provider reports a refusal, by a finish reason or an error, such as
    that of a content filter. `UNREADABLE`: the text holds no answer. `CUT_OFF`: the text holds no answer, because it
    was cut off at `max_tokens`. `FAILED`: the request got no response.
    """

    OK = "ok"
    REFUSED = "refused"
    BLOCKED = "blocked"
    UNREADABLE = "unreadable"
    CUT_OFF = "cut off"
    FAILED = "failed"


REFUSALS = (Status.REFUSED, Status.BLOCKED)
MISSING = tuple(status for status in Status if status is not Status.OK)
"""Statuses of the answers that most audits count as missing."""


REFUSAL_CLASSES = ("refused", "partly", "answered")
"""Classes by which a model that recognises refusals classifies answers."""


@dataclass(frozen=True, slots=True)
class Judging:
    """Instructions for a judge model, which classifies free-text answers by the choice that they state, or as refusals.

    Attributes:
        question: the prompt's question without the description of the person, so that the judge model does not learn
            the group. Empty if the judge model recognises refusals, for which it reads the answer alone.
        choices: the choices that an answer may state; for refusals, `REFUSAL_CLASSES`.
        votes: number of votes on each answer; an odd number.
    """

    question: str
    choices: tuple[str, ...]
    votes: int


@dataclass(frozen=True, slots=True)
class Judged:
    """Classification of an answer.

    Attributes:
        by: name of the model that classified the answer.
        votes: the choice or class that each vote names; `None` for a vote that names none.
    """

    by: str
    votes: tuple[str | None, ...]

    @property
    def majority(self) -> str | None:
        """Return the choice that more than half of the votes name; `None` if there is no such choice."""
        return next((vote for vote in self.votes if vote and 2 * self.votes.count(vote) > len(self.votes)), None)

    def to_json(self) -> dict[str, Json]:
        """Return plain JSON, from which `from_json` makes an equal object."""
        return {"by": self.by, "votes": list(self.votes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the object from JSON data that `to_json` returned."""
        return cls(data["by"], tuple(data["votes"]))


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer that was parsed from a response; audits measure answers.

    Attributes:
        labels: labels of the prompt; see `Prompt`.
        trial: number of the trial among the answers with the same labels, from 0.
        text: text of the response without the model's thoughts; `None` if the request failed. If the thoughts are
            measured, it holds them as well; see `records.with_thoughts`.
        status: whether the answer can be measured.
        content: data parsed from the text; `None` unless `status` is `OK`. It is one of the prompt's choices or a
            number (`float`), if the prompt asks for a choice or a number. Otherwise it is a list of strings for the
            formats `list` and `titles`, the known log-probabilities for `likelihood`, and a string for the other
            formats (for `json`, the keys and values joined).
        judged: votes of the model that classified the answer; the majority decides. The model is a judge model, or a
            scorer that recognises refusals, which has one vote. `None` if no model classified the answer.
        truncated: whether the target cut the text off at `max_tokens` (finish reason `length`).
        thoughts: the model's thoughts; empty if there are none.
        unread: reason why the answer is unreadable or cut off; empty if it is readable, or if there is no reason to
            name.
        error: error message of a failed request; else `None`.
        served: name of the model that answered; see `Response.served`.
        created: time of arrival, in seconds since the epoch; 0 for a failed request, and for a recorded answer.
        embedding: embedding vector of the text, as little-endian 32-bit numbers. `None` if the audit needs no
            embeddings, or if the text has no words except identity terms, which are not embedded.
    """

    labels: Mapping[str, str]
    trial: int
    text: str | None
    status: Status
    content: Json = None
    judged: Judged | None = None
    truncated: bool = False
    thoughts: str = field(default="", repr=False)
    unread: str = ""
    error: str | None = None
    served: str | None = None
    created: float = field(default=0.0, repr=False, compare=False)
    embedding: bytes | None = field(default=None, repr=False)

    @property
    def usable(self) -> bool:
        """Return whether the answer can be measured."""
        return self.status is Status.OK

    @property
    def refused(self) -> bool:
        """Return whether the answer is a refusal, of the model or of its provider."""
        return self.status in REFUSALS

    @property
    def said(self) -> str:
        """Return the text without thoughts; empty if there is no text."""
        return (self.text or "").removeprefix(with_thoughts("", self.thoughts))


Answers = Sequence[Answer]
"""Answers of one run, or of one item of a run."""


@dataclass(frozen=True, slots=True)
class OtherColumn:
    """Column of an answer file that the probe does not use, with its values in the rows of each group.

    Attributes:
        name: name of the column.
        label: name of the label that holds the group, such as an axis.
        counts: number of rows by stratum, group and value of the column.
    """

    name: str
    label: str
    counts: Mapping[tuple[Hashable, str, str], int]


@dataclass(frozen=True, slots=True)
class RowsWithoutGroup:
    """Rows of an answer file that are left out because they name no group of the probe.

    In such a row, a column that names the group is empty or has an unknown value, which the probe neither compares nor
    ignores.

    Attributes:
        rows: number of these rows.
        of: number of rows in the files; rows of other probes and rows of ignored groups are not counted.
        columns: columns that name the group.
        first_line: line of the first of these rows.
        first_file: name of the file that holds this line, if there are several files.
        unknown: number of these rows that have an unknown value.
        values: the most frequent unknown values, each with its number of rows.
    """

    rows: int
    of: int
    columns: tuple[str, ...]
    first_line: int
    first_file: str = ""
    unknown: int = 0
    values: Mapping[str, int] = field(default_factory=dict)

    @property
    def remedy(self) -> str:
        """Return advice for messages: fill in missing values, and correct or ignore unknown values."""
        remedies = ["Fill in the missing values"] if self.unknown < self.rows else []
        if self.unknown:
            remedies.append("Correct the unknown values, or list them in `responses.ignore` if they are other groups")
        return ". ".join(remedies)

    def __str__(self) -> str:
        verb, were = ("has", "is") if self.rows == 1 else ("have", "are")
        where = f"{self.first_file}:{self.first_line}" if self.first_file else f"line {self.first_line}"
        where = where if self.rows == 1 else f"first: {where}"
        noun = "column" if len(self.columns) == 1 else "columns"
        named = " or ".join(map(repr, self.columns))
        if not self.unknown:
            what, names = "no value", ""
        else:
            what = "no value, or an unknown value," if self.unknown < self.rows else "an unknown value"
            more = ", …" if sum(self.values.values()) < self.unknown else ""
            names = f"{', '.join(f'{value!r} {count:,}' for value, count in self.values.items())}{more}; "
        rows = f"{self.rows:,} of {self.of:,} rows"
        return f"{rows} {verb} {what} in the {noun} {named} ({names}{where}) and {were} left out"
