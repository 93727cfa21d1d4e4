"""Reading of single responses in tests, as the readers of a probe do it."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.answers.reading import answer
from pytest_fairness.languages import ENGLISH, Language
from pytest_fairness.records import AnswerFormat, Json, NumberFormat, Prompt, Request, Response, Selection, Status


def read(
    response: Response | None,
    answer_format: AnswerFormat = "text",
    language: Language = ENGLISH,
    choices: Sequence[str] = (),
    number: NumberFormat | None = None,
    selection: Selection | None = None,
) -> tuple[Status, Json]:
    """Return the status and the content of a response to a prompt with these settings."""
    prompt = Prompt(Request("?", answer_format=answer_format), {}, 0, tuple(choices), number, selection)
    found = answer(prompt, response, language)
    return found.status, found.content
