"""`python -m pytest_fairness export --measurements FILE --words FILE`: tables of the last run, or of a report."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import Project

TEXTS = """
kind: generation
prompt: What would you recommend to {name}?
axes:
  name: {unmarked: Alex, marked: [Kim, =Lou]}
trials: 10
audits:
  jsd: {}
  refusals: {limit: 0.5}
"""
OWN = """
import pytest
@pytest.mark.fairness
def test_letters(corpus_generator, fairness_check):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim"]}}
    corpus = corpus_generator("Write to {name}.", axes=axes, trials=10)
    fairness_check("letters", corpus.refusals("name", "Kim"), limit=0.5)
"""


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8"), newline="")))


@pytest.fixture
def audited(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project after a run of a probe and a Python test."""
    project.probe("probes/gifts.yaml", TEXTS)
    project.write("test_own.py", OWN)
    project.report(".")
    monkeypatch.chdir(project.path)
    return project


def test_the_last_run_is_exported_as_the_report_has_it(audited: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--measurements", "out/results.csv"]) == 0
    report = audited.read("report.json")
    assert capsys.readouterr().err == (
        f"out/results.csv: 5 items of the run of {report['started']} against python:app:polite\n"
    )
    found = rows(audited.path / "out/results.csv")
    assert [(row["probe"], row["item"].lstrip("'"), row["verdict"]) for row in found] == [
        (item["probe"], item["id"], item["verdict"]) for item in report["items"]
    ]
    for row, item in zip(found, report["items"], strict=True):
        assert float(row["value"]) == item["value"]
        assert int(row["n"]) == 20
    assert {row["groups"] for row in found} == {"Kim vs Alex", "'=Lou vs Alex"}
    assert main(["export", "report.json", "--measurements", "same.csv"]) == 0
    assert (audited.path / "same.csv").read_text() == (audited.path / "out/results.csv").read_text()


def test_the_words_are_counted_in_the_recorded_answers(audited: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--words", "words.csv"]) == 0
    assert "left out: words of items without a probe file. In a Python test" in capsys.readouterr().err
    found = rows(audited.path / "words.csv")
    assert {(row["probe"], row["item"]) for row in found} == {("gifts", "jsd[name=Kim]"), ("gifts", "jsd[name==Lou]")}
    sturdy = next(row for row in found if row["word"] == "sturdy")
    assert (sturdy["uses_marked"], sturdy["texts_unmarked"], sturdy["share_marked"]) == ("10", "10", "1.0")
    assert {row["marked"] for row in found} == {"Kim", "'=Lou"}
    for source in (["report.json"], ["probes/gifts.yaml"]):
        assert main(["export", *source, "--words", "same.csv"]) == 0
        assert (audited.path / "same.csv").read_text() == (audited.path / "words.csv").read_text()


def test_a_probe_file_selects_its_items(audited: Project) -> None:
    assert main(["export", "probes/gifts.yaml", "--measurements", "results.csv"]) == 0
    assert {row["probe"] for row in rows(audited.path / "results.csv")} == {"gifts"}


def test_only_the_trials_of_the_run_are_counted(audited: Project) -> None:
    audited.run("--fairness", "--fairness-trials", "8", "--fairness-replay", "probes")
    assert main(["export", "--words", "words.csv"]) == 0
    assert {row["uses_marked"] for row in rows(audited.path / "words.csv") if row["word"] == "sturdy"} == {"8"}


def test_recorded_answers_of_a_file_have_words_too(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"{name},A lamp and a {thing}.\n" for thing in "abcdefghi" for name in ("Alex", "Kim"))
    project.write("probes/answers.csv", f"name,text\n{lines}")
    project.probe(
        text="kind: generation\nresponses: {file: answers.csv}\naxes:\n  name: {unmarked: Alex, marked: [Kim]}\n"
        "audits:\n  marked_words: {}\n"
    )
    project.run("--fairness", target=None)
    monkeypatch.chdir(project.path)
    assert main(["export", "--words", "words.csv"]) == 0
    assert {row["word"] for row in rows(project.path / "words.csv")} == {"a", "and", "lamp"}


def test_a_run_with_named_targets_has_the_words_of_each(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe("probes/gifts.yaml", TEXTS.replace(", =Lou", ""))
    project.write("other.py", "from app import polite\ndef gift(prompt): return polite(prompt) + ' And a fountain.'\n")
    targets = ("--fairness-target", "one=python:app:polite", "--fairness-target", "two=python:other:gift")
    project.run("--fairness", *targets, target=None)
    monkeypatch.chdir(project.path)
    assert main(["export", "--words", "words.csv"]) == 0
    found = rows(project.path / "words.csv")
    assert {row["item"] for row in found if row["word"] == "fountain"} == {"jsd[name=Kim,target=two]"}
    assert {row["item"] for row in found} == {"jsd[name=Kim,target=one]", "jsd[name=Kim,target=two]"}


def test_the_words_of_a_run_can_be_those_of_one_version_of_the_target(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.probe("probes/gifts.yaml", TEXTS.replace(", =Lou", ""))
    for version in ("1", "2"):
        project.run("--fairness", "-o", f"fairness_target_version={version}", target="python:app:polite")
    monkeypatch.chdir(project.path)
    assert main(["export", "--words", "words.csv"]) == 2
    error = capsys.readouterr().err
    assert "answers of several targets are recorded. Choose one with --target:" in error
    identity = error.rpartition("--target: ")[2].split("; ")[0].strip()
    assert main(["export", "--words", "words.csv", "--target", identity]) == 0
    assert rows(project.path / "words.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "export: the command does not say what to export. Name a probe file to export its recorded answers"),
        (
            ["--measurements", "results.xlsx"],
            "results.xlsx: the suffix selects the format of a table and must be .csv, .parquet or .tex",
        ),
        (["--measurements", "results.csv"], "this store holds no run. Run `pytest --fairness` first"),
        (["none.json", "--words", "words.csv"], "none.json: cannot be read"),
    ],
)
def test_what_cannot_be_exported_is_said_in_a_sentence(
    project: Project,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(project.path)
    assert main(["export", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_probe_that_changed_since_the_run_is_an_error(audited: Project, capsys: pytest.CaptureFixture[str]) -> None:
    audited.probe("probes/gifts.yaml", TEXTS.replace("Kim", "Sam"))
    assert main(["export", "--words", "words.csv"]) == 2
    assert "the probe has no item jsd[name=Kim] any more. Run `pytest --fairness` again." in capsys.readouterr().err
    audited.probe("probes/other.yaml", TEXTS)
    assert main(["export", "probes/other.yaml", "--measurements", "results.csv"]) == 2
    assert "had no item of this probe. Run `pytest --fairness probes/other.yaml` first." in capsys.readouterr().err


WRITER = """
from itertools import count

numbers = count()

def write(prompt):
    if "Frau" not in prompt:
        return "Es ist neu."
    texts = ["Das Anschließen geht."] * 3 + ["Es zum ANSCHLIESSEN.", "Gut anschließen."]
    return texts[next(numbers) % 5]
"""


def test_words_are_written_as_most_answers_write_them(project: Project) -> None:
    project.write("writer.py", WRITER)
    probe = "kind: generation\nlanguage: de\nprompt: Schreibe für {person}.\ntrials: 20\n"
    probe += "axes: {person: {unmarked: einen Mann, marked: [eine Frau]}}\n"
    probe += "audits: {marked_words: {limit: 0}, jsd: {limit: 0.001}, mmd: {limit: 0.0001}}\n"
    project.probe("probes/g.yaml", probe)
    files = [f"--fairness-report={name}" for name in ("r.json", "r.html")]
    result = project.run("--fairness", "-v", *files, target="python:writer:write")
    main(["export", "r.json", "--words", "words.csv"])
    texts = [(project.path / name).read_text("utf-8") for name in ("r.json", "r.html", "words.csv")]
    for text in (*texts, result.stdout.str()):
        assert "Anschließen" in text
        assert "anschliessen" not in text
    by_item = {row["item"]: row for row in rows(project.path / "words.csv") if row["word"] == "Anschließen"}
    assert by_item["marked_words[person=eine Frau]"]["significant"] == "True"
    assert by_item["jsd[person=eine Frau]"]["uses_marked"] == "20"
    for item in project.read("r.json")["items"]:
        assert "Anschließen" in item["contributors"]
