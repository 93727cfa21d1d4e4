"""`kind: counterfactual`: the same record, one attribute flipped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from pytest_fairness.errors import ProbeError
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import clauses, template
from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.base import Line, Probe, Text, texts
from pytest_fairness.probes.counterfactual import validation
from pytest_fairness.probes.counterfactual.flips import Flip, WrittenFlip, flips_of
from pytest_fairness.probes.counterfactual.records import (
    Fields,
    OpenmlRecords,
    Record,
    Written,
    columns_of,
    drawn,
    rows_of,
)
from pytest_fairness.probes.loading.diagnostics import Fault, Location
from pytest_fairness.records import Answer, Json, Judging, Prompt, Request

OWN, AGAIN, FLIPPED = "own", "again", "flipped"
"""The forms in which a record is asked about: as it is, as it is once more, and with an attribute flipped."""


class ChoiceSettings(ProbeModel):
    """How answers are read."""

    choices: tuple[Line, ...] = Field(default=("yes", "no"), min_length=2, description="What may be answered.")
    positive: Line | None = Field(
        default=None, description="The choice that is to someone's advantage. Default: the first one."
    )
    judge: bool = Field(
        default=False, description="Have a judge model (fairness_judge in the ini) read the answers, for free text."
    )
    votes: int = Field(default=3, ge=1, le=99, description="How often the judge is asked about each answer; odd.")


class TruthSettings(ProbeModel):
    """What is true of a record."""

    column: Line = Field(default="truth", description="The column that says so.")
    positive: Line = Field(description="Its value where the positive choice is right.")


class CounterfactualProbe(Probe):
    """Records put into words, each asked about as it is, once more, and with an attribute flipped."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["prompt", "records"]}, {"required": ["responses"]}]}
    )

    kind: Literal["counterfactual"] = Field(description="The same record, one attribute flipped.")
    prompt: Text | None = Field(
        default=None,
        description="What is asked about each record: {age} stands for its field `age`. A clause whose field is "
        "missing is left out. A brace that is meant as such is written {{ or }}.",
    )
    written_records: Written | None = Field(
        default=None, alias="records", description="What is asked about, as a list, in a file or from OpenML."
    )
    flip: dict[Line, WrittenFlip] = Field(
        min_length=1,
        description="The attributes that are flipped, each with a pair of values or a list of them; "
        "`with` says what is changed along with one.",
    )
    answer: ChoiceSettings = Field(default_factory=ChoiceSettings, description="How answers are read.")
    truth: TruthSettings | None = Field(
        default=None, description="What is true of a record, for `equalized_odds` and `accuracy`."
    )

    _rows: list[dict[str, str]] | ProbeError | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fits_its_records(self, info: ValidationInfo) -> CounterfactualProbe:
        """Look at records that are at hand; those of a data set are fetched when they are asked about."""
        if self.responses is None and self.written_records is not None:
            sound = all(isinstance(value, str) for flip in self.flips.values() for value in flip.values)
            if isinstance(self.written_records, OpenmlRecords) or not sound:
                return self
            try:
                found = [*self._record_faults()]
            except ProbeError as error:
                found = [Fault(("records",), str(error).split("\n")[0])]
            if found:
                raise ValidationError.from_exception_data("probe", [_as_error(fault) for fault in found])
        return self

    @property
    def choices(self) -> tuple[str, ...]:
        """What may be answered; nothing is read by rule where a judge reads."""
        return () if self.answer.judge else self.answer.choices

    @property
    def positive(self) -> str:
        """The choice that is to someone's advantage."""
        return self.answer.choices[0] if self.answer.positive is None else self.answer.positive

    def is_right(self, answer: Answer) -> bool | None:
        """Return whether an answer is the true one; `None` if the truth about the record is not known."""
        if self.truth is None or "truth" not in answer.labels:
            return None
        return bool(answer.content == self.positive) == (answer.labels["truth"] == self.truth.positive)

    @property
    def judging(self) -> Judging | None:
        """How a judge model reads the answers, if one does; it sees the question without what is known of anybody."""
        if not self.answer.judge:
            return None
        prompt = next(iter(texts(self.prompt)), "")
        blank = {name: f"[{name}]" for name in template.placeholders(prompt)}
        return Judging(template.fill(prompt, blank), self.answer.choices, self.answer.votes)

    @cached_property
    def flips(self) -> dict[str, Flip]:
        """The flips by attribute."""
        return flips_of(self.flip)

    @cached_property
    def records(self) -> list[Record]:
        """The records that are asked about; none where a file of answers says it.

        Raises:
            ProbeError: they cannot be fetched, or do not fit the probe.
        """
        if self.written_records is None or self.responses is not None:
            return []
        for fault in self._record_faults() if isinstance(self.written_records, OpenmlRecords) else ():
            raise ProbeError(f"{self.name}: {fault.message}")
        found = drawn(self.written_records, self._all_rows())
        return [record for record in found if any(self._value(record, flip) for flip in self.flips.values())]

    def _all_rows(self) -> list[dict[str, str]]:
        """Every record there is; tried once, as what cannot be fetched takes its time every time."""
        if self._rows is None and self.written_records is not None:
            try:
                self._rows = rows_of(self.written_records)
            except ProbeError as error:
                self._rows = error
        if isinstance(self._rows, ProbeError):
            raise self._rows
        return self._rows or []

    def _record_faults(self) -> Iterator[Fault]:
        assert self.written_records is not None  # noqa: S101 - callers have seen to it
        rows = self._all_rows()
        found = [
            *validation.against(
                columns_of(rows), rows, prompt=self.prompt, variants=self.variants, flips=self.flips, truth=self.truth
            )
        ]
        yield from found
        if found:
            return
        yield from self._flips_that_change_nothing(("prompt",), rows)
        for name, variant in self.variants.items():
            if isinstance(variant.prompt, str):
                yield from self.variant(name)._flips_that_change_nothing(("variants", name, "prompt"), rows)

    def _flips_that_change_nothing(self, place: Location, rows: list[dict[str, str]]) -> Iterator[Fault]:
        for record in drawn(self.written_records, rows) if self.written_records is not None else ():
            for flip in self.flips.values():
                value = self._value(record, flip)
                if value is not None and any(
                    self._text(record.fields) == self._text(flip.apply(record.fields, other))
                    for other in flip.others(value)
                ):
                    missing = [name for name in template.placeholders(self.prompt or "") if name not in record.fields]
                    yield Fault(
                        place,
                        f"flipping {flip.attribute!r} changes nothing in the prompt of record {record.id}: without "
                        f"{', '.join(missing)} its clause is left out. Give {{{flip.attribute}}} a clause of its own",
                    )
                    return

    def _value(self, record: Record, flip: Flip) -> str | None:
        """The record's value of an attribute, if it is one of those that are flipped."""
        value = record.fields.get(flip.attribute)
        return value if value in flip.values else None

    def _text(self, fields: Fields) -> str:
        (prompt,) = texts(self.prompt)
        missing = [name for name in template.placeholders(prompt) if name not in fields]
        return template.fill(clauses.without(prompt, missing), fields)

    def prompts(self, trials: int | None = None) -> list[Prompt]:
        """Record by record: as it is, as it is once more, and flipped."""
        if self.responses is not None:
            return []
        count = self.draws(trials)
        return [
            self._question(record, labels, fields, trial)
            for record in self.records
            for labels, fields in self._forms(record)
            for trial in range(count)
        ]

    def _forms(self, record: Record) -> Iterator[tuple[dict[str, str], Fields]]:
        """The labels of everything that is asked about a record, and its fields then."""
        known = {name: value for name, flip in self.flips.items() if (value := self._value(record, flip)) is not None}
        labels = {"record": record.id, **known}
        if self.truth is not None and self.truth.column in record.fields:
            labels["truth"] = record.fields[self.truth.column]
        yield {**labels, "form": OWN}, record.fields
        yield {**labels, "form": AGAIN}, record.fields
        for name, value in known.items():
            for other in self.flips[name].others(value):
                flipped = {**labels, "form": FLIPPED, "attribute": name, "to": other}
                yield flipped, self.flips[name].apply(record.fields, other)

    def _question(self, record: Record, labels: Mapping[str, str], fields: Fields, trial: int) -> Prompt:
        # A record that is asked about again is a further draw, beyond all those that a probe can ask for.
        draw = trial + MAX_TRIALS * (labels["form"] == AGAIN)
        system = next(iter(texts(self.system)), None)
        request = Request(self._text(fields), system, self.sampling, draw).with_own_seed()
        return Prompt(request, labels, trial, self.choices)

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Of the flips that of the item; of the records nothing, as they are compared one by one."""
        parts = {
            "answer": _canonical([sorted(self.answer.choices), self.positive]),
            "truth": _canonical(self.truth and self.truth.model_dump()),
        }
        if self.answer.judge:
            parts["judge"] = str(self.answer.votes)
        if self.responses is None:
            parts |= {"prompt": next(iter(texts(self.prompt)), ""), "system": next(iter(texts(self.system)), "")}
        else:
            parts["columns"] = _canonical(self.responses.columns)
        if (name := labels.get("attribute")) in self.flips:
            parts[f"flip {name}"] = _canonical(self.flips[name].to_json())
        return parts

    @classmethod
    def faults(cls, data: Mapping[str, Json]) -> Iterator[Fault]:
        """Names and values that do not fit together."""
        yield from super().faults(data)
        yield from validation.find(data)


def _as_error(fault: Fault) -> InitErrorDetails:
    message = {"message": fault.message}
    return {"type": PydanticCustomError("records", "{message}", message), "loc": fault.location, "input": None}


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
