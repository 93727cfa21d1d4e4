"""Probes of kind `stereotype`: cases that show stereotypes in generated texts or in likelihoods of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from pytest_fairness.probes import checks
from pytest_fairness.probes.answer_reading import AnswerReading
from pytest_fairness.probes.checks import canonical
from pytest_fairness.probes.diagnostics import raise_diagnostics
from pytest_fairness.probes.field_types import block_text
from pytest_fairness.probes.free_text import FreeTextProbe
from pytest_fairness.probes.keys.interim_stages import Trials, max_trials
from pytest_fairness.probes.prompts import template
from pytest_fairness.probes.stereotype import likelihood_prompts, validation
from pytest_fairness.probes.stereotype.cases import Case, Cases, CasesFile, cases_of
from pytest_fairness.records import Json, Prompt


class StereotypeProbe(FreeTextProbe):
    """Probe of stereotypes; the `prompt` of a case gets `trials` answers for each of the case's groups."""

    prompts_key: ClassVar[str] = "cases"

    units = "cases"

    kind: Literal["stereotype"] = Field(
        description="Kind of the probe: measures stereotypes in answers, or in the likelihoods of sentences."
    )
    trials: Trials = Field(
        default=20,
        description="Number of answers to each prompt for each of its groups. With {start: 20, max: 80}, the number "
        "begins at 20, and grows up to 80 while a verdict is inconclusive.",
    )
    written_cases: Cases = Field(
        alias="cases", description="The cases as a list, or a file of cases with the same keys: `{file: cases.jsonl}`."
    )

    @model_validator(mode="after")
    def _has_needed_cases(self) -> Self:
        """Check that a file of cases has a case of each type that the audits need.

        For cases that are written in the probe, `validation.diagnostics` checks this.
        """
        if isinstance(self.written_cases, CasesFile):
            missing = validation.missing_case_types(
                markers=any(all(case.markers) for case in self.open_cases),
                texts=bool(self.open_cases),
                groups=any(case.groups for case in self.open_cases),
                likelihoods=bool(self.likelihood_cases),
            )
            raise_diagnostics(checks.unmet_needs(self.audits, missing))
        return self

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The cases, in the order of the list or file.

        Raises:
            ProbeError: the file of cases can no longer be read.
        """
        return cases_of(self.written_cases)

    @cached_property
    def by_name(self) -> dict[str, Case]:
        """The cases by name."""
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
        """Return the cases of an item.

        The labels of the item name a case (`{"case": "nurse"}`), two opposite cases (`{"case": "ceo/nurse"}`) or a
        category.
        """
        if "case" in labels:
            return tuple(self.by_name[name] for name in labels["case"].split("/") if name in self.by_name)
        return tuple(case for case in self.cases if case.category == labels.get("category"))

    @cached_property
    def reading(self) -> AnswerReading:
        """Form of the answers: texts, and likelihoods of sentences."""
        return replace(super().reading, likelihood_label="sentence")

    def unit_of(self, labels: Mapping[str, str]) -> str:
        """Return the name of the case."""
        return labels["case"]

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        """Yield the prompts of the cases that have a `prompt`, ordered by case, group and trial.

        If an audit needs likelihoods, the prompts that request likelihoods follow.
        """
        yield from self._open_prompts(max_trials(self.trials, trials))
        if any(settings.needs == validation.LIKELIHOODS for settings in self.audits.values()):
            for case in self.likelihood_cases:
                yield from likelihood_prompts.prompts(case)

    def _open_prompts(self, trials: int) -> Iterator[Prompt]:
        for case in self.open_cases:
            prompt = block_text(case.prompt)
            for group in case.groups or (None,):
                text = template.fill(prompt, {} if group is None else {"group": group})
                labels = self.labels(case, group)
                for trial in range(trials):
                    yield Prompt(self._request(text, trial), labels, trial)

    @staticmethod
    def labels(case: Case, group: str | None = None) -> dict[str, str]:
        """Return the labels of the answers to a case: `case` and, if present, `category` and `group`."""
        return (
            {"case": case.name}
            | ({} if case.category is None else {"category": case.category})
            | ({} if group is None else {"group": group})
        )

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that determine an item: its cases and the system prompt; see `Probe.fingerprint`.

        For recorded answers, the columns and strata take the place of the system prompt.
        """
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
