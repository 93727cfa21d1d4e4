"""Probes of kind `generation`: parallel texts about groups, one prompt for every combination of the axes' values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from pytest_fairness.probes import checks, template
from pytest_fairness.probes.audit_settings import AuditSettings, ProbeModel
from pytest_fairness.probes.checks import Content, canonical
from pytest_fairness.probes.conversations import ConversationProbe
from pytest_fairness.probes.diagnostics import Diagnostic, file_errors, raise_diagnostics
from pytest_fairness.probes.field_types import Identifier, Texts, block_text, texts
from pytest_fairness.probes.free_text import FreeTextProbe
from pytest_fairness.probes.generation import validation
from pytest_fairness.probes.generation.anonymize import Anonymize, Removed, removal_fingerprint, terms_of
from pytest_fairness.probes.generation.axes import Axis, Intersection
from pytest_fairness.probes.generation.prompts_file import PromptsFile
from pytest_fairness.probes.interim_stages import Trials, max_trials
from pytest_fairness.records import AnswerFormat, Message, Prompt


class AnswerSettings(ProbeModel):
    """Settings of the format of answers."""

    format: Literal["text", "list", "json"] = Field(
        default="text",
        description="text: unchanged. json: the joined keys and values of an object or array. list: a list of texts.",
    )


class GenerationProbe(ConversationProbe, FreeTextProbe):
    """Probe of texts about groups; each prompt gets `trials` answers for every combination of the axes' values."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in ("prompt", "prompts", "messages", "responses")]}
    )
    several_prompts: ClassVar[bool] = True

    kind: Literal["generation"] = Field(description="Kind of the probe: parallel texts about groups.")
    prompt: Texts | None = Field(
        default=None,
        description="The prompt: one text or a list of paraphrases. {race} stands for the value of the axis `race`; "
        "a literal brace is written {{ or }}.",
    )
    prompts_file: PromptsFile | None = Field(
        default=None,
        alias="prompts",
        description="A file with prompts in place of `prompt`, each with a placeholder for every axis.",
    )
    axes: dict[Identifier, Axis] = Field(
        min_length=1, description="The attributes by which groups differ, by name. Their values are combined."
    )
    intersections: tuple[Intersection, ...] = Field(
        default=(),
        min_length=1,
        description="Sets of two or more axes, such as [[race, gender]]. Each combination of their marked values is "
        "compared with the combination of their unmarked values.",
    )
    trials: Trials = Field(
        default=15,
        description="Number of answers to each prompt for each combination of values; {start: 8, max: 60} asks for "
        "more than 8 only while a verdict is inconclusive. Default with `prompts`: 1.",
    )
    answer: AnswerSettings = Field(default_factory=AnswerSettings, description="How answers are parsed.")
    anonymize: Removed = Field(
        default=(),
        description="Terms that are removed from the answers in addition to the built-in identity terms and the axes' "
        "values. false removes nothing; {names: true} removes first names as well.",
    )

    def format_of(self, labels: Mapping[str, str]) -> AnswerFormat:
        """Return the format that the probe's key `answer` sets."""
        return self.answer.format

    @model_validator(mode="after")
    def _reads_prompts(self) -> Self:
        """Read the prompts of a file, if there is one, and set `trials` to 1 for them unless the probe sets it."""
        if self.prompts_file is not None:
            if "trials" not in self.model_fields_set:
                # The model is frozen, and its default cannot depend on a key that is validated later.
                object.__setattr__(self, "trials", 1)
            with file_errors():
                count = len(self.templates) * len(list(self.cells())) * max_trials(self.trials, None)
            raise_diagnostics(checks.too_many_prompts({}, count, "prompts, values and trials", "prompts"))
        return self

    @cached_property
    def templates(self) -> dict[str, str]:
        """Templates of the prompts, by the value of the label `prompt`; a single prompt, without label, has the key "".

        Raises:
            ProbeError: the file of the prompts cannot be read, or a prompt in it is not a valid template.
        """
        if self.prompts_file is not None:
            return self.prompts_file.read(self.axes)
        found = texts(self.prompt) if self.messages is None else (block_text(self.messages[-1].content),)
        return {"": found[0]} if len(found) == 1 else {str(number): text for number, text in enumerate(found, start=1)}

    def _first_template(self, labels: Mapping[str, str]) -> str:
        return self.templates[labels.get("prompt", "")]

    def _filled(self, text: str, labels: Mapping[str, str]) -> str:
        return template.fill(block_text(text), labels)

    def _prompt(self, text: str, labels: Mapping[str, str], trial: int, past: tuple[Message, ...]) -> Prompt:
        return Prompt(self._request(text, trial, self.answer.format, past), labels, trial)

    def cells(self) -> Iterator[dict[str, str]]:
        """Yield every combination of the axes' values, with the unmarked value of each axis first."""
        for values in itertools.product(*(axis.values for axis in self.axes.values())):
            yield dict(zip(self.axes, values, strict=True))

    def prompts(self, trials: int | None = None) -> list[Prompt]:
        """Return the prompts by template, cell and trial, so that the prompts of one item are close together."""
        if self.responses is not None:
            return []
        asked = []
        for name, prompt in self.templates.items():
            for cell in self.cells():
                text, opening = template.fill(prompt, cell), self._opening(cell)
                labels = {**cell, "prompt": name} if name else cell
                count = max_trials(self.trials, trials)
                asked += [self._prompt(text, labels, trial, opening) for trial in range(count)]
        return asked

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the inputs of the item; see `Probe.fingerprint`.

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
        parts["answer"] = self.answer.format
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

    @classmethod
    def diagnostics(cls, data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
        """Yield diagnostics for placeholders, values and columns that contradict each other."""
        yield from super().diagnostics(data, audits)
        yield from validation.diagnostics(data, audits)
