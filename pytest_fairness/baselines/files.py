"""Baselines in the repository: one readable summary a probe, and the answers that it was measured from.

`<probe>.json` is made to be read in a diff; `<probe>.responses.jsonl.gz` holds the answers in generations. An entry of
the summary names the generation it stands on. Both are written only here, whole, and only when their content changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Self

from jsonschema import Draft7Validator, ValidationError

from pytest_fairness.atomic import replace_file
from pytest_fairness.baselines.answers import Row, damaged, generation_for, read_answers, write_answers
from pytest_fairness.errors import BaselineError
from pytest_fairness.records import Interval, Json, Measurement
from pytest_fairness.version import __version__

__all__ = ["Baseline", "Entry", "Row", "read", "stale_parts", "update"]

SCHEMA_VERSION = 1
NOT_SET = "not set"

LARGEST = 1e12
"""Beyond every value of an audit, and its square is a number still."""
_BOUNDED = {"minimum": -LARGEST, "maximum": LARGEST}
_COUNTS = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
_ENTRY = {
    "value": {"type": "number", **_BOUNDED},
    "interval": {"type": ["array", "null"], "items": {"type": "number", **_BOUNDED}, "minItems": 2, "maxItems": 2},
    "standard_error": {"type": ["number", "null"], "minimum": 0, "maximum": LARGEST},
    "n": _COUNTS,
    "missing": _COUNTS,
    "target": {"type": "string"},
    "sampling": {"type": "object", "additionalProperties": {"type": "number"}},
    "shape": {"type": "object", "additionalProperties": {"type": "string"}},
    "tool_version": {"type": "string"},
    "date": {"type": "string"},
    "generation": {"type": ["string", "null"]},
}
_OPTIONAL = {
    "measured_by": {
        "type": "object",
        "required": ["version", "level"],
        "properties": {"version": {"type": "integer"}, "level": {"type": "number"}},
        "additionalProperties": False,
    },
    "run_to_run": {
        "type": "object",
        "required": ["runs", "sd"],
        "properties": {
            "runs": {"type": "integer", "minimum": 2},
            "sd": {"type": "number", "minimum": 0, "maximum": LARGEST},
        },
        "additionalProperties": False,
    },
    "served": {"type": "array", "items": {"type": "string"}, "minItems": 1},
}
_SUMMARY = Draft7Validator(
    {
        "type": "object",
        "required": ["schema", "probe", "items"],
        "properties": {
            "schema": {"const": SCHEMA_VERSION},
            "probe": {"type": "string"},
            "items": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "required": list(_ENTRY),
                    "properties": _ENTRY | _OPTIONAL,
                    "additionalProperties": False,
                },
            },
        },
        # An entry is rewritten when its neighbour is: what is not understood would be lost then.
        "additionalProperties": False,
    }
)


@dataclass(frozen=True)
class Entry:
    """What one item measured when its baseline was made.

    Attributes:
        value, interval, standard_error, n, missing: as in `Measurement`.
        target: who was audited, as the user named it.
        sampling: how the answers were drawn; only what was set.
        shape: everything that shaped the prompts and their reading: readable part name to a short hash of the part.
        tool_version: of pytest-fairness.
        date: when it was measured, ISO 8601 in UTC.
        generation: the answers it stands on, or `None` where none were kept. `update` fills it in.
        run_to_run: `runs`, how many runs the trials would have made, and `sd`, the standard deviation of their values;
            `None` where there were not enough trials for two.
        measured_by: `version` and `level` of the audit that measured the value; `None` in files of earlier versions.
        served: the models that the server said it answered with, sorted; `None` where it did not say.
    """

    value: float
    interval: Interval | None
    standard_error: float | None
    n: Mapping[str, int]
    missing: Mapping[str, int]
    target: str
    sampling: Mapping[str, float]
    shape: Mapping[str, str]
    tool_version: str
    date: str
    generation: str | None = None
    run_to_run: Mapping[str, float] | None = None
    measured_by: Mapping[str, float] | None = None
    served: Sequence[str] | None = None

    @classmethod
    def measured(
        cls,
        measurement: Measurement,
        *,
        target: str,
        sampling: Mapping[str, float],
        shape: Mapping[str, Json],
        date: str,
        run_to_run: Mapping[str, float] | None = None,
        measured_by: Mapping[str, float] | None = None,
        served: Sequence[str] = (),
    ) -> Self:
        """The entry of a fresh measurement; `shape` maps part names to the parts themselves, not yet to hashes."""
        return cls(
            value=measurement.value,
            interval=measurement.interval,
            standard_error=measurement.standard_error,
            n=dict(measurement.n),
            missing=dict(measurement.missing),
            target=target,
            sampling=dict(sampling),
            shape={part: _hash(content) for part, content in shape.items()},
            tool_version=__version__,
            date=date,
            run_to_run=run_to_run,
            measured_by=measured_by,
            served=list(served) or None,
        )

    def to_json(self) -> dict[str, Json]:
        """Plain JSON, its numbers at 6 significant digits."""
        plain = {field.name: rounded(getattr(self, field.name)) for field in fields(self)}
        return {name: value for name, value in plain.items() if not (name in _OPTIONAL and value is None)}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """The entry that `to_json` wrote."""
        interval = data["interval"]
        return cls(**{**data, "interval": None if interval is None else (float(interval[0]), float(interval[1]))})


@dataclass(frozen=True)
class Baseline:
    """One probe's baseline: its entries by item id, and where its answers are.

    Two that are equal hold the same answers.

    Attributes:
        stamp: when the file of answers was written, nanoseconds, and its size, bytes; `None` where there is none.
    """

    items: Mapping[str, Entry]
    summary_path: Path
    answers_path: Path
    stamp: tuple[int, int] | None

    def answers(self, generation: str | None) -> list[Row]:
        """The answers of one generation, sorted by labels and trial; none where none were kept.

        Raises:
            BaselineError: the file of answers is damaged, or lacks this generation.
        """
        if generation is None or self.generations is None:
            return []
        if generation not in self.generations:
            raise BaselineError(
                f"{self.answers_path}: holds no answers of generation {generation}, which {self.summary_path.name} "
                f"names. Take both files from one commit, or delete both and make new ones with "
                f"--fairness-rebaseline.",
                remade=True,
            )
        return list(self.generations[generation])

    @property
    def size(self) -> int:
        """How many answers there are, of all generations."""
        return sum(map(len, (self.generations or {}).values()))

    @cached_property
    def generations(self) -> Mapping[str, Sequence[Row]] | None:
        """All kept answers by generation, read when first asked for; `None` where there is no file of answers."""
        return read_answers(self.answers_path)


def read(folder: Path, name: str) -> Baseline | None:
    """The baseline of the probe `name`, or `None` where there is none.

    Raises:
        BaselineError: the file is there but cannot be understood.
    """
    summary_path, answers_path = _paths(folder, name)
    try:
        text = summary_path.read_text("utf-8-sig")
    except FileNotFoundError:
        return None
    except OSError as error:
        fault = f"{summary_path}: cannot be read ({error.strerror}). Mend that, or move it away."
        raise BaselineError(fault) from error
    except UnicodeDecodeError as error:
        raise damaged(summary_path, "is not UTF-8") from error
    data = _parse_summary(summary_path, text)
    return Baseline(
        {item: Entry.from_json(entry) for item, entry in data["items"].items()},
        summary_path,
        answers_path,
        _stamp(answers_path),
    )


def update(
    folder: Path,
    name: str,
    entries: Mapping[str, Entry],
    rows: Iterable[Row],
    *,
    remove: Collection[str] = (),
    keep_answers: bool = True,
) -> None:
    """Write new entries into a probe's baseline; entries that are not named stay as they are, with their answers.

    An entry whose content is unchanged keeps its date, so that rebaselining on the same answers changes no byte.

    Args:
        folder: the baselines' folder; made if need be.
        name: the probe's name.
        entries: new entries by item id; their `generation` is disregarded.
        rows: the answers that all of `entries` were measured from, in any order; repeated rows count once.
        remove: ids of entries to drop.
        keep_answers: whether to write the answers; otherwise the new entries name no generation.

    Raises:
        BaselineError: the present files cannot be understood (they are left as they are), or the new ones not written.
    """
    summary_path, answers_path = _paths(folder, name)
    old = read(folder, name)
    old_items = old.items if old else {}
    kept = {item: entry for item, entry in old_items.items() if item not in entries and item not in remove}
    generations: dict[str, Sequence[Row]] = {}
    if old is not None and old.generations is None:
        # Somebody removed the answers: what is kept stands on its stored numbers alone from now on.
        kept = {item: replace(entry, generation=None) for item, entry in kept.items()}
    elif old is not None:
        named = {entry.generation for entry in kept.values() if entry.generation is not None}
        generations = {generation: old.answers(generation) for generation in named}
    new_rows = list(rows) if keep_answers else []
    generation = generation_for(new_rows, generations)
    if generation is not None:
        generations.setdefault(generation, new_rows)
    new = {item: _dated(replace(entry, generation=generation), old_items.get(item)) for item, entry in entries.items()}
    summary = {
        "schema": SCHEMA_VERSION,
        "probe": name,
        "items": {item: entry.to_json() for item, entry in {**kept, **new}.items()},
    }
    for fault in _SUMMARY.iter_errors(summary):
        raise BaselineError(f"{summary_path}: not written, the old one stands ({_text(fault)}).")
    try:
        # Until the new summary stands, the answers serve the old one too: a run killed in between loses nothing.
        write_answers(answers_path, {**((old and old.generations) or {}), **generations})
        if summary["items"]:
            replace_file(summary_path, _summary_bytes(summary))
        else:
            summary_path.unlink(missing_ok=True)
        write_answers(answers_path, generations)
    except OSError as error:
        raise BaselineError(f"{error.filename or summary_path}: cannot be written ({error.strerror}).") from error


def stale_parts(entry: Entry, shape: Mapping[str, Json]) -> list[str]:
    """Which parts of a probe are not what they were when the baseline was made, readable and sorted.

    Args:
        entry: the baseline's entry.
        shape: part names and the parts themselves, as given to `Entry.measured`.

    Returns:
        Names of changed parts; of parts that were added or are gone, followed by ` (new)` or ` (gone)`.
    """
    current = {part: _hash(content) for part, content in shape.items()}
    baseline = entry.shape
    return sorted(
        part if part in current and part in baseline else f"{part} (new)" if part in current else f"{part} (gone)"
        for part in {*current, *baseline}
        if current.get(part) != baseline.get(part)
    )


def changed_sampling(entry: Entry, sampling: Mapping[str, float]) -> list[str]:
    """Return the sampling parameters that differ from the baseline's, as `temperature 1.0 → 0.7`.

    Another seed draws another sample from the same distribution, so it is no difference.

    Args:
        entry: the baseline's entry.
        sampling: of this run; only what is set.
    """
    current, baseline = rounded(sampling), rounded(entry.sampling)
    return [
        f"{name} {baseline.get(name, NOT_SET)} → {current.get(name, NOT_SET)}"
        for name in sorted({*current, *baseline} - {"seed"})
        if current.get(name) != baseline.get(name)
    ]


def _paths(folder: Path, name: str) -> tuple[Path, Path]:
    if not name.isprintable() or re.search(r'^\.|^$|[/\\:*?"<>|]', name):
        raise BaselineError(
            f"A baseline cannot be kept for a probe named {name!r}: give it a `name` that a file can have."
        )
    return folder / f"{name}.json", folder / f"{name}.responses.jsonl.gz"


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:  # whoever reads it says why
        return None
    return found.st_mtime_ns, found.st_size


def _parse_summary(path: Path, text: str) -> dict[str, Json]:
    conflict = re.search(r"^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE)
    if conflict:
        raise damaged(path, "holds an unresolved merge conflict", text.count("\n", 0, conflict.start()) + 1)
    try:
        data = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise damaged(path, f"is not JSON ({error.msg})", error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"is not a baseline ({error})") from error
    version = data.get("schema") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise BaselineError(
            f"{path}: written by a newer pytest-fairness (schema {version}; this one, {__version__}, knows "
            f"{SCHEMA_VERSION}). Upgrade pytest-fairness."
        )
    if version != SCHEMA_VERSION:
        raise damaged(path, f'is not a baseline ("schema" is not {SCHEMA_VERSION})')
    for fault in _SUMMARY.iter_errors(data):
        raise damaged(path, f"is not a baseline ({_text(fault)})")
    return dict(data)


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"{name!r} stands twice")
        result[name] = value
    return result


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _text(fault: ValidationError) -> str:
    return f"{fault.json_path}: {fault.message[:160]}"


def _summary_bytes(summary: Mapping[str, Json]) -> bytes:
    text = json.dumps(summary, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    # The escape of a lone surrogate is also its escape in JSON.
    return text.encode("utf-8", "backslashreplace")


def _dated(entry: Entry, old: Entry | None) -> Entry:
    """The entry, with the old one's date where nothing else changed."""
    if old is not None and replace(entry, date=old.date).to_json() == old.to_json():
        return old
    return entry


def rounded(value: Json) -> Json:
    """JSON with its numbers at the 6 significant digits that summaries keep."""
    if isinstance(value, float):
        # `+ 0.0` makes a negative zero positive; an infinite end leaves nothing to write.
        return float(f"{value:.6g}") + 0.0 if abs(value) < float("inf") else None
    if isinstance(value, Mapping):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        ends = [rounded(item) for item in value]
        return None if None in ends else ends
    return value


def _hash(content: Json) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
