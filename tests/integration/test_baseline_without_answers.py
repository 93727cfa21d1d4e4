"""Baselines whose answers are absent: no gap that changed sides passes, and reports say what was compared."""

from __future__ import annotations

import json
import random

import pytest

from tests.support.projects import Project, ini, says, shows

LOAN = """
kind: counterfactual
flip: {sex: {male: female}}
responses: {file: loan.csv}
audits:
  demographic_parity: {gate: GATE}
  flip_direction: {gate: GATE}
"""
GATES = ("significant", "bound", "strict", "point")


def decisions(male: float, female: float, seed: int) -> str:
    """Recorded decisions on 800 records, each shown as male and as female; half of the records are male."""
    draws, lines = random.Random(seed), ["id,sex,answer"]  # noqa: S311 - no secret
    for record in range(800):
        shown = [("female", female), ("male", male)]
        for sex, share in shown if record % 2 else reversed(shown):
            lines.append(f"{record},{sex},{'Yes' if draws.random() < share else 'No'}.")
    return "\n".join(lines) + "\n"


def verdicts(project: Project, gate: str, male: float, female: float, *, answers: bool) -> dict[str, str]:
    """Verdicts by audit of a run in which 60 % of the men and 40 % of the women of the baseline got a yes."""
    project.probe("probes/loan.yaml", LOAN.replace("GATE", gate))
    project.write("probes/loan.csv", decisions(0.6, 0.4, 1))
    project.run("--fairness-rebaseline", target=None)
    if not answers:
        (project.path / "baselines/loan.responses.jsonl").unlink()
    project.write("probes/loan.csv", decisions(male, female, 2))
    return {name.partition("[")[0]: verdict for name, verdict in project.verdicts(target=None).items()}


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("answers", [True, False])
def test_a_gap_that_changed_sides_does_not_pass(project: Project, gate: str, answers: bool) -> None:
    found = verdicts(project, gate, 0.4, 0.6, answers=answers)
    assert found["flip_direction"] == "regression"
    assert found["demographic_parity"] == ("regression" if answers else "inconclusive")


@pytest.mark.parametrize("gate", ["significant", "point"])
def test_a_gap_that_stays_passes_by_its_sign_and_is_inconclusive_without_a_sign(project: Project, gate: str) -> None:
    found = verdicts(project, gate, 0.55, 0.45, answers=False)
    assert found == {"flip_direction": "pass", "demographic_parity": "inconclusive"}
    result = project.run(
        "--fairness", "--fairness-report", "report.md", "--fairness-report", "report.json", target=None
    )
    assert shows(result, "✓ pass", "(no answers)", "flip_direction")
    assert "(no answers)" in (project.path / "report.md").read_text("utf-8")
    assert [item["change"]["from_answers"] for item in project.read("report.json")["items"]] == [False, False]
    assert verdicts(project, gate, 0.9, 0.1, answers=False)["demographic_parity"] == "regression"


def test_the_pattern_by_which_git_ignores_the_answers_is_named(project: Project) -> None:
    project.write(".gitignore", "*.xml\n*.jsonl\n")
    project.git("init", "-q")
    verdicts(project, "significant", 0.5, 0.5, answers=False)
    result = project.run("--fairness", "-v", target=None)
    assert says(result, "loan.responses.jsonl is absent, as git ignores it (.gitignore:2 *.jsonl)")
    result = project.run("--fairness-rebaseline", target=None)
    assert says(result, "git ignores loan.responses.jsonl (.gitignore:2 *.jsonl)")


EDITS = {
    "value": 0.0,
    "standard_error": 0.5,
    "answers": "0123456789ab",
    "seal": "0123456789abcdef",
    "n": {"male": 9000},
}


@pytest.mark.parametrize("field", EDITS)
@pytest.mark.parametrize("answers", [True, False])
def test_an_edit_is_an_error_with_and_without_the_answers(project: Project, field: str, answers: bool) -> None:
    verdicts(project, "significant", 0.6, 0.4, answers=answers)
    path = project.path / "baselines/loan.json"
    data = project.read("baselines/loan.json")
    data["items"]["flip_direction[sex]"][field] = EDITS[field]
    path.write_text(json.dumps(data), "utf-8")
    result = project.run("--fairness", "-v", target=None)
    assert result.parseoutcomes()["errors"] == 1
    assert says(result, "edited")
    project.run("--fairness-rebaseline", target=None)
    project.run("--fairness", target=None).assert_outcomes(passed=2)


def test_an_edit_of_kept_numbers_is_an_error_if_answers_are_not_kept(project: Project) -> None:
    project.write("pytest.ini", ini(fairness_baseline_responses="false"))
    verdicts(project, "significant", 0.6, 0.4, answers=True)
    path = project.path / "baselines/loan.json"
    data = project.read("baselines/loan.json")
    assert data["items"]["flip_direction[sex]"]["generation"] is None
    data["items"]["flip_direction[sex]"]["value"] = 0.9
    path.write_text(json.dumps(data), "utf-8")
    assert project.run("--fairness", target=None).parseoutcomes()["errors"] == 1
