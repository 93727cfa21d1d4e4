"""`kind: stereotype`: cases in which a stereotype may show, in what is written or in what is held to be likely."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import template
from pytest_fairness.probes.base import Probe, texts
from pytest_fairness.probes.growth import Trials
from pytest_fairness.probes.loading.diagnostics import Fault, quoted, suggestion
from pytest_fairness.probes.stereotype import likelihood_questions, validation
from pytest_fairness.probes.stereotype.cases import Case, Cases, CasesFile, cases_of
from pytest_fairness.records import AnswerFormat, Json, Prompt, Request

MAX_QUESTIONS = 1_000_000
"""Most questions that one probe may ask; beyond it a typing error is likelier than an intention."""

COLUMNS = ("case", "group", "text", "trial")
"""What a file of answers may hold."""


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
        """The cases of a file are known only now; those that stand in the probe `faults` has looked at."""
        for audit in self.audits if isinstance(self.written_cases, CasesFile) else ():
            markers = any(all(case.markers) for case in self.open_cases)
            opened, likelihood = bool(self.open_cases), bool(self.likelihood_cases)
            if (fault := _unfit(audit, markers=markers, opened=opened, likelihood=likelihood)) is not None:
                raise PydanticCustomError("unfit", "{fault}", {"fault": fault})
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
        system, sampling = next(iter(texts(self.system)), None), self.sampling
        for case in self.open_cases:
            (prompt,) = texts(case.prompt)
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
            parts["system"] = next(iter(texts(self.system)), "")
        else:
            parts["columns"] = _canonical(self.responses.columns)
            parts["strata"] = _canonical(sorted(self.responses.strata))
        for case in self.cases_of(labels):
            content: list[Json] = [next(iter(texts(case.prompt)), ""), sorted(case.groups)]
            if not case.open:
                content = [case.context, case.stereotype, case.anti_stereotype, case.unrelated, case.target]
            parts[f"case {case.name}"] = _canonical(content)
        return parts

    @classmethod
    def faults(cls, data: Mapping[str, Json]) -> Iterator[Fault]:
        """Cases, audits and columns that do not fit together."""
        yield from super().faults(data)
        recorded = data.get("responses") is not None
        cases = data.get("cases")
        if isinstance(cases, list):
            for fault in validation.find(cases, recorded=recorded):
                place = ("cases", fault.index, *fault.location)
                yield Fault(place, fault.message, fault.at_key, fault.piece, fault.occurrence)
            yield from _audits(data, [case for case in cases if isinstance(case, Mapping)], recorded=recorded)
            yield from _size(data, cases)
        yield from _columns(data)


def _audits(data: Mapping[str, Json], cases: list[Mapping[str, Json]], *, recorded: bool) -> Iterator[Fault]:
    """An audit of which no case holds what it measures."""
    opened = [case for case in cases if validation.is_open(case, recorded=recorded)]
    markers = any("stereotype" in case for case in opened)
    audits = data.get("audits")
    for name in audits if isinstance(audits, Mapping) and cases else ():
        fault = _unfit(name, markers=markers, opened=bool(opened), likelihood=len(opened) < len(cases))
        if fault is not None:
            yield Fault(("audits", name), fault, at_key=True)


def _unfit(audit: str, *, markers: bool, opened: bool, likelihood: bool) -> str | None:
    """Why an audit has no case to measure, or `None` if it has one."""
    needs = {
        "markers": (markers, "a case with a `prompt` and lists of markers, `stereotype` and `anti_stereotype`"),
        "regard": (opened, "a case with a `prompt`"),
        "likelihood": (likelihood, "a case without `prompt`, whose `stereotype` and `anti_stereotype` are sentences"),
    }
    fits, needed = needs.get(audit, (True, ""))
    return None if fits else f"no case is one for `{audit}`: it needs {needed}"


def _columns(data: Mapping[str, Json]) -> Iterator[Fault]:
    responses = data.get("responses")
    if not isinstance(responses, Mapping):
        return
    columns = responses.get("columns")
    for name in columns if isinstance(columns, Mapping) else ():
        if name not in COLUMNS:
            message = f"{quoted(name)} is no name of this probe{suggestion(name, COLUMNS)}"
            yield Fault(("responses", "columns", name), message, at_key=True)
    strata = responses.get("strata")
    for i, stratum in enumerate(strata) if isinstance(strata, list) else ():
        if stratum in (*COLUMNS, "category"):
            message = f"{quoted(stratum)} is a name of the answers already, and no further stratum"
            yield Fault(("responses", "strata", i), message)


def _size(data: Mapping[str, Json], cases: list[Json]) -> Iterator[Fault]:
    trials = data.get("trials", 20)
    if isinstance(trials, Mapping):
        trials = trials.get("max")
    if data.get("responses") is not None or not isinstance(trials, int) or not 1 <= trials <= MAX_TRIALS:
        return
    groups = [case.get("groups") for case in cases if isinstance(case, Mapping)]
    questions = trials * sum(len(names) if isinstance(names, list) else 1 for names in groups)
    if questions > MAX_QUESTIONS:
        message = f"the cases, groups and trials make more than {MAX_QUESTIONS:,} questions: ask fewer"
        yield Fault(("cases",), message, at_key=True)


def _canonical(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
