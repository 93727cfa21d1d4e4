"""Probes of kind `counterfactual`: decisions about a record, and about the same record with one attribute flipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from pytest_fairness.errors import ProbeError
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes.answer_reading import AnswerReading
from pytest_fairness.probes.checks import canonical
from pytest_fairness.probes.counterfactual import record_checks
from pytest_fairness.probes.counterfactual.flips import Flip, WrittenFlip, check_flips, flips_of
from pytest_fairness.probes.counterfactual.record_checks import Located
from pytest_fairness.probes.counterfactual.records import (
    Fields,
    OpenmlRecords,
    Record,
    WrittenRecords,
    rows_of,
    sampled_records,
)
from pytest_fairness.probes.counterfactual.settings import RecordAnswerSettings, TruthSettings
from pytest_fairness.probes.diagnostics import Diagnostic, Location, errors_at, raise_diagnostics
from pytest_fairness.probes.field_types import Line, Text, block_text
from pytest_fairness.probes.keys.interim_stages import max_trials
from pytest_fairness.probes.prompts import clauses, template
from pytest_fairness.probes.structured import StructuredAnswerSettings, StructuredProbe
from pytest_fairness.records import Answer, AnswerFormat, Judging, Message, Prompt

OWN, AGAIN, FLIPPED = "own", "again", "flipped"
"""Values of the label `form`: the unchanged record, a repetition of a prompt, and the record with a flip.

An answer about a flipped record, also to a repeated prompt, has the labels `attribute` and `to`.
"""


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

    kind: Literal["counterfactual"] = Field(
        description="Kind of the probe: compares decisions about records that differ only in a flipped attribute."
    )
    prompt: Text | None = Field(
        default=None,
        description="Prompt about each record; {age} stands for the record's field `age`. If the record lacks the "
        "field, the clause with {age} is left out. A literal brace is written {{ or }}.",
    )
    written_records: WrittenRecords | None = Field(
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

    @field_validator("flip")
    @classmethod
    def _fit_together(cls, written: dict[str, WrittenFlip]) -> dict[str, WrittenFlip]:
        return check_flips(written)

    @model_validator(mode="after")
    def _fits_its_records(self) -> Self:
        """Check that the keys fit the records; the records of OpenML are not checked before they are fetched."""
        if self.responses is None and not isinstance(self.written_records, OpenmlRecords | None):
            with errors_at("records"):
                raise_diagnostics(self._record_diagnostics())
        return self

    @cached_property
    def reading(self) -> AnswerReading:
        """Form of the answers (choices, numbers or texts), the part of an answer that is read, and the judge's task."""
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
        """The favourable choice."""
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
        blank = {name: f"[{name}]" for name in template.placeholders(asked)}
        return Judging(template.fill(asked, blank), self.answer.choices, self.answer.votes)

    @cached_property
    def flips(self) -> dict[str, Flip]:
        """The flips by attribute."""
        return flips_of(self.flip)

    @cached_property
    def records(self) -> list[Record]:
        """The records for which prompts are sent: those of the sample with a value that a flip lists.

        The list is empty if the answers are recorded.

        Raises:
            ProbeError: the records cannot be fetched, or do not fit the probe.
        """
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
        return sampled_records(self.written_records, self._all_rows())

    def unlisted_records(self, attribute: str) -> int:
        """Return how many records of the sample have none of the values that the probe lists for the attribute."""
        return sum(self.flips[attribute].value_of(record.fields) is None for record in self._sample)

    def _all_rows(self) -> list[dict[str, str]]:
        """Return the fields of all records; after a failed attempt, raise its error again without another attempt."""
        if self._rows is None and self.written_records is not None:
            try:
                self._rows = rows_of(self.written_records)
            except ProbeError as error:
                self._rows = error
        if isinstance(self._rows, ProbeError):
            raise self._rows
        return self._rows or []

    def _record_diagnostics(self) -> Iterator[Diagnostic]:
        rows, written = self._all_rows(), self._conversations()
        found = [*record_checks.diagnostics(rows, conversations=written, flips=self.flips, truth=self.truth)]
        yield from found
        if found:
            return
        records = sampled_records(self.written_records, rows) if self.written_records is not None else []
        for texts in written:
            yield from self._empty_messages(texts, records)
            yield from self._flips_without_effect(texts, records)

    def _conversations(self) -> list[Located]:
        """Return the templates and their locations, for the probe's conversation and for each variant's prompt."""
        turns: Located = [(("turns", i), text) for i, text in enumerate(self.turns)]
        messages: Located = [(("messages", i, "content"), one.content) for i, one in enumerate(self.messages or ())]
        variants = [(("variants", name, "prompt"), wording.prompt) for name, wording in self.variants.items()]
        prompts: list[tuple[Location, object]] = [(("prompt",), self.prompt), *variants]
        found = [messages] if messages else [[(place, text)] for place, text in prompts if isinstance(text, str)]
        return [[(place, block_text(text)) for place, text in (*first, *turns)] for first in found]

    def _empty_messages(self, texts: Located, records: list[Record]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for the first record for which a message has no text."""
        for location, text in texts:
            for record in records:
                if not _prompt_with_fields(text, record.fields).strip():
                    missing = ", ".join(name for name in template.placeholders(text) if name not in record.fields)
                    message = (
                        f"this text is empty for record {record.id}, because the record has no {missing}, and each "
                        "clause with a missing field is left out: add a clause without placeholders"
                    )
                    yield Diagnostic(location, message)
                    return

    def _flips_without_effect(self, texts: Located, records: list[Record]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for the first record whose conversation a flip does not change."""

        def filled(fields: Fields) -> list[str]:
            return [_prompt_with_fields(text, fields) for _, text in texts]

        for record in records:
            for flip in self.flips.values():
                value = flip.value_of(record.fields)
                others = flip.others(value) if value is not None else ()
                own = filled(record.fields)
                if any(own == filled(flip.apply(record.fields, other)) for other in others):
                    names = dict.fromkeys(name for _, text in texts for name in template.placeholders(text))
                    missing = [name for name in names if name not in record.fields]
                    columns = " or ".join(f"{{{part.attribute}}}" for part in flip.columns)
                    yield Diagnostic(
                        texts[0][0],
                        f"flipping {flip.attribute!r} changes nothing in the prompt of record {record.id}: the record "
                        f"has no {', '.join(missing)}, so the clause with {columns} is left out. Move {columns} to a "
                        "separate clause",
                    )
                    return

    def unit_of(self, labels: Mapping[str, str]) -> str:
        """Return the id of the record."""
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
        """The template of the first prompt about each record."""
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
        """Yield the labels and the record's fields for each prompt about a record."""
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
        if self.responses is None:
            parts |= {"prompt": self._question, "system": block_text(self.system)}
            parts |= self._conversation_fingerprint()
        else:
            parts["columns"] = canonical(self.responses.columns)
        if (name := labels.get("attribute")) in self.flips:
            parts[f"flip {name}"] = canonical(self.flips[name].to_json())
        return parts


def _prompt_with_fields(prompt: str, fields: Fields) -> str:
    """Return a template filled with the fields of a record, without the clauses whose fields are missing."""
    missing = [name for name in template.placeholders(prompt) if name not in fields]
    return template.fill(clauses.remove_clauses(prompt, missing), fields)
