"""The answers of a baseline: JSON Lines in a gzip file that has the same bytes for the same answers.

The answers stand in generations, each a set of answers that was measured together. A generation is named by its
content, so that a file which was damaged, merged or edited is noticed when it is read.
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

from jsonschema import Draft7Validator

from pytest_fairness.atomic import replace_file
from pytest_fairness.errors import BaselineError
from pytest_fairness.records import MAX_LINE, Json

_ROW = Draft7Validator(
    {
        "type": "object",
        "required": ["generation", "labels", "trial", "text"],
        "properties": {
            "generation": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "trial": {"type": "integer", "minimum": 0},
            "text": {"type": ["string", "null"]},
            "judged": {
                "type": "object",
                "required": ["by", "votes"],
                "properties": {
                    "by": {"type": "string"},
                    "votes": {"type": "array", "items": {"type": ["string", "null"]}},
                },
                "additionalProperties": False,
            },
            "refused": {"const": True},
        },
        "additionalProperties": False,
    }
)


MAX_BYTES = 4 * 1024**3
"""Bytes of all answers of a baseline, decompressed."""

_PLAIN = frozenset({"generation", "labels", "trial", "text"})

_encode = json.JSONEncoder(sort_keys=True).encode

Cell = tuple[tuple[str, str], ...]
"""The labels of answers, sorted."""


@dataclass(frozen=True, slots=True)
class Row:
    """One answer of a baseline as the target wrote it; `text` is `None` where nothing came back.

    `judged` is what a judge model read from it, as `Judged.to_json` writes it, where one was asked. `refused` is set
    where the target itself said that it refused, and the text does not show it.
    """

    labels: Mapping[str, str]
    trial: int
    text: str | None
    judged: Mapping[str, Json] | None = None
    refused: bool = False


def read_answers(path: Path) -> dict[str, list[Row]] | None:
    """The rows by generation, sorted by labels and trial; `None` where there is no file.

    Raises:
        BaselineError: the file cannot be read, or is not what was written.
    """
    try:
        with gzip.open(path, "rb") as file:
            # Whether it is whole shows at its end, and nothing it holds is worth reading before.
            _require_bounds(path, file)
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            generations = _read(path, lines)
    except FileNotFoundError:
        return None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise damaged(path, "is not a whole gzip file") from error
    except UnicodeDecodeError as error:
        raise damaged(path, "is not UTF-8 inside") from error
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read ({error.strerror}). Mend that, or move it away.") from error
    for generation, rows in generations.items():
        try:
            rows[:] = sorted_rows(rows)
        except ValueError as error:
            raise damaged(path, f"holds {error} in generation {generation}") from error
        if _digest(rows) != generation:
            raise damaged(path, f"the answers of generation {generation} are not those it was made of")
    return generations


def write_answers(path: Path, generations: Mapping[str, Sequence[Row]]) -> None:
    """Write the rows of all generations, or remove the file where there are none.

    Raises:
        OSError: the file cannot be written; the old one stands.
    """
    ordered = {generation: sorted_rows(generations[generation]) for generation in sorted(generations)}
    if not any(ordered.values()):
        path.unlink(missing_ok=True)
    elif not _holds(path, _lines(ordered)):
        # Compressors differ between machines: the same answers in another machine's bytes are left as they are.
        compressed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, mtime=0) as file:
            file.writelines(_lines(ordered))
        replace_file(path, compressed.getvalue())


def generation_for(rows: Iterable[Row], generations: Mapping[str, Sequence[Row]]) -> str | None:
    """The generation that holds these rows and no others in their cells; one of `generations` if there is such.

    A cell is everything with the same labels. A generation with further trials in a cell would not do: an item would
    then be compared with answers that it was not measured from.
    """
    wanted = sorted_rows(rows)
    if not wanted:
        return None
    own = _digest(wanted)
    cells = {_cell(row) for row in wanted} if generations else set()
    for generation in sorted(generations):
        if _digest(row for row in sorted_rows(generations[generation]) if _cell(row) in cells) == own:
            return generation
    return own


def generation_id(rows: Iterable[Row]) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the rows, whatever their order."""
    return _digest(sorted_rows(rows))


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows by labels and trial, equal rows once.

    Raises:
        ValueError: two different answers of the same trial and labels.
    """
    ordered = list(rows)
    if _is_sorted(ordered):
        return ordered
    unique: dict[tuple[Cell, int], Row] = {}
    for row in ordered:
        if unique.setdefault(_place(row), row) != row:
            raise ValueError(f"two answers of trial {row.trial} of {dict(row.labels)}")
    return [unique[place] for place in sorted(unique)]


def damaged(path: Path, fault: str, line: int | None = None) -> BaselineError:
    """The error for a file that is there but is not what was written, with the cure."""
    place = path if line is None else f"{path}:{line}"
    return BaselineError(
        f"{place}: {fault}. Restore it with `git checkout -- {shlex.quote(str(path))}`, or delete it and make a new "
        f"one with --fairness-rebaseline.",
        remade=True,
    )


def _require_bounds(path: Path, file: gzip.GzipFile) -> None:
    """Raise `BaselineError` where the file holds more than answers need: a small file may decompress to any size."""
    total, line, length = 0, 1, 0
    while block := file.read(1 << 20):
        total += len(block)
        first = block.find(b"\n")
        if length + (len(block) if first < 0 else first) > MAX_LINE:
            raise damaged(path, f"is a line of over {MAX_LINE:,} bytes, which is no answer", line)
        if total > MAX_BYTES:
            raise damaged(path, f"holds over {MAX_BYTES:,} bytes, more than answers are read of")
        if b"\n\n" in block:
            raise damaged(path, "holds empty lines", line + block.count(b"\n", 0, block.index(b"\n\n")) + 1)
        line += block.count(b"\n")
        length = length + len(block) if first < 0 else len(block) - block.rindex(b"\n") - 1


def _read(path: Path, lines: Iterable[str]) -> dict[str, list[Row]]:
    """The rows by generation, in the file's order."""
    generations: dict[str, list[Row]] = {}
    labels: Mapping[str, str] = {}
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\n")
        if not line:
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise damaged(path, f"is not JSON ({error})", number) from error
        if not _is_plain(row):
            for fault in _ROW.iter_errors(row):
                raise damaged(path, f"is not an answer ({fault.json_path}: {fault.message[:160]})", number)
        if row["labels"] != labels:
            # There are many answers of the same labels: these are kept once.
            labels = {sys.intern(name): sys.intern(text) for name, text in row["labels"].items()}
        read = Row(labels, row["trial"], row["text"], row.get("judged"), row.get("refused", False))
        generations.setdefault(row["generation"], []).append(read)
    return generations


def _is_plain(row: Json) -> bool:
    """Whether it is an answer as nearly all are; what is not may be one all the same, and is looked at closely."""
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


def _holds(path: Path, lines: Iterable[bytes]) -> bool:
    try:
        with gzip.open(path, "rb") as file:
            return all(one == other for one, other in zip_longest(file, lines))
    except (OSError, EOFError, zlib.error):
        return False


def _lines(generations: Mapping[str, Sequence[Row]]) -> Iterator[bytes]:
    for generation, rows in generations.items():
        for row in rows:
            yield _encode({"generation": generation, **_json(row)}).encode("ascii") + b"\n"


def _digest(ordered: Iterable[Row]) -> str:
    digest = sha256()
    for number, row in enumerate(ordered):
        digest.update((("\n" if number else "") + _line(row)).encode("ascii"))
    return digest.hexdigest()[:12]


def _json(row: Row) -> dict[str, object]:
    judged = {} if row.judged is None else {"judged": dict(row.judged)}
    refused = {"refused": True} if row.refused else {}
    return {"labels": dict(row.labels), "trial": row.trial, "text": row.text, **judged, **refused}


def _line(row: Row) -> str:
    # ASCII: any text survives, lone surrogates too, and hashing needs no choice of an encoding.
    return _encode(_json(row))


def _is_sorted(rows: Sequence[Row]) -> bool:
    """Whether the rows stand in their order, each once, as they do in a file that was written here."""
    return all(one < other for one, other in pairwise(map(_place, rows)))


def _place(row: Row) -> tuple[Cell, int]:
    return _cell(row), row.trial


def _cell(row: Row) -> Cell:
    return tuple(sorted(row.labels.items()))
