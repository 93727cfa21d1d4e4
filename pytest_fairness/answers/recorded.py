"""Answers in recorded rows, which replace requests to a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import tee
from typing import Any

from pytest_fairness.answers import reading
from pytest_fairness.backends import chunks_of, map_chunks
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
        other_columns: columns that the probe does not use, with their values by group; empty where answers come in
            pairs.
    """

    answers: list[Answer]
    without_group: RowsWithoutGroup | None
    other_columns: list[OtherColumn]


def read(rows: Rows[Any]) -> RecordedAnswers:
    """Return the answers in the rows; `ProbeError` if rows are invalid, or answers of the probe are lacking."""
    answers = []
    shared: dict[int, Prompt] = {}  # answers whose labels are one object share their prompt
    read_chunk = partial(_read, language=rows.probe.language)

    def prompt_of(labels: Mapping[str, str]) -> Prompt:
        if id(labels) not in shared:
            shared[id(labels)] = rows.probe.reading.recorded_prompt(labels, 0)
        return shared[id(labels)]

    given = (
        (prompt_of(labels), trial, None if content is None else text_field(content))
        for labels, trial, content in rows.recorded()
    )
    chunks, sent = tee(chunks_of(given, AT_ONCE))
    for chunk, found in zip(chunks, map_chunks(read_chunk, sent), strict=True):
        for (prompt, trial, written), answer in zip(chunk, found, strict=True):
            # Another process returns copies. Equal texts are kept once, to save memory.
            text = written if answer.text == written else answer.text
            content = text if answer.content == text else answer.content
            answers.append(replace(answer, labels=prompt.labels, trial=trial, text=text, content=content))
    return RecordedAnswers(answers, rows.without_group, rows.other_columns)


def _read(rows: Sequence[tuple[Prompt, int, str | None]], language: Language) -> list[Answer]:
    """Return the answer in each row, without labels, which are long and need no copy in another process."""
    return [replace(reading.recorded(prompt, text, language), labels={}) for prompt, _, text in rows]
