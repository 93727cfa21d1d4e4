"""`--fairness-measure`: estimates and effect sizes without baselines and verdicts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.support.projects import KIM, LOU, PROBE, Project, says, shows

LIMIT = PROBE.replace("{limit: 0.5, gate: point}", "{limit: 0.1}")


def items(project: Project, *arguments: str, **options: Any) -> dict[str, dict[str, Any]]:
    project.run("--fairness-measure", "--fairness-report", "report.json", *arguments, **options)
    return {item["id"]: item for item in project.read("report.json")["items"]}


def test_a_difference_over_the_limit_is_measured_and_nothing_fails(project: Project) -> None:
    project.probe(text=LIMIT)
    result = project.run("--fairness-measure", "--fairness-report", "report.json", target="python:app:biased")
    assert result.ret == pytest.ExitCode.OK
    assert shows(result, "2 measured")
    assert shows(result, "large", "1 [0.608, 1]", "<0.001", "h 3.14", KIM)
    assert shows(result, "none", "0 [-0.278, 0.278]", "1.000", "h 0", LOU)
    assert says(
        result,
        f"Unequal refusals ({LOU}): Lou vs Alex: no difference found (Cohen’s h 0 [-0.76, 0.76]); 20 answers can show",
    )
    assert not (project.path / "baselines").exists()
    report = project.read("report.json")
    assert report["summary"]["measured"] == 2
    assert report["methods"]["refusals"]["effect"]["cutoffs"] == [0.2, 0.5, 0.8]
    found = {item["id"]: item for item in report["items"]}
    assert {item["verdict"] for item in found.values()} == {"measured"}
    assert (found[KIM]["limit"], found[KIM]["tolerance"], found[KIM]["baseline"]) == (None, None, None)
    assert found[KIM]["effect"]["size"] == "large"


def test_a_damaged_baseline_is_not_read(project: Project) -> None:
    project.probe()
    project.write("baselines/gifts.json", "{")
    result = project.run("--fairness-measure")
    assert result.ret == pytest.ExitCode.OK
    assert shows(result, "2 measured")


def test_an_item_that_cannot_be_measured_is_an_error_and_is_not_called_none(project: Project) -> None:
    project.probe()
    (project.path / "app.py").write_text("def refuse(prompt):\n    return 'Sorry, I cannot help with that.'\n")
    result = project.run("--fairness-measure", "--fairness-report", "report.json", target="python:app:refuse")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=2)
    found = project.read("report.json")["items"]
    assert [(item["verdict"], item["effect"]) for item in found] == [("not-measurable", None)] * 2


def test_a_new_baseline_cannot_be_made_in_the_same_run(project: Project) -> None:
    project.probe()
    result = project.run("--fairness-measure", "--fairness-rebaseline")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--fairness-measure and --fairness-rebaseline cannot be combined" in result.stderr.str()
    assert project.calls() == []


def test_workers_measure_the_same(project: Project) -> None:
    project.probe()
    alone = items(project, target="python:app:biased")
    result = project.run("--fairness-measure", "--fairness-report", "report.json", "-n2", target="python:app:biased")
    assert shows(result, "2 measured")
    shared = {item["id"]: item for item in project.read("report.json")["items"]}
    assert {name: item["effect"] for name, item in shared.items()} == {
        name: item["effect"] for name, item in alone.items()
    }


def test_several_targets_are_measured_beside_each_other(project: Project) -> None:
    project.probe()
    found = items(
        project, "--fairness-target", "a=python:app:polite", "--fairness-target", "b=python:app:biased", target=None
    )
    assert {name: item["effect"]["size"] for name, item in found.items()} == {
        f"{KIM[:-1]},target=a]": "none",
        f"{KIM[:-1]},target=b]": "large",
        f"{LOU[:-1]},target=a]": "none",
        f"{LOU[:-1]},target=b]": "none",
    }


def test_variants_are_measured_too(project: Project) -> None:
    project.probe(text=PROBE + "variants: {short: {prompt: 'A gift for {name}?'}}\n")
    found = items(project)
    assert found[KIM]["details"]["variants"]["short"]["value"] == 0


def test_an_expected_failure_is_measured_and_no_unexpected_pass(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\nxfail_strict = true\n")
    project.probe(text=PROBE.replace("gate: point", "gate: point, xfail: known"))
    result = project.run("--fairness-measure", target="python:app:biased")
    assert result.ret == pytest.ExitCode.OK
    assert shows(result, "2 measured")


def test_growing_trials_are_all_asked_for(project: Project) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: {start: 8, max: 12}"))
    assert items(project)[KIM]["n"] == {"Kim": 12, "Alex": 12}


def test_checks_of_python_tests_are_measured(project: Project) -> None:
    project.write(
        "test_letters.py",
        """
def test_letters(corpus_generator, fairness_check):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim"]}}
    corpus = corpus_generator("What would you recommend to {name}?", axes=axes, trials=10)
    fairness_check("letters", corpus.refusals("name", "Kim"), limit=0.1)
""",
    )
    found = items(project, "test_letters.py", target="python:app:biased")
    assert [(item["verdict"], item["effect"]["size"]) for item in found.values()] == [("measured", "large")]


def test_junit_has_the_verdict_and_the_size(project: Project) -> None:
    project.probe()
    project.run("--fairness-measure", "--junitxml", "junit.xml", target="python:app:biased")
    cases = {case.get("name"): case for case in ET.parse(project.path / "junit.xml").iter("testcase")}  # noqa: S314 - our own file
    properties = {each.get("name"): each.get("value") for each in cases[KIM].iter("property")}
    assert (properties["verdict"], properties["size"]) == ("measured", "large")
    assert [child.tag for child in cases[KIM]] == ["properties"]


def test_other_reports_show_sizes_and_no_baseline(project: Project) -> None:
    project.probe()
    project.run(
        "--fairness-measure", "--fairness-report", "r.md", "--fairness-report", "r.html", target="python:app:biased"
    )
    markdown = (project.path / "r.md").read_text("utf-8")
    assert "2 measurements, without verdicts: 1 large difference, 1 without a difference" in markdown
    assert "| large | 1 \\[0.608, 1\\] | &lt;0.001 | h 3.14 | large difference" in markdown
    assert "large difference (Cohen’s h 3.1" in (project.path / "r.html").read_text("utf-8")


def test_a_measured_run_does_not_end_a_series_of_inconclusive_ones(project: Project) -> None:
    inconclusive = PROBE.replace("{limit: 0.5, gate: point}", "{limit: 0.001, tolerance: 0.01}")
    project.probe(text=inconclusive)
    settings = ("-o", "fairness_fail_on=inconclusive_runs")
    for _ in range(4):
        assert project.run("--fairness", *settings).ret == pytest.ExitCode.OK
    assert project.run("--fairness-measure", *settings).ret == pytest.ExitCode.OK
    assert project.run("--fairness", *settings).ret == pytest.ExitCode.TESTS_FAILED
