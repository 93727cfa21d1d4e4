"""Entries of baselines; an entry is the stored measurement of one item."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from hashlib import sha256
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, InstanceOf, JsonValue, StrictFloat, StrictInt, TypeAdapter, ValidationError

from pytest_fairness.errors import BaselineError
from pytest_fairness.records import Json, Measurement
from pytest_fairness.version import __version__

SCHEMA_VERSION = 1
LARGEST = 1e12
"""Maximum absolute value of a number in a baseline: larger than any audit's value; its square does not overflow."""
MOST_CONTRIBUTIONS = 10
SEALED = ("value", "interval", "standard_error", "n", "missing", "answers")
"""Keys of an entry in files that `Entry.seal` covers."""
LONGEST_NAME = 100

Text = InstanceOf[str]
"""Type of texts that may contain lone surrogates, which pydantic's `str` rejects."""
Count = Annotated[int, Field(strict=True, ge=0)]
Number = Annotated[float, Field(strict=True, ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Deviation = Annotated[Number, Field(ge=0)]


@dataclass(frozen=True)
class RunToRun:
    """Variation of an item's value between repeated runs of the probe, estimated from the trials of one run.

    The trials are divided into parts. Each part stands for a run, and is measured separately.

    Attributes:
        runs: number of parts that could be measured.
        sd: standard deviation of the values of these parts.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    runs: Annotated[int, Field(strict=True, ge=2)]
    sd: Deviation


@dataclass(frozen=True)
class MeasuredBy:
    """Version and alpha of the audit that measured a value.

    With the same version, alpha, answers and fingerprint, an audit measures the same value.

    Attributes:
        version: version of the audit, plus 100 times the version of the reading of answers.
        level: alpha of the item; `level` is the key in baseline files.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    version: StrictInt
    level: StrictInt | StrictFloat


@dataclass(frozen=True)
class Entry:
    """Stored measurement of an item in a baseline.

    Attributes:
        value, interval, standard_error, n, missing: see `Measurement`.
        target: the audited target, as the user named it.
        sampling: the sampling parameters that the probe sets, and the further fields of its requests.
        fingerprint: a short hash of each part of the probe that affects the prompts or the parsing of answers, by the
            name of the part (such as `prompt`). The key in files is `shape`.
        tool_version: version of pytest-fairness.
        date: date of the measurement, ISO 8601 in UTC.
        answer_set: id of the answer set from which the item was measured, or `None` if the answers were not kept; set
            by `update_baseline`. The key in files is `generation`.
        run_to_run: variation of the value between runs; `None` if there were too few trials.
        measured_by: version and alpha of the audit; `None` in files of earlier versions of pytest-fairness.
        served: names of the models that the server reported, sorted; `None` if the server reported no name.
        file: the probe file, or the file of the Python test, relative to the root. In files of earlier versions, this
            attribute and all following attributes are `None`.
        labels: names and values that identify the item, such as its group.
        limit, tolerance: limit and tolerance of the item when it was measured; `limit` is `None` without a limit.
        contributions: the largest contributions of words, groups or records to the value, at most
            `MOST_CONTRIBUTIONS`; see `Audit.contributions`.
        accepted_by: name of the person who accepted the value; `None` if no name is stored.
        reason: why the value was accepted; `None` if no reason was given.
        answers: hash of the answers from which the item was measured, also if they were not kept; set by
            `update_baseline`.
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
        target: str,
        sampling: Mapping[str, Json],
        fingerprint: Mapping[str, str],
        date: str,
        run_to_run: RunToRun | None = None,
        measured_by: MeasuredBy | None = None,
        served: Sequence[str] = (),
        file: str | None = None,
        labels: Mapping[str, str] | None = None,
        limit: float | None = None,
        tolerance: float | None = None,
        contributions: Mapping[str, float] | None = None,
    ) -> Self:
        """Return the entry of a new measurement; the attributes of the class describe the arguments."""
        return cls(
            value=measurement.value,
            interval=measurement.interval,
            standard_error=measurement.standard_error,
            n=dict(measurement.n),
            missing=dict(measurement.missing),
            target=target,
            sampling=dict(sampling),
            fingerprint=dict(fingerprint),
            tool_version=__version__,
            date=date,
            answer_set=None,
            run_to_run=run_to_run,
            measured_by=measured_by,
            served=list(served) or None,
            file=file,
            labels=None if labels is None else dict(labels),
            limit=limit,
            tolerance=tolerance,
            contributions=_largest(contributions or {}) or None,
        )

    def to_json(self) -> dict[str, Json]:
        """Return the entry as plain JSON, with numbers rounded to 6 significant digits.

        Optional keys whose value is `None` are left out.
        """
        plain = _ENTRY.dump_python(self, by_alias=True)
        unset = {name for name in _OPTIONAL if plain[name] is None}
        return {name: rounded(value) for name, value in plain.items() if name not in unset}

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
        """Return the fields that reports show: value, target, date, and the person and reason of the acceptance."""
        return {name: getattr(self, name) for name in ("value", "target", "date", "accepted_by", "reason")}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Entry:
        """Return the entry from JSON data that `to_json` returned.

        Raises:
            BaselineError: the data are not a valid entry; for example, a number is too large.
        """
        try:
            return _ENTRY.validate_python(data)
        except ValidationError as error:
            raise BaselineError(f"An entry cannot be stored in a baseline: {first_error(error)}.") from error

    def same_measurement(self, other: Entry) -> bool:
        """Return whether both entries have the same JSON, apart from `date`, `accepted_by` and `reason`."""
        ignored: dict[str, Json] = {"date": "", "accepted_by": None, "reason": None}
        return bool(replace(self, **ignored).to_json() == replace(other, **ignored).to_json())


def _largest(contributions: Mapping[str, float]) -> dict[str, float]:
    """Return the `MOST_CONTRIBUTIONS` contributions with the largest absolute values; long names are shortened."""
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


_ENTRY = TypeAdapter(Entry)
_OPTIONAL = [field.name for field in fields(Entry) if field.default is not MISSING]
SUMMARY = TypeAdapter(Summary)


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
    """Return a JSON value with all numbers rounded to 6 significant digits, as in summary files.

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
