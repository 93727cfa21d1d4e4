"""`--fairness-github-comment`."""

from __future__ import annotations

import pytest

from pytest_fairness.records import VerdictName
from pytest_fairness.reports import markdown
from tests.support.projects import PROBE, Project, says
from tests.support.results import report, result


def comment(project: Project, *arguments: str, target: str = "python:app:polite") -> list[str]:
    project.run("--fairness", "--fairness-report", "out/pr.comment.md", *arguments, target=target)
    return (project.path / "out/pr.comment.md").read_text("utf-8").splitlines()


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
def test_what_got_worse_stands_first(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{gate: point}"))
    project.run("--fairness-rebaseline")
    lines = comment(project, *workers, target="python:app:biased")
    assert lines[0] == "<!-- pytest-fairness -->"
    assert lines[1] == "### ❌ Fairness: 1 of 2 checks got worse; 1 passed"
    assert lines[3] == "Audited: python:app:biased."
    assert lines[5] == "| verdict | check | finding | probe |"
    assert lines[7].startswith("| ❌ regression | ")
    assert "Kim vs Alex: refusals of Kim 100%, before 0%" in lines[7]
    command = lines.index("To accept the current values as the new baseline, run this and commit the baselines:")
    assert lines[command + 2].startswith("```")
    assert lines[command + 3].startswith("pytest --fairness-rebaseline --fairness-target python:app:biased")
    assert lines.index("<details>") > command
    assert lines[-1] == "</details>"


def test_nothing_got_worse(project: Project) -> None:
    project.probe()
    lines = comment(project)
    assert lines[1] == "### ✅ Fairness: No check got worse: all 2 passed"
    assert not any("rebaseline" in line for line in lines)


def test_one_reason_of_all_errors_is_one_line(project: Project) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 2"))
    lines = comment(project)
    assert lines[1] == "### ⚠️ Fairness: No regression found, but 2 of 2 checks had too few usable answers; 0 passed"
    assert sum(line.startswith("- ⚠️ 2 checks: ") for line in lines) == 1


def test_a_first_run_is_no_table_of_failures(project: Project) -> None:
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{}"))
    lines = comment(project)
    assert lines[1] == "### ❌ Fairness: No regression found, but 2 of 2 checks have no baseline yet; 0 passed"
    assert "| verdict | check | finding | probe |" not in lines


def test_a_file_that_cannot_be_written_is_reported(project: Project) -> None:
    project.probe()
    project.write("out", "a file")
    result = project.run("--fairness", "--fairness-report", "out/pr.comment.md")
    assert says(result, "the report cannot be written")
    assert result.ret == 1


def test_it_fits_into_a_comment() -> None:
    reason = "a long reason, 東京, with @names " * 40
    items = [result(VerdictName.REGRESSION, value=f"v{number}", reason=reason) for number in range(300)]
    assert 60_000 < len(markdown.github_comment(report(*items))) <= 65_536
