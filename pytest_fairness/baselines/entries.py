"""Entries of baselines, and the sets of answers from which they were measured."""

from __future__ import annotations

import gzip
import io
import json
import math
import reprlib
import shlex
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from hashlib import sha256
from itertools import accumulate, pairwise, zip_longest
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    JsonValue,
    StrictFloat,
    StrictInt,
    TypeAdapter,
    ValidationError,
)

from pytest_fairness.errors import BaselineError
from pytest_fairness.records import MAX_LINE, Json, Measurement
from pytest_fairness.resources import replace_file
from pytest_fairness.version import __version__

# Entries of baselines; an entry is the stored measurement of one item.

SCHEMA_VERSION = 1
LARGEST = 1e12
"""Maximum absolute value of a number in a baseline: larger than any audit's value; its square does not overflow."""
MOST_CONTRIBUTIONS = 10
SEALED = ("value", "interval", "standard_error", "n", "missing", "answers")
"""Keys of an entry in files that `Entry.seal` covers."""
FIRST = (
    *("value", "interval", "reason", "limit", "tolerance", "n", "missing", "contributions"),
    *("target", "served", "date", "file", "labels", "sampling"),
)
"""Keys of an entry with which it begins in files: what a reviewer reads. The others are for comparisons."""
LONGEST_NAME = 100

Text = InstanceOf[str]
"""Type of texts that may contain lone surrogates, which pydantic's `str` rejects."""
Count = Annotated[int, Field(strict=True, ge=0)]
Number = Annotated[float, Field(strict=True, ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Deviation = Annotated[Number, Field(ge=0)]


@dataclass(frozen=True)
class RunToRun:
    """Standard deviation of a value between runs, estimated from `runs` parts of one run's trials."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    runs: Annotated[int, Field(strict=True, ge=2)]
    sd: Deviation


@dataclass(frozen=True)
class MeasuredBy:
    """Version and alpha of the audit that measured a value.

    With the same version, alpha, answers and fingerprint, an audit measures the same value. `version` is the audit's,
    plus 100 times that of the reading of answers; `level` is the key of alpha in baseline files.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    version: StrictInt
    level: StrictInt | StrictFloat


@dataclass(frozen=True)
class Entry:
    """Stored measurement of an item in a baseline.

    From `file` on, the attributes are `None` in files of earlier versions.

    Attributes:
        value, interval, standard_error, n, missing: see `Measurement`.
        target: the audited target, as the user named it.
        sampling: the sampling parameters that the probe sets, and the further fields of its requests.
        fingerprint: a short hash of each part of the probe that affects the prompts or the parsing of answers, by the
            name of the part (such as `prompt`). The key in files is `shape`.
        tool_version: version of pytest-fairness.
        date: date of the measurement, ISO 8601 in UTC.
        answer_set: id of the answer set, or `None` if the answers were not kept; set by `update_baseline`. The key in
            files is `generation`.
        run_to_run: variation of the value between runs; `None` if there were too few trials.
        measured_by: version and alpha of the audit; `None` in files of earlier versions.
        served: sorted names of the models that the server reported; `None` without any.
        file: the probe file, or the file of the Python test, relative to the root.
        labels: names and values that identify the item, such as its group.
        limit, tolerance: limit and tolerance of the item when it was measured; `limit` is `None` without a limit.
        contributions: the `MOST_CONTRIBUTIONS` largest contributions to the value; see `Explanation`.
        accepted_by: who accepted the value, in files of earlier versions; no longer written.
        reason: the value in words; in files of earlier versions, why it was accepted.
        answers: hash of the answers, also if they were not kept; set by `update_baseline`.
        seal: hash of the measurement and `answers`, which shows an edit of either; see `sealed`.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", defer_build=True)

    value: Number
    interval: tuple[Number, Number] | None
    standard_error: Deviation | None
    n: dict[Text, Count]
    missing: dict[Text, Count]
    target: Text
    sampling: dict[Text, JsonValue]
    fingerprint: Annotated[dict[Text, Text], Field(alias="shape")]
    tool_version: Text
    date: Text
    answer_set: Annotated[Text | None, Field(alias="generation")]
    run_to_run: RunToRun | None = None
    measured_by: MeasuredBy | None = None
    served: Annotated[list[Text], Field(min_length=1)] | None = None
    file: Text | None = None
    labels: dict[Text, Text] | None = None
    limit: Number | None = None
    tolerance: Number | None = None
    contributions: dict[Text, Number] | None = None
    accepted_by: Text | None = None
    reason: Text | None = None
    answers: Text | None = None
    seal: Text | None = None

    @classmethod
    def measured(
        cls,
        measurement: Measurement,
        *,
        served: Sequence[str] = (),
        contributions: Mapping[str, float] | None = None,
        **more: Any,
    ) -> Self:
        """Return the entry of a measurement by this version; `more` are further attributes."""
        return cls(
            value=measurement.value,
            interval=measurement.interval,
            standard_error=measurement.standard_error,
            n=dict(measurement.n),
            missing=dict(measurement.missing),
            tool_version=__version__,
            answer_set=None,
            served=list(served) or None,
            contributions=_largest(contributions or {}) or None,
            reason=measurement.explanation.phrase or None,
            **more,
        )

    def to_json(self) -> dict[str, Json]:
        """Return the entry as JSON, with numbers of 6 significant digits and without optional keys that are `None`."""
        plain = _ENTRY.dump_python(self, by_alias=True)
        unset = {name for name in _OPTIONAL if plain[name] is None}
        return {name: rounded(plain[name]) for name in dict.fromkeys([*FIRST, *plain]) if name not in unset}

    def sealed(self, answers: str | None) -> Entry:
        """Return the entry with the hash of its answers, and with its seal."""
        entry = replace(self, answers=answers)
        return replace(entry, seal=entry._own_seal())

    @property
    def was_edited(self) -> bool:
        """Return whether the measurement or a hash was edited; `False` for a file of an earlier version."""
        return (self.seal or self.answers) is not None and self.seal != self._own_seal()

    def _own_seal(self) -> str:
        stored = self.to_json()
        text = json.dumps([stored.get(name) for name in SEALED], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:16]

    def for_reports(self) -> dict[str, Json]:
        return {"value": self.value, "target": self.target, "date": self.date}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Entry:
        """Return the entry from JSON of `to_json`; raise `BaselineError` if it is not valid."""
        try:
            return _ENTRY.validate_python(data)
        except ValidationError as error:
            raise BaselineError(f"An entry cannot be stored in a baseline: {first_error(error)}.") from error

    def same_measurement(self, other: Entry) -> bool:
        """Return whether both have the same JSON, apart from `date`, `accepted_by` and `reason`."""
        ignored: dict[str, Json] = {"date": "", "accepted_by": None, "reason": None}
        return bool(replace(self, **ignored).to_json() == replace(other, **ignored).to_json())


def _largest(contributions: Mapping[str, float]) -> dict[str, float]:
    """Return the `MOST_CONTRIBUTIONS` largest absolute contributions; long names are shortened."""
    finite = {name: float(number) for name, number in contributions.items() if math.isfinite(number)}
    order = sorted(finite, key=lambda name: (-abs(finite[name]), name))[:MOST_CONTRIBUTIONS]
    return {name[:LONGEST_NAME]: finite[name] for name in order}


@dataclass(frozen=True)
class Summary:
    """Content of a summary file: the entries of a probe's items, by item id."""

    # Unknown keys are forbidden, because the next update of the file would delete them.
    __pydantic_config__ = ConfigDict(extra="forbid", defer_build=True)

    schema: Literal[1]
    probe: Text
    items: dict[Text, Entry]


def first_error(error: ValidationError) -> str:
    """Return the first error with its location: `items.jsd.value: Input should be a valid number, found 'high'`."""
    first = error.errors(include_url=False)[0]
    match first["type"]:
        case "missing":
            message = "Field required"
        case "unexpected_keyword_argument" | "extra_forbidden":
            message = "Unknown field"
        case _:
            message = f"{first['msg']}, found {reprlib.repr(first['input'])}"
    return f"{'.'.join(map(str, first['loc']))}: {message}"


def rounded(value: Json) -> Json:
    """Round all numbers of a JSON value to 6 significant digits, as in summary files.

    A number that is not finite becomes `None`. A list with such a number, or with `None`, becomes `None` as a whole.
    """
    if isinstance(value, float):
        # `+ 0.0` makes a negative zero positive.
        return float(f"{value:.6g}") + 0.0 if abs(value) < float("inf") else None
    if isinstance(value, Mapping):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [rounded(item) for item in value]
        return None if None in items else items
    return value


_OPTIONAL = [field.name for field in fields(Entry) if field.default is not MISSING]


_ENTRY = TypeAdapter(Entry)


SUMMARY = TypeAdapter(Summary)


# Reader and writer of the answers of a baseline, which are stored as JSON Lines.
#
# An answer set holds the answers that were measured together. Its id is a hash of its content, so that the reader
# detects a file that was damaged, merged or edited. A line with the id stands before the set's answers; in files of
# earlier versions, each answer has it under the key `generation`.


class _Judgement(BaseModel, extra="forbid", defer_build=True):
    by: Text
    votes: list[Text | None]


class _StoredRow(BaseModel, extra="forbid", defer_build=True):
    generation: Text | None = None
    labels: dict[Text, Text]
    trial: Annotated[int, Field(strict=True, ge=0)]
    text: Text | None
    judged: _Judgement | None = None
    refused: Literal[True] | None = None


MAX_BYTES = 4 * 1024**3
"""Maximum size in bytes of all answers of a baseline, after decompression."""
LARGEST_TEXT = 1_000_000
"""Size in bytes above which answers are compressed, because GitHub shows no changes in a larger text."""

_PLAIN = frozenset({"labels", "trial", "text"})

_encode = json.JSONEncoder(sort_keys=True).encode

LabelKey = tuple[tuple[str, str], ...]
"""Labels of an answer as sorted (name, value) pairs."""


@dataclass(frozen=True, slots=True)
class Row:
    """One answer of a baseline.

    Attributes:
        labels: names and values that identify the prompt, such as its group.
        trial: number of the trial, from 0.
        text: the text that the target returned, if any.
        judged: the judge model's classification of the text, as `Judged.to_json` returns it.
        refused: whether the target reported a refusal that cannot be recognised from the text.
    """

    labels: Mapping[str, str]
    trial: int
    text: str | None
    judged: Mapping[str, Json] | None = None
    refused: bool = False


def compressed(path: Path) -> Path:
    """Return the path of the gzip file that holds many answers in place of the file of text."""
    return path.with_name(f"{path.name}.gz")


def read_answers(path: Path, most_bytes: int = MAX_BYTES) -> dict[str, list[Row]] | None:
    """Return sorted answers by answer set, from the file of text and from the gzip file; `None` if there is no file.

    A killed run may leave both files.

    Raises:
        BaselineError: a file cannot be read, has more than `most_bytes` after decompression, or was changed.
    """
    found = [answer_sets for file in (path, compressed(path)) if (answer_sets := _read_file(file, most_bytes))]
    return {name: rows for answer_sets in found for name, rows in answer_sets.items()} or None


def _read_file(path: Path, most_bytes: int) -> dict[str, list[Row]]:
    try:
        with _open(path) as file:
            # Truncation is detected only at the end of a file: the whole file is checked before any answer is read.
            _require_bounds(path, file, most_bytes)
        with _open(path) as file:
            answer_sets = _read(path, (line.decode("utf-8") for line in file))
    except FileNotFoundError:
        return {}
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise damaged_file_error(path, "is not a complete gzip file") from error
    except UnicodeDecodeError as error:
        raise damaged_file_error(path, "the text is not UTF-8") from error
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


def _open(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def write_answers(path: Path, answer_sets: Mapping[str, Sequence[Row]]) -> None:
    """Write the answers, equal ones to equal text; remove the files if there are none.

    Up to `LARGEST_TEXT` bytes are written as text, more are compressed; the other file is removed.

    Raises:
        OSError: the file cannot be written; the old file is unchanged.
    """
    ordered = {answer_set: rows for answer_set in sorted(answer_sets) if (rows := sorted_rows(answer_sets[answer_set]))}
    if not ordered:
        path.unlink(missing_ok=True)
        compressed(path).unlink(missing_ok=True)
        return
    is_text = next((False for size in accumulate(map(len, _lines(ordered))) if size > LARGEST_TEXT), True)
    file, other = (path, compressed(path)) if is_text else (compressed(path), path)
    # Machines compress differently: a file that holds the same answers in other bytes is not written again.
    if not _has_lines(file, _lines(ordered)):
        content = io.BytesIO()
        if is_text:
            content.writelines(_lines(ordered))
        else:
            with gzip.GzipFile(filename="", mode="wb", fileobj=content, mtime=0) as packed:
                packed.writelines(_lines(ordered))
        replace_file(file, content.getvalue())
    other.unlink(missing_ok=True)


def answer_set_for(rows: Iterable[Row], answer_sets: Mapping[str, Sequence[Row]]) -> str | None:
    """Return the id of the stored answer set that contains these answers, else of a new one; `None` for no answers.

    A stored answer set is used only if it holds no further answers with the labels of these answers. With further
    answers, later runs would compare an item with answers from which the item was not measured.
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
    """Sort by labels and trial, without duplicates; raise `ValueError` if two different answers have the same."""
    ordered = list(rows)
    if all(one < other for one, other in pairwise(map(row_key, ordered))):
        return ordered
    unique: dict[tuple[LabelKey, int], Row] = {}
    for row in ordered:
        if unique.setdefault(row_key(row), row) != row:
            raise ValueError(f"two different answers of trial {row.trial} with the labels {dict(row.labels)}")
    return [unique[key] for key in sorted(unique)]


def damaged_file_error(path: Path, problem: str, line: int | None = None) -> BaselineError:
    """Return the error for a file with invalid content, which also says how to get a valid one."""
    place = path if line is None else f"{path}:{line}"
    return BaselineError(
        f"{place}: {problem}. Restore it with `git checkout -- {shlex.quote(str(path))}`, or delete it and make a new "
        f"one with --fairness-rebaseline.",
        fixed_by_rebaseline=True,
    )


def _require_bounds(path: Path, file: BinaryIO, most_bytes: int) -> None:
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
    """Return answers by answer set, in the file's order; an invalid line raises `BaselineError`."""
    answer_sets: dict[str, list[Row]] = {}
    answer_set: str | None = None
    labels: Mapping[str, str] = {}
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\n")
        if not line:
            continue
        if line.startswith(("<<<<<<<", ">>>>>>>")):
            raise damaged_file_error(path, "holds an unresolved merge conflict", number)
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise damaged_file_error(path, f"is not JSON ({error})", number) from error
        if isinstance(row, dict) and row.keys() == {"answer_set"} and isinstance(row["answer_set"], str):
            answer_set = row["answer_set"]
            continue
        if not _is_plain(row):
            try:
                _StoredRow.model_validate(row)
            except ValidationError as error:
                raise damaged_file_error(path, f"is not an answer ({first_error(error)})", number) from error
        answer_set = row.get("generation", answer_set)
        if answer_set is None:
            raise damaged_file_error(path, "is not an answer (no line before it names its answer set)", number)
        if row["labels"] != labels:
            # Many answers have the same labels: one copy of the labels in memory is enough.
            labels = {sys.intern(name): sys.intern(text) for name, text in row["labels"].items()}
        read = Row(labels, row["trial"], row["text"], row.get("judged"), row.get("refused", False))
        answer_sets.setdefault(answer_set, []).append(read)
    return answer_sets


def _is_plain(row: Json) -> bool:
    """Return whether a row is valid with the required keys alone, which skips the slower validation."""
    return (
        isinstance(row, dict)
        and row.keys() - {"generation"} == _PLAIN
        and type(row.get("generation", "")) is str
        and type(row["text"]) in (str, type(None))
        and type(row["trial"]) is int
        and row["trial"] >= 0
        and type(row["labels"]) is dict
        and all(type(text) is str for text in row["labels"].values())
    )


def _has_lines(path: Path, lines: Iterable[bytes]) -> bool:
    try:
        with _open(path) as file:
            return all(one == other for one, other in zip_longest(file, lines))
    except (OSError, EOFError, zlib.error):
        return False


def _lines(answer_sets: Mapping[str, Sequence[Row]]) -> Iterator[bytes]:
    for answer_set, rows in answer_sets.items():
        for line in ({"answer_set": answer_set}, *map(_json, rows)):
            # Python escapes a lone surrogate in the same way as JSON.
            yield f"{json.dumps(line, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace")


def _digest(ordered: Iterable[Row]) -> str:
    """Return the first 12 hex digits of the SHA-256 of sorted answers."""
    digest = sha256()
    for number, row in enumerate(ordered):
        # JSON in ASCII keeps every text, even lone surrogates, and the hash depends on no encoding.
        digest.update((("\n" if number else "") + _encode(_json(row))).encode("ascii"))
    return digest.hexdigest()[:12]


def _json(row: Row) -> dict[str, object]:
    judged = {} if row.judged is None else {"judged": dict(row.judged)}
    refused = {"refused": True} if row.refused else {}
    return {"labels": dict(row.labels), "trial": row.trial, "text": row.text, **judged, **refused}


def row_key(row: Row) -> tuple[LabelKey, int]:
    return _label_key(row), row.trial


def _label_key(row: Row) -> LabelKey:
    return tuple(sorted(row.labels.items()))
