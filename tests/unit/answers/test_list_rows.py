from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from pytest_fairness.errors import ProbeError
from pytest_fairness.kinds import recorded_answers
from pytest_fairness.probes import RecommendationProbe, parse
from pytest_fairness.records import Answer, Status
from tests.support.probe_files import KINDS

PROBE = """\
kind: recommendation
attributes:
  age: [a young, an old]
k: 3
responses: {file: FILE}
audits: {snsr: }
"""
LISTS = [
    ("Adele", "neutral", "", ["Hello", "Skyfall"]),
    ("Adele", "age", "a young", ["Hello", "Halo"]),
    ("Adele", "age", "an old", ["Skyfall", "Yesterday"]),
    ("Sia", "neutral", "", ["Chandelier"]),
    ("Sia", "age", "a young", ["Chandelier", "Alive"]),
    ("Sia", "age", "an old", ["Titanium"]),
]
NAMES = ("entity", "attribute", "value", "items")


def as_csv(header: tuple[str, ...], lines: list[tuple[object, ...]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerows([header, *lines])
    return written.getvalue()


def as_json_lines(lines: list[tuple[object, ...]], header: tuple[str, ...] = NAMES) -> str:
    return "".join(json.dumps(dict(zip(header, line, strict=True))) + "\n" for line in lines)


def read(folder: Path, name: str, content: str, text: str = PROBE) -> list[Answer]:
    (folder / name).write_text(content)
    probe = parse(text.replace("FILE", name).encode(), folder / "p.yaml", KINDS, root=folder)
    assert isinstance(probe, RecommendationProbe)
    return recorded_answers(probe)


def plain(answers: list[Answer]) -> list[tuple[str, str, str, list[str]]]:
    return [(*(answer.labels[name] for name in NAMES[:3]), answer.content) for answer in answers]


def test_a_row_holds_a_list_as_json(tmp_path: Path) -> None:
    assert plain(read(tmp_path, "a.jsonl", as_json_lines(list(LISTS)))) == LISTS
    written = [(*line[:3], json.dumps(line[3])) for line in LISTS]
    assert plain(read(tmp_path, "a.csv", as_csv(NAMES, list(written)))) == LISTS


def test_a_row_holds_a_list_as_text(tmp_path: Path) -> None:
    written = [(*line[:3], "\n".join(f"{n}. {item}" for n, item in enumerate(line[3], 1))) for line in LISTS]
    assert plain(read(tmp_path, "a.csv", as_csv(NAMES, list(written)))) == LISTS
    refused = [*written[:5], ("Sia", "age", "an old", "I'm sorry, but I can't help with that.")]
    assert read(tmp_path, "a.csv", as_csv(NAMES, list(refused)))[5].status is Status.REFUSED


def test_rows_with_one_item_are_joined_by_rank(tmp_path: Path) -> None:
    ranked = [(*line[:3], item, rank) for line in LISTS for rank, item in reversed(list(enumerate(line[3], 1)))]
    for column in ("items", "item"):
        header = (*NAMES[:3], column, "rank")
        assert plain(read(tmp_path, "a.csv", as_csv(header, list(ranked)))) == LISTS
    with pytest.raises(ProbeError, match=r"a.csv:4: rank 2 of Adele, neutral occurs twice"):
        read(tmp_path, "a.csv", as_csv(header, [ranked[0], ranked[1], ranked[0], *ranked[2:]]))


def test_columns_are_mapped_and_letter_case_does_not_matter(tmp_path: Path) -> None:
    text = PROBE.replace("{file: FILE}", "{file: FILE, columns: {entity: artist, items: songs}}")
    lines = [(line[0], line[1].upper(), line[2].title(), json.dumps(line[3])) for line in LISTS]
    assert plain(read(tmp_path, "a.csv", as_csv(("artist", "attribute", "value", "songs"), list(lines)), text)) == LISTS


def test_trials_are_numbered_by_cell(tmp_path: Path) -> None:
    found = read(tmp_path, "a.jsonl", as_json_lines([*LISTS, *LISTS]))
    assert Counter(answer.trial for answer in found) == {0: 6, 1: 6}
    with_trial = [(*line, 4) for line in LISTS]
    header = (*NAMES, "trial")
    assert {answer.trial for answer in read(tmp_path, "a.jsonl", as_json_lines(list(with_trial), header))} == {4}
    with pytest.raises(ProbeError, match=r"a.jsonl:7: trial 4 of entity Adele, attribute neutral is also in line 1"):
        read(tmp_path, "a.jsonl", as_json_lines([*with_trial, with_trial[0]], header))


def test_rows_of_other_entities_and_values_are_left_out(tmp_path: Path) -> None:
    other = [("Adele", "religion", "a Muslim", ["Hello"]), ("Adele", "age", "a middle-aged", ["Hello"])]
    assert plain(read(tmp_path, "a.jsonl", as_json_lines([*other, *LISTS]))) == LISTS
    named = PROBE + "entities: [{name: sia, domain: pop}]\n"
    found = read(tmp_path, "a.jsonl", as_json_lines(list(LISTS)), named)
    assert [answer.labels["entity"] for answer in found] == ["sia"] * 3
    assert {answer.labels["domain"] for answer in found} == {"pop"}


def test_values_of_crossed_attributes_are_matched(tmp_path: Path) -> None:
    text = PROBE.replace("k: 3", "  mood: [a merry]\ncross: [[age, mood]]\nk: 3")
    more = [("Adele", "mood", "a merry", ["Hello"])]
    more += [("Adele", "age+mood", f"{age}; a merry", ["Hello"]) for age in ("a young", "an old")]
    found = read(tmp_path, "a.jsonl", as_json_lines([*LISTS, *more]), text)
    assert plain(found)[6:] == more


def test_null_is_a_missing_list(tmp_path: Path) -> None:
    found = read(tmp_path, "a.jsonl", as_json_lines([("Adele", "neutral", "", None), *LISTS[1:]]))
    assert (found[0].status, found[0].text) == (Status.FAILED, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (as_json_lines(list(LISTS[1:])).replace("neutral", "none"), "a.jsonl:1: no row has the attribute 'neutral'"),
        (
            as_json_lines(list(LISTS)).replace("an old", "an elder"),
            "a.jsonl:1: no row has the attribute and value 'age an old'; the file has 'neutral', 'age a young', '",
        ),
        (
            as_json_lines(list(LISTS)).replace('"entity"', '"entty"'),
            "a.jsonl:1: no column 'entity': did you mean 'entty'?",
        ),
        (as_json_lines([("", "age", "a young", []), *LISTS]), "a.jsonl:1: this row has no 'entity'"),
    ],
)
def test_invalid_rows_are_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ProbeError) as caught:
        read(tmp_path, "a.jsonl", content)
    assert message in str(caught.value)


def test_missing_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    text = PROBE.replace("FILE", "a.jsonl, columns: {entty: a}, strata: [b]")
    with pytest.raises(ProbeError) as caught:
        parse(text.encode(), tmp_path / "p.yaml", KINDS, root=tmp_path)
    assert [line.split(": ", 1)[1] for line in str(caught.value).split("\n")] == [
        "'entty' is not a column that this probe reads: did you mean 'entity'?",
        "lists are compared only with lists about the same entity: remove `strata`",
    ]


def test_twelve_thousand_lists_are_read(tmp_path: Path) -> None:
    titles = [f"Song {number} of the year" for number in range(25)]
    kinds = [("neutral", ""), ("age", "a young"), ("age", "an old")]
    lines = [(f"Artist {number}", *kind, titles) for number in range(4_000) for kind in kinds]
    found = read(tmp_path, "a.jsonl", as_json_lines(list(lines)))
    assert len(found) == 12_000
    assert all(answer.content == titles for answer in found)
