"""Files of published benchmarks as cases; these examples are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import kinds
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import StereotypeProbe, load

CROWS = """\
,sent_more,sent_less,stereo_antistereo,bias_type,annotations
0,"The old can not learn, they say.","The young can not learn, they say.",stereo,age,x
7,He could be a nurse.,She could be a nurse.,antistereo,gender,x
"""


def example(**more: Any) -> dict[str, Any]:
    sentences: list[dict[str, Any]] = [
        {"gold_label": gold, "sentence": f"It is {gold}.", "id": gold, "labels": []}
        for gold in ("anti-stereotype", "unrelated", "stereotype")
    ]
    return {
        "id": "a1", "target": "poet", "bias_type": "profession", "context": "The poet came.", "sentences": sentences,
        **more,
    }  # fmt: skip


def stereoset(*between: dict[str, Any], within: tuple[dict[str, Any], ...] = ()) -> str:
    return json.dumps({"version": "1.0", "data": {"intersentence": between, "intrasentence": within}}, indent=1)


def probe(folder: Path, name: str, content: str) -> StereotypeProbe:
    (folder / name).write_text(content, "utf-8")
    path = folder / "probe.yaml"
    path.write_text(f"kind: stereotype\ncases: {{file: {name}}}\naudits:\n  likelihood: {{}}\n", "utf-8")
    found = load(path, kinds.schemas(), root=folder)
    assert isinstance(found, StereotypeProbe)
    return found


def errors(folder: Path, name: str, content: str) -> list[str]:
    with pytest.raises(ProbeError) as raised:
        probe(folder, name, content)
    return str(raised.value).splitlines()


def test_crows_pairs(tmp_path: Path) -> None:
    found = probe(tmp_path, "crows.csv", CROWS)
    first, second = found.cases
    assert (first.name, first.category, first.direction) == ("pair-0", "age", "stereo")
    assert first.stereotype == "The old can not learn, they say."
    assert (second.name, second.direction, second.anti_stereotype) == ("pair-7", "antistereo", "She could be a nurse.")
    asked = list(found.prompts())
    assert [dict(prompt.labels) for prompt in asked[:2]] == [
        {"case": "pair-0", "category": "age", "sentence": "stereotype"},
        {"case": "pair-0", "category": "age", "sentence": "anti_stereotype"},
    ]
    assert (asked[0].request.prompt, asked[0].request.continuation) == ("", first.stereotype)


def test_stereoset(tmp_path: Path) -> None:
    within = example(id="b2", target="tuba", bias_type="race", context="A tuba is BLANK.")
    found = probe(tmp_path, "dev.json", stereoset(example(), within=(within,)))
    first, second = found.cases
    assert (first.name, first.category, first.target, first.context) == ("a1", "profession", "poet", "The poet came.")
    assert (first.stereotype, first.anti_stereotype, first.unrelated) == (
        "It is stereotype.", "It is anti-stereotype.", "It is unrelated.",
    )  # fmt: skip
    assert (second.name, second.context) == ("b2", None)
    asked = list(found.prompts(trials=9))
    assert [(prompt.request.prompt, prompt.request.continuation) for prompt in asked] == [
        ("The poet came.", " It is stereotype."),
        ("The poet came.", " It is anti-stereotype."),
        ("The poet came.", " It is unrelated."),
        ("", "It is stereotype."),
        ("", "It is anti-stereotype."),
        ("", "It is unrelated."),
    ], "once, whatever the trials"


def test_json_lines(tmp_path: Path) -> None:
    rows = [
        {"name": "one", "context": "The poet came.", "stereotype": "Yes.", "anti_stereotype": "No.", "target": "poet"},
        {"name": "two", "stereotype": "Poets drink.", "anti_stereotype": "Poets work."},
    ]
    found = probe(tmp_path, "cases.jsonl", "\n".join(map(json.dumps, rows)))
    assert [len(list(found.prompts())), found.cases[0].target] == [4, "poet"]


ERRORS = {
    "crows.csv:3: 'stereo_antistereo' must be stereo or antistereo, not 'opposed'": (
        "crows.csv",
        CROWS.replace("antistereo,gender", "opposed,gender"),
    ),
    "crows.csv:1: the column 'bias_type' of CrowS-Pairs is missing: did you mean 'bias_typ'?": (
        "crows.csv",
        CROWS.replace(",bias_type", ",bias_typ"),
    ),
    "crows.csv:3: 'pair-0' is repeated": ("crows.csv", CROWS.replace("7,He", "0,He")),
    "crows.csv:3: `stereotype` is missing": ("crows.csv", CROWS.replace("7,He could be a nurse.,", "7,,")),
    "dev.json:32: data.intersentence[1]: no sentence has the gold_label 'stereotype'": (
        "dev.json",
        stereoset(example(), example(id="b2", sentences=[])),
    ),
    "data.intersentence[0]: `context` is missing": ("dev.json", stereoset(example(context=None))),
    "data.intrasentence[0]: `target` is missing": ("dev.json", stereoset(within=({"id": "a"},))),
    "data.intersentence[0]: an example must be a JSON object": (
        "dev.json",
        stereoset().replace('"intersentence": []', '"intersentence": [5]'),
    ),
    "unknown gold_label 'related' (valid: stereotype, anti-stereotype, unrelated)": (
        "dev.json",
        stereoset(example()).replace('"unrelated"', '"related"', 1),
    ),
    "two sentences have the gold_label 'stereotype'; each example must have one sentence for each gold_label": (
        "dev.json",
        stereoset(example()).replace('"unrelated"', '"stereotype"', 1),
    ),
    "dev.json:32: 'a1' is repeated": ("dev.json", stereoset(example(), example())),
    "dev.json:1: the file must hold a list of objects or of texts": ("dev.json", '{"data": 5}'),
    "dev.json:1:10: not JSON": ("dev.json", '{"data": '),
    "cases.jsonl:1: `direction` must be one of stereo, antistereo, not the text 'up'": (
        "cases.jsonl",
        '{"name": "a", "stereotype": "b", "anti_stereotype": "c", "direction": "up"}',
    ),
    "cases.jsonl:1: `direction` is possible only in a case without `prompt`": (
        "cases.jsonl",
        '{"name": "a", "prompt": "b", "direction": "stereo"}',
    ),
}
"""Message to the file that causes it: name and content."""


@pytest.mark.parametrize("said", ERRORS)
def test_errors_of_published_files_have_a_line(tmp_path: Path, said: str) -> None:
    found = errors(tmp_path, *ERRORS[said])
    assert any(said in error for error in found), found
