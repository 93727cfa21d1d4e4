"""`kind: stereotype`: cases in which a stereotype may show, in what is written or in what is held to be likely."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from pytest_fairness.probes import template
from pytest_fairness.probes.base import Probe, block_text
from pytest_fairness.probes.checks import Content, canonical
from pytest_fairness.probes.growth import Trials
from pytest_fairness.probes.loading.diagnostics import Diagnostic
from pytest_fairness.probes.stereotype import likelihood_questions, validation
from pytest_fairness.probes.stereotype.cases import Case, Cases, CasesFile, cases_of
from pytest_fairness.records import AnswerFormat, Json, Prompt, Request


class StereotypeProbe(Probe):
    """Stereotypes: open cases are asked `trials` times each, of each of their groups."""

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
            ProbeError: their file cannot be read any more.
        """
        return cases_of(self.written_cases)

    @cached_property
    def by_name(self) -> dict[str, Case]:
        """The cases by their names."""
        return {case.name: case for case in self.cases}

    @property
    def open_cases(self) -> tuple[Case, ...]:
        """The cases in which texts are asked for, or recorded."""
        return tuple(case for case in self.cases if case.open)

    @property
    def likelihood_cases(self) -> tuple[Case, ...]:
        """The cases whose sentences' likelihood is asked for."""
        return tuple(case for case in self.cases if not case.open)

    def cases_of(self, labels: Mapping[str, str]) -> tuple[Case, ...]:
        """The cases that an item is about: `{"case": "nurse"}`, `{"case": "ceo/nurse"}`, `{"category": "age"}`."""
        if "case" in labels:
            return tuple(self.by_name[name] for name in labels["case"].split("/") if name in self.by_name)
        return tuple(case for case in self.cases if case.category == labels.get("category"))

    def format_of(self, labels: Mapping[str, str]) -> AnswerFormat:
        """Text, or the likelihood of a sentence."""
        return "likelihood" if "sentence" in labels else "text"

    def prompts(self, trials: int | None = None) -> list[Prompt]:
        """Case by case, group by group, trial by trial; then the sentences whose likelihood is asked for."""
        if self.responses is not None:
            return []
        asked = list(self._open_questions(self.draws(trials)))
        scored = self.likelihood_cases if "likelihood" in self.audits else ()
        return asked + [question for case in scored for question in likelihood_questions.questions(case)]

    def _open_questions(self, trials: int) -> Iterator[Prompt]:
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
        """What answers are known by: `case`, and where there are such `category` and `group`."""
        return (
            {"case": case.name}
            | ({} if case.category is None else {"category": case.category})
            | ({} if group is None else {"group": group})
        )

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Of each case that the item is about its prompt and groups, or its sentences; audits add what they read by."""
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
