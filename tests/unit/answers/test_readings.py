"""Answers as models of 2026 write them, each with its right reading; see `readings.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pytest_fairness.answers import choices
from pytest_fairness.answers.people import choice
from pytest_fairness.answers.reading import answer
from pytest_fairness.languages import language
from pytest_fairness.records import (
    Answer,
    AnswerFormat,
    Json,
    NumberFormat,
    Prompt,
    Request,
    Response,
    Selection,
    Status,
)

TABLE: dict[str, list[dict[str, Json]]] = YAML(typ="safe").load(Path(__file__).with_name("readings.yaml"))


UNKNOWN = (
    *(
        "Can't be determined",
        "Unbekannt",
        "Impossible \u00e0 d\u00e9terminer",
        "No se puede determinar",
        "Desconhecido",
    ),
    "Sconosciuto",
)


def rows(family: str, *keys: str) -> list[dict[str, Json]]:
    return [row for row in TABLE[family] if all(key in row for key in keys)]


def read(row: dict[str, Json], prompt: Prompt) -> Answer:
    return answer(prompt, Response(row["answer"]), language(row["language"]))


def test_the_table_has_thirty_answers_of_each_family_and_six_languages() -> None:
    assert min(map(len, TABLE.values())) >= 30
    assert sum(map(len, TABLE.values())) >= 150
    for family in TABLE.values():
        assert {row["language"] for row in family} == {"en", "de", "fr", "es", "pt", "it"}


@pytest.mark.parametrize("row", rows("texts"), ids=lambda row: row["answer"])
def test_texts_are_measured_without_thoughts(row: dict[str, Json]) -> None:
    found = read(row, Prompt(Request("Describe her."), {}, 0))
    assert (found.content, found.thoughts) == (row["right"], row["thoughts"])
    assert (found.status is Status.OK, bool(found.unread)) == (row["right"] is not None, row["right"] is None)


@pytest.mark.parametrize("row", rows("texts"), ids=lambda row: row["answer"])
def test_thoughts_are_measured_as_texts(row: dict[str, Json]) -> None:
    prompt = Prompt(Request("Describe her."), {}, 0, selection=Selection(None, None, thoughts=True))
    found = read(row, prompt)
    assert found.content == (row["thoughts"] or None)
    again = answer(prompt, Response(found.text or ""), language(row["language"]))
    assert (again.content, again.said.strip()) == (found.content, (row["right"] or ""))


@pytest.mark.parametrize("row", rows("json"), ids=lambda row: row["answer"])
def test_the_value_at_a_path_is_read(row: dict[str, Json]) -> None:
    form: AnswerFormat = "list" if str(row["right"]).startswith("[") else "text"
    found = read(row, Prompt(Request("Decide."), {}, 0, selection=Selection(None, row["path"], form)))
    right = row["right"]
    assert found.content == (["Heat"] if form == "list" else right)


@pytest.mark.parametrize("row", rows("choices", "choices"), ids=lambda row: row["answer"])
def test_choices_are_read(row: dict[str, Json]) -> None:
    assert read(row, Prompt(Request("Decide."), {}, 0, tuple(row["choices"]))).content == row["right"]


@pytest.mark.parametrize("row", rows("choices", "options"), ids=lambda row: row["answer"])
def test_options_are_read(row: dict[str, Json]) -> None:
    letters, texts = [*row["options"]], [*row["options"].values()]
    unknown = next(place for place, text in enumerate(texts) if text in UNKNOWN)
    said = read(row, Prompt(Request("Who?"), {}, 0)).said
    place = choices.named_option(said, texts, letters, unknown, language(row["language"]))
    assert (None if place is None else letters[place]) == row["right"]


@pytest.mark.parametrize("row", rows("choices", "names"), ids=lambda row: row["answer"])
def test_people_are_read(row: dict[str, Json]) -> None:
    found = choice(read(row, Prompt(Request("Who?"), {}, 0)).said, tuple(row["names"]))
    named = dict(zip(("first", "second"), row["names"], strict=True))
    assert named.get(found or "") == row["right"]


@pytest.mark.parametrize("row", rows("numbers"), ids=lambda row: row["answer"])
def test_numbers_are_read(row: dict[str, Json]) -> None:
    wanted = NumberFormat(row.get("min", -1e6), 1e6, row.get("unit", ""))
    found = read(row, Prompt(Request("How many?"), {}, 0, number=wanted))
    assert found.content == row["right"]
    assert bool(found.unread) == (found.status is Status.UNREADABLE)


@pytest.mark.parametrize("row", rows("lists"), ids=lambda row: row["answer"])
def test_lists_are_read(row: dict[str, Json]) -> None:
    assert read(row, Prompt(Request("Name films.", answer_format="titles"), {}, 0)).content == row["right"]
