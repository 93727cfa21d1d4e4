"""Answers in several files, which a pattern names."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness import kinds
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import GenerationProbe, parse
from tests.support.probe_files import KINDS
from tests.support.projects import Project, shows

PROBE = """\
kind: generation
axes: {group: {unmarked: man, marked: [woman]}}
responses: {file: "FILE"}
audits: {jsd: {limit: 0.5}}
"""
ROWS = [{"group": group, "text": f"A {thing}."} for thing in ("lamp", "rug", "vase") for group in ("man", "woman")]


def parsed(folder: Path, file: str, text: str = PROBE) -> GenerationProbe:
    loaded = parse(text.replace("FILE", file).encode(), folder / "p.yaml", KINDS, root=folder)
    assert isinstance(loaded, GenerationProbe)
    return loaded


def error_of(folder: Path, file: str, text: str = PROBE) -> str:
    with pytest.raises(ProbeError) as caught:
        kinds.recorded_answers(parsed(folder, file, text))
    return str(caught.value)


def write(path: Path, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows)
    match path.suffix:
        case ".csv":
            frame.to_csv(path, index=False)
        case ".parquet":
            frame.to_parquet(path)
        case _:
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "ndjson", "parquet"])
@pytest.mark.parametrize("folder", ["[a]", "a"])
def test_the_rows_of_all_matching_files_are_read_in_the_order_of_their_names(
    tmp_path: Path, suffix: str, folder: str
) -> None:
    for name, part in (("b", ROWS[2:4]), ("a", ROWS[:2]), ("more/c", ROWS[4:])):
        write(tmp_path / folder / f"answers/{name}.{suffix}", part)
    write(tmp_path / folder / f"all.{suffix}", ROWS)
    whole = kinds.recorded_answers(parsed(tmp_path / folder, f"all.{suffix}"))
    assert [(row.labels["group"], row.trial, row.text) for row in whole[:3]] == [
        ("man", 0, "A lamp."), ("woman", 0, "A lamp."), ("man", 1, "A rug."),
    ]  # fmt: skip
    assert kinds.recorded_answers(parsed(tmp_path / folder, f"answers/*.{suffix}")) == whole[:4]
    assert kinds.recorded_answers(parsed(tmp_path / folder, f"answers/**/*.{suffix}")) == whole
    assert kinds.recorded_answers(parsed(tmp_path / folder, f"a*/[a].{suffix}")) == whole[:2]


def test_a_file_whose_name_has_the_characters_of_a_pattern(tmp_path: Path) -> None:
    write(tmp_path / "a[1].csv", ROWS)
    write(tmp_path / "a1.csv", ROWS[:2])
    assert len(kinds.recorded_answers(parsed(tmp_path, "a[1].csv"))) == len(ROWS)


def test_errors_name_the_file_and_the_line(tmp_path: Path) -> None:
    write(tmp_path / "a/1.csv", ROWS)
    (tmp_path / "a/2.csv").write_text("group,text\nman,A mirror.\nwoman\n")
    assert error_of(tmp_path, "a/*.csv").startswith("a/2.csv:3: the row has 1 field, but the header has 2")
    write(tmp_path / "a/2.csv", [{"group": "man", "reply": "A mirror."}])
    assert error_of(tmp_path, "a/*.csv") == (
        "a/2.csv:1: no column 'text' (the columns are 'group', 'reply'); set `responses.columns.text` to "
        "the name of the right column"
    )
    (tmp_path / "a/2.csv").write_text("group,text\n")
    assert error_of(tmp_path, "a/*.csv") == "a/2.csv:1: the file holds no answers"
    write(tmp_path / "a/2.csv", [{"group": "nobody", "text": "A mirror."}])
    text = PROBE.replace("[woman]", "[woman, child]")
    assert error_of(tmp_path, "a/*.csv", text) == (
        "a/*.csv:1: no row has 'child' in the column 'group'; further values in this column: 'nobody'. Write the value "
        "in the probe as in the file, add such rows, or remove the value from the probe"
    )


def test_a_repeated_trial_number_names_both_files(tmp_path: Path) -> None:
    for name in "12":
        write(tmp_path / f"a/{name}.csv", [{**row, "trial": str(place)} for place, row in enumerate(ROWS)])
    assert error_of(tmp_path, "a/*.csv").splitlines()[0] == (
        "a/2.csv:2: trial 0 of group man is also in a/1.csv:2; if a column distinguishes the two rows, name it under "
        "`responses.strata`"
    )


def test_the_first_row_without_a_group_is_named_with_its_file(tmp_path: Path) -> None:
    write(tmp_path / "a/1.csv", ROWS)
    write(tmp_path / "a/2.csv", [*ROWS, {"group": "", "text": "A mirror."}])
    reader = kinds.recorded(parsed(tmp_path, "a/*.csv"))
    assert str(reader.without_group) == ("1 of 13 rows has no value in the column 'group' (a/2.csv:8) and is left out")


def test_patterns_that_name_no_answers_are_located_errors(tmp_path: Path) -> None:
    write(tmp_path / "outside.csv", ROWS)
    folder = tmp_path / "probes"
    write(folder / "a/1.csv", ROWS)
    write(folder / "a/2.jsonl", ROWS)
    (folder / "a/notes.txt").write_text("")
    (folder / "links").mkdir()
    (folder / "links/1.csv").symlink_to(tmp_path / "outside.csv")
    for file, error in {
        "*.csv": "no file in the probe's folder matches '*.csv'; 'a/1.csv' has such a name: correct the",
        "none/*.csv": "no file in the probe's folder matches 'none/*.csv'; 'a/1.csv' has such a name: correct the",
        "a/*.parquet": "no file in the probe's folder matches 'a/*.parquet'",
        "../*.csv": "'../*.csv' lies outside the probe's folder: put the files beside the probe file",
        "a/../../*.csv": "'a/../../*.csv' lies outside the probe's folder: put the files beside the probe file",
        f"{tmp_path}/*.csv": "lies outside the probe's folder: put the files beside the probe file",
        "links/*.csv": "'links/1.csv' lies outside the probe's folder: put it beside the probe file",
        "a/[12].*": "'[12].*' matches files of several formats (.csv, .jsonl): write a pattern that ends in one",
        "a/*": "'notes.txt' is not a file of answers",
    }.items():
        assert error_of(folder, file).startswith("p.yaml:3:19: `responses.file`"), file
        assert error in error_of(folder, file), file


def test_an_item_is_measured_from_several_files_as_from_one(project: Project) -> None:
    things = [f"A {first} and a {second}." for first in ("lamp", "rug", "vase") for second in ("bed", "sofa", "desk")]
    rows = [{"group": group, "text": thing} for group in ("man", "woman") for thing in things]
    write(project.path / "probes/all.parquet", rows)
    for number in range(3):
        write(project.path / f"probes/parts/{number}.parquet", rows[6 * number : 6 * number + 6])
    found = []
    for file in ("all.parquet", "parts/*.parquet"):
        project.probe("probes/things.yaml", PROBE.replace("FILE", file))
        (item,) = project.report("probes/things.yaml", target=None)["items"]
        found.append((item["value"], item["details"]))
    assert found[0] == found[1]
    project.probe("probes/things.yaml", PROBE.replace("FILE", "part/*.parquet"))
    result = project.run("--fairness", "probes/things.yaml")
    assert shows(result, "things.yaml:3:19", "no file in the probe's folder matches 'part/*.parquet'")
