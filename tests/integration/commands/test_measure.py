"""`python -m pytest_fairness measure`: a file of answers without a probe."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.audits.registry import AUDITS, NEED_SETTINGS
from tests.support.projects import Project

WORDS = [
    "careful",
    "plan",
    "good",
    "tools",
    "every",
    "morning",
    "we",
    "check",
    "the",
    "list",
    "and",
    "repair",
    "what",
    "is",
    "broken",
    "with",
    "patience",
    "then",
    "clean",
    "bench",
    "store",
    "parts",
    "write",
    "notes",
    "for",
    "next",
    "day",
    "call",
    "supplier",
    "ask",
    "about",
    "prices",
    "order",
    "wood",
    "screws",
    "paint",
    "glue",
    "sand",
    "oil",
]
Change = Callable[[int, dict[str, str]], dict[str, str]]

TEXT_AUDITS = AUDITS["generation"].keys() - NEED_SETTINGS
"""Audits that the command measures unless some are named."""
FIVE_AUDITS = [word for name in ("marked_words", "svm", "jsd", "mmd", "refusals") for word in ("--audit", name)]


def written(name: str = "answers.csv", rows: int = 120, change: Change | None = None) -> str:
    """Write answers of which those for women name a kitchen, and return the file's name."""
    draw = random.Random(5)  # noqa: S311 - invented texts
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, ["gender", "topic", "answer"])
        table.writeheader()
        for row in range(rows):
            gender, topic = ("man", "woman")[row % 2], ("work", "home")[row // 2 % 2]
            own = {"man": "torque", "woman": "kitchen"}[gender] if draw.random() < 0.6 else "oil"
            cells = {"gender": gender, "topic": topic, "answer": " ".join([*draw.choices(WORDS, k=40), own])}
            table.writerow(cells if change is None else change(row, cells))
    return name


def measure(*arguments: str, file: str = "answers.csv", **options: str) -> int:
    named = {"group": "gender", "unmarked": "man", "text": "answer", **options}
    return main(
        ["measure", file, *(part for name, value in named.items() for part in (f"--{name}", value)), *arguments]
    )


def report(*arguments: str, **options: str) -> dict[str, Any]:
    assert measure("--report", "report.json", *arguments, **options) == 0
    return {item["id"]: item for item in json.loads(Path("report.json").read_text("utf-8"))["items"]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def test_a_difference_is_shown_with_its_size_words_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    written()
    assert measure(*FIVE_AUDITS) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    counts = "5 measurements, without verdicts: 2 large differences, 2 small differences, 1 without a difference"
    assert lines[0] == "answers.csv · 5 items"
    assert " ".join(lines[1:3]).split() == counts.split()
    assert lines[4] == "usable answers: woman 60, man 60"
    assert lines[5].split() == ["size", "value", "[95", "%", "interval]", "p", "effect", "item"]
    assert any(line.startswith("large") and "U₂ 0." in line and "svm[gender=woman]" in line for line in lines)
    assert any(line.startswith("none") and "refusals" in line for line in lines)
    assert "woman vs man: " in out
    assert "kitchen" in out
    assert "Unequal refusals (refusals[gender=woman]): woman vs man: no difference found" in " ".join(out.split())
    assert max(map(len, lines)) <= 80
    assert sorted(path.name for path in Path().iterdir()) == [".fairness", "answers.csv"]


def test_the_measurements_are_kept_for_export_and_history(capsys: pytest.CaptureFixture[str]) -> None:
    written()
    assert measure(*FIVE_AUDITS) == 0
    assert main(["export", "--measurements", "table.csv", "--words", "words.csv"]) == 0
    assert "words of items without a probe file" in capsys.readouterr().err
    assert len(Path("table.csv").read_text("utf-8").splitlines()) == 1 + 5
    assert main(["history"]) == 0
    assert "svm[gender=woman]" in capsys.readouterr().out


def test_a_terminal_shows_which_item_is_measured_and_how_long_the_others_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert measure(*FIVE_AUDITS) == 0
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown[1].startswith("measuring 1 of 5: ")
    assert all(re.fullmatch(r"measuring \d of 5: .+, about \d+ s left", line) for line in shown[2:6])
    assert shown[6:] == [""], "the line is removed at the end"


def test_the_answers_of_each_group_are_counted_and_names_keep_audit_and_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refusing(row: int, cells: dict[str, str]) -> dict[str, str]:
        return {**cells, "answer": "I'm sorry, but I can't help with that."} if row in (1, 3, 5) else cells

    written(change=refusing)
    table = Path("answers.csv").read_text("utf-8")
    Path("answers.csv").write_text(table.replace("gender,", "the_gender_of_the_candidate,", 1), "utf-8")
    assert measure("--audit", "jsd", "--audit", "refusals", group="the_gender_of_the_candidate") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "usable answers: woman 57 (3 missing), man 60" in lines
    rows = [line.split()[-1] for line in lines[lines.index("usable answers: woman 57 (3 missing), man 60") + 2 :][:2]]
    assert sorted(rows) == ["jsd[woman]", "refusals[woman]"]


def test_the_written_probe_gives_the_same_numbers(
    capsys: pytest.CaptureFixture[str], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(pytester)
    monkeypatch.chdir(project.path)
    Path("data").mkdir()
    written("data/answers 1.csv")
    found = report("--strata", "topic", "--write-probe", "probes.yaml", file="data/answers 1.csv")
    assert "pytest --fairness-measure probes.yaml" in capsys.readouterr().out
    project.run("probes.yaml", "--fairness-measure", "--fairness-report", "run.json", target=None)
    run = {item["id"]: item for item in project.read("run.json")["items"]}
    assert run.keys() == {f"{audit}[gender=woman]" for audit in TEXT_AUDITS}
    for name, item in run.items():
        own = {**found[name], "nodeid": item["nodeid"], "line": item["line"]}
        assert own == item


def test_tables_of_measurements_and_words_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    written()
    assert measure("--measurements", "results.csv", "--words", "words.csv", "--audit", "jsd") == 0
    assert "wrote results.csv\nwrote words.csv\n" in capsys.readouterr().out
    with Path("results.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["item"], row["groups"], row["n_by_group"]) == ("jsd[gender=woman]", "woman vs man", "woman 60, man 60")
    assert float(row["interval_low"]) < float(row["value"]) < float(row["interval_high"])
    with Path("words.csv").open(encoding="utf-8", newline="") as file:
        words = {row["word"]: row for row in csv.DictReader(file)}
    assert words["kitchen"]["side"] == "woman"
    assert int(words["kitchen"]["texts_marked"]) > int(words["kitchen"]["texts_unmarked"]) == 0
    assert measure("--words", "words.xlsx") == 2
    assert "words.xlsx: the suffix selects the format of a table" in capsys.readouterr().err


def test_500_answers_take_at_most_10_seconds() -> None:
    written(rows=500)
    before = time.process_time()
    assert measure() == 0
    assert time.process_time() - before < 10


def test_a_terminal_without_the_letters_of_a_group_shows_their_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    written(change=lambda row, cells: {**cells, "gender": "żena" if row % 2 else "man"})
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "cp1252", write_through=True))
    assert measure("--audit", "refusals") == 0
    assert b"[gender=\\u017cena]" in shown.getvalue()


def test_groups_are_found_whatever_their_letter_case_and_rows_without_one_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed: Mapping[int, str] = {0: "Man", 1: "WOMAN ", 2: "", 3: " "}
    written(change=lambda row, cells: {**cells, "gender": changed.get(row, cells["gender"])})
    found = report("--audit", "refusals", unmarked="Man")
    assert found["refusals[gender=WOMAN]"]["n"] == {"WOMAN": 59, "Man": 59}
    text = "answers: 2 of 120 rows have no value in the column 'gender' (first: line 4) and are left out."
    assert text in " ".join(capsys.readouterr().out.split())
    notes = json.loads(Path("report.json").read_text("utf-8"))["notes"]
    assert notes == [{"kind": "rows-without-group", "text": text}]


def test_a_row_with_the_group_null_in_json_lines_has_no_group(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"gender": ("man", "woman", None)[row % 3], "answer": "A lamp."} for row in range(61)]
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert set(report("--audit", "refusals", file="answers.jsonl")) == {"refusals[gender=woman]"}
    assert "20 of 61 rows have no value in the column 'gender' (first: line 3)" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize("name", ["2024", "null", "true", "yes", "1e3", "con", "nul.2024"])
def test_names_that_yaml_or_windows_reads_otherwise_are_names(name: str) -> None:
    written(f"{name}.csv")
    text = Path(f"{name}.csv").read_text("utf-8")
    Path(f"{name}.csv").write_text(
        text.replace("gender,", f"{name},", 1).replace("woman,", "2024,").replace("man,", "null,"), "utf-8"
    )
    items = report("--audit", "refusals", file=f"{name}.csv", group=name, unmarked="null")
    assert [item["n"] for item in items.values()] == [{"2024": 60, "null": 60}]


def test_an_html_report_lists_measurements_by_size_and_then_those_that_failed() -> None:
    # The words of the third group are all names of groups, which leaves only refusals to measure.
    written(
        change=lambda row, cells: {**cells, "gender": "other", "answer": "Other."} if row % 3 == 0 else cells,
    )
    assert measure("--report", "report.html", "--report", "report.json", *FIVE_AUDITS) == 2
    page = Path("report.html").read_text("utf-8")
    assert "Measurements, the largest effect first" in page
    assert "by how much it changed since" not in page
    assert "Checks, the worst first" not in page
    items = json.loads(Path("report.json").read_text("utf-8"))["items"]
    order = ["large", "moderate", "small", None, "none"]
    measured = sorted(
        (item for item in items if item["value"] is not None), key=lambda item: order.index(item["effect"]["size"])
    )
    places = [page.index(f": {item['id']}</span>") for item in measured]
    places.append(page.index("the answers for other have no words", page.index('id="checks"')))
    assert len(places) == 7
    assert places == sorted(places)


def test_several_groups_are_compared_or_those_that_are_named() -> None:
    written(change=lambda row, cells: {**cells, "gender": "nonbinary" if row % 3 == 0 else cells["gender"]})
    assert set(report("--audit", "refusals")) == {"refusals[gender=woman]", "refusals[gender=nonbinary]"}
    assert set(report("--audit", "refusals", marked="nonbinary")) == {"refusals[gender=nonbinary]"}


def test_json_lines_and_columns_with_blanks_are_read() -> None:
    rows = [{"Gender identity": ("man", "woman")[row % 2], "text": "A lamp."} for row in range(40)]
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = report("--audit", "refusals", file="answers.jsonl", group="Gender identity", text="text")
    assert set(found) == {"refusals[Gender_identity=woman]"}


# Faulty files and arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"group": "gendr"},
            "answers.csv:1: no column 'gendr' (did you mean 'gender'?). The columns are 'gender', 'topic', 'answer'",
        ),
        (
            {"text": "text"},
            "no column 'text'. The columns are 'gender', 'topic', 'answer': name one of them with --text.",
        ),
        (
            {"unmarked": "men"},
            "(did you mean 'man'?). The groups are 'man' (60), 'woman' (60): name one of them with --unmarked.",
        ),
        ({"marked": "women"}, "did you mean 'woman'?"),
        (
            {"text": "gender"},
            "answers.csv: the column 'gender' holds the groups, not the answers. Give the column of the answers with",
        ),
        ({"report": "r.pdf"}, "error: --report r.pdf: the suffix selects the format"),
        ({"report": "answers.csv/r.md"}, "error: --report answers.csv/r.md: the report cannot be written"),
        ({"strata": "prompt"}, "answers.csv:1: no column 'prompt'."),
        ({"group": "answer"}, "too many for a column of groups. Give another --group"),
        ({"file": "other.csv"}, "other.csv: cannot be read (No such file or directory)"),
        ({"file": "answers.ods"}, "answers.ods: the file must be a table (.csv, .jsonl, .ndjson, .xlsx, .parquet)"),
        ({"write-probe": "probes/p.yaml"}, "Write it to p.yaml."),
        ({"write-probe": "p.txt"}, "--write-probe p.txt: the name of a probe file must end in .yaml"),
        ({"write-probe": "there.yaml"}, "there.yaml: the file exists and stays unchanged"),
    ],
)
def test_a_wrong_argument_is_a_sentence_with_its_cure(
    options: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written()
    Path("there.yaml").write_text("kind: generation\n", "utf-8")
    assert measure(**options) == 2
    assert message in capsys.readouterr().err
    assert Path("there.yaml").read_text("utf-8") == "kind: generation\n"


def test_a_single_group_has_nothing_to_be_compared_with(capsys: pytest.CaptureFixture[str]) -> None:
    written(change=lambda _, cells: {**cells, "gender": "man"})
    assert measure() == 2
    assert "answers.csv: every row has 'man' in the column 'gender', so there is no other group to compare." in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [("", "120 unreadable"), ("I'm sorry, but I can't help with that.", "120 refused")],
    ids=["empty", "refused"],
)
def test_answers_that_cannot_be_measured_are_an_error(
    answer: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written(change=lambda _, cells: {**cells, "answer": answer})
    assert measure() == 2
    found = capsys.readouterr()
    assert message in found.out
    assert "none" not in found.out.split()
    assert f"{len(TEXT_AUDITS)} of {len(TEXT_AUDITS)} items could not be measured" in found.err
    assert "names the column of the answers: it names 'answer'; the other columns are 'topic'." in found.err


def test_the_text_of_an_outage_does_not_show_that_groups_are_alike(capsys: pytest.CaptureFixture[str]) -> None:
    written(change=lambda _, cells: {**cells, "answer": "Error 503: service unavailable, please try again later."})
    assert {item["effect"]["size"] for item in report().values()} == {None}
    out = " ".join(capsys.readouterr().out.split())
    assert f"and {len(TEXT_AUDITS) - 1} more: woman vs man: size not known: 120 of 120 answers are " in out


def test_too_few_answers_of_a_group_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    written(change=lambda row, cells: {**cells, "gender": "woman" if row < 5 else "man"})
    assert measure() == 2
    assert "too few usable answers (5 for woman); each group needs 8" in " ".join(capsys.readouterr().out.split())


def test_a_small_group_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    def change(row: int, cells: Mapping[str, Any]) -> dict[str, Any]:
        return {**cells, "gender": {0: "", 1: "not known"}.get(row, cells["gender"])}

    written(change=change)
    assert measure() == 2
    found = capsys.readouterr()
    assert found.err.endswith("the reasons are above. To leave out 'not known', add --marked woman.\n")
    # The rows without a group are counted once, and not with each error.
    assert found.out.count("1 of 120 rows") == 1
    assert measure("--marked", "woman") == 0


def test_the_file_may_be_a_link_to_another_folder() -> None:
    Path("elsewhere").mkdir()
    written("elsewhere/december.csv")
    Path("answers.csv").symlink_to("elsewhere/december.csv")
    assert report(*FIVE_AUDITS).keys() == report(*FIVE_AUDITS, file="elsewhere/december.csv").keys()
