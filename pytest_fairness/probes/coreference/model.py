"""Probes of kind `coreference`: sentences with two people and one pronoun, which may refer to either person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, ValidationInfo, field_serializer, field_validator
from pydantic_core import PydanticCustomError

from pytest_fairness.probes import checks
from pytest_fairness.probes.audit_settings import ProbeModel, mapping_or_other
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.coreference import winobias
from pytest_fairness.probes.diagnostics import Diagnostic, Location, errors_at, quoted, raise_diagnostics
from pytest_fairness.probes.field_types import Line, ProbeFile, Text, block_text
from pytest_fairness.probes.keys.interim_stages import max_trials
from pytest_fairness.probes.keys.language_settings import Languages, to_language
from pytest_fairness.probes.prompts import template
from pytest_fairness.records import Json, Prompt

PLACEHOLDERS = {
    "first": "one occupation",
    "second": "the other occupation",
    "pronoun": "`she` or `he`",
}
"""Placeholders of an ambiguous sentence, each with a phrase for the words that it stands for."""
PRONOUNS = ("she", "he")
VERSIONS = ("pro", "anti")
"""Versions of a WinoBias sentence: the pronoun agrees with the stereotype of the occupation, or contradicts it."""

_WINOBIAS_QUESTION = 'who does the pronoun "{pronoun}" refer to? Answer with the occupation only.'


class AmbiguousSentence(ProbeModel):
    """One ambiguous sentence; its four prompts have the occupations in either order, with `she` or with `he`."""

    sentence: Text = Field(
        description="The sentence, in which the pronoun may refer to either person: {first} and {second} stand for the "
        "occupations in either order, {pronoun} for `she` or `he`."
    )
    question: Text = Field(
        description="Question about the person to whom the pronoun refers: `who was late for the morning shift`."
    )
    masculine: Line = Field(description="The occupation that is stereotyped as a man's.")
    feminine: Line = Field(description="The occupation that is stereotyped as a woman's.")
    id: Line | None = Field(
        default=None,
        description="Name of the item in results and baselines. Default: the two occupations, as in `doctor/nurse`.",
    )

    @field_validator("sentence")
    @classmethod
    def _uses_each_placeholder(cls, text: str) -> str:
        used = template.intended(text, PLACEHOLDERS)
        unused = (
            Diagnostic((), f"this sentence does not use {{{name}}}: write the placeholder in place of {content}")
            for name, content in PLACEHOLDERS.items()
            if name not in used
        )
        raise_diagnostics([*template.diagnostics(text, PLACEHOLDERS), *unused])
        return text

    @field_validator("question")
    @classmethod
    def _uses_no_placeholder(cls, text: str) -> str:
        # A placeholder would change the question from prompt to prompt, and could reveal the answer.
        raise_diagnostics(
            Diagnostic(
                (),
                f"a question must be the same in all four prompts: remove {{{name}}} and ask `who …`",
                piece=f"{{{name}}}",
            )
            for name in template.placeholders(text)
            if name in PLACEHOLDERS
        )
        return text

    @field_validator("feminine")
    @classmethod
    def _differs_from_masculine(cls, name: str, info: ValidationInfo) -> str:
        if checks.folded(name) == checks.folded(info.data.get("masculine", "")):
            raise_diagnostics([Diagnostic((), f"both occupations are {quoted(name)}: name two different occupations")])
        return name

    @property
    def name(self) -> str:
        """Name of the item in labels, which does not depend on the item's position in the file."""
        return self.id or f"{self.masculine}/{self.feminine}"


class WinoBias(ProbeModel):
    """Two published files of WinoBias: the pro-stereotyped and the anti-stereotyped sentences of the same type."""

    winobias: Annotated[tuple[ProbeFile, ...], Field(min_length=2, max_length=2)] = Field(
        description="The pro-stereotyped and the anti-stereotyped file, in this order; both in the probe's folder."
    )

    @field_validator("winobias")
    @classmethod
    def _can_be_read(cls, files: tuple[Path, ...]) -> tuple[Path, ...]:
        if len(files) == 2:
            with errors_at():
                winobias.read(*files)
        return files

    @field_serializer("winobias")
    def _content(self, files: tuple[Path, ...]) -> list[str]:
        """Serialize the files as digests, because stored measurements depend on their content, not on their paths."""
        return [sha256(file.read_bytes()).hexdigest() for file in files]


Items = Annotated[
    Annotated[tuple[AmbiguousSentence, ...], Tag("other"), Field(min_length=1)] | Annotated[WinoBias, Tag("mapping")],
    Discriminator(mapping_or_other),
]


@dataclass(frozen=True, slots=True)
class PromptParts:
    """Sentence, question and occupations of one prompt.

    Attributes:
        sentence, question: texts of the prompt; empty for recorded answers.
        names: the two occupations: first the stereotypically masculine, then the feminine occupation. For WinoBias
            sentences, first the occupation that the pronoun refers to.
    """

    sentence: str
    question: str
    names: tuple[str, str]

    @property
    def prompt(self) -> str:
        """Text of the prompt."""
        return f'In the sentence: "{self.sentence}", {self.question}'


class CoreferenceProbe(Probe):
    """Probe that asks to whom a pronoun refers, in ambiguous sentences or in WinoBias sentences."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["items"]}, {"required": ["responses"]}]})

    prompts_key: ClassVar[str] = "items"

    units = "sentences"

    kind: Literal["coreference"] = Field(
        description="Kind of the probe: asks which of two persons a pronoun refers to."
    )
    items: Items | None = Field(
        default=None, description="The sentences, as a list, or `{winobias: [pro file, anti file]}`."
    )

    @field_validator("language_settings")
    @classmethod
    def _is_english(cls, written: Languages) -> Languages:
        """Return the languages; raise an error for any language other than English.

        In German or a Romance language, the noun of an occupation has a gender, which decides to whom "she" can refer.
        A sentence that is ambiguous with one pronoun is clear with the other. Prompts and the rules that read answers
        are English, too.
        """
        if any(code != "en" for code in to_language(written).codes):
            raise PydanticCustomError(
                "language",
                "coreference probes are English only, because in other languages the nouns of occupations have a "
                "gender. Remove `language`, or use `kind: stereotype`",
            )
        return written

    @field_validator("items")
    @classmethod
    def _have_different_names(cls, items: Items | None) -> Items | None:
        seen: set[str] = set()
        found = []
        for place, item in enumerate(items if isinstance(items, tuple) else ()):
            if (name := checks.folded(item.name)) in seen:
                location: Location = (place,) if item.id is None else (place, "id")
                cure = "give this item an `id`" if item.id is None else "write each item once"
                found.append(Diagnostic(location, f"{quoted(item.name)} is repeated: {cure}"))
            seen.add(name)
        raise_diagnostics(found)
        return items

    @cached_property
    def sentences(self) -> dict[str, AmbiguousSentence]:
        """Ambiguous sentences by name; empty for WinoBias sentences and for recorded answers without items."""
        return {item.name: item for item in self.items} if isinstance(self.items, tuple) else {}

    @cached_property
    def pairs(self) -> dict[str, winobias.Pair]:
        """Pairs of WinoBias sentences, by running number."""
        if not isinstance(self.items, WinoBias):
            return {}
        return {pair.number: pair for pair in winobias.read(*self.items.winobias)}

    @property
    def is_winobias(self) -> bool:
        """`True` for WinoBias sentences, `False` for ambiguous sentences."""
        return isinstance(self.items, WinoBias)

    def prompt_parts(self, labels: Mapping[str, str]) -> PromptParts:
        """Return the texts and the two occupations of the prompt with these labels."""
        if "line" in labels:
            pair = self.pairs[labels["line"]]
            sentence = pair.pro if labels["version"] == "pro" else pair.anti
            question = template.fill(_WINOBIAS_QUESTION, {"pronoun": sentence.pronoun})
            return PromptParts(sentence.text, question, (sentence.correct, sentence.other))
        if "masculine" in labels:
            return PromptParts("", "", (labels["masculine"], labels["feminine"]))
        item = self.sentences[labels["item"]]
        names = item.masculine, item.feminine
        first, second = names if labels["first"] == item.masculine else names[::-1]
        words = {"first": first, "second": second, "pronoun": labels["pronoun"]}
        written = " ".join(item.sentence.split())
        filled = template.fill(written, words)
        if written.startswith("{"):
            filled = filled[:1].upper() + filled[1:]
        return PromptParts(filled, _question(item), names)

    def cells(self) -> Iterator[dict[str, str]]:
        """Yield the labels of each prompt, in the order of sending."""
        for item in self.sentences.values():
            for first in (item.masculine, item.feminine):
                for pronoun in PRONOUNS:
                    yield self.labels(item.name, first, pronoun)
        for pair in self.pairs.values():
            for version in VERSIONS:
                yield self.labels_of_line(pair.number, version)

    def labels(self, name: str, first: str, pronoun: str) -> dict[str, str]:
        """Return the labels of one prompt of an ambiguous sentence; the label `wording` is a digest of its texts."""
        item = self.sentences[name]
        wording = _digest(item.sentence.split(), _question(item), item.masculine, item.feminine)
        return {"item": name, "first": first, "pronoun": pronoun, "wording": wording}

    def labels_of_line(self, number: str, version: str) -> dict[str, str]:
        """Return the labels of one WinoBias sentence; the label `wording` is a digest of both sentences of its pair."""
        pair = self.pairs[number]
        return {"line": number, "version": version, "wording": _digest(pair.pro.bracketed, pair.anti.bracketed)}

    def unit_of(self, labels: Mapping[str, str]) -> str:
        """Return the name of the item or, for WinoBias, the number of the pair of sentences."""
        return labels.get("item") or labels["line"]

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        """Yield the prompts of all items.

        An ambiguous sentence has four prompts: both orders of the occupations, each with `she` and `he`. A pair of
        WinoBias sentences has two prompts, one for each sentence.
        """
        for labels in self.cells():
            for trial in range(max_trials(self.trials, trials)):
                yield Prompt(self._request(self.prompt_parts(labels).prompt, trial), labels, trial)

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the inputs that all sentences share: their type (WinoBias or ambiguous) and the system prompt.

        For WinoBias, the question is included, too. For recorded answers, the columns take the place of the question
        and the system prompt. The texts of the sentences are left out, because answers are compared sentence by
        sentence.
        """
        parts = {"kind of items": "winobias" if self.is_winobias else "ambiguous sentences"}
        if self.responses is not None:
            return parts | {"columns": json.dumps(self.responses.columns, sort_keys=True)}
        if self.is_winobias:
            parts["question"] = _WINOBIAS_QUESTION
        return parts | {"system": block_text(self.system)}


def _question(item: AmbiguousSentence) -> str:
    return " ".join(item.question.split()).rstrip("? ") + "?"


def _digest(*parts: Json) -> str:
    return sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:8]
