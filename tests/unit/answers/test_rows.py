from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from pytest_fairness.errors import ProbeError
from pytest_fairness.kinds import recorded_answers
from pytest_fairness.probes import GenerationProbe, parse
from pytest_fairness.records import Status
from tests.support.probe_files import KINDS, SMALL

PROBE = """\
kind: generation
axes:
  race: {unmarked: White, marked: [Black]}
  gender: {unmarked: man, marked: [woman]}
responses: {file: FILE, columns: {race: group, text: answer}}
audits: {jsd: }
"""
CSV = """\
group,gender,answer,topic
White,man,A razor.,skin
white , Man,"A comb,
and a brush.",hair
Black,woman,"I'm sorry, but I can't help with that.",hair
Black,man,,hair
Asian,man,A lotion.,skin
"""


def probe_of(folder: Path, text: str = PROBE, **files: str) -> GenerationProbe:
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content, newline="")
    loaded = parse(
        text.replace("FILE", next(iter(files)).replace("_", ".")).encode(), folder / "p.yaml", KINDS, root=folder
    )
    assert isinstance(loaded, GenerationProbe)
    return loaded


def fault_of(folder: Path, text: str = PROBE, **files: str) -> str:
    with pytest.raises(ProbeError) as caught:
        recorded_answers(probe_of(folder, text, **files))
    return str(caught.value)


def test_rows_of_csv_files_are_answers(tmp_path: Path) -> None:
    found = recorded_answers(probe_of(tmp_path, a_csv=CSV))
    assert [(row.labels, row.trial, row.text, row.status) for row in found] == [
        ({"race": "White", "gender": "man"}, 0, "A razor.", Status.OK),
        ({"race": "White", "gender": "man"}, 1, "A comb,\nand a brush.", Status.OK),
        ({"race": "Black", "gender": "woman"}, 0, "I'm sorry, but I can't help with that.", Status.REFUSED),
        ({"race": "Black", "gender": "man"}, 0, "", Status.UNREADABLE),
    ]


def test_strata_are_additional_labels(tmp_path: Path) -> None:
    text = PROBE.replace("answer}}", "answer}, strata: [topic]}")
    found = recorded_answers(probe_of(tmp_path, text, a_csv=CSV))
    assert [(row.labels["topic"], row.trial) for row in found] == [("skin", 0), ("hair", 0), ("hair", 0), ("hair", 0)]
    assert list(found[0].labels) == ["race", "gender", "topic"]


def test_rows_of_json_lines_are_answers(tmp_path: Path) -> None:
    lines = [
        {"group": "White", "gender": "man", "answer": {"Razor": "Sharp."}},
        {"group": "Black", "gender": "man", "answer": '{"Comb": "Soft."}'},
        {"group": "Black", "gender": "woman", "answer": None},
        {"group": "Black", "gender": "woman", "answer": '"\ud800"'},
    ]
    content = "\ufeff" + "\r\n\n".join(json.dumps(line) for line in lines)
    found = recorded_answers(probe_of(tmp_path, PROBE + "answer: {format: json}\n", a_jsonl=content))
    assert [row.content for row in found] == ["Razor\nSharp.", "Comb\nSoft.", None, None]
    assert [row.status for row in found] == [Status.OK, Status.OK, Status.FAILED, Status.UNREADABLE]
    assert [row.text for row in found][2] is None
    (found[3].text or "").encode()


def test_numbers_and_booleans_as_values(tmp_path: Path) -> None:
    text = SMALL.replace("unmarked: man, marked: [woman]", "unmarked: '30', marked: ['true']")
    text = text.replace("prompt: Describe a {group}.", "responses: {file: FILE}")
    content = '{"group": 30, "text": "a"}\n{"group": true, "text": "b"}\n'
    assert [row.labels["group"] for row in recorded_answers(probe_of(tmp_path, text, a_jsonl=content))] == [
        "30",
        "true",
    ]


def test_a_trial_column_numbers_the_answers(tmp_path: Path) -> None:
    content = "group,gender,answer,trial\nWhite,man,a,7\nWhite,man,b,3\nBlack,woman,c,7\n"
    assert [row.trial for row in recorded_answers(probe_of(tmp_path, a_csv=content))] == [7, 3, 7]
    assert fault_of(tmp_path, a_csv=content.replace("b,3", "b,7")) == (
        "a.csv:3: trial 7 of race White, gender man is also in line 2; "
        "if a column distinguishes the two rows, name it under `responses.strata`"
    )
    assert (
        fault_of(tmp_path, a_csv=content.replace("b,3", "b,x")) == "a.csv:3: 'trial' must be a whole number, at least 0"
    )


def test_a_prompt_column_counts_where_it_is_named(tmp_path: Path) -> None:
    content = "group,gender,answer,prompt\nWhite,man,a,1\nWhite,man,b,2\nBlack,woman,c,1\n"
    assert "prompt" not in recorded_answers(probe_of(tmp_path, a_csv=content))[0].labels
    named = PROBE.replace("answer}}", "answer, prompt: prompt}}")
    answers = recorded_answers(probe_of(tmp_path, named, a_csv=content))
    assert [(answer.labels["prompt"], answer.trial) for answer in answers] == [
        ("1", 0), ("2", 0), ("1", 0),
    ]  # fmt: skip


def test_every_missing_column_is_named(tmp_path: Path) -> None:
    content = "groups,gender,reply\nWhite,man,a\n"
    there = "(the columns are 'groups', 'gender', 'reply')"
    cure = "to the name of the right column"
    assert fault_of(tmp_path, PROBE.replace("answer}}", "answer}, strata: [topic]}"), a_csv=content).split("\n") == [
        f"a.csv:1: no column 'group': did you mean 'groups'? {there}; set `responses.columns.race` {cure}",
        f"a.csv:1: no column 'topic' {there}",
        f"a.csv:1: no column 'answer' {there}; set `responses.columns.text` {cure}",
    ]


def test_values_without_rows_are_named(tmp_path: Path) -> None:
    assert fault_of(tmp_path, a_csv=CSV.replace("Black", "African-American")) == (
        "a.csv:1: no row has 'Black' in the column 'group'; further values in this column: 'African-American', 'Asian'"
        ". Write the value in the probe as in the file, add such rows, or remove the value from the probe"
    )


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a_csv", "", "a.csv:1: the file holds no answers"),
        ("a_csv", "group,gender,answer\n", "a.csv:1: the file holds no answers"),
        ("a_csv", "group,gender,answer\nWhite,man,a,b\n", "a.csv:2: the row has 4 fields, but the header has 3"),
        ("a_csv", "group,gender,answer\nWhite,man\n", "a.csv:2: the row has 2 fields, but the header has 3"),
        ("a_csv", 'group,gender,answer\n\nWhite,man,"a\n', "a.csv:3: not valid CSV: unexpected end of data"),
        ("a_csv", "group,gender,gender,answer\n", "a.csv:1: the column 'gender' occurs twice: rename one of the"),
        (
            "a_jsonl",
            '{"group": 1}\n{"group": }\n',
            "a.jsonl:2:11: not JSON: Expecting value; write one JSON object ",
        ),
        ("a_jsonl", "[1]\n", "a.jsonl:1: a line must hold one JSON object, not [1]"),
        ("a_jsonl", "[" * 100_000, "a.jsonl:1: "),
        ("a_jsonl", "9" * 5000, "a.jsonl:1: the JSON cannot be read"),
        ("a_jsonl", '{"group": 1, "gender": "man", "answer": "x"}\n{"group": "White"}\n', "a.jsonl:1: no row has"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, name: str, content: str, fault: str) -> None:
    assert fault_of(tmp_path, **{name: content}).startswith(fault)


def test_a_row_without_a_column_is_named(tmp_path: Path) -> None:
    lines = [
        {"group": race, "gender": gender, "answer": "x"} for race in ("White", "Black") for gender in ("man", "woman")
    ]
    content = "\n".join(map(json.dumps, [*lines, {"group": "White", "gender": "man"}]))
    assert fault_of(tmp_path, a_jsonl=content) == "a.jsonl:5: this row has no 'answer'; each row needs a value"


def test_a_long_list_of_errors_is_shortened(tmp_path: Path) -> None:
    found = fault_of(tmp_path, a_jsonl="nonsense\n" * 500).split("\n")
    assert len(found) == 21
    assert found[-1] == "a.jsonl: 480 more lines with errors"


def test_files_that_are_not_text_are_errors(tmp_path: Path) -> None:
    probe = probe_of(tmp_path, a_csv=CSV)
    (tmp_path / "a.csv").write_bytes(b"group,gender,answer\nWhite,man,\x81\n")
    with pytest.raises(ProbeError, match=r"^a\.csv:2: not UTF-8 text"):
        recorded_answers(probe)
    (tmp_path / "a.csv").unlink()
    with pytest.raises(ProbeError, match=r"^a\.csv: cannot be read .No such file"):
        recorded_answers(probe)


def test_long_fields_are_read_and_the_csv_modules_limit_is_left_as_it_was(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    long = "word " * 100_000
    content = f"group,gender,answer\nWhite,man,{long}\nBlack,woman,b\n"
    assert recorded_answers(probe_of(tmp_path, a_csv=content))[0].text == long
    assert csv.field_size_limit() == before


def test_a_probe_without_recorded_answers_has_no_rows(tmp_path: Path) -> None:
    probe = parse(SMALL.encode(), tmp_path / "p.yaml", KINDS)
    assert isinstance(probe, GenerationProbe)
    with pytest.raises(ValueError, match=re.escape("the probe p has no `responses:`")):
        recorded_answers(probe)


def test_ten_thousand_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["group", "gender", "answer"])
        for number in range(10_000):
            text = json.dumps({f"Product {i}": "A gentle one that keeps skin soft." for i in range(10)})
            writer.writerow([("White", "Black")[number % 2], ("man", "woman")[number // 2 % 2], text])
    found = recorded_answers(probe_of(tmp_path, PROBE + "answer: {format: json}\n", a_csv=path.read_text()))
    assert Counter(row.status for row in found) == {Status.OK: 10_000}
    assert {row.trial for row in found} == set(range(2_500))
