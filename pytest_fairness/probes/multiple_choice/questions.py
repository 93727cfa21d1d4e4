"""Questions of a multiple-choice probe, written in the probe or in files in its folder, and samples of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    ValidationInfo,
    field_serializer,
    model_validator,
)

from pytest_fairness.probes import checks, table
from pytest_fairness.probes.audit_settings import ProbeModel, mapping_or_other
from pytest_fairness.probes.diagnostics import (
    Diagnostic,
    errors_at,
    quoted,
    raise_diagnostics,
    raise_file_errors,
    suggestion,
)
from pytest_fairness.probes.field_types import (
    CaseName,
    Line,
    ProbeFiles,
    ProbeSource,
    Text,
    block_text,
    display_path,
    matching,
    probe_source,
    require_suffix,
)
from pytest_fairness.probes.loading.validation_messages import row_messages
from pytest_fairness.probes.multiple_choice import published_files
from pytest_fairness.probes.multiple_choice.question import Question, Role
from pytest_fairness.records import Json

SUFFIXES = (".jsonl", ".ndjson", ".json")
TYPES = 8
"""Number of types of questions between which a sample alternates."""
ROLES: tuple[Role, Role, Role] = ("stereotyped", "other", "unknown")


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
        texts = [checks.folded(text) for text in (self.stereotyped, self.other, self.unknown)]
        if len({*texts}) < len(texts):
            raise_diagnostics([Diagnostic((), "two options are the same: write three different options")])
        return self


class Disambiguated(ProbeModel):
    """Sentences that say who is meant; each key names the person who is then the right answer to `negative`."""

    stereotyped: Text | None = Field(
        default=None, description="Sentences that make the stereotyped person the right answer to `negative`."
    )
    other: Text | None = Field(
        default=None, description="Sentences that make the other person the right answer to `negative`."
    )


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
        """Yield the questions of the set: each context with each question."""
        polarities = [("negative", self.negative)]
        polarities += [("nonnegative", self.nonnegative)] if self.nonnegative is not None else []
        contexts: list[tuple[str, str, Role]] = [("ambiguous", block_text(self.context), "unknown")]
        for person, more in (("stereotyped", self.disambiguated.stereotyped), ("other", self.disambiguated.other)):
            if more is not None:
                role: Role = "stereotyped" if person == "stereotyped" else "other"
                contexts.append((person, f"{block_text(self.context)} {block_text(more)}", role))
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


_OTHER_PERSON: Mapping[Role, Role] = {"stereotyped": "other", "other": "stereotyped"}


def _known_suffix(path: Path) -> Path:
    for file in matching(path):
        require_suffix(file, SUFFIXES, "questions")
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
            found = read(matching(self.file), probe_source(info).root)
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
        """The questions of the chosen categories, or a sample of these questions."""
        return self._questions

    @field_serializer("file")
    def _content(self, file: Path) -> list[str]:
        """Serialize the files as digests, because stored measurements depend on their content, not on their paths."""
        return [sha256(path.read_bytes()).hexdigest() for path in matching(file)]


Items = Annotated[
    Annotated[tuple[QuestionSet, ...], Tag("other"), Field(min_length=1)] | Annotated[QuestionsFile, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""Type of the key `items`: a list of sets of questions, or files."""


def read(files: Sequence[Path], root: Path | None) -> list[Question]:
    """Return the questions in files, in the files' order.

    Raises:
        ProbeError: a file has errors; each line of the message is `file:line: message`.
    """
    found: list[Question] = []
    errors: list[str] = []
    places: dict[str, str] = {}
    for path in files:
        name = display_path(path, root)
        for row in table.read(path, name, "questions").rows:
            place = f"{name}:{row.line}"
            try:
                questions = _questions_of_row(row.fields, path)
            except published_files.InvalidRow as error:
                errors += [f"{place}: {message}" for message in error.messages]
                continue
            for question in questions:
                if (first := places.setdefault(question.name, place)) != place:
                    errors.append(
                        f"{place}: the question {quoted(question.name)} is also in {first}: remove one of them"
                    )
                    break
            found += questions
    raise_file_errors(errors, display_path(files[0], root))
    return found


def _questions_of_row(fields: Mapping[str, Json], path: Path) -> list[Question]:
    """Return the questions of a row: one of BBQ's lines, or a set of questions.

    Raises:
        InvalidRow: the row has errors.
    """
    if "answer_info" in fields or "context_condition" in fields:
        return [published_files.question(fields)]
    try:
        written = QuestionSet.model_validate_json(json.dumps(fields), strict=True, context=ProbeSource(path))
    except ValidationError as error:
        raise published_files.InvalidRow(*row_messages(error, fields, QuestionSet)) from None
    return list(written.questions())


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
