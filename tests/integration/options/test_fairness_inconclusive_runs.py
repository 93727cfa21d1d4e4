"""Items that stay inconclusive run after run are told, with what they need."""

from __future__ import annotations

import pytest

from pytest_fairness.pytest_integration import controller
from tests.support.projects import INCONCLUSIVE, KIM, LOU, Project, ini, says

REPORTS = [word for name in ("r.json", "r.html", "r.md") for word in ("--fairness-report", name)]


def told(project: Project) -> list[str]:
    return [note["text"] for note in project.read("r.json")["notes"] if note["kind"] == "inconclusive-runs"]


def test_what_was_inconclusive_in_each_of_the_last_runs_is_listed(project: Project) -> None:
    project.probe(text=INCONCLUSIVE)
    for run in range(1, 6):
        result = project.run("--fairness", *REPORTS)
        assert result.parseoutcomes() == {"inconclusive": 2}
        assert result.ret == pytest.ExitCode.OK
        assert len(told(project)) == (2 if run == 5 else 0)
    assert [text.partition(" was inconclusive in each of the last 5 runs")[0] for text in told(project)] == [
        f"gifts {KIM}",
        f"gifts {LOU}",
    ]
    assert "trials to decide; this run had 10" in told(project)[0]
    assert says(result, f"gifts {KIM} was inconclusive in each of the last 5 runs")
    for name in ("r.html", "r.md"):
        assert "was inconclusive in each of the last 5 runs" in (project.path / name).read_text("utf-8")


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_they_can_fail_the_run(project: Project, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "INCONCLUSIVE_RUNS", 2)
    project.probe(text=INCONCLUSIVE)
    project.write("pytest.ini", ini(fairness_fail_on="inconclusive_runs"))
    assert project.run("--fairness").ret == pytest.ExitCode.OK
    result = project.run("--fairness", *REPORTS, *workers)
    assert result.parseoutcomes() == {"inconclusive": 2}
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(told(project)) == 2


def test_a_verdict_begins_the_count_anew_and_other_targets_do_not_count(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "INCONCLUSIVE_RUNS", 3)
    project.probe(text=INCONCLUSIVE)
    project.run("--fairness")
    project.run("--fairness", target="python:app:biased")
    project.run("--fairness", *REPORTS)
    assert told(project) == []
    project.probe()
    project.run("--fairness", *REPORTS).assert_outcomes(passed=2)
    project.probe(text=INCONCLUSIVE)
    for expected in (0, 0, 2):
        project.run("--fairness", *REPORTS)
        assert len(told(project)) == expected


def test_runs_that_could_not_measure_an_item_or_left_it_out_are_passed_over(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "INCONCLUSIVE_RUNS", 2)
    project.probe(text=INCONCLUSIVE)
    project.run("--fairness", "-k", "Kim")
    project.run("--fairness", "-k", "Lou")
    project.run("--fairness", "--fairness-max-requests", "1").assert_outcomes(errors=2)
    project.run("--fairness", *REPORTS)
    assert len(told(project)) == 2


def test_a_replay_is_judged_by_the_runs_before_it_and_adds_none(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "INCONCLUSIVE_RUNS", 3)
    project.probe(text=INCONCLUSIVE)
    project.run("--fairness")
    for _ in range(3):
        project.run("--fairness", "--fairness-replay", *REPORTS)
        assert told(project) == []
    project.run("--fairness")
    project.run("--fairness", "--fairness-replay", *REPORTS)
    assert len(told(project)) == 2
