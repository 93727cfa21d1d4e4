"""`python -m pytest_fairness profile`: what was tested and found, for a model card or technical documentation."""

from __future__ import annotations

import json

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import PROBE, Project

RISK = """
risk:
  hazard: Kim is refused help.
  groups: [people named Kim]
  owner: shop team
  mitigation: Prompt without names.
"""
APPLICANTS = """
kind: counterfactual
responses: {file: applicants.csv}
flip: {race: [White, Black]}
audits: {impact_ratio: {limit: 0.8}}
"""


@pytest.fixture
def page(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(project.path)
    project.probe(text=PROBE + RISK)
    project.probe("probes/hiring.yaml", APPLICANTS)
    rows = [f"{i},{'White' if i % 2 else 'Black'},{'yes' if i % 3 else 'no'}" for i in range(200)]
    rows += [f"{i},Asian,yes" for i in range(200, 205)]
    project.write("probes/applicants.csv", "\n".join(["id,race,answer", *rows]) + "\n")
    project.run("--fairness", target="python:app:biased")
    return project


def test_it_tells_of_the_last_run(page: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile"]) == 0
    text = capsys.readouterr().out
    assert "| hazard | Kim is refused help. |" in text
    assert "| group at risk | people named Kim |" in text
    assert "| mitigation | Prompt without names. |" in text
    assert r"| gifts refusals\[name=Kim\] | 20 | 1 " in text
    assert "| White | 100 | 67 | 67.0% | 1.000 |" in text
    assert "| Black | 100 | 66 | 66.0% | 0.985 |" in text
    assert "| unknown or another group | 5 |" in text
    assert r"Findings of this run: gifts refusals\[name=Kim\] (over-limit)" in text
    assert "to be filled in" in text
    for word in ("fine-tune", "trials would decide", "compliant"):
        assert word not in text


def test_each_format_holds_the_same_words(page: Project) -> None:
    page.run("--fairness", "--fairness-replay", "--fairness-report", "report.json", target="python:app:biased")
    for suffix in ("md", "html", "json"):
        assert main(["profile", "report.json", "-o", f"profile.{suffix}"]) == 0
    plain = json.loads((page.path / "profile.json").read_text("utf-8"))
    html = (page.path / "profile.html").read_text("utf-8")
    assert "<details" not in html
    for section in plain["sections"]:
        assert section["title"] in html
        for sheet in section["sheets"]:
            assert all(len(row) == len(sheet["columns"]) for row in sheet["rows"])
    assert "Kim is refused help." in html


def test_errors_are_one_line(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--store", str(project.path / "none.sqlite")]) == 2
    assert "this store holds no run" in capsys.readouterr().err
    assert main(["profile", "-o", "profile.docx"]) == 2
    assert "must end in .html, .md, .json" in capsys.readouterr().err


def test_a_printed_report_shows_the_counts_behind_each_verdict(page: Project) -> None:
    page.run("--fairness", "--fairness-replay", "--fairness-report", "report.html", target="python:app:biased")
    html = (page.path / "report.html").read_text("utf-8")
    [item] = [part for part in html.split('<details class="item ')[1:] if "hiring.yaml::impact_ratio" in part]
    assert item.partition('"')[0].endswith("print")
    in_closed = "".join(part.partition("</details>")[0] for part in item.split("<details>")[1:])
    assert '<th scope="row">White</th>' in item
    assert '<th scope="row">White</th>' not in in_closed
    assert ".counts::details-content { content-visibility: visible; block-size: auto; }" in html
