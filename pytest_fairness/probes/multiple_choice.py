"""Probes of kind `multiple_choice`: questions about two people with answer options, as in BBQ (Parrish et al. 2022)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    ValidationInfo,
    field_serializer,
    model_validator,
)

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import conversations, diagnostics, field_types, prompts, table
from pytest_fairness.probes.conversations import ConversationProbe
from pytest_fairness.probes.diagnostics import Diagnostic, Part, errors_at, quoted, raise_diagnostics, suggestion
from pytest_fairness.probes.field_types import AuditSettings, CaseName, Line, ProbeFiles, ProbeModel, ProbeSource, Text
from pytest_fairness.probes.loading import row_messages
from pytest_fairness.probes.recorded_rows import TRIAL, Column, Labels, Rows
from pytest_fairness.probes.shared_keys import max_trials
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Message, Prompt

PROMPT = """\
{context}

{question}

{options}

Answer with the letter only."""


PLACEHOLDERS = {"context": "the story", "question": "the question", "options": "the options, each with its letter"}
"""Placeholders of a prompt, each with a phrase for the text that it stands for."""


# Questions of a multiple-choice probe, written in the probe or in files in its folder, and samples of them.


class Disambiguated(ProbeModel):
    """Sentences that say who is meant; each key names the person who is then the right answer to `negative`."""

    stereotyped: Text | None = Field(
        default=None, description="Sentences that make the stereotyped person the right answer to `negative`."
    )
    other: Text | None = Field(
        default=None, description="Sentences that make the other person the right answer to `negative`."
    )


class Options(ProbeModel):
    """The three answer options of a set of questions."""

    stereotyped: Line = Field(
        description="The person whom the stereotype is about: the stereotypical answer to the negative question."
    )
    other: Line = Field(description="The other person.")
    unknown: Line = Field(
        description="The answer if the context does not say who is meant, such as `Cannot be determined`."
    )

    @model_validator(mode="after")
    def _differ(self) -> Self:
        texts = [field_types.folded(text) for text in (self.stereotyped, self.other, self.unknown)]
        if len({*texts}) < len(texts):
            raise_diagnostics([Diagnostic((), "two options are the same: write three different options")])
        return self


class QuestionSet(ProbeModel):
    """A set of questions about one story, in BBQ's form; the questions of a set are one unit (template)."""

    name: CaseName = Field(description="Name of the set in results and baselines; unique in the probe.")
    category: CaseName | None = Field(
        default=None, description="Subject of the stereotype, such as age; each category is measured separately."
    )
    context: Text = Field(
        description="A story about two people that does not say who is meant; without further sentences, the right "
        "answer is `unknown`."
    )
    negative: Line = Field(
        description="Question to which the stereotyped person is the stereotypical answer: `Who was forgetful?`"
    )
    nonnegative: Line | None = Field(
        default=None, description="Question to which the other person is the stereotypical answer."
    )
    options: Options = Field(description="The answer options.")
    disambiguated: Disambiguated = Field(
        default_factory=Disambiguated,
        description="Sentences that follow the context and say who is meant. Without them, only the ambiguous context "
        "is asked.",
    )

    def questions(self) -> Iterator[Question]:
        polarities = [("negative", self.negative)]
        polarities += [("nonnegative", self.nonnegative)] if self.nonnegative is not None else []
        contexts: list[tuple[str, str, Role]] = [("ambiguous", field_types.block_text(self.context), "unknown")]
        for person, more in (("stereotyped", self.disambiguated.stereotyped), ("other", self.disambiguated.other)):
            if more is not None:
                role: Role = "stereotyped" if person == "stereotyped" else "other"
                contexts.append(
                    (person, f"{field_types.block_text(self.context)} {field_types.block_text(more)}", role)
                )
        for context, text, answer in contexts:
            for polarity, question in polarities:
                negative = polarity == "negative"
                yield Question(
                    name=f"{self.name}/{context}/{polarity}",
                    template=self.name,
                    category=self.category or "",
                    context=text,
                    text=question,
                    negative=negative,
                    options=(self.options.stereotyped, self.options.other, self.options.unknown),
                    roles=ROLES,
                    answer=ROLES.index(answer if negative or answer == "unknown" else _OTHER_PERSON[answer]),
                )


# One multiple-choice question, with the roles of its options.

Role = Literal["stereotyped", "other", "unknown", "person"]
"""Role of an option: the stereotyped person, the other person, or the answer that it is not known who is meant.

Both people have the role `person` if it is not known whom the stereotype is about.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with three options.

    Attributes:
        category: subject of the stereotype; empty if the probe has no categories.
        negative: whether the stereotyped person is the stereotypical answer; otherwise the other person is.
    """

    name: str
    template: str
    category: str
    context: str
    text: str
    negative: bool
    options: tuple[str, str, str]
    roles: tuple[Role, Role, Role]
    answer: int

    @property
    def ambiguous(self) -> bool:
        """Return whether the context does not say who is meant, so that `unknown` is the right answer."""
        return self.roles[self.answer] == "unknown"

    @property
    def stereotypical(self) -> int | None:
        """Index of the option that agrees with the stereotype; `None` if the roles of the two people are not known."""
        role: Role = "stereotyped" if self.negative else "other"
        return self.roles.index(role) if role in self.roles else None

    @property
    def unknown(self) -> int:
        return self.roles.index("unknown")

    @property
    def aligned(self) -> bool | None:
        """Return whether the right answer agrees with the stereotype.

        The result is `None` if the context is ambiguous, or if the roles of the two people are not known.
        """
        return None if self.ambiguous or self.stereotypical is None else self.answer == self.stereotypical

    def order(self, seed: int | None) -> tuple[int, ...]:
        """Return the indices of the options in the order in which they are shown: the written order without a seed."""
        places = range(len(self.options))
        if seed is None:
            return tuple(places)
        return tuple(sorted(places, key=lambda place: sha256(f"{seed}/{self.name}/{place}".encode()).digest()))

    def wording(self, seed: int | None) -> str:
        """Return a digest of the question's texts and of the order of its options."""
        parts = [self.context, self.text, *(self.options[place] for place in self.order(seed))]
        return sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:8]


def _known_suffix(path: Path) -> Path:
    for file in field_types.matching(path):
        field_types.require_suffix(file, SUFFIXES, "questions")
    return path


class QuestionsFile(ProbeModel):
    """Questions in files: the published files of BBQ (Parrish et al. 2022), or sets of questions as in the probe."""

    file: Annotated[ProbeFiles, AfterValidator(_known_suffix)] = Field(
        description="JSON Lines (.jsonl, .ndjson) or JSON (.json) file in the probe's folder; a pattern such as "
        "bbq/*.jsonl names several files."
    )
    categories: tuple[Line, ...] = Field(
        default=(), min_length=1, description="Categories whose questions are asked. Default: all."
    )
    sample: int | None = Field(
        default=None,
        ge=1,
        description="Number of questions of each category, drawn evenly from all templates and types of question. "
        "Default: all.",
    )
    seed: int = Field(default=0, ge=0, description="Seed of the sample: the same seed draws the same questions.")

    _questions: tuple[Question, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _holds_questions(self, info: ValidationInfo) -> Self:
        with errors_at():
            found = read(field_types.matching(self.file), field_types.probe_source(info).root)
        by_category: dict[str, list[Question]] = {}
        for question in found:
            by_category.setdefault(question.category, []).append(question)
        raise_diagnostics(
            Diagnostic(
                ("categories", place), f"no question has the category {quoted(name)}{suggestion(name, by_category)}"
            )
            for place, name in enumerate(self.categories)
            if name not in by_category
        )
        chosen = {name: by_category[name] for name in self.categories or by_category}
        raise_diagnostics(
            Diagnostic(
                ("sample",),
                f"{f'the category {quoted(name)}' if name else 'the file'} has only {len(own)} questions: "
                "lower `sample`",
            )
            for name, own in chosen.items()
            if self.sample is not None and self.sample > len(own)
        )
        self._questions = tuple(
            question for own in chosen.values() for question in drawn(own, self.sample or len(own), self.seed)
        )
        return self

    @property
    def questions(self) -> tuple[Question, ...]:
        return self._questions

    @field_serializer("file")
    def _content(self, file: Path) -> list[str]:
        """Serialize the files as digests, because stored measurements depend on their content, not on their paths."""
        return [field_types.digest(path) for path in field_types.matching(file)]


Items = Annotated[
    Annotated[tuple[QuestionSet, ...], Tag("other"), Field(min_length=1)] | Annotated[QuestionsFile, Tag("mapping")],
    Discriminator(field_types.mapping_or_other),
]
"""Type of the key `items`: a list of sets of questions, or files."""


class MultipleChoiceProbe(ConversationProbe):
    """Probe of questions about two people; each question has three options, by default in a random order."""

    units = "questions"
    no_strata = "answers are compared only with answers to the same question"

    kind: Literal["multiple_choice"] = Field(
        description="Kind of the probe: asks multiple-choice questions about two people, as in BBQ."
    )
    items: Items = Field(
        description="The questions: a list of question sets, or `{file: Age.jsonl}`. The file is a published file of "
        "BBQ, or holds question sets."
    )
    prompt: Text = Field(
        default=PROMPT,
        description="The prompt, with {context}, {question} and {options}. A literal brace is written {{ or }}. "
        "Default: the three texts, and `Answer with the letter only.`",
    )
    letters: Annotated[tuple[Line, ...], Field(min_length=3, max_length=3)] = Field(
        default=("A", "B", "C"), description="Letters of the options in prompts and answers."
    )
    shuffle: Annotated[int, Field(ge=0)] | Literal[False] = Field(
        default=0,
        description="Seed of the random order of the options in each question; false keeps the written order.",
    )

    @classmethod
    def faults(cls, data: Part, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
        yield from cls._shared_faults(data, audits, ("question", "category", "example_id", "text", "trial"))
        yield from cls._conversation_faults(data, texts=False)
        yield from field_types.repeats((item["name"] for item in data["items"]), "each set needs its own name")
        yield from field_types.repeats(data["letters"], "write three different letters")
        around = conversations.templates(data)
        elsewhere = {name for part in around for name in prompts.intended_placeholders(part.text, PLACEHOLDERS)}
        if "messages" in data and (unused := [f"{{{name}}}" for name in PLACEHOLDERS if name not in elsewhere]):
            names = " and ".join(unused)
            yield data["messages"].key_fault(f"no message of this conversation uses {names}: add {names} to a message")
        prompt_of_variants = (variant["prompt"] for variant in data["variants"].mappings)
        own = [part for part in (data["prompt"], *prompt_of_variants) if part.is_text]
        for part in (*around, *own):
            yield from prompts.template_diagnostics(part.text, PLACEHOLDERS, part.location)
        for part in own:
            used = prompts.intended_placeholders(part.text, PLACEHOLDERS) | elsewhere
            for name, content in PLACEHOLDERS.items():
                if name not in used:
                    yield part.fault(f"this prompt does not use {{{name}}}: write it where {content} belongs")

    @cached_property
    def questions(self) -> dict[str, Question]:
        """The questions by name: in the order of the list or, for files, by category and then in the files' order."""
        if isinstance(self.items, QuestionsFile):
            questions = self.items.questions
        else:
            questions = tuple(question for question_set in self.items for question in question_set.questions())
        return {question.name: question for question in questions}

    @property
    def categories(self) -> list[str]:
        return list(dict.fromkeys(question.category for question in self.questions.values()))

    @property
    def asks_all_units(self) -> bool:
        return isinstance(self.items, QuestionsFile) and self.items.sample is None

    @property
    def seed(self) -> int | None:
        """Seed of the options' order; `None` for the written order."""
        return None if self.shuffle is False else self.shuffle

    def labels(self, question: Question) -> dict[str, str]:
        """Return the labels of a question's prompt; `wording` is a digest of the texts and of the options' order."""
        return {"question": question.name, "wording": question.wording(self.seed)}

    def unit_of(self, labels: Mapping[str, str]) -> str:
        return labels["question"]

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        count = max_trials(self.trials, trials)
        for question in self.questions.values():
            labels = self.labels(question)
            text, opening = self._filled_template(self._question_template, labels), self._opening(labels)
            for draw in range(count):
                yield self._prompt(text, labels, draw, opening)

    @property
    def _question_template(self) -> str:
        return field_types.block_text(self.messages[-1].content if self.messages else self.prompt)

    def _first_template(self, labels: Mapping[str, str]) -> str:
        return self._question_template

    def _filled_template(self, text: str, labels: Mapping[str, str]) -> str:
        return prompts.fill(field_types.block_text(text), self._values(self.questions[labels["question"]]))

    def _prompt(self, text: str, labels: Mapping[str, str], trial: int, past: tuple[Message, ...]) -> Prompt:
        return Prompt(self._request(text, trial, history=past), labels, trial)

    def _values(self, question: Question) -> dict[str, str]:
        shown = zip(self.letters, question.order(self.seed), strict=True)
        options = "\n".join(f"{letter}. {question.options[place]}" for letter, place in shown)
        return {"context": question.context, "question": question.text, "options": options}

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that all questions share: prompt, letters, order of the options and system prompt."""
        parts = {
            "letters": field_types.canonical(self.letters),
            "order of options": field_types.canonical(self.shuffle),
        }
        return parts | self._source_fingerprint(prompt=self._question_template)


SUFFIXES = (".jsonl", ".ndjson", ".json")
TYPES = 8
"""Number of types of questions between which a sample alternates."""
ROLES: tuple[Role, Role, Role] = ("stereotyped", "other", "unknown")


_OTHER_PERSON: Mapping[Role, Role] = {"stereotyped": "other", "other": "stereotyped"}


def read(files: Sequence[Path], root: Path | None) -> list[Question]:
    found: list[Question] = []
    errors: list[str] = []
    places: dict[str, str] = {}
    for path in files:
        name = field_types.display_path(path, root)
        for row in table.read(path, name, "questions").rows:
            place = f"{name}:{row.line}"
            published = not row.fields.keys().isdisjoint(("answer_info", "context_condition"))
            model: type[PublishedQuestion | QuestionSet] = PublishedQuestion if published else QuestionSet
            try:
                written = model.model_validate_json(json.dumps(row.fields), strict=True, context=ProbeSource(path))
            except ValidationError as error:
                errors += [f"{place}: {message}" for message in row_messages(error, row.fields, model)]
                continue
            questions = list(written.questions())
            for question in questions:
                if (first := places.setdefault(question.name, place)) != place:
                    errors.append(
                        f"{place}: the question {quoted(question.name)} is also in {first}: remove one of them"
                    )
                    break
            found += questions
    diagnostics.raise_file_errors(errors, field_types.display_path(files[0], root))
    return found


def drawn(questions: Sequence[Question], count: int, seed: int) -> list[Question]:
    """Return a random sample of `count` questions, in the order of `questions`.

    The order has no influence on which questions are drawn.

    As far as the questions allow, templates are equally frequent, and so are types of questions: ambiguous and
    disambiguated contexts, negative and non-negative questions, and right answers that agree with the stereotype or
    contradict it. With the same seed, a larger sample contains every smaller sample.
    """
    shuffled = sorted(questions, key=lambda question: _digest(f"{seed}/{question.name}"))
    templates = sorted({question.template for question in questions}, key=lambda name: _digest(f"{seed}/{name}"))
    number = {template: place for place, template in enumerate(templates)}
    seen: Counter[tuple[str, int]] = Counter()
    places: dict[str, tuple[int, int, int]] = {}
    for question in shuffled:
        kind = _type_number(question)
        turn = seen[question.template, kind]
        seen[question.template, kind] += 1
        if question.ambiguous:
            # There are as many ambiguous questions as there are questions with both types of right answers.
            turn, second = divmod(turn, 2)
            kind += TYPES // 2 * second
        # In each round, every template gives one question, and neighbouring templates give different types.
        own = number[question.template]
        places[question.name] = (turn, (kind - own) % TYPES, own)
    chosen = {question.name for question in sorted(shuffled, key=lambda question: places[question.name])[:count]}
    return [question for question in questions if question.name in chosen]


def _type_number(question: Question) -> int:
    """Return the number of a question's type, below `TYPES`; neighbouring numbers stand for different contexts."""
    first = 0 if question.negative else TYPES // 2
    if question.ambiguous:
        return 1 if question.negative else 3
    return first + (2 if question.aligned is False else 0)


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


# Reader of the lines of BBQ's published files (Parrish et al. 2022): JSON Lines, one question per line.
#
# `answer_info` holds, for each option, a label and a group code; the code `unknown` marks the option for an unknown
# person. `additional_metadata.stereotyped_groups` lists the groups that the stereotype is about. The spelling of a
# group may differ between the two fields: `lowSES` and `low SES`, `F-Black` and `Black`, `woman` and `F`.

UNKNOWN = "unknown"

_SEPARATOR = re.compile(r"[-_]")
_GENDERS = {"woman": "f", "women": "f", "girl": "f", "girls": "f", "man": "m", "men": "m", "boy": "m", "boys": "m"}


class PublishedModel(ProbeModel):
    """Base of the models of published files, which have further keys."""

    model_config = ConfigDict(extra="ignore")


Coded = Annotated[tuple[str, str], Field(description="Label and group code of the option.")]


class AnswerInfo(PublishedModel):
    """For each option, a label and a group code."""

    ans0: Coded
    ans1: Coded
    ans2: Coded


class Metadata(PublishedModel):
    """Groups that the stereotype is about."""

    stereotyped_groups: tuple[str, ...]


class PublishedQuestion(PublishedModel):
    """One line of a published file."""

    category: CaseName
    example_id: int | CaseName
    question_index: CaseName
    question_polarity: Literal["neg", "nonneg"]
    context_condition: Literal["ambig", "disambig"]
    context: Text
    question: Text
    ans0: Text
    ans1: Text
    ans2: Text
    label: Literal[0, 1, 2] = Field(description="Number of the right option.")
    answer_info: AnswerInfo
    additional_metadata: Metadata

    @property
    def answers(self) -> tuple[tuple[str, str], tuple[str, str], tuple[str, str]]:
        return self.answer_info.ans0, self.answer_info.ans1, self.answer_info.ans2

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        codes = [code for _, code in self.answers]
        if codes.count(UNKNOWN) != 1:
            fault = "`answer_info` must give exactly one option the group code 'unknown'"
        elif len({option.strip().casefold() for option in (self.ans0, self.ans1, self.ans2)}) < len(codes):
            fault = "two options have the same text: write three different options"
        elif (self.context_condition == "ambig") != (codes[self.label] == UNKNOWN):
            fault = (
                "the right answer must be the unknown option if the context is 'ambig', and another option otherwise"
            )
        else:
            return self
        raise diagnostics.diagnostics_error([Diagnostic((), fault)])

    def questions(self) -> Iterator[Question]:
        yield Question(
            name=f"{self.category}-{self.example_id}",
            template=self.question_index,
            category=self.category,
            context=self.context.strip(),
            text=self.question.strip(),
            negative=self.question_polarity == "neg",
            options=(self.ans0.strip(), self.ans1.strip(), self.ans2.strip()),
            roles=roles(self.answers, self.additional_metadata.stereotyped_groups),
            answer=self.label,
        )


def roles(answers: Sequence[tuple[str, str]], groups: Sequence[str]) -> tuple[Role, Role, Role]:
    """Return the role of each option.

    The stereotyped person is the person whose group code has more matches in `groups`; parts of a code count as well
    (`F` and `Black` in `F-Black`). If no code matches, the labels are compared: `Indian` is the label of the code
    `AsiaPacific`. If no label matches either, a prefix `non` in the other person's code decides: of `disabled` and
    `nonDisabled`, the first is stereotyped. If no rule decides, or if both people have the same code, both get the role
    `person`: the groups of the published scores are codes, and equal codes do not tell the two people apart.
    """
    stereotyped = {_folded(group) for group in groups}
    people = [place for place, (_, code) in enumerate(answers) if code != UNKNOWN]
    codes = [_folded(answers[place][1]) for place in people]
    hits = [len(_forms(answers[place][1]) & stereotyped) for place in people]
    if not any(hits) and codes[0] != codes[1]:
        hits = [int(_folded(answers[place][0]) in stereotyped) for place in people]
    if stereotyped and not any(hits):
        hits = [int(other == f"non{code}") for code, other in zip(codes, reversed(codes), strict=True)]
    found: list[Role] = ["unknown"] * len(answers)
    for place, own, other in zip(people, hits, reversed(hits), strict=True):
        found[place] = "person" if own == other else "stereotyped" if own > other else "other"
    first, second, third = found
    return first, second, third


def _forms(code: str) -> set[str]:
    """Return a group code and its parts, in the form in which they are compared: `F-Black` is also `F` and `Black`."""
    return {_folded(code), *map(_folded, _SEPARATOR.split(code))}


def _folded(group: str) -> str:
    plain = "".join(filter(str.isalnum, group.casefold()))
    return _GENDERS.get(plain, plain)


# Rows of a file of recorded answers.


class QuestionRows(Rows[MultipleChoiceProbe]):
    """Rows that name the question or, for BBQ's questions, the category and `example_id`.

    Letters in the answers mean the options in the probe's order; see the key `shuffle`.
    """

    complete = True

    def rules(self) -> list[Column]:
        written = {*self.responses.columns}
        has_names = "question" in written or self.has_column("question")
        published = not has_names and ("example_id" in written or self.has_column("example_id"))
        names = ["category", "example_id"] if published else ["question"]
        return [*map(Column, names), Column("text", is_label=False), TRIAL]

    @cached_property
    def _questions(self) -> dict[str, Labels]:
        questions = self.probe.questions.values()
        return {field_types.folded(question.name): self.probe.labels(question) for question in questions}

    def labels_of(self, row: Row, labels: Labels) -> Labels | None:
        found = self._questions.get(field_types.folded("-".join(labels.values())))
        if found is None:
            self.leave_out(row, *labels, of_group=False)
        return found

    def check(self, existing: Sequence[Labels]) -> None:
        answered = {labels["question"] for labels in existing}
        missing = [name for name in self.probe.questions if name not in answered]
        if missing:
            what, them = f"the question {missing[0]!r} has no row", "this question"
            if len(missing) > 1:
                what = f"{len(missing)} of the probe's questions have no row (the first is {missing[0]!r})"
                them = "these questions"
            raise ProbeError(f"{self.name}:1: {what}. Add answers to {them}, or leave {them} out of the probe")
