"""Readers of files with recorded answers, one for each kind of probe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import ClassVar

from pytest_fairness.answers import recorded
from pytest_fairness.answers.recorded import Reader, TextReader
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import field_types
from pytest_fairness.probes.base import ASKED
from pytest_fairness.probes.coreference import PRONOUNS, VERSIONS, CoreferenceProbe
from pytest_fairness.probes.counterfactual import AGAIN, FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.probes.diagnostics import raise_file_errors, suggestion
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.probes.multiple_choice import MultipleChoiceProbe
from pytest_fairness.probes.recommendation import NEUTRAL, RecommendationProbe
from pytest_fairness.probes.recommendation_prompts import Entity
from pytest_fairness.probes.stereotype import StereotypeProbe
from pytest_fairness.probes.table import Row, as_line
from pytest_fairness.records import Answer, Json

# Reader of the recorded answers of a coreference probe, one answer per row.

OCCUPATIONS = ("masculine", "feminine")


class CoreferenceReader(Reader[CoreferenceProbe]):
    """Reader of a coreference probe's answer file, which has one answer per row.

    A row names the sentence (a name under the probe's key `items`), the occupation that the sentence mentions first,
    and the pronoun. For WinoBias sentences, a row names the line and the version (`pro` or `anti`) instead. If the
    probe lists no sentences, a row also names the sentence's two occupations (`masculine` and `feminine`). Rows of
    sentences that are not in the probe are left out. Without a column `trial`, the answers to a prompt get trial
    numbers in the file's order.
    """

    @cached_property
    def _items(self) -> dict[str, str]:
        return {field_types.folded(name): name for name in self.probe.sentences}

    def answers(self) -> list[Answer]:
        found: list[tuple[Json, dict[str, str], int]] = []
        for row in self.rows():
            labels = self._labels(row)
            if labels is None:
                continue
            where = (value for name, value in labels.items() if name != "wording")
            trial = self.trial_numbers.number(row, tuple(labels.values()), where)
            if trial is not None:
                found.append((row.fields.get(self.columns["text"]), labels, trial))
        self.trial_numbers.raise_errors()
        self._require_items({labels.get("item") or labels["line"] for _, labels, _ in found})
        return [recorded.answer_field(written, labels, trial, self.probe) for written, labels, trial in found]

    def _columns(self) -> dict[str, str]:
        if self.probe.is_winobias:
            return self._column_names(["line", "version", "text"], ["trial"])
        names = ["first", "pronoun", "text"]
        item = self.responses.columns.get("item", "item")
        names += ["item"] if self._items or self.has_column("item") or self.has_column(item) else []
        names += [] if self._items else OCCUPATIONS
        return self._column_names(names, ["trial"])

    def _labels(self, row: Row) -> dict[str, str] | None:
        """Return the labels of a row; `None` if the row has an error, or its sentence is not in the probe."""
        written = {name: as_line(row.fields.get(column)) for name, column in self.columns.items() if name != "text"}
        if self.probe.is_winobias:
            number = recorded.whole_number(written["line"])
            version = self._one_of(row, self.columns["version"], written["version"], VERSIONS)
            if number is None:
                self.trial_numbers.add_error(
                    row, f"{self.columns['line']!r} must be the running number of a WinoBias sentence"
                )
            if number is None or version is None:
                return None
            if str(number) not in self.probe.pairs:
                self._leave_out(row, [self.columns["line"]], of_group=False)
                return None
            return self.probe.labels_of_line(str(number), version)
        names, item = self._item(row, written)
        if names is None:
            return None
        first = self._one_of(row, self.columns["first"], written["first"], names)
        pronoun = self._one_of(row, self.columns["pronoun"], written["pronoun"], PRONOUNS)
        if first is None or pronoun is None:
            return None
        if self._items:
            return self.probe.labels(item, first, pronoun)
        return {"item": item, "first": first, "pronoun": pronoun, **dict(zip(OCCUPATIONS, names, strict=True))}

    def _item(self, row: Row, written: Mapping[str, str]) -> tuple[tuple[str, str] | None, str]:
        """Return two occupations (`None` for a row with an error or of another probe) and the sentence's name."""
        if self._items:
            item = self._items.get(field_types.folded(written["item"]))
            if item is None:
                self._leave_out(row, [self.columns["item"]], of_group=False)
                return None, ""
            asked = self.probe.sentences[item]
            return (asked.masculine, asked.feminine), item
        names = written["masculine"], written["feminine"]
        if not all(names) or field_types.folded(names[0]) == field_types.folded(names[1]):
            wanted = " and ".join(repr(self.columns[name]) for name in OCCUPATIONS)
            self.trial_numbers.add_error(row, f"{wanted} must name two different occupations")
            return None, ""
        return names, written.get("item") or "/".join(names)

    def _one_of(self, row: Row, column: str, written: str, choices: tuple[str, ...]) -> str | None:
        found = next((choice for choice in choices if field_types.folded(choice) == field_types.folded(written)), None)
        if found is None:
            self.trial_numbers.add_error(
                row, f"{column!r} must be {' or '.join(map(repr, choices))}, not {written[:60]!r}"
            )
        return found

    def _require_items(self, existing: set[str]) -> None:
        names = [*self.probe.sentences] if self._items else [*self.probe.pairs]
        lacking = [name for name in names if name not in existing]
        what = "line" if self.probe.is_winobias else "item"
        remedy = f"Add its answers, or remove the {what} from the probe"
        raise_file_errors([f"{self.name}:1: no row has the {what} {name!r}. {remedy}" for name in lacking], self.name)
        if not existing:
            raise ProbeError(
                f"{self.name}:1: no row has an item of this probe. Check the file under `responses`, and its columns"
            )


# Reader of the recorded answers of a counterfactual probe, one answer per row.

_NUMBER_OR_NO_DIGIT = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?|[^0-9]*", re.IGNORECASE)
_DECIMAL_POINT = re.compile(r"^[-+]?0?\.|\.(?![0-9]{2}0(?![0-9]))")
"""A point that cannot separate thousands, or does not stand before three digits of which the last is 0 (85.000)."""
_FINAL_ZEROS = re.compile(r"(\.[0-9]+?)0+(?![0-9])")
Values = dict[str, str]
"""Values of the flipped columns in a row, by column."""


class CounterfactualReader(Reader[CounterfactualProbe]):
    """Reader of a counterfactual probe's answer file, which has one answer per row.

    The first row of a record has the record's own values. This row and further rows with the same values are unflipped.
    A row with another value of one attribute, or of several attributes that the probe flips at once, is flipped. The
    number of a record's trials is the number of rows of its most frequent flip. If there are more unflipped rows, the
    additional rows are repetitions, which show how much answers differ by chance. Without flipped rows, all rows are
    trials. A row belongs to no group if the probe has none of its values.
    """

    @cached_property
    def _values(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for part in (part for flip in self.probe.flips.values() for part in flip.columns):
            found.setdefault(part.attribute, {}).update({field_types.folded(value): value for value in part.values})
        return found

    def answers(self) -> list[Answer]:
        by_record: dict[tuple[str, ...], list[tuple[Row, Values]]] = {}
        unlisted: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows():
            record = _cell(row, self.columns["id"])
            if not record:
                self.trial_numbers.add_error(row, f"this row has no {self.columns['id']!r}; each row needs a value")
                continue
            values = self._values_of(row)
            name = (record, *self._strata(row).values())
            if values:
                by_record.setdefault(name, []).append((row, values))
            else:
                unlisted.setdefault(name, []).append(row)
                self._leave_out(row, [self.columns[name] for name in self._values], of_group=True)
        if self.probe.reading.number is not None and self.probe.reading.number.decimal is None:
            self._read_as_programs_write([row for rows in by_record.values() for row, _ in rows])
        found = [answer for name, own in by_record.items() for answer in self._answers_about_record(name[0], own)]
        for name, rows in unlisted.items():
            if name not in by_record:
                found += self._answers_of_no_group(name[0], rows)
        self.trial_numbers.raise_errors()
        self._require_values(self._values)
        return found

    def _read_as_programs_write(self, rows: Sequence[Row]) -> None:
        """Remove final zeros of decimals, such as in 85.000, from the answers if a program wrote the column.

        The three decimals could otherwise be thousands. A program wrote the column if it holds numbers without
        separators of thousands and texts without digits, and at least one number has a decimal point for certain.
        """
        column = self.columns["answer"]
        written = {_cell(row, column) for row in rows}
        if all(map(_NUMBER_OR_NO_DIGIT.fullmatch, written)) and any(map(_DECIMAL_POINT.search, written)):
            for row in rows:
                if "." in (text := _cell(row, column)):
                    row.fields[column] = _FINAL_ZEROS.sub(r"\1", text)

    def _columns(self) -> dict[str, str]:
        truth, written = self.probe.truth, self.responses.columns
        names = ["id", *self._values, "answer", *(() if truth is None else ("truth",))]
        columns = self._column_names(names, ["trial", *({"prompt"} - {*names})])
        if truth is not None and "truth" not in written and self.has_column(truth.column):
            columns["truth"] = truth.column
        if "answer" not in written and not self.has_column("answer") and self.has_column("text"):
            columns["answer"] = "text"
        return columns

    def _values_of(self, row: Row) -> Values:
        found = {}
        for name, values in self._values.items():
            value = values.get(field_types.folded(_cell(row, self.columns[name])))
            if value is not None:
                found[name] = value
        return found

    def _answers_about_record(self, record: str, rows: list[tuple[Row, Values]]) -> list[Answer]:
        first, own = rows[0]
        known = {name: value for name, flip in self.probe.flips.items() if (value := flip.value_of(own)) is not None}
        truth = self._truth(first)
        labels = {"record": record, **known, **({"truth": truth} if truth else {}), **self._strata(first)}
        found: list[tuple[Row, dict[str, str]]] = []
        for row, values in rows:
            if self._truth(row) != truth:
                self.trial_numbers.add_error(
                    row,
                    f"record {record} has another value of {self.columns['truth']!r} in line {first.line}. Write the "
                    "same value in all rows of a record",
                )
            elif values == own:
                found.append((row, {**labels, "form": OWN}))
            elif values.keys() != own.keys() or not (flipped := self._new_values_by_flip(own, known, values)):
                self.trial_numbers.add_error(
                    row,
                    f"record {record} differs from line {first.line}, but not by one flip. A flip changes one "
                    "attribute, or several that the probe flips at once (`sex+race`), to values of the probe: correct "
                    "the row",
                )
            else:
                found += [
                    (row, {**labels, "form": FLIPPED, "attribute": name, "to": value})
                    for name, value in flipped.items()
                ]
        return self._numbered_answers(found)

    def _answers_of_no_group(self, record: str, rows: list[Row]) -> list[Answer]:
        """Return the answers about a record that has none of the probe's values; they count only among all records."""
        labels = {"record": record, **self._strata(rows[0]), "form": OWN}
        return [
            recorded.answer_field(row.fields.get(self.columns["answer"]), labels, trial, self.probe)
            for trial, row in enumerate(rows)
        ]

    def _new_values_by_flip(self, own: Values, known: Iterable[str], values: Values) -> dict[str, str]:
        differing = {name for name in own if values.get(name) != own[name]}
        return {
            name: value
            for name in known
            if differing <= {part.attribute for part in self.probe.flips[name].columns}
            if (value := self.probe.flips[name].value_of(values)) is not None
        }

    def _numbered_answers(self, found: list[tuple[Row, dict[str, str]]]) -> list[Answer]:
        rows = Counter(tuple(labels.items()) for _, labels in found)
        flipped = [count for labels, count in rows.items() if ("form", FLIPPED) in labels]
        # If a record has more unflipped than flipped rows, the additional rows are repetitions of the request.
        trials = max(flipped, default=max(rows.values(), default=0))
        answers = []
        for row, labels in found:
            trial = self.trial_numbers.number(row, tuple(labels.items()), [f"record {labels['record']}"])
            if trial is None:
                continue
            if labels["form"] == OWN and trial >= trials:
                labels, trial = {**labels, "form": AGAIN}, trial - trials
            written = row.fields.get(self.columns["answer"])
            answers.append(recorded.answer_field(written, labels | self._asked(row), trial, self.probe))
        return answers

    def _asked(self, row: Row) -> dict[str, str]:
        """Return the label with the digest of the row's prompt; empty if the file has no column with prompts."""
        asked = _cell(row, self.columns["prompt"]) if self.columns.get("prompt") not in (None, *self._values) else ""
        return {ASKED: sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]} if asked else {}

    def _strata(self, row: Row) -> dict[str, str]:
        return {name: _cell(row, name) for name in self.responses.strata}

    def _truth(self, row: Row) -> str:
        return _cell(row, self.columns["truth"]) if "truth" in self.columns else ""


def _cell(row: Row, column: str) -> str:
    value = row.fields.get(column)
    return "" if value is None else recorded.text_field(value).strip()


# Reader of the recorded answers of a generation probe, one text per row.


class GenerationReader(TextReader[GenerationProbe]):
    """Reader of a generation probe's answer file, which has one text per row.

    A row is left out if its value of an axis is not in the probe; letter case and blanks around a value do not matter.
    Without a column `trial`, the answers with the same labels get trial numbers in the file's order. In JSON Lines, a
    `text` that is `null` is a missing answer.
    """

    duplicate_trial_remedy: ClassVar[str] = "; if a column distinguishes the two rows, name it under `responses.strata`"

    @property
    def group_labels(self) -> tuple[str, ...]:
        return tuple(self.probe.axes)

    @cached_property
    def _values(self) -> dict[str, dict[str, str]]:
        return {
            name: {field_types.folded(value): value for value in axis.values} for name, axis in self.probe.axes.items()
        }

    def answers(self) -> list[Answer]:
        self._require_values(self._values)
        return self._texts()

    def _columns(self) -> dict[str, str]:
        needed = [*self.probe.axes, *(("prompt",) if "prompt" in self.responses.columns else ())]
        strata = {stratum: stratum for stratum in self.responses.strata}
        return self._column_names(needed) | strata | self._column_names(["text"], ["trial"])

    def _labels(self, row: Row) -> dict[str, str] | None:
        labels, unknown = {}, []
        for name, column in self.columns.items():
            if name in ("text", "trial"):
                continue
            written = recorded.text_field(row.fields[column])
            if name in self._values:
                value = self._values[name].get(field_types.folded(written))
                if value is None:
                    unknown.append(column)
                    continue
                written = value
            labels[name] = written.strip()
        if unknown:
            self._leave_out(row, unknown, of_group=True)
            return None
        return labels


# Reader of the recorded answers of a multiple-choice probe, one answer per row.


class MultipleChoiceReader(TextReader[MultipleChoiceProbe]):
    """Reader of a multiple-choice probe's answer file, which has one text per row.

    A row names the question or, for BBQ's questions, the category and `example_id`. Rows of questions that the probe
    does not have are left out. Letters in the answers mean the options in the probe's order; see the key `shuffle`.
    """

    @cached_property
    def _labels_by_question(self) -> dict[str, dict[str, str]]:
        return {
            field_types.folded(question.name): self.probe.labels(question) for question in self.probe.questions.values()
        }

    def answers(self) -> list[Answer]:
        answers = self._texts()
        answered = {answer.labels["question"] for answer in answers}
        missing = [name for name in self.probe.questions if name not in answered]
        if missing:
            what, them = f"the question {missing[0]!r} has no row", "this question"
            if len(missing) > 1:
                what = f"{len(missing)} of the probe's questions have no row (the first is {missing[0]!r})"
                them = "these questions"
            raise ProbeError(f"{self.name}:1: {what}. Add answers to {them}, or leave {them} out of the probe")
        return answers

    def _columns(self) -> dict[str, str]:
        has_names = "question" in self.responses.columns or self.has_column("question")
        published = not has_names and ("example_id" in self.responses.columns or self.has_column("example_id"))
        needed = ["category", "example_id"] if published else ["question"]
        return self._column_names([*needed, "text"], ["trial"])

    def _labels(self, row: Row) -> dict[str, str] | None:
        columns = [self.columns[name] for name in ("question", "category", "example_id") if name in self.columns]
        name = "-".join(as_line(row.fields[column]) for column in columns)
        found = self._labels_by_question.get(field_types.folded(name))
        if found is None:
            self._leave_out(row, columns, of_group=False)
        return found


# Reader of the recorded lists of a recommendation probe: one list per row, or one item and its rank per row.

Cell = tuple[str, str, str, int]
"""Entity, attribute, value and trial number of one list."""


class RecommendationReader(Reader[RecommendationProbe]):
    """Reader of a recommendation probe's answer file, with one list per row, or one item and its rank per row.

    Without a column `rank`, a row holds a whole list (JSON, or as the model wrote it). With this column, a row holds
    one item of a list. Rows of neutral prompts have the attribute `neutral`. Rows whose attribute, value or entity is
    not in the probe are left out.
    """

    content_noun: ClassVar[str] = "lists"

    @cached_property
    def _values(self) -> dict[tuple[str, str], tuple[str, str]]:
        return {
            (field_types.folded(attribute.name), field_types.folded(value.label)): (attribute.name, value.label)
            for attribute in self.probe.attributes.values()
            for value in attribute.values
        }

    @cached_property
    def _entities(self) -> dict[str, Entity]:
        return {field_types.folded(entity.name): entity for entity in self.probe.entities}

    def answers(self) -> list[Answer]:
        found = self._ranked_lists() if "rank" in self.columns else self._whole_lists()
        self.trial_numbers.raise_errors()
        self._require_pairs({f"{labels['attribute']} {labels['value']}" for _, labels, _ in found})
        return [recorded.answer_field(written, labels, trial, self.probe) for written, labels, trial in found]

    def _columns(self) -> dict[str, str]:
        columns = self._column_names(["entity", "attribute", "value", "items"], ["trial", "domain", "rank"])
        if "rank" in columns and "items" not in self.responses.columns and self.has_column("item"):
            columns["items"] = "item"
        return columns

    def _whole_lists(self) -> list[tuple[Json, dict[str, str], int]]:
        """Return the content, labels and trial number of each list."""
        found = []
        for row in self.rows():
            labels = self._labels(row)
            if labels is None:
                continue
            group = (labels["entity"], labels["attribute"], labels["value"])
            trial = self.trial_numbers.number(row, group, group)
            if trial is not None:
                found.append((row.fields.get(self.columns["items"]), labels, trial))
        return found

    def _ranked_lists(self) -> list[tuple[Json, dict[str, str], int]]:
        """Return the content, labels and trial number of each list."""
        found: dict[Cell, tuple[dict[str, str], dict[int, str]]] = {}
        for row in self.rows():
            labels = self._labels(row)
            trial = None if labels is None else self.trial_numbers.written_number(row, 0)
            if labels is None or trial is None:
                continue
            rank = recorded.whole_number(row.fields.get(self.columns["rank"]))
            if rank is None:
                self.trial_numbers.add_error(row, f"{self.columns['rank']!r} must be a whole number, at least 0")
                continue
            cell = (labels["entity"], labels["attribute"], labels["value"], trial)
            _, items = found.setdefault(cell, (labels, {}))
            if rank in items:
                self.trial_numbers.add_error(
                    row,
                    f"rank {rank} of {', '.join(filter(None, cell[:3]))} occurs twice. Give each item of a list its "
                    "own rank, and each list of the same request its own number in a column `trial`",
                )
            items[rank] = as_line(row.fields.get(self.columns["items"]))
        return [
            ([items[rank] for rank in sorted(items) if items[rank]], labels, cell[3])
            for cell, (labels, items) in found.items()
        ]

    def _labels(self, row: Row) -> dict[str, str] | None:
        """Return a row's labels; `None` if the row has an error, or the probe lacks its entity, attribute or value."""
        written = {name: as_line(row.fields.get(self.columns[name])) for name in ("entity", "attribute", "value")}
        if not written["entity"] or not written["attribute"]:
            lacking = "entity" if not written["entity"] else "attribute"
            self.trial_numbers.add_error(row, f"this row has no {self.columns[lacking]!r}; each row needs a value")
            return None
        attribute = field_types.folded(written["attribute"])
        pair = (
            (NEUTRAL, "")
            if attribute == NEUTRAL
            else self._values.get((attribute, field_types.folded(written["value"])))
        )
        entity = self._entities.get(field_types.folded(written["entity"]))
        if pair is None or (self._entities and entity is None):
            known = [
                attribute == NEUTRAL or any(attribute == name for name, _ in self._values),
                pair is not None,
                entity is not None or not self._entities,
            ]
            names = ("attribute", "value", "entity")
            unknown = [name for name, is_known in zip(names, known, strict=True) if not is_known]
            self._leave_out(row, [self.columns[name] for name in unknown], of_group=unknown == ["value"])
            return None
        domain = (
            as_line(row.fields.get(self.columns["domain"])) if "domain" in self.columns else entity and entity.domain
        )
        labels = {"entity": entity.name if entity else written["entity"], "attribute": pair[0], "value": pair[1]}
        return labels | ({"domain": domain} if domain else {})

    def _require_pairs(self, existing: set[str]) -> None:
        columns = [self.columns[name] for name in ("attribute", "value")]
        written = dict.fromkeys(
            " ".join(as_line(row.fields.get(column)) for column in columns).strip() for row in self.rows()
        )
        others = ", ".join(map(repr, list(written)[:10]))
        missing = [
            f"{attribute} {value}"
            for attribute, value in self._values.values()
            if f"{attribute} {value}" not in existing
        ]
        faults = [
            f"{self.name}:1: no row has the attribute and value {name!r}; the file has {others}. Write both in "
            "the probe as in the file, add such rows, or remove the value from the probe"
            for name in missing
        ]
        if f"{NEUTRAL} " not in existing:
            faults.append(
                f"{self.name}:1: no row has the attribute 'neutral'; the file has {others}. Add the lists for prompts "
                "that name no attribute, with which the other lists are compared"
            )
        raise_file_errors(faults, self.name)


# Reader of the recorded answers of a stereotype probe, one answer per row.


class StereotypeReader(TextReader[StereotypeProbe]):
    """Reader of a stereotype probe's answer file, which has one text per row.

    Rows whose case or group is not in the probe are left out; letter case and blanks around a name do not matter.
    Without a column `trial`, the answers for a case and group get trial numbers in the file's order.
    """

    @property
    def group_labels(self) -> tuple[str, ...]:
        return ("group",)

    @cached_property
    def _labels_by_case(self) -> dict[tuple[str, str], dict[str, str]]:
        return {
            (field_types.folded(case.name), field_types.folded(group)): self.probe.labels(case, group or None)
            for case in self.probe.open_cases
            for group in case.groups or ("",)
        }

    def answers(self) -> list[Answer]:
        answers = self._texts()
        if not answers:
            existing = dict.fromkeys(as_line(row.fields.get(self.columns["case"])) for row in self.rows())
            names = ", ".join(map(repr, list(existing)[:10]))
            near = suggestion(next(iter(existing)), [case.name for case in self.probe.open_cases])
            raise ProbeError(
                f"{self.name}:1: no row has a case of the probe. Correct the names in the file or in the probe; the "
                f"file has the cases {names}{near}"
            )
        # A single case without answers is no error here; its item reports that the answers are missing.
        return answers

    def _columns(self) -> dict[str, str]:
        needed = ["case", *(["group"] if any(group for _, group in self._labels_by_case) else []), "text"]
        return self._column_names(needed, ["trial"]) | {stratum: stratum for stratum in self.responses.strata}

    def _labels(self, row: Row) -> dict[str, str] | None:
        case, group = (
            field_types.folded(as_line(row.fields[self.columns[name]])) if name in self.columns else ""
            for name in ("case", "group")
        )
        found = self._labels_by_case.get((case, group)) or self._labels_by_case.get((case, ""))
        if found is None:
            is_known = any(case == name for name, _ in self._labels_by_case)
            self._leave_out(row, [self.columns["group" if is_known else "case"]], of_group=is_known)
            return None
        return found | {name: as_line(row.fields[name]) for name in self.responses.strata}
