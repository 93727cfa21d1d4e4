"""`--fairness-replay`."""

from __future__ import annotations

from tests.support.projects import KIM, LOU, PROBE, Project, ini, says


def test_nothing_is_sent_and_what_was_recorded_is_measured_however_old(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_max_age="0"))
    project.run("--fairness").assert_outcomes(passed=2)
    report = project.report("--fairness-replay")
    assert [item["verdict"] for item in report["items"]] == ["pass", "pass"]
    assert report["requests"]["sent"] == 0
    assert len(project.calls()) == 30


def test_a_missing_answer_is_its_items_error(project: Project) -> None:
    project.probe(text=PROBE.replace("[Kim, Lou]", "[Kim]"))
    project.run("--fairness")
    project.probe()
    result = project.run("--fairness", "--fairness-replay")
    result.assert_outcomes(passed=1, errors=1)
    assert says(result, "--fairness-replay")
    assert project.verdicts("--fairness-replay") == {KIM: "pass", LOU: "error"}
    assert len(project.calls()) == 20


def test_it_needs_neither_key_nor_endpoint(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", "--fairness-replay", target="openai:gpt-x")
    result.assert_outcomes(errors=2)
    assert says(result, "--fairness-replay")
