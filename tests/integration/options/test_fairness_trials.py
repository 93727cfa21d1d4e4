"""`--fairness-trials`."""

from __future__ import annotations

import pytest

from tests.support.projects import KIM, Project


def test_it_overrides_every_probe(project: Project) -> None:
    project.probe()
    items = project.report("--fairness-trials", "8")["items"]
    assert [sum(item["n"].values()) for item in items] == [16, 16]
    assert len(project.calls()) == 24


def test_it_does_not_make_a_baseline_stale(project: Project) -> None:
    project.probe()
    project.run("--fairness-rebaseline")
    assert project.verdicts("--fairness-trials", "12")[KIM] == "pass"


@pytest.mark.parametrize("written", ["0", "-3", "many", "1.5", "100001"])
def test_it_must_be_a_whole_number(project: Project, written: str) -> None:
    result = project.run("--fairness", f"--fairness-trials={written}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: --fairness-trials must be a whole number from 1 to 100,000, not '{written}'."]
    )
