"""A worsening that is significant but within the tolerance passes, and every report says so."""

from __future__ import annotations

import pytest

from tests.integration.test_growing import APP, PROBE
from tests.support.projects import Project, says


def test_a_significant_worsening_within_the_tolerance_is_noted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("app.py", APP)
    project.probe(text=PROBE.replace("{start: 20, max: 160}", "200"))
    project.run("--fairness-rebaseline", target="python:app:service")
    monkeypatch.setenv("REFUSED_TO_KIM", "6")
    names = [word for name in ("r.json", "r.md", "r.html") for word in ("--fairness-report", name)]
    result = project.run("--fairness", *names, target="python:app:service")
    assert result.parseoutcomes() == {"passed": 1}
    said = "refusals of Kim 6%, before 0%; worse by 0.06 (allowed 0.1); significantly worse, but within tolerance"
    assert says(result, f"Kim vs Alex: {said}")
    (item,) = project.read("r.json")["items"]
    assert (item["verdict"], item["change"]["significant"]) == ("pass", True)
    assert 0.06 < item["change"]["upper_bound"] < 0.2
    assert item["reason"].endswith(
        "The item is significantly worse than the baseline, but within the tolerance (p < 0.001)."
    )
    assert "significantly worse, but within tolerance" in (project.path / "r.md").read_text("utf-8")
    page = (project.path / "r.html").read_text("utf-8")
    assert "upper bound of the change" in page
    assert "significant (p = " in page


def test_no_note_where_nothing_changed(project: Project) -> None:
    project.write("app.py", APP)
    project.probe(text=PROBE.replace("{start: 20, max: 160}", "200"))
    project.run("--fairness-rebaseline", target="python:app:service")
    result = project.run("--fairness", target="python:app:service")
    assert result.parseoutcomes() == {"passed": 1}
    assert not says(result, "within tolerance")
