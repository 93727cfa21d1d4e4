"""`python -m pytest_fairness measure FILE --impact-ratio`: the summary of New York's Local Law 144."""

from __future__ import annotations

import csv
import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pytest_fairness.__main__ import main
from tests.support.workbooks import workbook

RACES = {
    "White": 390,
    "Black or African American": 150,
    "Asian": 130,
    "Hispanic or Latino": 120,
    "Native American or Alaska Native": 16,
    "Native Hawaiian or Pacific Islander": 15,
}
NO_SEX, NO_RACE = 36, 29
COLUMNS = ["--impact-ratio", "--sex", "Sex", "--race", "Race/Ethnicity"]


@pytest.fixture
def scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 850 candidates: 36 without sex, 29 without race, two categories below 2 %."""
    monkeypatch.chdir(tmp_path)
    drawn = random.Random(3)  # noqa: S311 - no secret
    races = [race for race, count in RACES.items() for _ in range(count)]
    races += [drawn.choice(["", "N/A", "Prefer not to say"]) for _ in range(NO_RACE)]
    sexes = [drawn.choice(["Male", "Female"]) for _ in range(850 - NO_SEX)] + ["unknown"] * NO_SEX
    drawn.shuffle(sexes)
    with Path("scored.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Candidate", "Sex", "Race/Ethnicity", "Score", "Hired"])
        for number, (sex, race) in enumerate(zip(sexes, races, strict=True)):
            score = round(drawn.gauss(60 - 8 * (race.startswith("Black")) - 3 * (sex == "Female"), 12), 1)
            writer.writerow([number, sex, race, score, "yes" if score > 62 else "no"])
    return Path("scored.csv")


def counted(path: Path, selected: pd.Series[bool], by: list[str]) -> dict[tuple[str, ...], tuple[int, int, Any]]:
    """Return applicants, selected and ratio of each category, as pandas counts them."""
    frame = pd.read_csv(path).assign(chosen=selected)
    known = frame[~frame["Sex"].isin(["unknown"]) | ("Sex" not in by)]
    if "Race/Ethnicity" in by:
        known = known[known["Race/Ethnicity"].notna() & (known["Race/Ethnicity"] != "Prefer not to say")]
    groups = known.groupby(by)["chosen"].agg(["size", "sum", "mean"]).reset_index()
    highest = groups["mean"][groups["size"] >= 0.02 * len(frame)].max()
    return {
        tuple(row[name] for name in by): (
            row["size"],
            row["sum"],
            row["mean"] / highest if row["size"] >= 0.02 * len(frame) else None,
        )
        for _, row in groups.iterrows()
    }


@pytest.mark.parametrize("column", ["--score", "--selected"])
def test_all_numbers_are_those_of_an_independent_count(scored: Path, column: str) -> None:
    name = "Score" if column == "--score" else "Hired"
    assert main(["measure", "scored.csv", *COLUMNS, column, name, "--report", "summary.json"]) == 0
    frame = pd.read_csv(scored)
    selected = frame["Score"] > frame["Score"].median() if name == "Score" else frame["Hired"] == "yes"
    summary = json.loads(Path("summary.json").read_text("utf-8"))
    assert (summary["applicants"], summary["selected"]) == (850, selected.sum())
    assert summary["unknown"] == {"Sex": NO_SEX, "Race or ethnicity": NO_RACE}
    both = (
        (frame["Sex"] == "unknown") | frame["Race/Ethnicity"].isna() | (frame["Race/Ethnicity"] == "Prefer not to say")
    )
    assert [sheet["unknown"] for sheet in summary["tables"]] == [NO_SEX, NO_RACE, both.sum()]
    for sheet, by in zip(summary["tables"], (["Sex"], ["Race/Ethnicity"], ["Sex", "Race/Ethnicity"]), strict=True):
        expected = counted(scored, selected, by)
        found = {tuple(each["names"]): each for each in sheet["categories"]}
        assert found.keys() == expected.keys()
        for names, (size, chosen, ratio) in expected.items():
            assert (found[names]["applicants"], found[names]["selected"]) == (size, chosen)
            assert found[names]["excluded"] is (ratio is None)
            assert found[names]["ratio"] == (None if ratio is None else pytest.approx(ratio))
        assert sum(each["applicants"] for each in sheet["categories"]) + sheet["unknown"] == 850
    assert sum(each["excluded"] for each in summary["tables"][1]["categories"]) == 2


class Text(HTMLParser):
    """Text of a page without its style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self._hidden = "", False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._hidden else f"{data} "


def test_a_page_has_each_table_in_sight_and_says_what_is_missing(scored: Path) -> None:
    facts = ["--tool-name", "Ranker 3", "--distribution-date", "2026-01-15"]
    assert main(["measure", "scored.csv", *COLUMNS, "--score", "Score", *facts, "--report", "summary.html"]) == 0
    page = Path("summary.html").read_text("utf-8")
    text = " ".join(Text(page).text.split())
    assert page.count('<section class="sheet">') == 3
    assert "<details" not in page
    assert "850 applicants" in text
    assert "Sex is unknown for 36 of 850 applicants (unknown: 36)" in text
    assert "audited tool Ranker 3 distribution date of the tool 2026-01-15" in text
    assert "source and explanation of the data to be filled in" in text
    assert re.search(
        r"below four fifths \(0\.80\): .*Black or African American 0\.\d+.*; four fifths is the rule", text
    )
    assert "Native American or Alaska Native 16" in text
    assert text.count("left out (under 2%)") >= 2
    for word in ("fine-tune", "prompt", "complies", "compliant"):
        assert word not in text


def test_excel_and_the_terminal_say_the_same(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.read_csv(scored, keep_default_na=False)
    workbook(Path("scored.xlsx"), [[*frame.columns], *frame.to_numpy().tolist()])
    shown = []
    for name in ("scored.csv", "scored.xlsx"):
        assert main(["measure", name, *COLUMNS, "--score", "Score"]) == 0
        shown.append(capsys.readouterr().out.partition("## Sex")[2])  # Excel has no text N/A
    assert shown[0] == shown[1]
    assert "| Male | White |" in shown[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--impact-ratio", "--sex", "Sexx", "--score", "Score"], "there is no column 'Sexx': did you mean 'Sex'?"),
        (["--impact-ratio", "--score", "Score"], "--sex"),
        (["--impact-ratio", "--sex", "Sex"], "--score"),
        (["--impact-ratio", "--sex", "Sex", "--score", "Score", "--selected", "Hired"], "--score"),
        (["--impact-ratio", "--sex", "Sex", "--score", "Hired"], "scored.csv:2: the score in the column 'Hired'"),
        (["--impact-ratio", "--sex", "Sex", "--selected", "Candidate"], "--selected-value"),
        (
            ["--impact-ratio", "--sex", "Sex", "--selected", "Hired", "--selected-value", "maybe"],
            "no row has 'maybe' in the column 'Hired', whose values are 'no'",
        ),
        (["--impact-ratio", "--sex", "Sex", "--score", "Score", "--text", "Score"], "--text: only without"),
        (["--sex", "Sex", "--group", "Sex", "--unmarked", "Male", "--text", "Hired"], "--sex: only with"),
        (["--impact-ratio", "--sex", "Sex", "--score", "Score", "--report", "x.pdf"], "must end in .html"),
    ],
)
def test_wrong_arguments_get_one_line(
    scored: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", "scored.csv", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_small_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.csv"
    path.write_text("sex,ok\nMale,no\nmale,No\nFemale,no\n", "utf-8")
    assert main(["measure", str(path), "--impact-ratio", "--sex", "sex", "--selected", "ok"]) == 0
    shown = capsys.readouterr().out
    assert "| Male | 2 | 0 | 0.0% | not defined |" in shown
    path.write_text("sex,ok\n,no\nn/a,yes\n", "utf-8")
    assert main(["measure", str(path), "--impact-ratio", "--sex", "sex", "--selected", "ok"]) == 2
    assert "means unknown" in capsys.readouterr().err
