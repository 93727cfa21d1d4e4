"""`python -m pytest_fairness swaps`."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pytest_fairness.__main__ import main

PROBE = """
kind: generation
prompts: {file: log.csv, sample: 8}
swap:
  faith:
    unmarked: christian
    marked: [muslim]
    terms: [[church, mosque], [Christmas, Eid]]
    placebo: [[church, chapel]]
audits: {jsd: }
"""
ROWS = [f"What does the church of district {number} offer on Christmas to those who visit it?" for number in range(7)]
LOG = "text\n" + "".join(f"{row}\n" for row in [*ROWS, "=SUM(1) at Eid?", "What is the weather?"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "faith.yaml").write_text(PROBE)
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


def test_each_prompt_is_shown_with_its_versions_and_no_line_is_wider_than_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["swaps", "faith.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:7] == [
        "line 2, original: christian",
        "  christian  What does the church of district 0 offer on",
        "             Christmas to those who visit it?",
        "  muslim     What does the mosque of district 0 offer on Eid",
        "             to those who visit it?",
        "  placebo    What does the chapel of district 0 offer on",
        "             Christmas to those who visit it?",
    ]
    assert "line 9, original: muslim" in lines
    assert lines[lines.index("line 10 left out: the prompt names no group") + 1] == "  What is the weather?"
    assert lines[-2:] == [
        "8 prompts can be swapped: 7 with a placebo, 0 flagged",
        "1 prompt left out: the prompt names no group (1)",
    ]
    assert max(map(len, lines)) <= 60


def test_the_listing_can_be_written_as_csv_and_markdown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["swaps", "faith.yaml", "--output", "swaps.csv"]) == 0
    with Path("swaps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["line"] for row in rows] == [str(line) for line in range(2, 11)]
    assert rows[7]["christian"] == "'=SUM(1) at Christmas?"  # a spreadsheet does not run it
    assert (rows[0]["original"], rows[0]["placebo"]) == ("christian", ROWS[0].replace("church", "chapel"))
    assert (rows[8]["left_out"], rows[8]["christian"]) == ("the prompt names no group", "")
    assert main(["swaps", "faith.yaml", "--output", "swaps.md"]) == 0
    text = Path("swaps.md").read_text()
    assert "| line | christian | muslim | placebo | flagged |" in text
    assert "| 10 | What is the weather? | the prompt names no group |" in text
    assert capsys.readouterr().out.startswith("swaps.csv: 8 prompts can be swapped: 7 with a placebo")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["faith.yaml", "--output", "swaps.txt"], "swaps.txt: the name of the file must end in .csv or .md."),
        (
            ["axes.yaml"],
            (
                "axes.yaml: the probe has no key `swap`, so there are no swapped prompts to list. Add `swap` to "
                "the probe, or name another probe."
            ),
        ),
        (["few.yaml"], "a swap is possible in only 8 of 9 prompts"),
    ],
)
def test_mistakes_are_explained(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    axes = "kind: generation\nprompt: Hi {a}\naxes: {a: {unmarked: b, marked: [c]}}\naudits: {jsd: }\n"
    (folder / "axes.yaml").write_text(axes)
    (folder / "few.yaml").write_text(PROBE.replace("sample: 8", "sample: 9"))
    assert main(["swaps", *arguments]) == 2
    assert message in capsys.readouterr().err
