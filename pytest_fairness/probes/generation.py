"""Probes of kind `generation`: parallel texts about groups, one prompt for every combination of the axes' values."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import ConfigDict, Field, field_serializer, model_validator

from pytest_fairness.languages.english_words import is_first_name
from pytest_fairness.probes import conversations, field_types, identity_terms, prompts
from pytest_fairness.probes.base import with_fields
from pytest_fairness.probes.conversations import FreeTextProbe, StructuredAnswerSettings, StructuredProbe
from pytest_fairness.probes.diagnostics import Diagnostic, Part, errors_at, quoted, raise_diagnostics, suggestion
from pytest_fairness.probes.field_types import AuditSettings, Identifier, Texts, block_text, canonical, texts
from pytest_fairness.probes.identity_terms import (
    PLACEBO,
    Anonymize,
    Axis,
    Intersection,
    SwapLists,
    SwappedPrompts,
    name_label,
)
from pytest_fairness.probes.prompts import intended_placeholders, template_diagnostics
from pytest_fairness.probes.recorded_rows import TRIAL, Column, Labels, Rows
from pytest_fairness.probes.shared_keys import EACH_ANSWER, Trials, Units, in_plural, max_trials, units_named
from pytest_fairness.probes.table import PromptRow, PromptsFile, Row
from pytest_fairness.records import AnswerFormat, Json, Message, Prompt


class TextAnswerSettings(StructuredAnswerSettings):
    """Settings of the format of answers."""

    format: Literal["text", "list", "json"] = Field(
        default="text",
        description="How an answer is read. text: unchanged. json: as JSON, whose keys and values are joined to one "
        "text. list: as a list, whose entries are joined to one text.",
    )


OTHER_COLUMNS = ("text", "trial", "prompt")
FEWEST_NAMES = 5
"""Smallest number of names of a group that say something of the group; of fewer, each answer is an observation."""
PROMPT = "prompt"
"""Label of the answers to one of several prompts, and the value of the key `units` that makes them a sample."""
"""Column names of an answer file, in addition to the axes."""
NOT_WITH_SWAP = {
    "axes": "`swap` gives the probe its axis",
    "intersections": "a probe with `swap` has one axis",
    "messages": "terms are swapped only in `prompt` and in the prompts of a file",
    "turns": "terms are swapped only in `prompt` and in the prompts of a file",
    "responses": "recorded answers need `axes`, because a column of the file names the group of each answer",
}
"""Keys that a probe with `swap` cannot have, each with the reason."""


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
    prompt_keys = ("prompt", "prompts", "messages")
    request_keys = (*StructuredProbe.request_keys, "prompts")
    labels_key = "axes"

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
    swap: identity_terms.Swaps | None = Field(
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
    written_units: Units | None = Field(
        default=None,
        alias="units",
        description="What is a sample, so that a result is about more than what was sent: an axis with lists of names, "
        "`prompt` for the prompts, a column of the recorded answers, or several, such as [applicant, prompt]. Tests "
        "and intervals count each of them once. Default: the lists of names; `trial` counts each answer.",
    )
    trials: Trials = Field(
        default=15,
        description="Number of answers to each prompt for each combination of values. With {start: 8, max: 60}, the "
        "number begins at 8, and grows up to 60 while a verdict is inconclusive. Default with `prompts`: 1.",
    )
    answer: TextAnswerSettings = Field(default_factory=TextAnswerSettings, description="How answers are parsed.")
    anonymize: identity_terms.RemovedTerms = Field(
        default=(),
        description="Terms that are removed from the answers in addition to the built-in identity terms and the axes' "
        "values. false removes nothing; {names: true} removes first names as well.",
    )

    @classmethod
    def faults(cls, data: Part, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
        answer = data["answer"]
        texts = answer["format"].value in (None, "text") and "tool" not in answer
        units = [part.text for part in data["units"].texts]
        yield from cls._shared_faults(data, audits, [*data["axes"].names, *OTHER_COLUMNS, *units])
        yield from _unit_faults(data)
        yield from cls._conversation_faults(data, texts=texts)
        yield from cls._tool_faults(data)
        if not any(key in data for key in (*cls.prompt_keys, "responses")):
            yield data.fault(
                "`prompt` is missing: write the question, `prompts` with a file, `messages`, or `responses:` with "
                "recorded answers"
            )
        if "tool" in answer and "path" not in answer:
            yield answer["tool"].key_fault(
                "a tool call is not a text: add the `path` of one of its arguments, such as `path: $.message`"
            )
        if "swap" in data:
            yield from _swap_faults(data, audits)
            return
        axes = data["axes"]
        if "axes" not in data:
            cure = "the attributes by which groups differ, or `swap: gender` for prompts without placeholders"
            yield data.fault(f"`axes` is missing: write {cure}")
        if not axes.names:
            return
        yield from _axis_faults(axes, audits)
        yield from _intersection_faults(data["intersections"], axes.names)
        yield from _prompt_faults(data, axes.names)
        sizes = [len([*_texts_of(axis)]) for axis in axes]
        prompts = len(data["prompt"].value) if isinstance(data["prompt"].value, list) else 1
        count = field_types.capped_product(sizes) * field_types.most_trials(data, 15) * prompts
        yield from field_types.too_many_prompts(data, count, "values, prompts and trials", "axes")

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
            names = min((len(own) for axis in self.axes.values() for own in axis.names.values()), default=1)
            raise_diagnostics(
                identity_terms.swap_diagnostics(self.swapped, names * trials, in_file=self.prompts_file is not None)
            )
        count = trials * len(list(self.cells()))
        raise_diagnostics(field_types.too_many_prompts(Part({}), count, "prompts, values and trials", "prompts"))
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
        names = {name: labels[name_label(name)] for name, axis in self.axes.items() if axis.names}
        return prompts.fill(block_text(text), {**labels, **names})

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
    def _swapped_by_name(self) -> dict[str, identity_terms.SwappedPrompt]:
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
            return self._filled_template(self.templates[name], cell)
        *_, version = cell.values()  # the name that stands for the group, or the group
        return self._swapped_by_name[name].versions[version]

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
        """Yield every combination of the axes' values or names, with the unmarked value of each axis first."""
        for cell in itertools.product(*(axis.labels(name) for name, axis in self.axes.items())):
            yield {label: value for part in cell for label, value in part.items()}

    @cached_property
    def unit_labels(self) -> dict[str, str]:
        """The label that tells apart what is a sample, by what it is in the plural: `names`, `prompts`."""
        lists = [name for name, axis in self.axes.items() if axis.names]
        large = [name for name in lists if min(map(len, self.axes[name].names.values())) >= FEWEST_NAMES]
        found = {}
        for unit in units_named(self.written_units, large):
            of_axis = "names" if len(lists) == 1 else f"names of {unit}"
            found[of_axis if unit in lists else in_plural(unit)] = name_label(unit) if unit in lists else unit
        return found

    def compared_names(self, labels: Mapping[str, str]) -> str:
        """Return the axis of an item that compares people by fewer than `FEWEST_NAMES` names a group; else empty."""
        for name, value in labels.items():
            if (axis := self.axes.get(name)) is not None and self.swap is None:
                groups = [axis.names.get(group, (group,)) for group in (value, axis.unmarked)]
                known = axis.names or all(is_first_name(group) for (group, *_) in groups)
                if known and min(map(len, groups)) < FEWEST_NAMES:
                    return name
        return ""

    def smallest_p_values(self, labels: Mapping[str, str]) -> dict[str, tuple[tuple[int, int], float]]:
        """Return the sizes of the sample, and the smallest p-value of a one-sided test of it, by what the sample is.

        Prompts are paired: they have an answer for each group. The values of a column are known only from its file.
        """
        found = {}
        for unit, label in self.unit_labels.items():
            axis = next((name for name, axis in self.axes.items() if axis.names and name_label(name) == label), "")
            if axis in labels:
                marked, unmarked = (
                    len(self.axes[axis].names[group]) for group in (labels[axis], self.axes[axis].unmarked)
                )
                found[unit] = (marked, unmarked), 1 / math.comb(marked + unmarked, marked)
            elif axis or label == PROMPT:
                number = len(self.axes[axis].texts if axis else self.templates)
                found[unit] = (number, number), 0.5**number
        return found

    def unit_of(self, labels: Mapping[str, str]) -> str:
        return canonical(dict(labels))

    def prompts_with(self, uses: Callable[[Mapping[str, str]], bool], trials: int | None = None) -> Iterator[Prompt]:
        return map(self._asked_separately, self._written_prompts(trials, uses))

    def _written_prompts(
        self, trials: int | None, uses: Callable[[Mapping[str, str]], bool] | None = None
    ) -> Iterator[Prompt]:
        for name in self.templates:
            for cell in self.cells():
                labels = {**cell, "prompt": name} if name else cell
                if uses is not None and not uses(labels):
                    continue
                text, opening = self._text(name, cell), self._opening(cell)
                for trial in range(max_trials(self.trials, trials)):
                    yield self._prompt(text, labels, trial, opening)

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that determine an item's prompts and how its answers are read; see `Probe.fingerprint`.

        For an axis in the item's labels, only the two compared values are included. The order of values and
        terms has no effect.
        """
        # Prompts of a file are left out: a comparison uses the prompts that both runs have.
        written = [] if self.prompts_file is not None else [*self.templates.values()]
        parts = self._source_fingerprint(prompt=written[0] if len(written) == 1 else canonical(written))
        for name, axis in self.axes.items():
            marked = [labels[name]] if name in labels else sorted(axis.marked)
            compared: dict[str, Json] = {"unmarked": axis.unmarked, "marked": marked}
            if axis.names:
                compared["names"] = {group: sorted(axis.names[group]) for group in (axis.unmarked, *marked)}
            parts[f"axis {name}"] = canonical(compared)
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


def _axis_faults(axes: Part, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for the names and values of axes, or of a swap."""
    for axis in axes if axes.names else [axes[axes.text]]:
        reasons = ["answers have a label of this name"] if axis.name in OTHER_COLUMNS else []
        reasons += [
            f"items of the audit {audit} have this label"
            for audit, settings in audits.items()
            if axis.name in settings.item_labels
        ]
        for reason in reasons:
            yield axis.key_fault(f"an axis cannot be called {quoted(axis.name)}, because {reason}: rename the axis")
        if {type(axis[key].value) for key in ("unmarked", "marked") if key in axis} in ({str, dict}, {dict, list}):
            lists = "`unmarked: {men: [Joseph, …]}` and `marked: {women: [Kelly, …]}`"
            yield axis.key_fault(f"one side lists names and the other does not: write {lists}")
        elif axis["marked"].names and "terms" in axis:
            yield axis["terms"].key_fault("the names under `unmarked` and `marked` are the terms: remove `terms`")
        groups = Counter(map(field_types.folded, (*axis["unmarked"].names, *axis["marked"].names)))
        for group in (
            part for part in axis["marked"] if axis["marked"].names and groups[field_types.folded(part.name)] > 1
        ):
            yield group.key_fault(f"{quoted(group.name)} is already the unmarked group: rename the group")
        unmarked = field_types.folded(axis["unmarked"].text)
        known = [value for value in axis["marked"] if field_types.folded(value.text) == unmarked and value.text]
        for value in known:
            yield value.fault(f"{value.quoted} is already the unmarked value: remove it from `marked`")
        others = (value for value in _texts_of(axis) if value not in known)
        yield from field_types.repeats(others, "write each value of an axis once")


def _texts_of(axis: Part) -> Iterator[Part]:
    """Yield the values of an axis, or the names in its lists."""
    for side in (axis["unmarked"], axis["marked"]):
        for part in [side] if side.is_text else side:
            yield from part.texts


def _swap_faults(data: Part, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    for key, reason in NOT_WITH_SWAP.items():
        if key in data:
            yield data[key].key_fault(f"{reason}: remove `{key}` or `swap`")
    for variant in data["variants"].mappings:
        if "prompt" in variant:
            yield variant["prompt"].key_fault("with `swap`, a variant can change only `system`: remove `prompt`")
    swap = data["swap"]
    yield from _axis_faults(swap, audits)
    for settings in swap:
        for group in (settings["unmarked"], *settings["marked"]):
            if PLACEBO in (group.text, *group.names):
                yield group.fault(f"{quoted(PLACEBO)} is the name of the placebo swap: rename the group")
    for prompt in data["prompt"].texts:
        for name in [swap.text] if swap.is_text else swap.names:
            if (piece := f"{{{name}}}") in prompt.text:
                yield prompt.fault(
                    f"with `swap`, prompts have no placeholders: write a term of one group in place of {piece}, or "
                    "write `axes` in place of `swap`",
                    piece,
                )


def _unit_faults(data: Part) -> Iterator[Diagnostic]:
    several = isinstance(data["prompt"].value, list) or "prompts" in data or field_types.is_recorded(data)
    swap = [data["swap"].text] if data["swap"].is_text else data["swap"].names
    known = [*data["axes"].names, *swap, PROMPT, EACH_ANSWER]
    for unit in data["units"].texts:
        if unit.text == PROMPT and not several:
            yield unit.fault("the probe has one prompt: write several under `prompt`, or remove `prompt` from `units`")
        elif unit.text not in known and not field_types.is_recorded(data):
            yield unit.fault(f"{unit.quoted} is neither an axis nor `prompt`{suggestion(unit.text, known)}")


def _intersection_faults(intersections: Part, axes: list[str]) -> Iterator[Diagnostic]:
    seen: set[frozenset[str]] = set()
    for crossed in intersections:
        if not isinstance(crossed.value, list) or not all(name.is_text for name in crossed):
            continue
        for name in crossed:
            if name.text not in axes:
                yield name.fault(f"{name.quoted} is not an axis of this probe{suggestion(name.text, axes)}")
        known = (name for name in crossed if name.text in axes)
        yield from field_types.repeats(known, "write each axis of an intersection once", str)
        names = frozenset(crossed.value)
        if len(crossed.value) < 2:
            yield crossed.fault("an intersection needs at least two axes: add an axis, or remove the intersection")
        elif names in seen:
            yield crossed.fault("this intersection is repeated: remove it")
        if len(names) > 1:
            seen.add(names)


def _prompt_faults(data: Part, axes: list[str]) -> Iterator[Diagnostic]:
    own, around = data["prompt"].texts, conversations.templates(data)
    of_variants = [text for variant in data["variants"].mappings for text in variant["prompt"].texts]
    for part in (*own, *around, *of_variants):
        yield from template_diagnostics(part.text, axes, part.location)
    if field_types.is_recorded(data):
        return
    # An axis that another message names need not be in the prompt. The prompts of a file are checked when it is read.
    elsewhere = {axis for part in around for axis in intended_placeholders(part.text, axes)}
    written = [] if "prompts" in data else [*own, *around]
    unused = {*axes}.difference(*(intended_placeholders(part.text, axes) for part in written)) if written else set()
    for axis in data["axes"]:
        if axis.name in unused:
            yield axis.key_fault(
                f"the axis {quoted(axis.name)} is used in no prompt: write {{{axis.name}}} where its values belong"
            )
    for part in (*own, *of_variants):
        used = intended_placeholders(part.text, axes) | elsewhere | (unused if part.location[0] == "prompt" else set())
        for name in axes:
            if name not in used:
                # The groups of the axis would get the same prompt, and would not differ for any model.
                yield part.fault(
                    f"this prompt does not use the axis {quoted(name)}: write {{{name}}} where its values belong"
                )


# Rows of a file of recorded answers.


class TextRows(Rows[GenerationProbe]):
    """Rows with one text; a row whose value of an axis is not in the probe is left out."""

    complete = True
    duplicate_remedy = "; if a column distinguishes the two rows, name it under `responses.strata`"

    @property
    def group_labels(self) -> tuple[str, ...]:
        return tuple(self.probe.axes)

    def rules(self) -> list[Column]:
        axes = [Column(name, axis.texts, every=True) for name, axis in self.probe.axes.items()]
        prompt = [Column("prompt")] if "prompt" in self.responses.columns else []
        known = {*self.probe.axes, *OTHER_COLUMNS, *self.responses.strata}
        known |= {name_label(axis) for axis in self.probe.axes}
        units = [Column(unit) for unit in self.probe.unit_labels.values() if unit not in known]
        return [*axes, *prompt, *units, Column("text", is_label=False), TRIAL]

    def labels_of(self, row: Row, labels: Labels) -> Labels:
        """Return the labels with the group of each name."""
        found = dict(labels)
        for axis, written in self.probe.axes.items():
            for group, names in written.names.items():
                if labels[axis] in names:
                    found |= {axis: group, name_label(axis): labels[axis]}
        return found
