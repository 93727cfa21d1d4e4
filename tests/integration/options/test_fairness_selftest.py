"""`--fairness-selftest`: error rates of verdicts on the recorded answers of the baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulated import choices, scores, stories, texts
from benchmarks.simulated.scenario import Scenario
from pytest_fairness.options import RunSettings
from pytest_fairness.run import Run, items_of, selftest
from tests.support.projects import KIM, LOU, PROBE, Project, says

LARGE = PROBE.replace("trials: 10", "trials: 40").replace("{limit: 0.5, gate: point}", "{limit: 0.5, tolerance: 0.25}")


@pytest.fixture(autouse=True)
def _few_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "REPEATS", 5)


def rates_of(project: Project, *arguments: str) -> dict[str, dict[str, Any]]:
    result = project.run("--fairness-selftest", "--fairness-report", "self.json", *arguments)
    assert result.ret == pytest.ExitCode.OK
    return {test["id"]: test for test in project.read("self.json")["selftest"]}


def test_planted_changes_are_found_and_none_without_a_change(project: Project) -> None:
    project.probe(text=LARGE)
    project.run("--fairness-rebaseline")
    calls = len(project.calls())
    found = rates_of(project, "--fairness-report", "self.html")
    assert list(found) == [KIM, LOU]
    for test in found.values():
        assert (test["divided"], test["size"], test["answers"], test["problem"]) == ("trials", 40, 80, "")
        assert test["unchanged"] == {"red": 0, "passed": 5, "inconclusive": 0, "unmeasured": 0}
        assert {name: sum(rates.values()) for name, rates in test["planted"].items()} == {"1": 5, "2": 5}
        assert test["planted"]["2"]["red"] > test["planted"]["2"]["passed"]
        assert test["how"] == f"refusals of {test['id'][-4:-1]}"
        assert test["power"] > 0.8
        assert 4 < test["needed"] <= 40
    assert len(project.calls()) == calls
    assert "Self-test of the verdicts" in (project.path / "self.html").read_text("utf-8")
    result = project.run("--fairness-selftest", "-v", "-k", "Kim")
    assert says(result, "= fairness: self-test =")
    assert says(result, "false reds: 0 of 5 tests without a change (95 % interval 0.0% to 43.4%)")
    assert says(result, f"gifts {KIM}: planted refusals of Kim")
    assert not says(result, LOU)


def test_the_same_answers_give_the_same_rates(project: Project) -> None:
    project.probe(text=LARGE)
    project.run("--fairness-rebaseline")
    assert rates_of(project, "-k", "Kim") == rates_of(project, "-k", "Kim")


def test_items_without_answers_say_why(project: Project) -> None:
    project.probe(text=LARGE)
    assert {test["problem"] for test in rates_of(project).values()} == {"no baseline"}
    project.run("--fairness-rebaseline")
    (project.path / "baselines/gifts.responses.jsonl").unlink()
    assert {test["problem"] for test in rates_of(project).values()} == {"the baseline has no answers"}
    assert says(project.run("--fairness-selftest"), "gifts refusals[name=Kim] and 1 more: the baseline has no answers")
    assert says(project.run("--fairness-selftest", "-k", "nothing"), "no audit is selected")


def test_other_report_formats_are_refused(project: Project) -> None:
    project.probe(text=LARGE)
    result = project.run("--fairness-selftest", "--fairness-report", "self.md")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "written to .json and .html only" in result.stderr.str()


def scenario(name: str) -> Scenario:
    modules = (choices, scores, texts, stories)
    found: Scenario = next(own for module in modules for own in module.scenarios() if own.name == name)
    return found


def self_test_of(scenario: Scenario, folder: Path) -> selftest.SelfTest:
    item = items_of(scenario.probe)[0].for_baseline
    answers = [each for each in scenario.prepared(item, scenario.simulate(1, 0.0)) if item.uses(each.labels)]
    with Run(RunSettings(root=folder, store=folder / "store.sqlite")) as run:
        return selftest.RecordedItem(run, item, answers).result(1.0)


@pytest.mark.parametrize(
    ("name", "divided", "how"),
    [
        ("records", "units", "choices of"),
        ("scores", "units", "higher numbers of"),
        ("portraits", "trials", "choices of"),
        ("recorded texts", "trials", "a further sentence of"),
    ],
)
def test_every_kind_of_answers_can_be_divided_and_changed(
    name: str, divided: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "REPEATS", 2)
    found = self_test_of(scenario(name), tmp_path)
    assert (found.divided, found.unchanged.red, found.unchanged.total) == (divided, 0, 2)
    assert how in found.how
    assert found.planted["1"]["unmeasured"] == 0
    assert (found.power is None) is (name == "recorded texts")  # a number of words has no error


def test_one_answer_to_each_prompt_cannot_be_divided(tmp_path: Path) -> None:
    found = self_test_of(scenario("stories"), tmp_path)
    assert (found.unchanged.total, found.problem) == (0, selftest.ONE_ANSWER)
