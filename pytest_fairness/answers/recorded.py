"""Answers in recorded rows, which replace requests to a target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import tee
from typing import Any

from pytest_fairness.answers import reading
from pytest_fairness.backends import Backend, chunks_of, map_chunks
from pytest_fairness.languages import Language
from pytest_fairness.probes.recorded_rows import Rows, text_field
from pytest_fairness.records import Answer, OtherColumn, Prompt, RowsWithoutGroup

AT_ONCE = 4096
"""Number of rows in a chunk; see `map_chunks`."""


@dataclass(frozen=True)
class RecordedAnswers:
    """Answers of the files under a probe's key `responses`.

    Attributes:
        without_group: the rows that are left out because they name no group of the probe; `None` without any.
        without_group_of: the same for rows that only the items of an attribute leave out, by attribute.
        other_columns: columns that the probe does not use, with their values by group; empty where answers come in
            pairs.
    """

    answers: list[Answer]
    without_group: RowsWithoutGroup | None
    without_group_of: dict[str, RowsWithoutGroup]
    other_columns: list[OtherColumn]


def read(rows: Rows[Any]) -> RecordedAnswers:
    """Return the answers in the rows; `ProbeError` if rows are invalid, or answers of the probe are lacking."""
    recorded_prompt, language = rows.probe.reading.recorded_prompt, rows.probe.language
    given = (
        (recorded_prompt(labels, trial), None if content is None else text_field(content))
        for labels, trial, content in rows.recorded()
    )
    if Backend.current is None:
        answers = _read(given, language)
    else:
        answers = []
        chunks, sent = tee(chunks_of(given, AT_ONCE))
        for chunk, found in zip(chunks, map_chunks(partial(_read, language=language), sent), strict=True):
            for (prompt, written), answer in zip(chunk, found, strict=True):
                # Another process returns copies. Equal labels and texts are kept once, to save memory.
                text = written if answer.text == written else answer.text
                content = text if answer.content == text else answer.content
                answers.append(replace(answer, labels=prompt.labels, text=text, content=content))
    return RecordedAnswers(answers, rows.without_group, rows.without_group_of, rows.other_columns)


def _read(rows: Iterable[tuple[Prompt, str | None]], language: Language) -> list[Answer]:
    return [reading.recorded(prompt, text, language) for prompt, text in rows]
