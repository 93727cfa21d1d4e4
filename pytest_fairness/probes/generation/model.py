"""`kind: generation`: parallel texts for groups, every combination of the axes' values asked the same."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, field_serializer
from pydantic_core import PydanticCustomError

from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import template
from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.base import Identifier, Line, Probe, Text, Texts, texts
from pytest_fairness.probes.generation import first_names
from pytest_fairness.probes.growth import Trials
from pytest_fairness.probes.loading.diagnostics import Fault, Location, nearest, quoted, suggestion
from pytest_fairness.records import AnswerFormat, Json, Prompt, Request

MAX_QUESTIONS = 1_000_000
"""Most questions that one probe may ask; beyond it a typing error is likelier than an intention."""

Terms = Annotated[tuple[Text, ...], Field(min_length=1)]

OTHER_COLUMNS = ("text", "trial", "prompt")
"""What a file of answers may hold besides the axes."""


class Axis(ProbeModel):
    """One attribute by which groups differ."""

    unmarked: Line = Field(description="The value that the others are compared with.")
    marked: tuple[Line, ...] = Field(min_length=1, description="The values that are compared with the unmarked one.")

    @property
    def values(self) -> tuple[str, ...]:
        """The unmarked value, then the marked ones."""
        return (self.unmarked, *self.marked)


Intersection = Annotated[tuple[Line, ...], Field(json_schema_extra={"minItems": 2, "uniqueItems": True})]
"""Names of two or more axes whose marked values are compared jointly."""


class AnswerSettings(ProbeModel):
    """How answers are read."""

    format: Literal["text", "list", "json"] = Field(
        default="text",
        description="text: as it stands. json: an object or array, its keys and values joined. list: a list of texts.",
    )


def _packaged(names_given: bool) -> bool:
    if not first_names.available():
        raise PydanticCustomError(
            "names", "the list of first names takes the package faker: pip install 'pytest-fairness[names]'"
        )
    return names_given


def _one_name(name: str) -> str:
    if not first_names.folded([name]):
        raise PydanticCustomError("names", "is no name: a name has at least two letters")
    return name


class Anonymize(ProbeModel):
    """Terms and names removed from the answers, besides the built-in identity terms and the axes' values."""

    terms: Terms = Field(default=(), description="Terms that are removed wherever they stand.")
    names: (
        Annotated[tuple[Annotated[Line, AfterValidator(_one_name)], ...], Field(min_length=1)]
        | Annotated[Literal[True], AfterValidator(_packaged)]
        | None
    ) = Field(
        default=None,
        description="First names that are removed where they are written as names: true for a packaged list, or a list "
        "of your own.",
    )

    @property
    def first_names(self) -> frozenset[str]:
        """Return the names as `names.folded` gives them; of a packaged list, all of it."""
        return frozenset(first_names.packaged()) if self.names is True else first_names.folded(self.names or ())

    @field_serializer("names")
    def _digest_of_list(self, given: tuple[str, ...] | bool | None) -> Json:
        """A packaged list is what is in it: measurements are kept under a probe's dump."""
        return first_names.digest() if given is True else given


class GenerationProbe(Probe):
    """Parallel texts for groups: the axes are crossed, and every combination gets `trials` answers."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["prompt"]}, {"required": ["responses"]}]})
    several_prompts: ClassVar[bool] = True

    kind: Literal["generation"] = Field(description="Parallel texts for groups.")
    prompt: Texts | None = Field(
        default=None,
        description="What is asked: one text or a list of paraphrases. {race} stands for the value of the axis `race`; "
        "a brace that is meant as such is written {{ or }}.",
    )
    axes: dict[Identifier, Axis] = Field(
        min_length=1, description="The attributes by which groups differ, by name. They are crossed."
    )
    intersections: tuple[Intersection, ...] = Field(
        default=(),
        min_length=1,
        description="Sets of two or more axes whose marked values are compared jointly, each combination with that of "
        "the unmarked values: [[race, gender]].",
    )
    trials: Trials = Field(
        default=15,
        description="How many answers each prompt gets for each combination of values; {start: 8, max: 60} asks for "
        "more only while a verdict is open.",
    )
    answer: AnswerSettings = Field(default_factory=AnswerSettings, description="How answers are read.")
    anonymize: Terms | Literal[False] | Anonymize = Field(
        default=(),
        description="Terms that are removed from the answers besides the built-in identity terms and the axes' values; "
        "false removes nothing; {names: true} removes first names as well.",
    )

    @property
    def answer_format(self) -> AnswerFormat:
        """How answers are read."""
        return self.answer.format

    @property
    def templates(self) -> tuple[str, ...]:
        """The prompts as templates, without the line end of a block text."""
        return texts(self.prompt)

    def cells(self) -> Iterator[dict[str, str]]:
        """Every combination of the axes' values, the unmarked ones first."""
        for values in itertools.product(*(axis.values for axis in self.axes.values())):
            yield dict(zip(self.axes, values, strict=True))

    def prompts(self, trials: int | None = None) -> list[Prompt]:
        """Prompt by prompt, cell by cell, trial by trial: what one item waits for lies close together."""
        if self.responses is not None:
            return []
        system = next(iter(texts(self.system)), None)
        sampling = self.sampling
        asked = []
        for number, prompt in enumerate(self.templates, start=1):
            for cell in self.cells():
                text = template.fill(prompt, cell)
                labels = cell if len(self.templates) == 1 else {**cell, "prompt": str(number)}
                for trial in range(self.draws(trials)):
                    request = Request(text, system, sampling, trial, self.answer.format).with_own_seed()
                    asked.append(Prompt(request, labels, trial))
        return asked

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Of an axis that the item is about, only the values it compares; the order of values and terms is no part."""
        parts = {}
        if self.responses is None:
            parts["prompt"] = self.templates[0] if len(self.templates) == 1 else _canonical(self.templates)
            parts["system"] = next(iter(texts(self.system)), "")
        else:
            parts["columns"] = _canonical(self.responses.columns)
            parts["strata"] = _canonical(sorted(self.responses.strata))
        for name, axis in self.axes.items():
            marked = [labels[name]] if name in labels else sorted(axis.marked)
            parts[f"axis {name}"] = _canonical({"unmarked": axis.unmarked, "marked": marked})
        parts["answer"] = self.answer.format
        parts["anonymize"] = _canonical(self._anonymized())
        return parts

    @property
    def removed_terms(self) -> tuple[str, ...] | None:
        """The probe's own terms that are removed from answers; `None` where nothing is removed."""
        if self.anonymize is False:
            return None
        return self.anonymize.terms if isinstance(self.anonymize, Anonymize) else self.anonymize

    @property
    def removed_names(self) -> frozenset[str]:
        """First names that are removed from answers, folded."""
        return self.anonymize.first_names if isinstance(self.anonymize, Anonymize) else frozenset()

    def _anonymized(self) -> Json:
        """Return the removed terms and names, sorted; of a packaged list of names its digest."""
        terms = False if self.removed_terms is None else sorted(set(self.removed_terms))
        if not isinstance(self.anonymize, Anonymize) or self.anonymize.names is None:
            return terms
        given = self.anonymize.names
        return {"terms": terms, "names": first_names.digest() if given is True else sorted(first_names.folded(given))}

    @classmethod
    def faults(cls, data: Mapping[str, Json]) -> Iterator[Fault]:
        """Placeholders, values and columns that do not fit together."""
        yield from super().faults(data)
        recorded = data.get("responses") is not None
        if not recorded and data.get("prompt") is None and "prompt" not in data:
            yield Fault((), "`prompt` is missing: what is asked, or `responses:` with answers that are there already")
        axes = data.get("axes")
        if not isinstance(axes, Mapping):
            return
        audits = data.get("audits")
        if "lexicon" in axes and isinstance(audits, Mapping) and "lexicon" in audits:
            message = "an axis cannot be called 'lexicon' beside the audit lexicon, whose items name their lexicon so"
            yield Fault(("axes", "lexicon"), message, at_key=True)
        yield from _value_faults(axes)
        yield from _intersection_faults(data.get("intersections"), list(axes))
        yield from _prompt_faults(data, list(axes), recorded=recorded)
        yield from _column_faults(data, list(axes))
        yield from _size_faults(data, axes)


def _canonical(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _value_faults(axes: Mapping[str, Json]) -> Iterator[Fault]:
    for name, axis in axes.items():
        if name in OTHER_COLUMNS:
            yield Fault(
                ("axes", name), f"an axis cannot be called {quoted(name)}: answers have that already", at_key=True
            )
        if not isinstance(axis, Mapping):
            continue
        marked = axis.get("marked")
        seen: dict[str, str] = {}
        values: list[tuple[Location, Json]] = [(("axes", name, "unmarked"), axis.get("unmarked"))]
        values += (
            [(("axes", name, "marked", i), value) for i, value in enumerate(marked)] if isinstance(marked, list) else []
        )
        for location, value in values:
            if not isinstance(value, str):
                continue
            folded = " ".join(value.casefold().split())
            if folded not in seen:
                seen[folded] = "the unmarked value" if location[-1] == "unmarked" else "there already"
            else:
                yield Fault(location, f"{quoted(value)} is {seen[folded]}: each value of an axis is there once")


def _intersection_faults(intersections: Json, axes: list[str]) -> Iterator[Fault]:
    seen: set[frozenset[str]] = set()
    for i, crossed in enumerate(intersections if isinstance(intersections, list) else ()):
        if not isinstance(crossed, list) or not all(isinstance(name, str) for name in crossed):
            continue
        place: Location = ("intersections", i)
        for j, name in enumerate(crossed):
            if name not in axes:
                yield Fault((*place, j), f"{quoted(name)} is no axis of this probe{suggestion(name, axes)}")
            elif name in crossed[:j]:
                yield Fault((*place, j), f"{quoted(name)} is there already: each axis of an intersection is there once")
        together = frozenset(crossed)
        if len(crossed) < 2:
            yield Fault(place, "an intersection names at least two axes; single axes are compared anyway")
        elif together in seen:
            yield Fault(place, "this intersection is there already")
        if len(together) > 1:
            seen.add(together)


def _prompt_faults(data: Mapping[str, Json], axes: list[str], *, recorded: bool) -> Iterator[Fault]:
    prompts = list(_texts_at(("prompt",), data.get("prompt")))
    yield from _template_faults(prompts, axes, demanded=not recorded)
    variants = data.get("variants")
    for name, variant in variants.items() if isinstance(variants, Mapping) else ():
        if isinstance(variant, Mapping):
            others = list(_texts_at(("variants", name, "prompt"), variant.get("prompt")))
            yield from _template_faults(others, axes, demanded=not recorded)


def _texts_at(location: Location, value: Json) -> Iterator[tuple[Location, str]]:
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, list):
        yield from (((*location, i), text) for i, text in enumerate(value) if isinstance(text, str))


def _template_faults(prompts: list[tuple[Location, str]], axes: list[str], *, demanded: bool) -> Iterator[Fault]:
    used = [_meant(text, axes) for _, text in prompts]
    for location, text in prompts:
        for fault in template.faults(text, axes):
            yield Fault(location, fault.message, piece=fault.piece, occurrence=fault.occurrence)
    if not demanded or not prompts:
        return
    for axis in axes:
        without = [location for (location, _), names in zip(prompts, used, strict=True) if axis not in names]
        if len(without) == len(prompts) and prompts[0][0][0] == "prompt":
            message = f"the axis {quoted(axis)} is used in no prompt: write {{{axis}}} where its values belong"
            yield Fault(("axes", axis), message, at_key=True)
            continue
        for location in without:
            # Its groups would be asked the very same question, and look alike whatever the model does.
            yield Fault(
                location, f"this prompt does not use the axis {quoted(axis)}: write {{{axis}}} where its values belong"
            )


def _meant(prompt: str, axes: list[str]) -> set[str | None]:
    """The axes that a prompt uses; a misspelt one is a fault already, and not unused as well."""
    names = template.placeholders(prompt)
    unknown = [name for name in names if name not in axes]
    return {*names, *(nearest(name, axes) for name in unknown[: template.MAX_FAULTS])}


def _column_faults(data: Mapping[str, Json], axes: list[str]) -> Iterator[Fault]:
    responses = data.get("responses")
    if not isinstance(responses, Mapping):
        return
    known = [*axes, *OTHER_COLUMNS]
    columns = responses.get("columns")
    for name in columns if isinstance(columns, Mapping) else ():
        if name not in known:
            yield Fault(
                ("responses", "columns", name),
                f"{quoted(name)} is no name of this probe{suggestion(name, known)}",
                at_key=True,
            )
    strata = responses.get("strata")
    # The file's own `prompt` column may well be a stratum, unless it stands for the probe's prompts already.
    taken = {*axes, "text", "trial", *(columns if isinstance(columns, Mapping) else ())}
    for i, stratum in enumerate(strata) if isinstance(strata, list) else ():
        if not isinstance(stratum, str):
            continue
        if stratum in taken:
            yield Fault(
                ("responses", "strata", i),
                f"{quoted(stratum)} is a name of the answers already, and no further stratum",
            )
        taken.add(stratum)


def _size_faults(data: Mapping[str, Json], axes: Mapping[str, Json]) -> Iterator[Fault]:
    trials, prompt = data.get("trials", 15), data.get("prompt")
    trials = trials.get("max") if isinstance(trials, Mapping) else trials
    if data.get("responses") is not None or not isinstance(trials, int):
        return
    counts = [
        len(axis["marked"]) + 1
        for axis in axes.values()
        if isinstance(axis, Mapping) and isinstance(axis.get("marked"), list)
    ]
    questions = math.prod(counts) * trials * (len(prompt) if isinstance(prompt, list) else 1)
    if trials <= MAX_TRIALS and questions > MAX_QUESTIONS:
        message = f"the values, prompts and trials make more than {MAX_QUESTIONS:,} questions: ask fewer"
        yield Fault(("axes",), message, at_key=True)
