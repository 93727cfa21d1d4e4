"""Probes of kind `counterfactual`: decisions about a record, and about the same record with one attribute flipped."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from itertools import islice, product
from typing import Any, ClassVar, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from pytest_fairness.errors import ProbeError
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import counterfactual_records, diagnostics, field_types, prompts
from pytest_fairness.probes.base import ASKED
from pytest_fairness.probes.conversations import StructuredAnswerSettings, StructuredProbe
from pytest_fairness.probes.counterfactual_records import WITH, Fields, Flip, OpenmlRecords, Record, WrittenFlip
from pytest_fairness.probes.diagnostics import Diagnostic, Location, Part, quoted, raise_diagnostics, suggestion
from pytest_fairness.probes.field_types import AuditSettings, Line, ProbeModel, Text, block_text, canonical
from pytest_fairness.probes.recorded_rows import TRIAL, Column, Labels, RecordedRow, Rows
from pytest_fairness.probes.shared_keys import AnswerReading, max_trials
from pytest_fairness.probes.table import Row
from pytest_fairness.records import (
    CALLED,
    NOT_CALLED,
    Answer,
    AnswerFormat,
    Json,
    Judging,
    Message,
    NumberFormat,
    Prompt,
)

OWN, AGAIN, FLIPPED = "own", "again", "flipped"
"""Values of the label `form`: the unchanged record, a repetition of a prompt, and the record with a flip.

An answer about a flipped record, also to a repeated prompt, has the labels `attribute` and `to`.
"""


def _default_choices(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the default choices; `settings` holds `tool` and `path`, which pydantic validates before `choices`."""
    return (CALLED, NOT_CALLED) if settings.get("tool") and not settings.get("path") else ("yes", "no")


# Settings of a counterfactual probe: the possible answers, which are choices or numbers, and the true answers.


class NumberSettings(ProbeModel):
    """Settings of answers that are numbers, such as scores or salaries."""

    min: float = Field(description="Smallest possible number; a smaller number is unreadable.")
    max: float = Field(description="Largest possible number; a larger number is unreadable.")
    unit: Line | None = Field(
        default=None,
        description="Unit of the numbers, such as `points`, `USD` or `EUR per month`. A number with another unit is "
        "unreadable.",
    )
    name: Line | None = Field(
        default=None,
        description="Name of the number in the answers: a key in JSON, and a label in prose (`Salary: 85000`). "
        "Default: common names, such as `score` and `answer`.",
    )
    ranges: Literal["unreadable", "middle"] = Field(
        default="unreadable", description='How "80 to 90" is read: not at all, or as the middle, 85.'
    )
    decimal: Literal[".", ","] | None = Field(
        default=None, description="Decimal mark of the answers. Default: recognised in each number."
    )

    @field_validator("max")
    @classmethod
    def _is_above_min(cls, largest: float, info: ValidationInfo) -> float:
        smallest = info.data.get("min", -math.inf)
        if smallest >= largest:
            raise_diagnostics([Diagnostic((), f"`max` must be larger than `min` ({smallest:g})")])
        return largest

    @property
    def format(self) -> NumberFormat:
        return NumberFormat(self.min, self.max, self.unit or "", self.name or "", self.ranges, self.decimal)


class RecordAnswerSettings(StructuredAnswerSettings):
    """Settings of the valid answers (choices, numbers or texts), and of the way answers are read."""

    choices: tuple[Line, ...] = Field(
        default_factory=_default_choices,
        min_length=2,
        description="The valid answers. Default: yes and no; for a `tool` without `path`, called and not called.",
    )
    positive: Line | None = Field(default=None, description="The favourable choice. Default: the first choice.")
    judge: bool = Field(
        default=False,
        description="Let a judge model (ini fairness_judge) classify the answers; for answers in free text.",
    )
    votes: int = Field(
        default=3, ge=1, le=99, description="Number of votes of the judge model on each answer; must be odd."
    )

    number: NumberSettings | None = Field(
        default=None, description="Answers are numbers, such as scores; in place of `choices`."
    )
    text: bool = Field(
        default=False, description="Answers are free texts, which the audit `score` measures; in place of `choices`."
    )

    @field_validator("choices")
    @classmethod
    def _are_different(cls, choices: tuple[str, ...]) -> tuple[str, ...]:
        raise_diagnostics(field_types.repeats(Part(choices), "choices must differ in more than letter case"))
        return choices

    @field_validator("positive")
    @classmethod
    def _is_a_choice(cls, positive: str | None, info: ValidationInfo) -> str | None:
        choices = info.data.get("choices", (positive,))
        if positive is not None and positive not in choices:
            message = f"{quoted(positive)} is not one of the choices{suggestion(positive, choices)}"
            raise_diagnostics([Diagnostic((), message)])
        return positive

    @field_validator("votes")
    @classmethod
    def _can_decide(cls, votes: int, info: ValidationInfo) -> int:
        if votes % 2 == 0:
            message = "`votes` must be odd, so that two choices cannot get the same number of votes"
            raise_diagnostics([Diagnostic((), message)])
        if not info.data.get("judge", True):
            raise_diagnostics([Diagnostic((), "`votes` needs a judge: add `judge: true`", at_key=True)])
        return votes

    @property
    def is_call(self) -> bool:
        return self.tool is not None and self.path is None

    @model_validator(mode="after")
    def _have_one_form(self) -> Self:
        form = "number" if self.number else "text" if self.text else None
        others = {"choices", "positive", "judge", "votes", *(("text",) if self.number and self.text else ())}
        both = self.model_fields_set & others if form else set()
        found = [
            Diagnostic((name,), f"{form}s have no `{name}`: remove `{name}`, or remove `{form}`", at_key=True)
            for name in sorted(both)
        ]
        if self.is_call:
            message = "the decision is whether `tool` is called: remove `{}`, or add the `path` of an argument"
            own = self.model_fields_set & {"choices", "number", "text", "judge"}
            found += [Diagnostic((name,), message.format(name), at_key=True) for name in sorted(own)]
        elif self.judge and self.path is not None:
            message = "a judge model reads free text: remove `judge`, or remove `path`"
            found.append(Diagnostic(("judge",), message, at_key=True))
        raise_diagnostics(found)
        return self


class TruthSettings(ProbeModel):
    """Settings of the true answers about the records."""

    column: Line = Field(default="truth", description="The records' column with the true answer.")
    positive: Line = Field(description="The value of `column` for which the positive choice is right.")


class CounterfactualProbe(StructuredProbe):
    """Probe of decisions about records.

    For each record, the probe sends requests about the unchanged record and about the record after each flip. With a
    single trial, each of these requests is repeated once for audits that need two answers to each prompt.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["prompt", "records"]},
                {"required": ["messages", "records"]},
                {"required": ["responses"]},
            ]
        }
    )

    units = "records"
    sent_keys: ClassVar[Mapping[str, str]] = {
        "records": "the records: a list of mappings, `{file: …}` or `{openml: …}`"
    }
    no_strata = "answers are compared only with answers about the same record"
    labels_key = "flip"

    kind: Literal["counterfactual"] = Field(
        description="Kind of the probe: compares decisions about records that differ only in a flipped attribute."
    )
    prompt: Text | None = Field(
        default=None,
        description="Prompt about each record; {age} stands for the record's field `age`. If the record lacks the "
        "field, the clause with {age} is left out. A literal brace is written {{ or }}.",
    )
    written_records: counterfactual_records.WrittenRecords | None = Field(
        default=None,
        alias="records",
        description="The records: a list, a file or a data set of OpenML.",
    )
    flip: dict[Line, WrittenFlip] = Field(
        min_length=1,
        description="The attributes that are flipped, each with a pair or a list of values, such as {sex: {Male: "
        "Female}}. `sex+race` flips several attributes at once; `with` names columns that change together with an "
        "attribute.",
    )
    answer: RecordAnswerSettings = Field(
        default_factory=RecordAnswerSettings, description="The valid answers, and how they are recognised."
    )
    truth: TruthSettings | None = Field(
        default=None, description="The true answer about each record, for audits that need it, such as `accuracy`."
    )

    _rows: list[dict[str, str]] | ProbeError | None = PrivateAttr(default=None)

    @classmethod
    def faults(cls, data: Part, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
        answer = data["answer"]
        form = "numbers" if "number" in answer else "texts" if answer["text"].value is True else "choices"
        other = "" if form == "choices" else f", but the answers of this probe are {form}"
        choices = f"choices as answers, `answer: {{choices: …}}`{other}"
        needed = {
            "choices": choices,
            "number": f"numbers as answers, `answer: {{number: {{min: …, max: …}}}}`{other}",
            "texts": f"texts as answers, `answer: {{text: true}}`{other}",
            "decisions": f"choices or numbers as answers{other}",
            "truth": choices if other else "the true answer about each record, `truth: {column: …, positive: …}`",
        }
        present = {"choices": {"choices", "decisions"}, "numbers": {"number", "decisions"}, "texts": {"texts"}}[form]
        if "truth" in data and form == "choices":
            present.add("truth")
        missing = {name: remedy for name, remedy in needed.items() if name not in present}
        columns = [
            "id",
            *counterfactual_records.columns_of({part.name: part.value for part in data["flip"]}),
            "answer",
            "truth",
            "trial",
        ]
        yield from cls._shared_faults(data, audits, columns, missing)
        yield from cls._conversation_faults(data, texts=form == "texts")
        yield from cls._tool_faults(data)
        if not {"prompt", "messages", "responses"} & {*data.names}:
            yield data.fault(
                "`prompt` is missing: write the question about each record, `messages`, or `responses:` with recorded "
                "answers"
            )
        if "truth" in data and form != "choices":
            yield data["truth"].key_fault(
                f"`truth` needs choices as answers, but the answers of this probe are {form}: remove `truth`"
            )

    @field_validator("flip")
    @classmethod
    def _fit_together(cls, written: dict[str, WrittenFlip]) -> dict[str, WrittenFlip]:
        raise_diagnostics(counterfactual_records.flip_faults(Part(written)))
        return written

    @model_validator(mode="after")
    def _fits_its_records(self) -> Self:
        """Check that the keys fit the records; the records of OpenML are not checked before they are fetched."""
        if self.responses is None and not isinstance(self.written_records, OpenmlRecords | None):
            with diagnostics.errors_at("records"):
                raise_diagnostics(self._record_diagnostics())
        return self

    @cached_property
    def reading(self) -> AnswerReading:
        answer = self.answer
        return replace(
            super().reading,
            choices=() if answer.judge or answer.number or answer.text else answer.choices,
            number=None if answer.number is None else answer.number.format,
            judging=self._judging() if answer.judge else None,
        )

    @property
    def _structured_answer(self) -> StructuredAnswerSettings:
        return self.answer

    @property
    def _value_format(self) -> AnswerFormat:
        return "text" if self.answer.number is None else "number"

    @property
    def positive(self) -> str:
        return self.answer.choices[0] if self.answer.positive is None else self.answer.positive

    def is_right(self, answer: Answer) -> bool | None:
        """Return whether a usable answer agrees with the truth about its record; `None` if the truth is unknown."""
        if self.truth is None or "truth" not in answer.labels:
            return None
        return bool(answer.content == self.positive) == (answer.labels["truth"] == self.truth.positive)

    def _judging(self) -> Judging:
        """Return the judge model's task; its question has field names (`[age]`) in place of values."""
        last = len(self.turns) if isinstance(self.measure, str) else self.measure - 1
        opening = [message.content for message in self.messages or ()] or [self._question]
        asked = "\n".join(map(block_text, (*opening, *self.turns[:last])))
        blank = {name: f"[{name}]" for name in prompts.placeholders(asked)}
        return Judging(prompts.fill(asked, blank), self.answer.choices, self.answer.votes)

    @cached_property
    def flips(self) -> dict[str, Flip]:
        return counterfactual_records.flips_of(self.flip)

    @cached_property
    def records(self) -> list[Record]:
        """The records for which prompts are sent: those of the sample with a value that a flip lists."""
        if self.written_records is None or self.responses is not None:
            return []
        for diagnostic in self._record_diagnostics() if isinstance(self.written_records, OpenmlRecords) else ():
            raise ProbeError(f"{self.name}: {diagnostic.message}")
        return [record for record in self._sample if any(flip.value_of(record.fields) for flip in self.flips.values())]

    @cached_property
    def _sample(self) -> list[Record]:
        """All records of the sample; an empty list if the answers are recorded."""
        if self.written_records is None or self.responses is not None:
            return []
        return counterfactual_records.sampled_records(self.written_records, self._all_rows())

    def unlisted_records(self, attribute: str) -> int:
        """Return how many records of the sample have none of the values that the probe lists for an attribute."""
        return sum(self.flips[attribute].value_of(record.fields) is None for record in self._sample)

    def _all_rows(self) -> list[dict[str, str]]:
        """Return the fields of all records; after a failed attempt, raise its error again without another attempt."""
        if self._rows is None and self.written_records is not None:
            try:
                self._rows = counterfactual_records.rows_of(self.written_records)
            except ProbeError as error:
                self._rows = error
        if isinstance(self._rows, ProbeError):
            raise self._rows
        return self._rows or []

    def _record_diagnostics(self) -> Iterator[Diagnostic]:
        rows, written = self._all_rows(), self._conversations()
        found = [*record_diagnostics(rows, conversations=written, flips=self.flips, truth=self.truth)]
        yield from found
        if found:
            return
        records = (
            counterfactual_records.sampled_records(self.written_records, rows)
            if self.written_records is not None
            else []
        )
        for texts in written:
            yield from self._empty_messages(texts, records)
            yield from self._flips_without_effect(texts, records)

    def _conversations(self) -> list[list[Part]]:
        """Return the templates of each conversation, with their locations; a single prompt is one template."""
        turns = [Part(block_text(text), ("turns", i)) for i, text in enumerate(self.turns)]
        if self.messages:
            messages = enumerate(self.messages)
            return [[*(Part(block_text(one.content), ("messages", i, "content")) for i, one in messages), *turns]]
        written = [Part(self.prompt, ("prompt",))]
        written += [Part(wording.prompt, ("variants", name, "prompt")) for name, wording in self.variants.items()]
        return [[Part(block_text(part.text), part.location), *turns] for part in written if part.is_text]

    def _empty_messages(self, texts: list[Part], records: list[Record]) -> Iterator[Diagnostic]:
        for part in texts:
            empty = (record for record in records if not _prompt_with_fields(part.text, record.fields).strip())
            for record in islice(empty, 1):
                missing = ", ".join(name for name in prompts.placeholders(part.text) if name not in record.fields)
                yield part.fault(
                    f"this text is empty for record {record.id}, because the record has no {missing}, and each clause "
                    "with a missing field is left out: add a clause without placeholders"
                )

    def _flips_without_effect(self, texts: list[Part], records: list[Record]) -> Iterator[Diagnostic]:
        def filled(fields: Fields) -> list[str]:
            return [_prompt_with_fields(part.text, fields) for part in texts]

        for record, flip in product(records, self.flips.values()):
            value, own = flip.value_of(record.fields), filled(record.fields)
            others = flip.others(value) if value is not None else ()
            if any(own == filled(flip.apply(record.fields, other)) for other in others):
                names = dict.fromkeys(name for part in texts for name in prompts.placeholders(part.text))
                missing = [name for name in names if name not in record.fields]
                columns = " or ".join(f"{{{part.attribute}}}" for part in flip.columns)
                yield texts[0].fault(
                    f"flipping {flip.attribute!r} changes nothing in the prompt of record {record.id}: the record has "
                    f"no {', '.join(missing)}, so the clause with {columns} is left out. Move {columns} to a separate "
                    "clause"
                )
                return

    def unit_of(self, labels: Mapping[str, str]) -> str:
        return labels["record"]

    def _owner(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """Return the record: equal flips of one record, for items of several attributes, are asked once."""
        return {"record": labels["record"]}

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        """Yield the prompts record by record: the original and the flipped prompts, each with its repetition.

        Several trials repeat each prompt, so that there are no other repetitions.
        """
        count = max_trials(self.trials, trials)
        for labels, fields in (form for record in self.records for form in self._forms(record)):
            if labels["form"] == AGAIN and count > 1:
                continue
            text, opening = _prompt_with_fields(self._question, fields), self._opening(labels)
            yield from (self._prompt(text, labels, trial, opening) for trial in range(count))

    @property
    def _question(self) -> str:
        return block_text(self.messages[-1].content if self.messages else self.prompt)

    @cached_property
    def _fields(self) -> dict[str, Fields]:
        return {record.id: record.fields for record in self.records}

    def _first_template(self, labels: Mapping[str, str]) -> str:
        return self._question

    def _filled_template(self, text: str, labels: Mapping[str, str]) -> str:
        fields = self._fields[labels["record"]]
        if "to" in labels:
            fields = self.flips[labels["attribute"]].apply(fields, labels["to"])
        return _prompt_with_fields(block_text(text), fields)

    def _forms(self, record: Record) -> Iterator[tuple[dict[str, str], Fields]]:
        found = {name: flip.value_of(record.fields) for name, flip in self.flips.items()}
        known = {name: value for name, value in found.items() if value is not None}
        labels = {"record": record.id, **known}
        if self.truth is not None and self.truth.column in record.fields:
            labels["truth"] = record.fields[self.truth.column]
        yield {**labels, "form": OWN}, record.fields
        yield {**labels, "form": AGAIN}, record.fields
        for name, value in known.items():
            for other in self.flips[name].others(value):
                for form in (FLIPPED, AGAIN):
                    flipped = {**labels, "form": form, "attribute": name, "to": other}
                    yield flipped, self.flips[name].apply(record.fields, other)

    def _prompt(self, text: str, labels: Mapping[str, str], trial: int, past: tuple[Message, ...]) -> Prompt:
        # The repeated prompt of a record has a trial number above all others, so that it is a separate request.
        request_trial = trial + MAX_TRIALS * (labels["form"] == AGAIN)
        request = self._request(text, request_trial, self.reading.format, past, self._tools_as_json)
        reading = self.reading
        return Prompt(request, labels, trial, reading.choices, reading.number, reading.selection)

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the inputs of the item with these labels; see `Probe.fingerprint`.

        The inputs include only the flip of the item's attribute. The records are left out, because a comparison uses
        the records that both runs have.
        """
        parts = {
            "answer": canonical(
                "text"
                if self.answer.text
                else self.answer.number.model_dump()
                if self.answer.number is not None
                else [sorted(self.answer.choices), self.positive]
            ),
            "truth": canonical(self.truth and self.truth.model_dump()),
            **self._structure_fingerprint(),
        }
        if self.answer.judge:
            parts["judge"] = str(self.answer.votes)
        parts |= self._source_fingerprint(prompt=self._question)
        if (name := labels.get("attribute")) in self.flips:
            parts[f"flip {name}"] = canonical(self.flips[name].to_json())
        return parts


def _prompt_with_fields(prompt: str, fields: Fields) -> str:
    missing = [name for name in prompts.placeholders(prompt) if name not in fields]
    return prompts.fill(prompts.remove_clauses(prompt, missing), fields)


# Checks that a counterfactual probe fits its records: attributes, values and columns exist.

MAX_SUGGESTED = 20
"""Maximum number of different values of a column whose values a message lists."""

Values = Mapping[str, Collection[str]]
"""For each column of the records, its values."""


def record_diagnostics(
    rows: Sequence[Mapping[str, str]],
    *,
    conversations: Iterable[list[Part]],
    flips: Mapping[str, Flip],
    truth: TruthSettings | None,
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each prompt, flip or truth column that does not fit the records."""
    values: dict[str, set[str]] = {}
    for row in rows:
        for column, value in row.items():
            values.setdefault(column, set()).add(value)
    columns = {part.attribute for flip in flips.values() for part in flip.columns}
    checked: set[Location] = set()
    for texts in conversations:
        for part in texts:
            if part.location not in checked:
                yield from prompts.template_diagnostics(part.text, values, part.location)
                checked.add(part.location)
        used = {name for part in texts for name in prompts.intended_placeholders(part.text, values)}
        which = "this prompt does not use" if len(texts) == 1 else "no message of this conversation uses"
        for name in sorted(columns & values.keys() - used):
            yield texts[0].fault(f"{which} {{{name}}}, which is flipped: write {{{name}}} where its values belong")
    for name, single in ((name, part) for name, flip in flips.items() for part in flip.columns):
        attribute = single.attribute
        place: Location = ("flip", name) if name == attribute else ("flip", name, attribute)
        if attribute not in values:
            yield _unknown_column(Part(None, place), values)
            continue
        if not values[attribute] <= {*single.values}:
            # Records of one group only, each shown as the other one too, are no mistake.
            yield from _unknown_values(place, single.values, attribute, values)
        if attribute in flips and name != attribute:
            continue  # the dependent columns are checked with the attribute's own flip
        location = ("flip", WITH) if len(columns) == 1 else ("flip", WITH, attribute)
        for column, pairs in single.dependents.items():
            dependent = Part(None, (*location, column))
            if column not in values:
                yield _unknown_column(dependent, values)
                continue
            for first, second in pairs.items():
                if first not in values[column] and second not in values[column]:
                    near = suggestion(first, values[column])
                    yield dependent.fault(f"no record has the {column} {quoted(first)} or {quoted(second)}{near}")
    if truth is not None and truth.column not in values:
        near = suggestion(truth.column, values)
        yield Diagnostic(("truth", "column"), f"no record has the field {quoted(truth.column)}{near}")
    elif truth is not None:
        yield from _unknown_values(("truth", "positive"), [truth.positive], truth.column, values)


def _unknown_column(column: Part, values: Values) -> Diagnostic:
    near = suggestion(column.name, values)
    return column.key_fault(f"no record has the field {quoted(column.name)}{near}")


def _unknown_values(location: Location, wanted: Iterable[str], column: str, values: Values) -> Iterator[Diagnostic]:
    known = sorted(values[column])
    for value in wanted:
        if value not in values[column]:
            cure = suggestion(value, known) if len(known) <= MAX_SUGGESTED or diagnostics.nearest(value, known) else ""
            yield Diagnostic(location, f"no record has the {column} {quoted(value)}{cure}")


# Rows of a file of recorded answers.

_NUMBER_OR_NO_DIGIT = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?|[^0-9]*", re.IGNORECASE)
_DECIMAL_POINT = re.compile(r"^[-+]?0?\.|\.(?![0-9]{2}0(?![0-9]))")
"""A point that cannot separate thousands, or does not stand before three digits of which the last is 0 (85.000)."""
_FINAL_ZEROS = re.compile(r"(\.[0-9]+?)0+(?![0-9])")


class RecordRows(Rows[CounterfactualProbe]):
    """Rows that name the record, and the values of the flipped columns.

    The first row of a record has the record's own values. This row and further rows with the same values are unflipped.
    A row with another value of one attribute, or of several attributes that the probe flips at once, is flipped. The
    number of a record's trials is the number of rows of its most frequent flip. If there are more unflipped rows, the
    additional rows are repetitions, which show how much answers differ by chance. Without flipped rows, all rows are
    trials. A row belongs to no group if the probe has none of its values.
    """

    content_column = "answer"

    def rules(self) -> list[Column]:
        values: dict[str, dict[str, None]] = {}
        for part in (part for flip in self.probe.flips.values() for part in flip.columns):
            values.setdefault(part.attribute, {}).update(dict.fromkeys(part.values))
        found = [Column("id", filled=True, is_label=False)]
        found += [Column(name, own, every=True) for name, own in values.items()]
        found += [Column("answer", is_label=False), TRIAL]
        found += [Column("truth", is_label=False)] if self.probe.truth is not None else []
        return found if "prompt" in values else [*found, Column("prompt", optional=True, is_label=False)]

    def other_names(self) -> dict[str, str]:
        truth, written = self.probe.truth, self.responses.columns
        found = {}
        if truth is not None and "truth" not in written and self.has_column(truth.column):
            found["truth"] = truth.column
        if "answer" not in written and not self.has_column("answer") and self.has_column("text"):
            found["answer"] = "text"
        return found

    def recorded(self) -> Iterator[RecordedRow]:
        records: dict[tuple[str, ...], list[tuple[Row, Labels]]] = {}
        unlisted: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows():
            values, unknown = self.values_of(row)
            if self.lacks_value(row):
                continue
            lacking = [rule.name for rule in unknown]
            known = {name: value for name, value in values.items() if name not in lacking}
            for flip in self.probe.flips.values() if unknown else ():
                if names := [part.attribute for part in flip.columns if part.attribute in lacking]:
                    self.leave_out(row, *names, of_group=True, attribute=flip.attribute)
            key = (self.cell(row, "id"), *(known.pop(name) for name in self.responses.strata))
            if known:
                records.setdefault(key, []).append((row, known))
            else:
                unlisted.setdefault(key, []).append(row)
                self.leave_out(row, *lacking, of_group=True)
        number = self.probe.reading.number
        if number is not None and number.decimal is None:
            self._read_as_programs_write([row for rows in records.values() for row, _ in rows])
        for own in records.values():
            yield from self._numbered(self._of_record(own))
        for key, rows in unlisted.items():
            if key not in records:
                # A record that has none of the probe's values counts only among all records.
                labels = {**self._named(rows[0]), "form": OWN}
                yield from (RecordedRow(labels, trial, self._answer(row)) for trial, row in enumerate(rows))
        self.finish([])

    def _answer(self, row: Row) -> Json:
        return row.fields.get(self.columns["answer"])

    def _named(self, row: Row) -> Labels:
        return {"record": self.cell(row, "id"), **{name: self.cell(row, name) for name in self.responses.strata}}

    def _read_as_programs_write(self, rows: Sequence[Row]) -> None:
        """Remove final zeros of decimals, such as in 85.000, from the answers if a program wrote the column.

        The three decimals could otherwise be thousands. A program wrote the column if it holds numbers without
        separators of thousands and texts without digits, and at least one number has a decimal point for certain.
        """
        written = {self.cell(row, "answer") for row in rows}
        if all(map(_NUMBER_OR_NO_DIGIT.fullmatch, written)) and any(map(_DECIMAL_POINT.search, written)):
            for row in rows:
                if "." in (text := self.cell(row, "answer")):
                    row.fields[self.columns["answer"]] = _FINAL_ZEROS.sub(r"\1", text)

    def _of_record(self, rows: Sequence[tuple[Row, Labels]]) -> list[tuple[Row, Labels]]:
        """Return the rows of one record with their labels; a row that belongs to several flips occurs several times."""
        first, own = rows[0]
        known = {name: value for name, flip in self.probe.flips.items() if (value := flip.value_of(own)) is not None}
        truth = self.cell(first, "truth")
        named = self._named(first)
        record = named.pop("record")
        labels = {"record": record, **known, **({"truth": truth} if truth else {}), **named}
        found: list[tuple[Row, Labels]] = []
        for row, values in rows:
            differing = {name for name in own if values.get(name) != own[name]}
            flipped = {
                name: value
                for name in known
                if differing <= {part.attribute for part in self.probe.flips[name].columns}
                and (value := self.probe.flips[name].value_of(values)) is not None
            }
            if self.cell(row, "truth") != truth:
                self.error(
                    row,
                    f"record {record} has another value of {self.columns['truth']!r} in line {first.line}. Write the "
                    "same value in all rows of a record",
                )
            elif values == own:
                found.append((row, {**labels, "form": OWN}))
            elif values.keys() != own.keys() or not flipped:
                self.error(
                    row,
                    f"record {record} differs from line {first.line}, but not by one flip. A flip changes one "
                    "attribute, or several that the probe flips at once (`sex+race`), to values of the probe: correct "
                    "the row",
                )
            else:
                form = {**labels, "form": FLIPPED}
                found += [(row, {**form, "attribute": name, "to": value}) for name, value in flipped.items()]
        return found

    def _numbered(self, found: Sequence[tuple[Row, Labels]]) -> Iterator[RecordedRow]:
        rows = Counter(tuple(labels.items()) for _, labels in found)
        flipped = [count for labels, count in rows.items() if ("form", FLIPPED) in labels]
        # If a record has more unflipped than flipped rows, the additional rows are repetitions of the request.
        trials = max(flipped, default=max(rows.values(), default=0))
        for row, labels in found:
            trial = self.trial(row, labels, f"record {labels['record']}")
            if trial is None:
                continue
            if labels["form"] == OWN and trial >= trials:
                labels, trial = {**labels, "form": AGAIN}, trial - trials
            asked = self.cell(row, "prompt") if "prompt" in self.table and not self.table["prompt"].is_label else ""
            digest = {ASKED: sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]} if asked else {}
            yield RecordedRow(labels | digest, trial, self._answer(row))
