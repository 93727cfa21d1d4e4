"""Probes of kind `stereotype`: cases in which generated texts or likelihoods of sentences may show a stereotype."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from pytest_fairness.probes import template
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.checks import Content, canonical
from pytest_fairness.probes.diagnostics import Diagnostic
from pytest_fairness.probes.field_types import block_text
from pytest_fairness.probes.growth import Trials
from pytest_fairness.probes.stereotype import likelihood_prompts, validation
from pytest_fairness.probes.stereotype.cases import Case, Cases, CasesFile, cases_of
from pytest_fairness.records import AnswerFormat, Json, Prompt, Request


class StereotypeProbe(Probe):
    """A probe of stereotypes: each group of an open case gets `trials` answers."""

    prompts_belong_to: ClassVar[str] = "cases"

    kind: Literal["stereotype"] = Field(description="Stereotypes in texts, and in what a model holds to be likely.")
    trials: Trials = Field(
        default=20,
        description="How many answers each prompt gets, of each of its groups; {start: 20, max: 80} asks for more only "
        "while a verdict is open.",
    )
    written_cases: Cases = Field(
        alias="cases", description="The cases, as a list or in a file: `{file: cases.jsonl}`, with the same keys."
    )

    @model_validator(mode="after")
    def _measures_something(self) -> Self:
        """Check that each audit has a case in the file of cases; `validation` checks cases in the probe itself."""
        for audit in self.audits if isinstance(self.written_cases, CasesFile) else ():
            markers = any(all(case.markers) for case in self.open_cases)
            opened, likelihood = bool(self.open_cases), bool(self.likelihood_cases)
            message = validation.lacking(audit, markers=markers, opened=opened, likelihood=likelihood)
            if message is not None:
                raise PydanticCustomError("audits", "{message}", {"message": message})
        return self

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The cases, in their order.

        Raises:
            ProbeError: the file of cases can no longer be read.
        """
        return cases_of(self.written_cases)

    @cached_property
    def by_name(self) -> dict[str, Case]:
        """The cases by their names."""
        return {case.name: case for case in self.cases}

    @property
    def open_cases(self) -> tuple[Case, ...]:
        """The cases whose answers are texts."""
        return tuple(case for case in self.cases if case.open)

    @property
    def likelihood_cases(self) -> tuple[Case, ...]:
        """The cases whose answers are likelihoods of sentences."""
        return tuple(case for case in self.cases if not case.open)

    def cases_of(self, labels: Mapping[str, str]) -> tuple[Case, ...]:
        """Return the cases of an item: of `{"case": "nurse"}`, `{"case": "ceo/nurse"}` or `{"category": "age"}`."""
        if "case" in labels:
            return tuple(self.by_name[name] for name in labels["case"].split("/") if name in self.by_name)
        return tuple(case for case in self.cases if case.category == labels.get("category"))

    def format_of(self, labels: Mapping[str, str]) -> AnswerFormat:
        """Return the format of an answer: a text, or the likelihood of a sentence."""
        return "likelihood" if "sentence" in labels else "text"

    def prompts(self, trials: int | None = None) -> list[Prompt]:
        """Return the prompts of open cases by case, group and trial, then those for the likelihood of sentences."""
        if self.responses is not None:
            return []
        asked = list(self._open_prompts(self.draws(trials)))
        scored = self.likelihood_cases if "likelihood" in self.audits else ()
        return asked + [prompt for case in scored for prompt in likelihood_prompts.prompts(case)]

    def _open_prompts(self, trials: int) -> Iterator[Prompt]:
        system, sampling = self.system_prompt, self.sampling
        for case in self.open_cases:
            prompt = block_text(case.prompt)
            for group in case.groups or (None,):
                text = template.fill(prompt, {} if group is None else {"group": group})
                labels = self.labels(case, group)
                for trial in range(trials):
                    yield Prompt(Request(text, system, sampling, trial).with_own_seed(), labels, trial)

    @staticmethod
    def labels(case: Case, group: str | None = None) -> dict[str, str]:
        """Return the labels of answers: `case`, and `category` and `group` if there are any."""
        return (
            {"case": case.name}
            | ({} if case.category is None else {"category": case.category})
            | ({} if group is None else {"group": group})
        )

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return prompt and groups, or sentences, of the item's cases; audits add their own settings."""
        parts = {}
        if self.responses is None:
            parts["system"] = block_text(self.system)
        else:
            parts["columns"] = canonical(self.responses.columns)
            parts["strata"] = canonical(sorted(self.responses.strata))
        for case in self.cases_of(labels):
            content: list[Json] = [block_text(case.prompt), sorted(case.groups)]
            if not case.open:
                content = [case.context, case.stereotype, case.anti_stereotype, case.unrelated, case.target]
            parts[f"case {case.name}"] = canonical(content)
        return parts

    @classmethod
    def diagnostics(cls, data: Content) -> Iterator[Diagnostic]:
        """Yield the diagnostics of cases, audits and columns that do not fit together."""
        yield from super().diagnostics(data)
        yield from validation.diagnostics(data)
