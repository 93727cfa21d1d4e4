"""Rows whose group is empty or unknown are counted apart from rows of other probes, in answer files of every kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_fairness import kinds
from pytest_fairness.probes import parse

GENERATION = """
kind: generation
axes: {race: {unmarked: White, marked: [Black]}, gender: {unmarked: man, marked: [woman]}}
responses: {file: FILE, columns: {race: origin}}
audits: {jsd: }
"""
RECOMMENDATION = """
kind: recommendation
attributes: {age: [young, old]}
entities: [Adele]
k: 3
responses: {file: FILE}
audits: {snsr: }
"""
COREFERENCE = """
kind: coreference
items: [{masculine: doctor, feminine: nurse, sentence: "The {first} told the {second} that {pronoun} was late",
  question: "who was late?"}]
responses: {file: FILE}
audits: {coreference: }
"""
COUNTERFACTUAL = """
kind: counterfactual
flip: {sex: {Male: Female}}
responses: {file: FILE}
audits: {flip_rate: }
"""
STEREOTYPE = """
kind: stereotype
cases: [{name: bus, prompt: "Describe {group} on a bus.", groups: [women, men]}]
responses: {file: FILE}
audits: {regard: }
"""
TEXT = "A chair."
ROWS: dict[str, tuple[str, list[dict[str, object]], dict[str, object], dict[str, object] | None, tuple[str, ...]]] = {
    # The probe, its rows, changes that leave a row without a group, changes to a row of another probe (if there can be
    # such rows), columns.
    "generation": (
        GENERATION,
        [
            {"origin": race, "gender": gender, "text": TEXT}
            for race in ("White", "Black")
            for gender in ("man", "woman")
        ],
        {"gender": " "},
        None,
        ("gender",),
    ),
    "generation, null": (
        GENERATION,
        [
            {"origin": race, "gender": gender, "text": TEXT}
            for race in ("White", "Black")
            for gender in ("man", "woman")
        ],
        {"gender": None, "origin": None},
        None,
        ("origin", "gender"),
    ),
    "recommendation": (
        RECOMMENDATION,
        [
            {"entity": "Adele", "attribute": attribute, "value": value, "items": ["Hello"]}
            for attribute, value in (("age", "young"), ("age", "old"), ("neutral", ""))
        ],
        {"attribute": "age", "value": ""},
        {"attribute": "faith", "value": ""},
        ("value",),
    ),
    "coreference": (
        COREFERENCE,
        [{"item": "doctor/nurse", "first": "doctor", "pronoun": word, "text": "The nurse"} for word in ("she", "he")],
        {"item": ""},
        {"item": "guard/cleaner"},
        ("item",),
    ),
    "counterfactual": (
        COUNTERFACTUAL,
        [{"id": 1, "sex": "Male", "answer": "Yes."}, {"id": 1, "sex": "Female", "answer": "Yes."}],
        {"sex": ""},
        None,
        ("sex",),
    ),
    "stereotype, no group": (
        STEREOTYPE,
        [{"case": "bus", "group": group, "text": TEXT} for group in ("women", "men")],
        {"group": ""},
        None,
        ("group",),
    ),
    "stereotype, no case": (
        STEREOTYPE,
        [{"case": "bus", "group": group, "text": TEXT} for group in ("women", "men")],
        {"case": ""},
        {"case": "shop", "group": ""},
        ("case",),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_without_a_group_are_counted(tmp_path: Path, name: str) -> None:
    text, rows, empty, other, columns = ROWS[name]

    def read(changes: list[Mapping[str, object]]) -> tuple[int, object]:
        lines = [*({**rows[0], **change} for change in changes), *rows]
        (tmp_path / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        probe = parse(text.replace("FILE", "said.jsonl").encode(), tmp_path / "p.yaml", kinds.schemas(), root=tmp_path)
        reader = kinds.recorded(probe)
        return len(reader.answers), reader.without_group

    assert read([]) == (len(rows), None)
    others = [] if other is None else [other]
    assert read([*others]) == (len(rows), None)
    used, left_out = read([*others, empty, empty])
    assert used == len(rows)
    assert str(left_out) == (
        f"2 of {len(rows) + 2} rows have no value in the column{'s' if len(columns) > 1 else ''} "
        f"{' or '.join(map(repr, columns))} (first: line {2 if others else 1}) and are left out"
    )
    assert str(read([empty])[1]).startswith(f"1 of {len(rows) + 1} rows has no value in the column")


UNKNOWN: dict[str, tuple[str, dict[str, object], str]] = {
    "generation": ("generation", {"origin": "Blak", "gender": ""}, "Blak"),
    "recommendation": ("recommendation", {"value": "yuong"}, "yuong"),
    "counterfactual": ("counterfactual", {"sex": "Femal"}, "Femal"),
    "stereotype": ("stereotype, no group", {"group": "womn"}, "womn"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_rows_of_an_unknown_group_are_counted_unless_the_probe_ignores_the_group(tmp_path: Path, name: str) -> None:
    kind, change, value = UNKNOWN[name]
    text, rows, *_ = ROWS[kind]
    lines = [{**rows[0], **change}, *rows]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for ignore, count in (("", {value: 1}), (f", ignore: [other, {value.upper()}]", None), (", ignore: ['*']", None)):
        written = text.replace("FILE", f"said.jsonl{ignore}")
        reader = kinds.recorded(parse(written.encode(), tmp_path / "p.yaml", kinds.schemas(), root=tmp_path))
        assert len(reader.answers) == len(rows)
        found = reader.without_group
        assert (None if found is None else found.values) == count
