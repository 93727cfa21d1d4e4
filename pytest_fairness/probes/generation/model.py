"""Probes of kind `generation`: parallel texts about groups, one prompt for every combination of the axes' values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import ConfigDict, Field, field_serializer, model_validator

from pytest_fairness.probes import checks
from pytest_fairness.probes.base import with_fields
from pytest_fairness.probes.checks import canonical
from pytest_fairness.probes.diagnostics import errors_at, raise_diagnostics
from pytest_fairness.probes.field_types import Identifier, Texts, block_text, texts
from pytest_fairness.probes.free_text import FreeTextProbe
from pytest_fairness.probes.generation import swapped_prompts
from pytest_fairness.probes.generation.anonymize import Anonymize, RemovedTerms, removal_fingerprint, terms_of
from pytest_fairness.probes.generation.axes import Axis, Intersection
from pytest_fairness.probes.generation.prompts_file import PromptRow, PromptsFile
from pytest_fairness.probes.generation.swap_settings import PLACEBO, SwapLists, Swaps
from pytest_fairness.probes.generation.swapped_prompts import SwappedPrompt, SwappedPrompts
from pytest_fairness.probes.keys.interim_stages import Trials, max_trials
from pytest_fairness.probes.prompts import template
from pytest_fairness.probes.structured import StructuredAnswerSettings, StructuredProbe
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
            raise_diagnostics(swapped_prompts.diagnostics(self.swapped, trials, in_file=self.prompts_file is not None))
        count = trials * len(list(self.cells()))
        raise_diagnostics(checks.too_many_prompts({}, count, "prompts, values and trials", "prompts"))
        return self

    @cached_property
    def templates(self) -> dict[str, str]:
        """Templates of the prompts, by the value of the label `prompt`; a single prompt, without label, has the key "".

        With `swap`, these are the prompts as they are written.

        Raises:
            ProbeError: the file of the prompts cannot be read, or a prompt in it is not a valid template.
        """
        if self.swap is not None:
            return {name: prompt.row.text for name, prompt in self._swapped_by_name.items()}
        if self.prompts_file is not None:
            in_turns = {name for text in self.turns for name in template.placeholders(text)}
            return self.prompts_file.read(self.axes, in_turns)
        found = texts(self.prompt) if self.messages is None else (block_text(self.messages[-1].content),)
        return {"": found[0]} if len(found) == 1 else {str(number): text for number, text in enumerate(found, start=1)}

    def _first_template(self, labels: Mapping[str, str]) -> str:
        return self.templates[labels.get("prompt", "")]

    def _filled_template(self, text: str, labels: Mapping[str, str]) -> str:
        return template.fill(block_text(text), labels)

    def _prompt(self, text: str, labels: Mapping[str, str], trial: int, past: tuple[Message, ...]) -> Prompt:
        request = self._request(text, trial, self.reading.format, past, self._tools_as_json)
        return Prompt(request, labels, trial, selection=self.reading.selection)

    @cached_property
    def swap_lists(self) -> SwapLists | None:
        """Groups and terms of `swap`; `None` without `swap`."""
        return None if self.swap is None else SwapLists.of(self.swap, self.language)

    @cached_property
    def swapped(self) -> SwappedPrompts:
        """Versions of the prompts for each group, and the prompts in which no swap is possible; empty without `swap`.

        Raises:
            ProbeError: the file of the prompts cannot be read, or a swap is possible in too few prompts.
        """
        if self.swap_lists is None:
            return SwappedPrompts((), ())
        if self.prompts_file is not None:
            return swapped_prompts.of_file(self.prompts_file, self.swap_lists)
        written = (PromptRow(text, number) for number, text in enumerate(texts(self.prompt), start=1))
        return swapped_prompts.of_rows(written, self.swap_lists)

    @cached_property
    def _swapped_by_name(self) -> dict[str, SwappedPrompt]:
        """Swapped prompts by the value of the label `prompt`; see `templates`."""
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
        """Return the probe of the placebo swaps, and the labels of the item in this probe; see `Probe.placebo`."""
        if self._placebo is None:
            return None
        return self._placebo, {name: PLACEBO if name in self.axes else label for name, label in labels.items()}

    def _text(self, name: str, cell: Mapping[str, str]) -> str:
        """Return the text of a prompt for a combination of the axes' values.

        Args:
            name: key of the prompt in `templates`.
            cell: the value of each axis.
        """
        if self.swap is None:
            return template.fill(self.templates[name], cell)
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
        """Return a text of all labels: each prompt is a unit of its own."""
        return canonical(dict(labels))

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        """Yield the prompts by template, cell and trial, so that the prompts of one item are close together."""
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
        parts["anonymize"] = canonical(removal_fingerprint(self.anonymize))
        return parts

    @property
    def removed_terms(self) -> tuple[str, ...] | None:
        """Terms that are removed from answers in addition to the built-in terms; `None` if no terms are removed."""
        return terms_of(self.anonymize)

    @property
    def removed_names(self) -> frozenset[str]:
        """First names that are removed from answers, in the form that `first_names.name_forms` returns."""
        return self.anonymize.first_names if isinstance(self.anonymize, Anonymize) else frozenset()
