"""Limits that no value can exceed are named with their place in every report."""

from __future__ import annotations

import pytest

from tests.support.projects import PROBE, Project, says

LOAN = """
kind: counterfactual
flip: {sex: {male: female}}
responses: {file: loan.csv}
audits:
  demographic_parity:
    {limit: PARITY}
  impact_ratio: {limit: RATIO}
"""


def write(project: Project, parity: str, ratio: str) -> None:
    """A system that says yes to every man and no to every woman."""
    project.probe("probes/loan.yaml", LOAN.replace("PARITY", parity).replace("RATIO", ratio))
    lines = ["id,sex,answer"]
    for record in range(100):
        shown = ("female,No.", "male,Yes.")
        lines += [f"{record},{answer}" for answer in (shown if record % 2 else reversed(shown))]
    project.write("probes/loan.csv", "\n".join(lines) + "\n")


def notes(project: Project, **options: str | None) -> list[str]:
    return [note["text"] for note in project.report(**options)["notes"] if note["kind"] == "limit"]


def test_a_limit_that_no_value_exceeds_is_named_with_its_line(project: Project) -> None:
    write(project, "1", "0")
    assert notes(project, target=None) == [
        (
            "probes/loan.yaml:6: no value of demographic_parity exceeds the limit 1, so that the limit passes whatever "
            "is answered. Write the worst value that you accept."
        ),
        (
            "probes/loan.yaml:8: no value of impact_ratio exceeds the limit 0, so that the limit passes whatever is "
            "answered. Write the worst value that you accept."
        ),
    ]
    result = project.run("--fairness", "--fairness-report", "report.md", target=None)
    assert says(result, "probes/loan.yaml:6: no value of demographic_parity exceeds the limit 1")
    assert "exceeds the limit 1" in (project.path / "report.md").read_text("utf-8")


def test_two_audits_of_one_line_are_both_named(project: Project) -> None:
    write(project, "1", "0")
    text = (project.path / "probes/loan.yaml").read_text("utf-8")
    written = text[: text.index("audits:")] + "audits: {demographic_parity: {limit: 1}, impact_ratio: {limit: 0}}\n"
    project.probe("probes/loan.yaml", written)
    assert [note.split()[4] for note in notes(project, target=None)] == ["demographic_parity", "impact_ratio"]


def test_a_limit_that_can_be_exceeded_has_no_note(project: Project) -> None:
    write(project, "0.8", "0.2")
    assert notes(project, target=None) == []
    project.run("--fairness", target=None).assert_outcomes(failed=2)


@pytest.mark.parametrize(("limit", "expected"), [("1", 1), ("0.9", 0)])
def test_a_gap_with_a_sign_has_a_worst_size(project: Project, limit: str, expected: int) -> None:
    project.probe(text=PROBE.replace("limit: 0.5", f"limit: {limit}"))
    assert len(notes(project)) == expected
