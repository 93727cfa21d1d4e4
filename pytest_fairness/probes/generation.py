"""Probes of kind `generation`: parallel texts about groups, one prompt for every combination of the axes' values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import ConfigDict, Field, field_serializer, model_validator

from pytest_fairness.probes import conversations, field_types, identity_terms, prompts
from pytest_fairness.probes.base import with_fields
from pytest_fairness.probes.conversations import FreeTextProbe, StructuredAnswerSettings, StructuredProbe
from pytest_fairness.probes.diagnostics import Diagnostic, Location, errors_at, quoted, raise_diagnostics, suggestion
from pytest_fairness.probes.field_types import AuditSettings, Content, Identifier, Texts, block_text, canonical, texts
from pytest_fairness.probes.identity_terms import (
    PLACEBO,
    Anonymize,
    Axis,
    Intersection,
    RemovedTerms,
    SwapLists,
    SwappedPrompt,
    SwappedPrompts,
    Swaps,
)
from pytest_fairness.probes.prompts import intended_placeholders, template_diagnostics
from pytest_fairness.probes.recorded_rows import TRIAL, Column, Rows
from pytest_fairness.probes.shared_keys import Trials, max_trials
from pytest_fairness.probes.table import PromptRow, PromptsFile
from pytest_fairness.records import AnswerFormat, Json, Message, Prompt


class TextAnswerSettings(StructuredAnswerSettings):
    """Settings of the format of answers."""

    format: Literal["text", "list", "json"] = Field(
        default="text",
        description="How an answer is read. text: unchanged. json: as JSON, whose keys and values are joined to one "
        "text. list: as a list, whose entries are joined to one text.",
    )


class GenerationProbe(StructuredProbe, FreeTextProbe):
    """Probe of texts about groups; each prompt gets `trials` answers for every combination of the axes' values."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"anyOf": [{"required": [key]} for key in keys]}
                for keys in (("prompt", "prompts", "messages", "responses"), ("axes", "swap"))
            ]
        }
    )
    several_prompts: ClassVar[bool] = True

    units = "prompts"

    kind: Literal["generation"] = Field(
        description="Kind of the probe: compares texts that the model writes about different groups."
    )
    prompt: Texts | None = Field(
        default=None,
        description="The prompt: one text or a list of paraphrases. {race} stands for the value of the axis `race`; "
        "a literal brace is written {{ or }}.",
    )
    prompts_file: PromptsFile | None = Field(
        default=None,
        alias="prompts",
        description="A file with prompts, in place of `prompt`. Each prompt has a placeholder for every axis; with "
        "`swap`, prompts have no placeholders.",
    )
    axes: dict[Identifier, Axis] = Field(
        default_factory=dict,
        min_length=1,
        description="The attributes by which groups differ, by name, each with its values. Every combination of the "
        "values is sent.",
    )
    swap: Swaps | None = Field(
        default=None,
        description="In place of `axes`, for prompts without placeholders: which terms in the prompts are replaced by "
        "the terms of another group. gender uses the built-in list of the probe's language; {NAME: {unmarked: …, "
        "marked: […], terms: …}} declares your own list.",
    )
    intersections: tuple[Intersection, ...] = Field(
        default=(),
        min_length=1,
        description="Sets of two or more axes, such as [[race, gender]]. Each combination of their marked values is "
        "compared with the combination of their unmarked values.",
    )
    trials: Trials = Field(
        default=15,
        description="Number of answers to each prompt for each combination of values. With {start: 8, max: 60}, the "
        "number begins at 8, and grows up to 60 while a verdict is inconclusive. Default with `prompts`: 1.",
    )
    answer: TextAnswerSettings = Field(default_factory=TextAnswerSettings, description="How answers are parsed.")
    anonymize: RemovedTerms = Field(
        default=(),
        description="Terms that are removed from the answers in addition to the built-in identity terms and the axes' "
        "values. false removes nothing; {names: true} removes first names as well.",
    )

    @field_serializer("swap")
    def _terms_of_lists(self, _: object) -> Json:
        """Serialize a swap as its terms, because stored measurements depend on the removed terms."""
        return sorted(self.swapped_terms)

    @property
    def _structured_answer(self) -> StructuredAnswerSettings:
        return self.answer

    @property
    def _value_format(self) -> AnswerFormat:
        return self.answer.format

    @model_validator(mode="after")
    def _has_prompts(self) -> Self:
        """Set fields that depend on other keys, and check the prompts of a file and all swaps.

        `swap` defines the axis of the probe. With a file of prompts, the default of `trials` is 1.
        """
        # The model is frozen, and defaults cannot depend on keys that are validated later.
        if self.swap_lists is not None:
            object.__setattr__(self, "axes", {self.swap_lists.name: self.swap_lists.axis})
        if self.prompts_file is not None and "trials" not in self.model_fields_set:
            object.__setattr__(self, "trials", 1)
        if self.prompts_file is None and self.swap is None:
            return self
        with errors_at("prompts"):
            trials = len(self.templates) * max_trials(self.trials, None)
        if self.swap is not None:
            raise_diagnostics(
                identity_terms.swap_diagnostics(self.swapped, trials, in_file=self.prompts_file is not None)
            )
        count = trials * len(list(self.cells()))
        raise_diagnostics(field_types.too_many_prompts({}, count, "prompts, values and trials", "prompts"))
        return self

    @cached_property
    def templates(self) -> dict[str, str]:
        """Templates of the prompts, by the value of the label `prompt`; a single prompt, without label, has the key "".

        With `swap`, these are the prompts as they are written.
        """
        if self.swap is not None:
            return {name: prompt.row.text for name, prompt in self._swapped_by_name.items()}
        if self.prompts_file is not None:
            in_turns = {name for text in self.turns for name in prompts.placeholders(text)}
            return self.prompts_file.read(self.axes, in_turns)
        found = texts(self.prompt) if self.messages is None else (block_text(self.messages[-1].content),)
        return {"": found[0]} if len(found) == 1 else {str(number): text for number, text in enumerate(found, start=1)}

    def _first_template(self, labels: Mapping[str, str]) -> str:
        return self.templates[labels.get("prompt", "")]

    def _filled_template(self, text: str, labels: Mapping[str, str]) -> str:
        return prompts.fill(block_text(text), labels)

    def _prompt(self, text: str, labels: Mapping[str, str], trial: int, past: tuple[Message, ...]) -> Prompt:
        request = self._request(text, trial, self.reading.format, past, self._tools_as_json)
        return Prompt(request, labels, trial, selection=self.reading.selection)

    @cached_property
    def swap_lists(self) -> SwapLists | None:
        return None if self.swap is None else SwapLists.of(self.swap, self.language)

    @cached_property
    def swapped(self) -> SwappedPrompts:
        if self.swap_lists is None:
            return SwappedPrompts((), ())
        if self.prompts_file is not None:
            return identity_terms.swapped_file(self.prompts_file, self.swap_lists)
        written = (PromptRow(text, number) for number, text in enumerate(texts(self.prompt), start=1))
        return identity_terms.swapped_rows(written, self.swap_lists)

    @cached_property
    def _swapped_by_name(self) -> dict[str, SwappedPrompt]:
        found = self.swapped.prompts
        if self.prompts_file is not None:
            return {prompt.id: prompt for prompt in found}
        return {"": found[0]} if len(found) == 1 else {str(prompt.row.line): prompt for prompt in found}

    @cached_property
    def _placebo(self) -> Self | None:
        """Probe whose marked group is the placebo swap of each prompt; `None` if no prompt has a placebo."""
        prompts = tuple(prompt for prompt in self.swapped.prompts if PLACEBO in prompt.versions)
        axes = {name: Axis(unmarked=axis.unmarked, marked=(PLACEBO,)) for name, axis in self.axes.items()}
        probe = with_fields(self, axes=axes, variants={})
        object.__setattr__(probe, "swapped", SwappedPrompts(prompts, ()))
        return probe if prompts else None

    def placebo(self, labels: Mapping[str, str]) -> tuple[Self, Mapping[str, str]] | None:
        if self._placebo is None:
            return None
        return self._placebo, {name: PLACEBO if name in self.axes else label for name, label in labels.items()}

    def _text(self, name: str, cell: Mapping[str, str]) -> str:
        if self.swap is None:
            return prompts.fill(self.templates[name], cell)
        (group,) = cell.values()
        return self._swapped_by_name[name].versions[group]

    @cached_property
    def swapped_terms(self) -> frozenset[str]:
        """Terms of the compared groups and of the placebo, which are removed from answers; empty without `swap`.

        A list of the user gives its terms. For a built-in list, the terms are the words in which the
        versions of a prompt differ, and the terms of the placebo.
        """
        if self.swap_lists is None:
            return frozenset()
        # The terms of a built-in list are not in `swap_lists`.
        terms_in_prompts = (prompt.terms for prompt in self.swapped.prompts) if self.swap_lists.terms.name else ()
        return frozenset(self.swap_lists.removed_terms).union(*terms_in_prompts)

    def cells(self) -> Iterator[dict[str, str]]:
        """Yield every combination of the axes' values, with the unmarked value of each axis first."""
        for values in itertools.product(*(axis.values for axis in self.axes.values())):
            yield dict(zip(self.axes, values, strict=True))

    def unit_of(self, labels: Mapping[str, str]) -> str:
        return canonical(dict(labels))

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        for name in self.templates:
            for cell in self.cells():
                text, opening = self._text(name, cell), self._opening(cell)
                labels = {**cell, "prompt": name} if name else cell
                for trial in range(max_trials(self.trials, trials)):
                    yield self._prompt(text, labels, trial, opening)

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that determine an item's prompts and how its answers are read; see `Probe.fingerprint`.

        For an axis in the item's labels, only the two compared values are included. The order of values and
        terms has no effect.
        """
        parts = {}
        if self.responses is None:
            # Prompts of a file are left out: a comparison uses the prompts that both runs have.
            written = [] if self.prompts_file is not None else [*self.templates.values()]
            parts["prompt"] = written[0] if len(written) == 1 else canonical(written)
            parts["system"] = block_text(self.system)
            parts |= self._conversation_fingerprint()
        else:
            parts["columns"] = canonical(self.responses.columns)
            parts["strata"] = canonical(sorted(self.responses.strata))
        for name, axis in self.axes.items():
            marked = [labels[name]] if name in labels else sorted(axis.marked)
            parts[f"axis {name}"] = canonical({"unmarked": axis.unmarked, "marked": marked})
        if self.swap_lists is not None:
            axis = self.swap_lists.axis
            groups = [labels[self.swap_lists.name]] if self.swap_lists.name in labels else axis.marked
            parts["swap list"] = canonical(self.swap_lists.content((axis.unmarked, *groups)))
            if self.prompts_file is None:
                versions = [prompt.versions for prompt in self.swapped.prompts]
                parts["versions"] = canonical([[own[group] for group in (axis.unmarked, *groups)] for own in versions])
        parts["answer"] = self.answer.format
        parts |= self._structure_fingerprint()
        parts["anonymize"] = canonical(identity_terms.removal_fingerprint(self.anonymize))
        return parts

    @property
    def removed_terms(self) -> tuple[str, ...] | None:
        """Terms that are removed from answers in addition to the built-in terms; `None` if no terms are removed."""
        return identity_terms.terms_of(self.anonymize)

    @property
    def removed_names(self) -> frozenset[str]:
        return self.anonymize.first_names if isinstance(self.anonymize, Anonymize) else frozenset()


# Checks that the keys of a generation probe fit together.

OTHER_COLUMNS = ("text", "trial", "prompt")
"""Column names of an answer file, in addition to the axes."""
NOT_WITH_SWAP = {
    "axes": "`swap` gives the probe its axis",
    "intersections": "a probe with `swap` has one axis",
    "messages": "terms are swapped only in `prompt` and in the prompts of a file",
    "turns": "terms are swapped only in `prompt` and in the prompts of a file",
    "responses": "recorded answers need `axes`, because a column of the file names the group of each answer",
}
"""Keys that a probe with `swap` cannot have, each with the reason."""


def content_diagnostics(data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    if data.keys().isdisjoint(("messages", "prompts")):
        cure = "the question, `prompts` with a file, `messages`, or `responses:` with recorded answers"
        yield from field_types.missing_keys(data, {"prompt": cure})
    yield from conversations.tool_diagnostics(data)
    answer = field_types.mapping(data.get("answer"))
    if "tool" in answer and "path" not in answer:
        message = "a tool call is not a text: add the `path` of one of its arguments, such as `path: $.message`"
        yield Diagnostic(("answer", "tool"), message, at_key=True)
    joined = answer.get("format", "text") == "text" and "tool" not in answer
    yield from conversations.conversation_diagnostics(
        data, sources=("prompt", "prompts", "messages"), labels="axes", texts=joined
    )
    if "swap" in data:
        yield from _swap_diagnostics(data, audits)
        return
    if "axes" not in data:
        cure = "the attributes by which groups differ, or `swap: gender` for prompts without placeholders"
        yield Diagnostic((), f"`axes` is missing: write {cure}")
    axes = field_types.mapping(data.get("axes"))
    if not axes:
        return
    yield from _name_diagnostics(axes, audits, "axes")
    yield from _value_diagnostics(axes, "axes")
    yield from _intersection_diagnostics(data.get("intersections"), list(axes))
    yield from _prompt_diagnostics(data, list(axes))
    yield from field_types.unknown_columns(data, [*axes, *OTHER_COLUMNS])
    # A column `prompt` of the file can be a stratum, unless `columns` already maps the name `prompt` to a column.
    columns = field_types.mapping(field_types.mapping(data.get("responses")).get("columns"))
    yield from field_types.invalid_strata(data, {*axes, "text", "trial", *columns})
    sizes = [len(axis["marked"]) + 1 for _, axis in field_types.mappings(axes) if isinstance(axis.get("marked"), list)]
    prompt = data.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) else 1
    count = field_types.capped_product(sizes) * field_types.most_trials(data, 15) * prompts
    yield from field_types.too_many_prompts(data, count, "values, prompts and trials", "axes")


def _name_diagnostics(axes: Content, audits: Mapping[str, type[AuditSettings]], key: str) -> Iterator[Diagnostic]:
    for name in axes:
        reasons = ["answers have a label of this name"] if name in OTHER_COLUMNS else []
        reasons += [
            f"items of the audit {audit} have this label"
            for audit, settings in audits.items()
            if name in settings.item_labels
        ]
        for reason in reasons:
            message = f"an axis cannot be called {quoted(name)}, because {reason}: rename the axis"
            yield Diagnostic((key, name), message, at_key=True)


def _value_diagnostics(axes: Content, key: str) -> Iterator[Diagnostic]:
    for name, axis in field_types.mappings(axes):
        unmarked = axis.get("unmarked")
        marked = [((key, name, "marked", i), value) for i, value in field_types.items(axis.get("marked"))]
        others = []
        for location, value in marked:
            if (
                isinstance(value, str)
                and isinstance(unmarked, str)
                and field_types.folded(value) == field_types.folded(unmarked)
            ):
                message = f"{quoted(value)} is already the unmarked value: remove it from `marked`"
                yield Diagnostic(location, message)
            else:
                others.append((location, value))
        yield from field_types.repeats(others, "write each value of an axis once")


def _swap_diagnostics(data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    for key, reason in NOT_WITH_SWAP.items():
        if key in data:
            yield Diagnostic((key,), f"{reason}: remove `{key}` or `swap`", at_key=True)
    for name, variant in field_types.mappings(data.get("variants")):
        if "prompt" in variant:
            message = "with `swap`, a variant can change only `system`: remove `prompt`"
            yield Diagnostic(("variants", name, "prompt"), message, at_key=True)
    swap = data["swap"]
    axes = {swap: None} if isinstance(swap, str) else field_types.mapping(swap)
    yield from _name_diagnostics(axes, audits, "swap")
    yield from _value_diagnostics(axes, "swap")
    for name, settings in field_types.mappings(axes):
        groups: list[tuple[Location, Json]] = [(("unmarked",), settings.get("unmarked"))]
        groups += [(("marked", place), group) for place, group in field_types.items(settings.get("marked"))]
        for place, group in groups:
            if group == PLACEBO:
                message = f"{quoted(PLACEBO)} is the name of the placebo swap: rename the group"
                yield Diagnostic(("swap", name, *place), message)
    for location, text in _texts_at(("prompt",), data.get("prompt")):
        for name in axes:
            if (piece := f"{{{name}}}") in text:
                message = (
                    f"with `swap`, prompts have no placeholders: write a term of one group in place of {piece}, or "
                    "write `axes` in place of `swap`"
                )
                yield Diagnostic(location, message, piece=piece)


def _intersection_diagnostics(intersections: Json, axes: list[str]) -> Iterator[Diagnostic]:
    seen: set[frozenset[str]] = set()
    for i, crossed in field_types.items(intersections):
        if not isinstance(crossed, list) or not all(isinstance(name, str) for name in crossed):
            continue
        location: Location = ("intersections", i)
        for j, name in enumerate(crossed):
            if name not in axes:
                message = f"{quoted(name)} is not an axis of this probe{suggestion(name, axes)}"
                yield Diagnostic((*location, j), message)
            elif name in crossed[:j]:
                message = f"{quoted(name)} is repeated: write each axis of an intersection once"
                yield Diagnostic((*location, j), message)
        names = frozenset(crossed)
        if len(crossed) < 2:
            message = "an intersection needs at least two axes: add an axis, or remove the intersection"
            yield Diagnostic(location, message)
        elif names in seen:
            yield Diagnostic(location, "this intersection is repeated: remove it")
        if len(names) > 1:
            seen.add(names)


def _prompt_diagnostics(data: Content, axes: list[str]) -> Iterator[Diagnostic]:
    prompts = list(_texts_at(("prompt",), data.get("prompt")))
    around = list(conversations.templates(data))
    for location, text in around:
        yield from template_diagnostics(text, axes, location)
    # An axis that another message names need not be in the prompt.
    axes_elsewhere = {axis for _, text in around for axis in intended_placeholders(text, axes)}
    # The prompts of a file are checked when they are read.
    written = [] if field_types.is_recorded(data) or "prompts" in data else [*prompts, *around]
    unused = {*axes}.difference(*(intended_placeholders(text, axes) for _, text in written)) if written else set()
    for axis in axes:
        if axis in unused:
            message = f"the axis {quoted(axis)} is used in no prompt: write {{{axis}}} where its values belong"
            yield Diagnostic(("axes", axis), message, at_key=True)
    of_variants = [
        text
        for name, variant in field_types.mappings(data.get("variants"))
        for text in _texts_at(("variants", name, "prompt"), variant.get("prompt"))
    ]
    for location, text in [*prompts, *of_variants]:
        yield from template_diagnostics(text, axes, location)
        used = intended_placeholders(text, axes)
        for axis in () if field_types.is_recorded(data) else axes:
            if axis not in used | axes_elsewhere and not (axis in unused and location[0] == "prompt"):
                # The groups of the axis would get the same prompt, and would not differ for any model.
                message = f"this prompt does not use the axis {quoted(axis)}: write {{{axis}}} where its values belong"
                yield Diagnostic(location, message)


def _texts_at(location: Location, value: Json) -> Iterator[tuple[Location, str]]:
    if isinstance(value, str):
        yield location, value
    yield from (((*location, i), text) for i, text in field_types.items(value) if isinstance(text, str))


# Rows of a file of recorded answers.


class TextRows(Rows[GenerationProbe]):
    """Rows with one text; a row whose value of an axis is not in the probe is left out."""

    complete = True
    duplicate_remedy = "; if a column distinguishes the two rows, name it under `responses.strata`"

    @property
    def group_labels(self) -> tuple[str, ...]:
        return tuple(self.probe.axes)

    def rules(self) -> list[Column]:
        axes = [Column(name, axis.values, every=True) for name, axis in self.probe.axes.items()]
        prompt = [Column("prompt")] if "prompt" in self.responses.columns else []
        return [*axes, *prompt, Column("text", is_label=False), TRIAL]
