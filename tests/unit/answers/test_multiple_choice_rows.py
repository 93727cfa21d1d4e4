"""Recorded answers of multiple-choice probes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.audits.multiple_choice import code_answers
from pytest_fairness.errors import ProbeError
from pytest_fairness.kinds import recorded_answers
from pytest_fairness.records import Status
from tests.support import choices
from tests.support.choices import lines, published

ONE = choices.probe_text(1, more="shuffle: false\nresponses: {file: answers.csv}\n")
NAMES = [
    f"story 0/{context}/{question}"
    for context in ("ambiguous", "stereotyped", "other")
    for question in ("negative", "nonnegative")
]


def read(folder: Path, content: str, text: str = ONE) -> list[str | None]:
    (folder / "answers.csv").write_text(content, "utf-8")
    probe = choices.read(text, folder / "choices.yaml")
    return [
        None if each.choice is None else each.question.options[each.choice]
        for each in code_answers(probe, recorded_answers(probe))
    ]


def faults(folder: Path, content: str) -> str:
    with pytest.raises(ProbeError) as caught:
        read(folder, content)
    return str(caught.value)


def test_rows_are_matched_to_the_questions_and_letters_mean_the_written_order(tmp_path: Path) -> None:
    written = ["A", "The grandson", "C", "", "I'm sorry, but I can't help with that.", "b)"]
    content = "question,text\n" + "".join(
        f'{name.upper()},"{text}"\n' for name, text in zip(NAMES, written, strict=True)
    )
    found = dict(zip(sorted(NAMES), read(tmp_path, content + "another question,A\n"), strict=True))
    assert [found[name] for name in NAMES] == [
        *("The grandfather", "The grandson", "Cannot be determined", None, None, "The grandson"),
    ]


def test_letters_mean_the_seeded_order_that_requests_showed(tmp_path: Path) -> None:
    text = ONE.replace("shuffle: false", "shuffle: 5")
    asked = choices.probe(1, more="shuffle: 5\n")
    right = {each.labels["question"]: each.text for each in choices.answers(asked, choices.right)}
    content = "question,text\n" + "".join(f"{name},{letter}\n" for name, letter in right.items())
    found = read(tmp_path, content, text)
    questions = sorted(asked.questions.values(), key=lambda question: question.name)
    assert found == [question.options[question.answer] for question in questions]


def test_a_published_question_is_named_by_category_and_example(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text(
        "category,example_id,text\n" + "".join(f"Age,{number},Not known\n" for number in range(8)), "utf-8"
    )
    probe = published(tmp_path, lines(8), more="responses: {file: answers.csv}\n")
    assert [answer.labels["question"] for answer in recorded_answers(probe)] == [f"Age-{number}" for number in range(8)]
    assert {each.code for each in code_answers(probe, recorded_answers(probe))} == {"unknown"}


def test_trials_are_counted_and_null_is_a_missing_answer(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(
        "".join(f'{{"question": "{name}", "text": {text}}}\n' for name in NAMES for text in ('"A"', "null")), "utf-8"
    )
    probe = choices.read(ONE.replace("answers.csv", "answers.jsonl"), tmp_path / "choices.yaml")
    assert {(answer.trial, answer.status) for answer in recorded_answers(probe)} == {(0, Status.OK), (1, Status.FAILED)}


def test_missing_questions_and_columns_are_errors(tmp_path: Path) -> None:
    all_but_one = "question,text\n" + "".join(f"{name},A\n" for name in NAMES[:-1])
    assert f"answers.csv:1: the question {NAMES[-1]!r} has no row. Add" in faults(tmp_path, all_but_one)
    assert "6 of the probe's questions have no row (the first is 'story 0/ambiguous/negative')" in faults(
        tmp_path, "question,text\nx,A\n"
    )
    assert "no column 'question'" in faults(tmp_path, "item,text\nx,A\n")
    assert "no column 'text'" in faults(tmp_path, "question,answer\nx,A\n")
