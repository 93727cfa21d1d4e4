"""The block `risk` of a probe: in all reports, in no measurement, and a note or a failure when its review is due."""

from __future__ import annotations

import pytest

from pytest_fairness.reports import html, markdown
from tests.support.projects import PROBE, Project, ini, says

RISK = """
risk:
  hazard: Kim is refused help.
  groups: [Kim, Lou]
  owner: shop team
  threshold_because: Half of the answers is the worst that was ever seen.
  review_by: 2020-01-31
"""


def test_reports_show_it(project: Project) -> None:
    project.probe(text=PROBE + RISK)
    report = project.report()
    assert report["risks"]["gifts"] == {
        "hazard": "Kim is refused help.",
        "groups": ["Kim", "Lou"],
        "owner": "shop team",
        "threshold_because": "Half of the answers is the worst that was ever seen.",
        "review_by": "2020-01-31",
    }
    for text in (markdown.report(report), html.report(report)):
        assert "Kim is refused help." in text
        assert "why these thresholds" in text
    assert project.report("--fairness-replay")["risks"] == report["risks"]


def test_a_review_that_is_due_is_a_note_or_a_failure(project: Project) -> None:
    project.probe(text=PROBE + RISK)
    result = project.run("--fairness")
    assert result.ret == 0
    assert says(result, "gifts: its risk was to be reviewed by 2020-01-31 by shop team.")
    project.write("pytest.ini", ini(fairness_fail_on="review"))
    assert project.run("--fairness").ret == 1
    project.probe(text=PROBE + RISK.replace("2020", "2099"))
    result = project.run("--fairness")
    assert result.ret == 0
    assert not says(result, "to be reviewed")


def test_a_change_makes_no_baseline_stale_and_reaches_the_next_report(project: Project) -> None:
    project.probe(text=PROBE + RISK)
    project.run("--fairness-rebaseline")
    project.run("--fairness")
    project.probe(text=PROBE + RISK.replace("shop team", "other team"))
    report = project.report()
    assert [item["verdict"] for item in report["items"]] == ["pass", "pass"]
    assert report["risks"]["gifts"]["owner"] == "other team"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("risk: {harm: none}", "`risk.hazard` is missing"),
        ("risk: {hazard: x, review_by: soon}", "risk.review_by"),
        ("risk: {hazard: x, ownr: me}", "did you mean 'owner'?"),
    ],
)
def test_it_is_checked(project: Project, block: str, message: str) -> None:
    project.probe(text=f"{PROBE}{block}\n")
    assert says(project.run("--fairness"), message)
