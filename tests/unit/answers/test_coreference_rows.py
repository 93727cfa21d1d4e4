from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from pytest_fairness.errors import ProbeError
from pytest_fairness.kinds import recorded_answers
from pytest_fairness.records import Answer, Status
from tests.support import pronouns

HEADER = ("item", "first", "pronoun", "text")
LINES = [
    ("doctor/nurse", "doctor", "she", "The nurse"),
    ("doctor/nurse", "doctor", "he", "The doctor"),
    ("Doctor/Nurse ", " Nurse", "She", "unclear"),
    ("doctor/nurse", "nurse", "he", ""),
]
NO_ITEMS = "kind: coreference\nresponses: {file: FILE}\naudits: {coreference: }\n"


def read(folder: Path, name: str, content: str, text: str) -> list[Answer]:
    (folder / name).write_text(content, "utf-8")
    return recorded_answers(pronouns.read(text.replace("FILE", name), folder / "who.yaml"))


def as_csv(header: tuple[str, ...], lines: list[tuple[object, ...]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows([header, *lines])
    return written.getvalue()


def faults(folder: Path, content: str, text: str) -> str:
    with pytest.raises(ProbeError) as caught:
        read(folder, "a.csv", content, text)
    return str(caught.value)


def with_items(more: str = "") -> str:
    return pronouns.probe_text(1, more=f"responses: {{file: FILE{more}}}\n")


def test_rows_are_matched_to_the_probes_items(tmp_path: Path) -> None:
    found = read(tmp_path, "a.csv", as_csv(HEADER, [*LINES, ("pilot/nanny", "pilot", "he", "x")]), with_items())
    asked = {frozenset(prompt.labels.items()) for prompt in pronouns.probe(1).prompts()}
    assert {frozenset(answer.labels.items()) for answer in found} == asked
    assert [(answer.text, answer.status) for answer in found] == [
        ("The nurse", Status.OK),
        ("The doctor", Status.OK),
        ("unclear", Status.OK),
        ("", Status.UNREADABLE),
    ]
    assert {answer.trial for answer in found} == {0}


def test_columns_are_mapped_and_null_is_a_missing_answer(tmp_path: Path) -> None:
    text = with_items(", columns: {item: pair, text: reply}")
    lines = [{"pair": "doctor/nurse", "first": "doctor", "pronoun": "she", "reply": reply} for reply in ("nurse", None)]
    found = read(tmp_path, "a.jsonl", "\n".join(map(json.dumps, lines)), text)
    assert [(answer.trial, answer.status) for answer in found] == [(0, Status.OK), (1, Status.FAILED)]


def test_without_items_the_rows_name_both_occupations(tmp_path: Path) -> None:
    header = ("masculine", "feminine", "first", "pronoun", "trial", "text")
    lines = [("doctor", "nurse", "nurse", "he", 3, "The nurse"), ("pilot", "nanny", "pilot", "she", 0, "unclear")]
    found = read(tmp_path, "a.csv", as_csv(header, list(lines)), NO_ITEMS)
    assert [answer.labels["item"] for answer in found] == ["doctor/nurse", "pilot/nanny"]
    assert (found[0].labels["masculine"], found[0].labels["feminine"], found[0].trial) == ("doctor", "nurse", 3)


def test_lines_of_winobias_are_matched_by_their_number(tmp_path: Path) -> None:
    pronouns.winobias(tmp_path)
    text = (
        "kind: coreference\nitems: {winobias: [pro.txt, anti.txt]}\nresponses: {file: FILE}\naudits: {accuracy_gap: }\n"
    )
    lines = [(number, version, "designer") for number in range(1, 7) for version in ("Pro", "anti")]
    found = read(tmp_path, "a.csv", as_csv(("line", "version", "text"), list(lines)), text)
    assert len(found) == 12
    assert {key: found[1].labels[key] for key in ("line", "version")} == {"line": "1", "version": "anti"}
    message = faults(tmp_path, as_csv(("line", "version", "text"), [*lines[2:], ("x", "pro", "y")]), text)
    assert message == "a.csv:12: 'line' must be the running number of a WinoBias sentence"
    message = faults(tmp_path, as_csv(("line", "version", "text"), list(lines[2:])), text)
    assert message == "a.csv:1: no row has the line '1'. Add its answers, or remove the line from the probe"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([("doctor/nurse", "pilot", "she", "x")], "a.csv:2: 'first' must be 'doctor' or 'nurse', not 'pilot'"),
        ([("doctor/nurse", "nurse", "they", "x")], "a.csv:2: 'pronoun' must be 'she' or 'he', not 'they'"),
        (
            [("pilot/nanny", "nanny", "she", "x")],
            "a.csv:1: no row has the item 'doctor/nurse'. Add its answers, or remove the item from the probe",
        ),
    ],
)
def test_invalid_rows_are_named(tmp_path: Path, lines: list[tuple[object, ...]], message: str) -> None:
    assert faults(tmp_path, as_csv(HEADER, lines), with_items()) == message


def test_missing_columns_are_named(tmp_path: Path) -> None:
    message = faults(tmp_path, as_csv(("item", "fist", "pronoun", "text"), list(LINES)), with_items())
    assert message.startswith("a.csv:1: no column 'first': did you mean 'fist'?")
    assert "no column 'masculine'" in faults(tmp_path, as_csv(HEADER, list(LINES)), NO_ITEMS)


def test_a_repeated_trial_is_an_error(tmp_path: Path) -> None:
    lines = [(*line, 0) for line in [*LINES, LINES[0]]]
    message = faults(tmp_path, as_csv((*HEADER, "trial"), list(lines)), with_items())
    assert message == (
        "a.csv:6: trial 0 of item doctor/nurse, first doctor, pronoun she is also in line 2; give one of the two rows "
        "another number"
    )


def test_unknown_columns_and_strata_are_errors(tmp_path: Path) -> None:
    message = faults(tmp_path, "x\n1\n", with_items(", columns: {frist: a}, strata: [b]"))
    assert "'frist' is not a column that this probe reads: did you mean 'first'?" in message
    assert "answers are compared only with answers to the same sentence: remove `strata`" in message
