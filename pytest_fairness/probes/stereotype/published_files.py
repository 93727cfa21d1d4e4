"""Readers that convert the published files of StereoSet (JSON) and CrowS-Pairs (CSV) to cases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.diagnostics import raise_file_errors, suggestion
from pytest_fairness.probes.table import Row, Table
from pytest_fairness.records import Json

CROWS_PAIRS = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
_DIRECTIONS = ("stereo", "antistereo")
_GOLD = {"stereotype": "stereotype", "anti-stereotype": "anti_stereotype", "unrelated": "unrelated"}
_TASKS = ("intersentence", "intrasentence")


def crows_pairs(table: Table, name: str) -> tuple[Row, ...] | None:
    """Return the rows of CrowS-Pairs (Nangia et al. 2020) as cases, in the file's order; `None` for another table.

    The column `sent_more` always has the stereotyped sentence, whatever the column `stereo_antistereo` says. The name
    of a case is `pair-N`; N is the number in the first, unnamed column, or else the row's position from 0. The cases
    have no `target`.

    Args:
        table: the file's rows.
        name: the file's name for messages.

    Raises:
        ProbeError: the table has the columns of both sentences, but another column is missing, or a direction is
            neither `stereo` nor `antistereo`.
    """
    if not {"sent_more", "sent_less"} <= {*table.columns}:
        return None
    missing = [column for column in CROWS_PAIRS if column not in table.columns]
    if missing:
        cure = suggestion(missing[0], table.columns)
        raise ProbeError(f"{name}:1: the column {missing[0]!r} of CrowS-Pairs is missing{cure}")
    rows, errors = [], []
    for place, row in enumerate(table.rows):
        fields = row.fields
        if fields["stereo_antistereo"] not in _DIRECTIONS:
            written = str(fields["stereo_antistereo"])[:40]
            errors.append(f"{name}:{row.line}: 'stereo_antistereo' must be stereo or antistereo, not {written!r}")
        case: dict[str, Json] = {
            "name": f"pair-{fields.get('') or place}",
            "category": fields["bias_type"],
            "stereotype": fields["sent_more"],
            "anti_stereotype": fields["sent_less"],
            "direction": fields["stereo_antistereo"],
        }
        rows.append(Row(row.line, case))
    raise_file_errors(errors, name)
    return tuple(rows)


def stereoset(path: Path, name: str) -> tuple[Row, ...] | None:
    """Return StereoSet's examples as cases (Nadeem, Bethke and Reddy 2021); `None` if the file is not StereoSet.

    Args:
        path: a JSON file.
        name: the file's name for messages.

    Raises:
        ProbeError: the file has StereoSet's structure, but an example is invalid.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        content = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None  # the reader of other tables reports the error
    data = content.get("data") if isinstance(content, Mapping) else None
    if not isinstance(data, Mapping) or not any(task in data for task in _TASKS):
        return None
    places = _LineFinder(text)
    rows, errors = [], []
    for task in _TASKS:
        examples = data.get(task, [])
        for place, example in enumerate(examples if isinstance(examples, list) else [examples]):
            line = places.line(example)
            try:
                rows.append(Row(line, _example(example, task)))
            except ValueError as error:
                errors.append(f"{name}:{line}: data.{task}[{place}]: {error}")
    raise_file_errors(errors, name)
    return tuple(rows)


def _example(example: Json, task: str) -> dict[str, Json]:
    if not isinstance(example, Mapping):
        raise ValueError("an example must be a JSON object")  # noqa: TRY004 - all errors of the file are reported alike
    for key in ("id", "target", "bias_type", "sentences"):
        if key not in example:
            raise ValueError(f"`{key}` is missing")
    if task == "intersentence" and not isinstance(example.get("context"), str):
        raise ValueError("`context` is missing: an intersentence example must have one")
    found = {_GOLD[gold]: sentence for gold, sentence in _sentences(example["sentences"])}
    missing = [gold for gold, kind in _GOLD.items() if kind not in found]
    if missing:
        raise ValueError(f"no sentence has the gold_label {missing[0]!r}")
    # The context of an intrasentence example is left out: it only shows the gap that the complete sentences fill.
    context = {"context": example["context"]} if task == "intersentence" else {}
    return {"name": example["id"], "category": example["bias_type"], "target": example["target"], **context, **found}


def _sentences(written: Json) -> Iterator[tuple[str, str]]:
    seen = set()
    for sentence in written if isinstance(written, Sequence) and not isinstance(written, str) else ():
        gold, text = (
            sentence.get(key) if isinstance(sentence, Mapping) else None for key in ("gold_label", "sentence")
        )
        if gold not in _GOLD:
            raise ValueError(f"unknown gold_label {str(gold)[:40]!r} (valid: {', '.join(_GOLD)})")
        if not isinstance(text, str):
            raise ValueError(f"the sentence with the gold_label {gold!r} has no text")  # noqa: TRY004 - like other errors
        if gold in seen:
            raise ValueError(
                f"two sentences have the gold_label {gold!r}; each example must have one sentence for each gold_label"
            )
        seen.add(gold)
        yield gold, text


class _LineFinder:
    """Finder of the line numbers of examples, for messages.

    The line of an example is found by the example's id in the text, because JSON readers give no positions.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at, self._line = 0, 1

    def line(self, example: Any) -> int:
        """Return the line number of the example's id; if the id is not found, the line of the previous example."""
        identifier = example.get("id") if isinstance(example, Mapping) else None
        found = self._text.find(json.dumps(identifier), self._at) if isinstance(identifier, str) else -1
        if found >= 0:
            self._line += self._text.count("\n", self._at, found)
            self._at = found + 1
        return self._line
