"""Probes of kind `multiple_choice`: questions about two people with answer options, as in BBQ (Parrish et al. 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, field_validator

from pytest_fairness.probes import checks
from pytest_fairness.probes.checks import canonical
from pytest_fairness.probes.conversations import ConversationProbe
from pytest_fairness.probes.diagnostics import raise_diagnostics
from pytest_fairness.probes.field_types import Line, Text, block_text
from pytest_fairness.probes.keys.interim_stages import max_trials
from pytest_fairness.probes.multiple_choice.question import Question
from pytest_fairness.probes.multiple_choice.questions import Items, QuestionsFile
from pytest_fairness.probes.prompts import template
from pytest_fairness.records import Message, Prompt

PROMPT = """\
{context}

{question}

{options}

Answer with the letter only."""


class MultipleChoiceProbe(ConversationProbe):
    """Probe of questions about two people; each question has three options, by default in a random order."""

    units = "questions"

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

    @field_validator("items")
    @classmethod
    def _have_different_names(cls, items: Items) -> Items:
        sets = () if isinstance(items, QuestionsFile) else items
        names = [((i, "name"), question_set.name) for i, question_set in enumerate(sets)]
        raise_diagnostics(checks.repeats(names, "each set needs its own name"))
        return items

    @field_validator("letters")
    @classmethod
    def _are_different(cls, letters: tuple[str, ...]) -> tuple[str, ...]:
        located = [((i,), letter) for i, letter in enumerate(letters)]
        raise_diagnostics(checks.repeats(located, "write three different letters"))
        return letters

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
        """The categories of the questions; an empty name stands for questions without a category."""
        return list(dict.fromkeys(question.category for question in self.questions.values()))

    @property
    def asks_all_units(self) -> bool:
        """Return whether the questions are all those of files; see `Probe.asks_all_units`."""
        return isinstance(self.items, QuestionsFile) and self.items.sample is None

    @property
    def seed(self) -> int | None:
        """Seed of the options' order; `None` for the written order."""
        return None if self.shuffle is False else self.shuffle

    def labels(self, question: Question) -> dict[str, str]:
        """Return the labels of a question's prompt; `wording` is a digest of the texts and of the options' order."""
        return {"question": question.name, "wording": question.wording(self.seed)}

    def unit_of(self, labels: Mapping[str, str]) -> str:
        """Return the name of the question."""
        return labels["question"]

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        """Yield the prompts of all questions."""
        count = max_trials(self.trials, trials)
        for question in self.questions.values():
            labels = self.labels(question)
            text, opening = self._filled_template(self._question_template, labels), self._opening(labels)
            for draw in range(count):
                yield self._prompt(text, labels, draw, opening)

    @property
    def _question_template(self) -> str:
        return block_text(self.messages[-1].content if self.messages else self.prompt)

    def _first_template(self, labels: Mapping[str, str]) -> str:
        return self._question_template

    def _filled_template(self, text: str, labels: Mapping[str, str]) -> str:
        return template.fill(block_text(text), self._values(self.questions[labels["question"]]))

    def _prompt(self, text: str, labels: Mapping[str, str], trial: int, past: tuple[Message, ...]) -> Prompt:
        return Prompt(self._request(text, trial, history=past), labels, trial)

    def _values(self, question: Question) -> dict[str, str]:
        """Return the text of each placeholder in a prompt about the question."""
        shown = zip(self.letters, question.order(self.seed), strict=True)
        options = "\n".join(f"{letter}. {question.options[place]}" for letter, place in shown)
        return {"context": question.context, "question": question.text, "options": options}

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that all questions share: prompt, letters, order of the options and system prompt.

        The texts of the questions are left out, because answers are compared question by question.
        """
        parts = {"letters": canonical(self.letters), "order of options": canonical(self.shuffle)}
        if self.responses is not None:
            return parts | {"columns": canonical(self.responses.columns)}
        parts |= {"prompt": self._question_template, "system": block_text(self.system)}
        return parts | self._conversation_fingerprint()
