"""Reader and writer of the answers of a baseline, which are stored as JSON Lines in a gzip file.

An answer set holds the answers that were measured together. Its id is a hash of its content, so that the reader detects
a file that was damaged, merged or edited. In the file, the id is stored under the key `generation`.
"""

from __future__ import annotations

import gzip
import io
import json
import shlex
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from pytest_fairness.atomic import replace_file
from pytest_fairness.baselines.entries import Text, first_error
from pytest_fairness.errors import BaselineError
from pytest_fairness.records import MAX_LINE, Json


class _Judgement(BaseModel, extra="forbid", defer_build=True):
    by: Text
    votes: list[Text | None]


class _StoredRow(BaseModel, extra="forbid", defer_build=True):
    generation: Text
    labels: dict[Text, Text]
    trial: Annotated[int, Field(strict=True, ge=0)]
    text: Text | None
    judged: _Judgement | None = None
    refused: Literal[True] | None = None


MAX_BYTES = 4 * 1024**3
"""Maximum size in bytes of all answers of a baseline, after decompression."""

_PLAIN = frozenset({"generation", "labels", "trial", "text"})

_encode = json.JSONEncoder(sort_keys=True).encode

LabelKey = tuple[tuple[str, str], ...]
"""Labels of an answer as sorted (name, value) pairs."""


@dataclass(frozen=True, slots=True)
class Row:
    """One answer of a baseline.

    Attributes:
        labels: names and values that identify the prompt, such as its group.
        trial: number of the trial, from 0.
        text: the text that the target returned; `None` if the target returned no text.
        judged: the judge model's classification of the text, as `Judged.to_json` returns it; `None` without a judge
            model.
        refused: whether the target reported a refusal that cannot be recognised from the text.
    """

    labels: Mapping[str, str]
    trial: int
    text: str | None
    judged: Mapping[str, Json] | None = None
    refused: bool = False


def read_answers(path: Path, most_bytes: int = MAX_BYTES) -> dict[str, list[Row]] | None:
    """Return the answers by the id of their answer set, sorted by labels and trial; `None` if there is no file.

    Args:
        path: the file.
        most_bytes: maximum size in bytes of all answers, after decompression.

    Raises:
        BaselineError: the file cannot be read, is too large, or was changed after it was written.
    """
    try:
        with gzip.open(path, "rb") as file:
            # Truncation is detected only at the end of a file: the whole file is checked before any answer is read.
            _require_bounds(path, file, most_bytes)
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            answer_sets = _read(path, lines)
    except FileNotFoundError:
        return None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise damaged_file_error(path, "is not a complete gzip file") from error
    except UnicodeDecodeError as error:
        raise damaged_file_error(path, "the decompressed text is not UTF-8") from error
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read ({error.strerror}). Make it readable, or move it away.") from error
    for answer_set, rows in answer_sets.items():
        try:
            rows[:] = sorted_rows(rows)
        except ValueError as error:
            raise damaged_file_error(path, f"holds {error} in answer set {answer_set}") from error
        if _digest(rows) != answer_set:
            raise damaged_file_error(
                path, f"the answers of answer set {answer_set} were changed after they were written"
            )
    return answer_sets


def write_answers(path: Path, answer_sets: Mapping[str, Sequence[Row]]) -> None:
    """Write the answers of all answer sets, or remove the file if there are no answers.

    Equal answers give byte-identical files.

    Raises:
        OSError: the file cannot be written; the old file is unchanged.
    """
    ordered = {answer_set: sorted_rows(answer_sets[answer_set]) for answer_set in sorted(answer_sets)}
    if not any(ordered.values()):
        path.unlink(missing_ok=True)
    elif not _has_lines(path, _lines(ordered)):
        # Machines compress differently: a file that holds the same answers in other bytes is not written again.
        compressed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, mtime=0) as file:
            file.writelines(_lines(ordered))
        replace_file(path, compressed.getvalue())


def answer_set_for(rows: Iterable[Row], answer_sets: Mapping[str, Sequence[Row]]) -> str | None:
    """Return the id of the stored answer set that contains these answers, or else the id of a new answer set.

    A stored answer set is used only if it holds no further answers with the labels of these answers. With further
    answers, later runs would compare an item with answers from which the item was not measured.

    Args:
        rows: the answers from which new entries were measured.
        answer_sets: the stored answer sets, by id.

    Returns:
        The id of the answer set; `None` if there are no answers.
    """
    wanted = sorted_rows(rows)
    if not wanted:
        return None
    own = _digest(wanted)
    label_keys = {_label_key(row) for row in wanted} if answer_sets else set()
    for answer_set in sorted(answer_sets):
        if _digest(row for row in sorted_rows(answer_sets[answer_set]) if _label_key(row) in label_keys) == own:
            return answer_set
    return own


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the answers sorted by labels and trial, without duplicates.

    Raises:
        ValueError: two different answers have the same labels and trial.
    """
    ordered = list(rows)
    if _is_sorted(ordered):
        return ordered
    unique: dict[tuple[LabelKey, int], Row] = {}
    for row in ordered:
        if unique.setdefault(row_key(row), row) != row:
            raise ValueError(f"two different answers of trial {row.trial} with the labels {dict(row.labels)}")
    return [unique[key] for key in sorted(unique)]


def damaged_file_error(path: Path, problem: str, line: int | None = None) -> BaselineError:
    """Return the error for a baseline file with invalid content; its message also says how to get a valid file."""
    place = path if line is None else f"{path}:{line}"
    return BaselineError(
        f"{place}: {problem}. Restore it with `git checkout -- {shlex.quote(str(path))}`, or delete it and make a new "
        f"one with --fairness-rebaseline.",
        fixed_by_rebaseline=True,
    )


def _require_bounds(path: Path, file: gzip.GzipFile, most_bytes: int) -> None:
    """Raise `BaselineError` if a line is empty, or if the file or a line is too large after decompression."""
    total, line, length = 0, 1, 0
    while block := file.read(1 << 20):
        total += len(block)
        first = block.find(b"\n")
        if length + (len(block) if first < 0 else first) > MAX_LINE:
            raise damaged_file_error(path, f"the line is longer than the maximum of {MAX_LINE:,} bytes", line)
        if total > most_bytes:
            raise damaged_file_error(path, f"is larger than the maximum of {most_bytes:,} bytes after decompression")
        if b"\n\n" in block:
            raise damaged_file_error(path, "the line is empty", line + block.count(b"\n", 0, block.index(b"\n\n")) + 1)
        line += block.count(b"\n")
        length = length + len(block) if first < 0 else len(block) - block.rindex(b"\n") - 1


def _read(path: Path, lines: Iterable[str]) -> dict[str, list[Row]]:
    """Return the answers by the id of their answer set, in the file's order; an invalid line raises `BaselineError`."""
    answer_sets: dict[str, list[Row]] = {}
    labels: Mapping[str, str] = {}
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\n")
        if not line:
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise damaged_file_error(path, f"is not JSON ({error})", number) from error
        if not _is_plain(row):
            try:
                _StoredRow.model_validate(row)
            except ValidationError as error:
                raise damaged_file_error(path, f"is not an answer ({first_error(error)})", number) from error
        if row["labels"] != labels:
            # Many answers have the same labels: one copy of the labels in memory is enough.
            labels = {sys.intern(name): sys.intern(text) for name, text in row["labels"].items()}
        read = Row(labels, row["trial"], row["text"], row.get("judged"), row.get("refused", False))
        answer_sets.setdefault(row["generation"], []).append(read)
    return answer_sets


def _is_plain(row: Json) -> bool:
    """Return whether the row is valid and has only the required keys; such a row skips the slower validation."""
    return (
        isinstance(row, dict)
        and row.keys() == _PLAIN
        and type(row["generation"]) is str
        and type(row["text"]) in (str, type(None))
        and type(row["trial"]) is int
        and row["trial"] >= 0
        and type(row["labels"]) is dict
        and all(type(text) is str for text in row["labels"].values())
    )


def _has_lines(path: Path, lines: Iterable[bytes]) -> bool:
    try:
        with gzip.open(path, "rb") as file:
            return all(one == other for one, other in zip_longest(file, lines))
    except (OSError, EOFError, zlib.error):
        return False


def _lines(answer_sets: Mapping[str, Sequence[Row]]) -> Iterator[bytes]:
    for answer_set, rows in answer_sets.items():
        for row in rows:
            yield _encode({"generation": answer_set, **_json(row)}).encode("ascii") + b"\n"


def _digest(ordered: Iterable[Row]) -> str:
    """Return the id of sorted answers: the first 12 hexadecimal digits of the SHA-256 of their JSON lines.

    The lines are those of the file, but without the key `generation`.
    """
    digest = sha256()
    for number, row in enumerate(ordered):
        digest.update((("\n" if number else "") + _line(row)).encode("ascii"))
    return digest.hexdigest()[:12]


def _json(row: Row) -> dict[str, object]:
    judged = {} if row.judged is None else {"judged": dict(row.judged)}
    refused = {"refused": True} if row.refused else {}
    return {"labels": dict(row.labels), "trial": row.trial, "text": row.text, **judged, **refused}


def _line(row: Row) -> str:
    # JSON in ASCII keeps every text, even lone surrogates, and the hash depends on no encoding.
    return _encode(_json(row))


def _is_sorted(rows: Sequence[Row]) -> bool:
    """Return whether the answers are in ascending order without duplicates, as `write_answers` writes them."""
    return all(one < other for one, other in pairwise(map(row_key, rows)))


def row_key(row: Row) -> tuple[LabelKey, int]:
    """Return the labels and the trial of an answer, which identify the answer in its answer set."""
    return _label_key(row), row.trial


def _label_key(row: Row) -> LabelKey:
    return tuple(sorted(row.labels.items()))
