"""Columns of answer files that are not declared and predict the group are named, with what to write."""

from __future__ import annotations

import csv
import io
import random

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import Project, says

TOPICS = {
    "law": "judge court appeal statute verdict lawyer trial clause",
    "care": "nurse ward patient fever clinic healing pillow bandage",
}
FILLER = ("we", "met", "early", "and", "spoke", "with", "calm", "about", "plans", "for", "this", "week", "notes")
PROBE = """\
kind: generation
axes: {gender: {unmarked: man, marked: [woman]}}
responses: {file: answers.csv}
audits:
  marked_words: {limit: 0}
"""


def answers(share_of_law: dict[str, int], seed: int = 1) -> str:
    """Return a table with 40 answers of each group, of which so many are about law; the words come from the topic."""
    draw = random.Random(seed)  # noqa: S311 - no secrets
    table = io.StringIO()
    rows = csv.writer(table)
    rows.writerow(["id", "gender", "pronoun", "topic", "text"])
    for group, law in share_of_law.items():
        for number in range(40):
            topic = "law" if number < law else "care"
            words = [*draw.sample(FILLER, 8), *draw.sample(TOPICS[topic].split(), 4)]
            rows.writerow([f"{group}{number}", group, {"man": "he"}.get(group, "she"), topic, " ".join(words)])
    return table.getvalue()


CONFOUNDED, BALANCED = {"man": 34, "woman": 8}, {"man": 20, "woman": 21}
MEASURE = "measure answers.csv --group gender --unmarked man --text text --audit marked_words".split()  # noqa: SIM905


def test_measure_names_the_column_and_its_advice_removes_the_false_difference(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("answers.csv", answers(CONFOUNDED))
    main(MEASURE)
    printed = " ".join(capsys.readouterr().out.split())
    assert "1 large difference" in printed
    assert "significant words (large): " in printed  # a note hides no word
    assert "(more for woman)" in printed
    assert "answers: the undeclared column 'topic' predicts gender (Cramér's V 0.64; 'care' in 80% of " in printed
    assert "(command `measure`: `--strata topic`)" in printed
    assert "'id'" not in printed
    assert "'pronoun'" not in printed
    main([*MEASURE, "--strata", "topic"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "1 without a difference" in printed
    assert "undeclared" not in printed


def test_balanced_columns_are_not_named(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("answers.csv", answers(BALANCED))
    main(MEASURE)
    assert "undeclared" not in capsys.readouterr().out


def test_a_probe_of_recorded_answers_names_the_column_in_every_report(project: Project) -> None:
    project.write("probes/answers.csv", answers(CONFOUNDED))
    project.write("probes/letters.yaml", PROBE)
    result = project.run("--fairness", "--fairness-report", "report.json", "--fairness-report", "report.md")
    result.assert_outcomes(failed=1)
    assert says(result, "letters: the undeclared column 'topic' predicts gender (Cramér's V 0.64")
    report = project.read("report.json")
    (note,) = [note for note in report["notes"] if note["kind"] == "confounding"]
    assert "write `strata: [topic]` under `responses`" in note["text"]
    (item,) = report["items"]
    (concern,) = item["concerns"]
    assert concern["message"] == "undeclared columns predict the group: 'topic' (Cramér's V 0.64)"
    assert concern["withholds"] == "nothing"
    assert "predicts gender" in (project.path / "report.md").read_text("utf-8")
    project.write("probes/letters.yaml", PROBE.replace("answers.csv", "answers.csv, strata: [topic]"))
    result = project.run("--fairness", "--fairness-report", "report.json")
    assert project.read("report.json")["notes"] == []


def test_only_the_items_of_the_axis_have_the_note(project: Project) -> None:
    rows = list(csv.DictReader(io.StringIO(answers(CONFOUNDED))))
    table = io.StringIO()
    writer = csv.DictWriter(table, [*rows[0], "age"])
    writer.writeheader()
    writer.writerows({**row, "age": ("old", "young")[number % 2]} for number, row in enumerate(rows))
    project.write("probes/answers.csv", table.getvalue())
    project.write("probes/letters.yaml", PROBE.replace("}}\n", "}, age: {unmarked: young, marked: [old]}}\n", 1))
    project.run("--fairness", "--fairness-report", "report.json")
    noted = {item["id"]: bool(item["concerns"]) for item in project.read("report.json")["items"]}
    assert noted == {"marked_words[gender=woman]": True, "marked_words[age=old]": False}


CASES = """\
kind: stereotype
cases: [{name: job, prompt: "Describe the {group}.", groups: [man, woman]}]
responses: {file: answers.csv, columns: {group: gender}}
audits: {score: {scorer: words, tolerance: 1, limit: 5}}
"""


def test_groups_of_cases_are_checked_as_well(project: Project) -> None:
    header, *lines = answers(CONFOUNDED).splitlines()
    project.write("probes/answers.csv", "\n".join([f"case,{header}", *(f"job,{line}" for line in lines)]))
    project.write("probes/cases.yaml", CASES)
    result = project.run("--fairness")
    assert says(result, "cases: the undeclared column 'topic' predicts group (Cramér's V 0.64")
