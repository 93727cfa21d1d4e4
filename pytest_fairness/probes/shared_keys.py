"""Keys that several kinds of probe share: attributes, stages, language, refusals, reading of answers."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self, cast

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from pytest_fairness.languages import NAMES, WITHOUT_BLANKS, Language, can_segment, language
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import field_types
from pytest_fairness.probes.diagnostics import Diagnostic, quoted, raise_diagnostics
from pytest_fairness.probes.field_types import Line, ProbeFile, ProbeModel, ScorerName, Text, mapping_or_other
from pytest_fairness.records import AnswerFormat, Json, Judging, NumberFormat, Prompt, Request, Selection

# Attributes of people, such as age, and their values; the values of several attributes can be combined.

_ARTICLE = re.compile(r"an?\s+(?=\S)", re.IGNORECASE)


class Value(ProbeModel):
    """One value of an attribute; a text in the probe file is its name and its words."""

    label: Line = Field(description="The value's name in reports and baselines.")
    text: Line = Field(description="The words that replace {value}.")
    indirect: Line | None = Field(
        default=None,
        description="Indirect wording: other words for the value, for a second prompt after a refusal.",
    )


def _from_text(written: object) -> object:
    return written if isinstance(written, Mapping | Value) else {"label": written, "text": written}


WrittenValue = Annotated[Value, BeforeValidator(_from_text, json_schema_input_type=Line | Value)]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute and its values; a combination of several attributes is named `age+personality`."""

    name: str
    values: tuple[Value, ...]
    parts: tuple[str, ...]


def combined_attribute(attributes: Sequence[Attribute]) -> Attribute:
    """Return a combination of attributes, such as `age+personality`, with one value for each combination of values."""
    combinations: list[tuple[Value, ...]] = [()]
    for attribute in attributes:
        combinations = [(*before, value) for before in combinations for value in attribute.values]
    values = (Value(label="; ".join(value.label for value in parts), text=_joined(parts)) for parts in combinations)
    names = tuple(attribute.name for attribute in attributes)
    return Attribute("+".join(names), tuple(values), names)


def _joined(values: Sequence[Value]) -> str:
    """Return the words of several values, joined by commas; only the first value keeps its article.

    For `a young` and `an extraverted`, return `a young, extraverted`.
    """
    first, *others = (value.text for value in values)
    return ", ".join([first, *(_ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text for text in others)])


# The key `units`: what is a sample of a larger population, such as names or prompts.

Units = Annotated[
    Annotated[Line, Tag("other")] | Annotated[tuple[Line, ...], Tag("list"), Field(min_length=1)],
    Discriminator(field_types.list_or_other),
]
"""Type of the key `units`: one or several names of placeholders, columns or keys."""
EACH_ANSWER = "trial"
"""Value of the key `units` for which each answer is an observation, whatever it shares with others."""


def units_named(written: str | tuple[str, ...] | None, default: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names under `units`; those of `default` without the key."""
    names = tuple(default) if written is None else (written,) if isinstance(written, str) else written
    return tuple(name for name in dict.fromkeys(names) if name != EACH_ANSWER)


def in_plural(name: str) -> str:
    """Return the plural of an English name of a column or key: `names`, `cities`."""
    word = name.replace("_", " ")
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}es" if word.endswith("s") else f"{word}s"


# Sequential sampling: the numbers of trials and entities at each interim analysis.

GROWTH = 1.5
"""Maximum factor by which the number of trials or entities grows from one interim analysis to the next.

With a larger factor, an item that narrowly misses a decision would cost too many further requests.
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """Numbers of trials and of entities at one interim analysis; `None` stands for the probe's own number.

    `left_out` are the names of the entities that are not asked about yet. `part` is the part of the units that a night
    asks about, from 0, and the number of parts; `None` for all units.
    """

    trials: int | None = None
    entities: int | None = None
    left_out: frozenset[str] = frozenset()
    part: tuple[int, int] | None = None

    def includes(self, labels: Mapping[str, str]) -> bool:
        """Return whether the stage includes prompts with these labels; the trial number is not checked."""
        return labels.get("entity") not in self.left_out


class GrowingTrials(ProbeModel):
    """Number of trials that grows while a verdict is inconclusive."""

    start: int = Field(ge=1, le=MAX_TRIALS, description="Number of trials at the first interim analysis.")
    max: int = Field(
        ge=1,
        le=MAX_TRIALS,
        description="Maximum number of trials; the number grows by up to half each time while an item's verdict is "
        "inconclusive.",
    )

    @model_validator(mode="after")
    def _grows(self) -> GrowingTrials:
        if self.start >= self.max:
            raise ValueError("`start` must be below `max`; for a fixed number write `trials: 20`")
        return self


Trials = Annotated[
    Annotated[int, Tag("other"), Field(ge=1, le=MAX_TRIALS)] | Annotated[GrowingTrials, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""Type of a number of trials: fixed or growing."""


def max_trials(trials: Trials, override: int | None = None) -> int:
    """Return `override` if it is given; otherwise the fixed number of trials, or the maximum of a growing number."""
    if override is not None:
        return override
    return trials.max if isinstance(trials, GrowingTrials) else trials


def growing(start: int, end: int) -> list[int]:
    """Return the number of trials or entities at each interim analysis; each is at most `GROWTH` times the previous."""
    steps = math.ceil(math.log(end / start) / math.log(GROWTH)) if start < end else 0
    sizes = (round(start * (end / start) ** (step / steps)) for step in range(steps))
    # Small sizes may be equal after rounding.
    return sorted({*sizes, end})


def information_fractions(stages: Sequence[Stage]) -> list[float]:
    """Return each stage's number of answers, divided by the number of answers of the last stage."""
    sizes = [(stage.trials or 1) * (stage.entities or 1) for stage in stages]
    return [size / sizes[-1] for size in sizes]


# The key `language` of a probe: the languages of its answers, and words that the probe declares.

Terms = Annotated[tuple[Text, ...], Field(min_length=1)]


def _known_code(code: str) -> str:
    codes = {name.casefold(): known for known, name in NAMES.items()}
    if code not in NAMES:
        cure = f"write {codes[code.casefold()]}" if code.casefold() in codes else "write an ISO 639 code, such as de"
        raise ValueError(f"{quoted(code)} is not the code of a known language: {cure}")
    if code in WITHOUT_BLANKS and not can_segment():
        raise ValueError(
            f"{NAMES[code]} is written without blanks, and the package icu4py is needed to find its words: "
            'pip install "pytest-fairness[segmentation]"'
        )
    return code


Code = Annotated[str, AfterValidator(_known_code)]


class OwnWords(ProbeModel):
    """Words of a language that a probe declares, in addition to the built-in words."""

    identity_terms: Terms = Field(
        default=(), description="Terms that name a group; answers are measured without these terms."
    )
    function_words: Terms = Field(
        default=(), description="Words such as `the`; reports list them last among the words that explain a result."
    )
    refusals: Terms = Field(
        default=(),
        description="Phrases that mark a refusal: an answer is a refusal if its first sentence contains one of them.",
    )


class DeclaredLanguage(ProbeModel):
    """A language with words that the probe declares."""

    code: Code = Field(description="ISO 639 code of the language.")
    terms: Annotated[
        Annotated[OwnWords, Tag("other")] | Annotated[ProbeFile, Tag("text")], Discriminator(field_types.text_or_other)
    ] = Field(
        description="The words of the language, or a TOML file in the probe's folder with the keys `identity_terms`, "
        "`function_words` and `refusals`."
    )

    @field_validator("terms")
    @classmethod
    def _content(cls, terms: OwnWords | Path) -> OwnWords:
        """Return the declared words; read them from the file if `terms` is a path."""
        return terms if isinstance(terms, OwnWords) else OwnWords.model_validate(_read_toml(terms))

    def to_language(self) -> Language:
        return language(self.code).with_words(**dict(cast("OwnWords", self.terms)))


def _read_toml(path: Path) -> dict[str, Json]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        match error:
            case UnicodeDecodeError():
                reason = "it is not UTF-8 text. Save the file in the encoding UTF-8"
            case OSError():
                reason = f"{error.strerror or error}. Check its permissions"
            case _:
                syntax = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
                reason = f"{syntax}. Write lists such as refusals = ['I cannot', 'no way']"
        raise ValueError(f"{quoted(path.name)} cannot be read as TOML: {reason}") from None


def _one_several_or_declared(given: object) -> str:
    if isinstance(given, Mapping | DeclaredLanguage):
        return "declared"
    return "one" if isinstance(given, str) else "several"


Languages = Annotated[
    Annotated[Code, Tag("one")]
    | Annotated[tuple[Code, ...], Tag("several"), Field(min_length=1)]
    | Annotated[DeclaredLanguage, Tag("declared")],
    Discriminator(_one_several_or_declared),
]
"""Type of the key `language`: one code, several codes, or a code with words that the probe declares."""


def to_language(written: str | tuple[str, ...] | DeclaredLanguage) -> Language:
    if isinstance(written, DeclaredLanguage):
        return written.to_language()
    return language(*((written,) if isinstance(written, str) else dict.fromkeys(written)))


# The key `refusals` of a probe: how refusals among its answers are recognised.

NEEDED_BY = {"votes": "judge", "scorer": "scorer", "threshold": "scorer"}
"""Keys of `refusals` that are allowed only with a certain value of `by`, each with this value."""


class RefusalSettings(ProbeModel):
    """Settings that say how refusals are recognised; all audits of the probe use the same classification."""

    by: Literal["patterns", "judge", "scorer"] = Field(
        default="patterns",
        description="How refusals are recognised. patterns: by the patterns of the probe's `language`. judge: by a "
        "judge model (ini fairness_judge), in any language. scorer: by the scores of the scorer named in `scorer`.",
    )
    votes: int = Field(
        default=1, ge=1, le=99, description="Number of votes of the judge model on each answer; must be odd."
    )
    scorer: ScorerName | None = Field(
        default=None,
        description="Name of the scorer: a built-in scorer, a scorer of an installed package, or a scorer that "
        "`fairness_scorers` in the ini file defines.",
    )
    threshold: float = Field(default=0.5, description="An answer with at least this score is a refusal.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        found = [
            Diagnostic((name,), f"`{name}` needs `by: {by}`: set `by` to `{by}`, or remove `{name}`", at_key=True)
            for name, by in NEEDED_BY.items()
            if name in self.model_fields_set and self.by != by
        ]
        if self.by == "scorer" and self.scorer is None:
            found.append(Diagnostic((), "`by: scorer` needs the name of a scorer: add `scorer`"))
        if self.votes % 2 == 0:
            found.append(
                Diagnostic(("votes",), "`votes` must be odd, so that two classes cannot get the same number of votes")
            )
        raise_diagnostics(found)
        return self


# Form of a probe's answers, and the models that classify the answers.


@dataclass(frozen=True)
class AnswerReading:
    """Form of a probe's answers, and the models that classify them.

    Attributes:
        choices: valid answers; empty if answers are not choices, or if a judge model classifies the answers.
        number: range, unit and name of the number that an answer states; `None` if answers are not numbers.
        selection: part of an answer that is measured; `None` if it is the whole answer.
        judging: instructions for the judge model that classifies the answers; `None` without a judge model.
    """

    format: AnswerFormat = "text"
    likelihood_label: str = ""
    choices: tuple[str, ...] = ()
    number: NumberFormat | None = None
    selection: Selection | None = None
    judging: Judging | None = None
    refusals: RefusalSettings = field(default_factory=RefusalSettings)

    @property
    def judge_votes(self) -> int:
        """Return the number of votes of the judge model on each answer; 0 without a judge model."""
        if self.judging is not None:
            return self.judging.votes
        return self.refusals.votes if self.refusals.by == "judge" else 0

    def format_of(self, labels: Mapping[str, str]) -> AnswerFormat:
        return "likelihood" if self.likelihood_label in labels else self.format

    def recorded_prompt(self, labels: Mapping[str, str], trial: int) -> Prompt:
        """Return a prompt without a text; its other fields say how a recorded answer with these labels is parsed."""
        request = Request("", answer_format=self.format_of(labels))
        return Prompt(request, labels, trial, self.choices, self.number, self.selection)
