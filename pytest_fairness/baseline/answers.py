"""The answers of a baseline: JSON Lines in a gzip file that has the same bytes for the same answers.

The answers stand in generations, each a set of answers that was measured together. A generation is named by its
content, so that a file which was damaged, merged or edited is noticed when it is read.
"""

from __future__ import annotations

import gzip
import io
import json
import shlex
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from jsonschema import Draft7Validator

from pytest_fairness.atomic import replace_file
from pytest_fairness.errors import BaselineError
from pytest_fairness.records import Json

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
        },
        "additionalProperties": False,
    }
)


@dataclass(frozen=True)
class Row:
    """One answer of a baseline as the target wrote it; `text` is `None` where nothing came back.

    `judged` is what a judge model read from it, as `Judged.to_json` writes it, where one was asked.
    """

    labels: Mapping[str, str]
    trial: int
    text: str | None
    judged: Mapping[str, Json] | None = None


def read_answers(path: Path) -> dict[str, list[Row]] | None:
    """The rows by generation, sorted by labels and trial; `None` where there is no file.

    Raises:
        BaselineError: the file cannot be read, or is not what was written.
    """
    try:
        with gzip.open(path, "rb") as file:
            lines = file.read().decode("utf-8").split("\n")
    except FileNotFoundError:
        return None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise damaged(path, "is not a whole gzip file") from error
    except UnicodeDecodeError as error:
        raise damaged(path, "is not UTF-8 inside") from error
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read ({error.strerror}).") from error
    generations: dict[str, list[Row]] = {}
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise damaged(path, f"is not JSON ({error})", number) from error
        for fault in _ROW.iter_errors(row):
            raise damaged(path, f"is not an answer ({fault.json_path}: {fault.message[:160]})", number)
        generations.setdefault(row["generation"], []).append(_row(row))
    for generation, rows in generations.items():
        try:
            rows[:] = sorted_rows(rows)
        except ValueError as error:
            raise damaged(path, f"holds {error} in generation {generation}") from error
        if generation_id(rows) != generation:
            raise damaged(path, f"the answers of generation {generation} are not those it was made of")
    return generations


def write_answers(path: Path, generations: Mapping[str, Sequence[Row]]) -> None:
    """Write the rows of all generations, or remove the file where there are none.

    Raises:
        OSError: the file cannot be written; the old one stands.
    """
    content = "".join(
        json.dumps({"generation": generation, **_json(row)}, sort_keys=True) + "\n"
        for generation in sorted(generations)
        for row in sorted_rows(generations[generation])
    ).encode("ascii")
    if not content:
        path.unlink(missing_ok=True)
    elif not _holds(path, content):
        # Compressors differ between machines: the same answers in another machine's bytes are left as they are.
        compressed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, mtime=0) as file:
            file.write(content)
        replace_file(path, compressed.getvalue())


def generation_for(rows: Iterable[Row], generations: Mapping[str, Sequence[Row]]) -> str | None:
    """The generation that holds these rows and no others in their cells; one of `generations` if there is such.

    A cell is everything with the same labels. A generation with further trials in a cell would not do: an item would
    then be compared with answers that it was not measured from.
    """
    wanted = sorted_rows(rows)
    if not wanted:
        return None
    cells = {_cell(row) for row in wanted}
    lines = list(map(_line, wanted))
    for generation in sorted(generations):
        if [_line(row) for row in sorted_rows(generations[generation]) if _cell(row) in cells] == lines:
            return generation
    return generation_id(wanted)


def generation_id(rows: Iterable[Row]) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the rows, whatever their order."""
    return sha256("\n".join(map(_line, sorted_rows(rows))).encode("ascii")).hexdigest()[:12]


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows by labels and trial, equal rows once.

    Raises:
        ValueError: two different answers of the same trial and labels.
    """
    unique = {_line(row): row for row in rows}
    ordered = sorted(unique.values(), key=lambda row: (_cell(row), row.trial))
    for row, following in pairwise(ordered):
        if (_cell(row), row.trial) == (_cell(following), following.trial):
            raise ValueError(f"two answers of trial {row.trial} of {dict(row.labels)}")
    return ordered


def damaged(path: Path, fault: str, line: int | None = None) -> BaselineError:
    """The error for a file that is there but is not what was written, with the cure."""
    place = path if line is None else f"{path}:{line}"
    return BaselineError(
        f"{place}: {fault}. Restore it with `git checkout -- {shlex.quote(str(path))}`, or delete it and make a new "
        f"one with --fairness-rebaseline."
    )


def _holds(path: Path, content: bytes) -> bool:
    try:
        with gzip.open(path, "rb") as file:
            return file.read() == content
    except (OSError, EOFError, zlib.error):
        return False


def _row(data: Mapping[str, Json]) -> Row:
    return Row(data["labels"], data["trial"], data["text"], data.get("judged"))


def _json(row: Row) -> dict[str, object]:
    judged = {} if row.judged is None else {"judged": dict(row.judged)}
    return {"labels": dict(row.labels), "trial": row.trial, "text": row.text, **judged}


def _line(row: Row) -> str:
    # ASCII: any text survives, lone surrogates too, and hashing needs no choice of an encoding.
    return json.dumps(_json(row), sort_keys=True)


def _cell(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(row.labels.items()))
