"""Runs of every kind, again and again, alone and with workers: the same verdicts and the same reports."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.projects import APP, PROBE, Project, ini

WORKERS = {"serial": (), "one": ("-n", "1"), "two": ("-n", "2")}
VERDICTS = ("pass", "inconclusive", "regression", "error")
GATES = {
    "pass": "{limit: 0.5, tolerance: 0.3, gate: point}",
    "inconclusive": "{limit: 0.001, tolerance: 0.01}",
    "regression": "{tolerance: 0.3, gate: point}",
    "error": "{limit: 0.5}",
}
APPLICATION = (
    APP
    + """
def changed(prompt):
    answer = polite(prompt)
    return "I'm sorry, but I can't help with that." if "regression" in prompt and "Kim" in prompt else answer
"""
)
TEST = """
import pytest

LIMITS = {"pass": {"limit": 0.5, "gate": "point"}, "inconclusive": {"limit": 0.001, "tolerance": 0.01},
          "regression": {"tolerance": 0.3, "gate": "point"}, "error": {"limit": 0.5}}

@pytest.mark.parametrize("verdict", LIMITS)
def test_own(corpus_generator, fairness_check, verdict):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim"]}}
    trials = 3 if verdict == "error" else 10
    corpus = corpus_generator(f"A test for {verdict}, {{name}}?", axes=axes, trials=trials)
    fairness_check(f"own_{verdict}", corpus.refusals("name", "Kim"), **LIMITS[verdict])
"""


def rows(verdict: str, *, changed: bool) -> str:
    """Recorded answers; those for Kim are refusals if the system got worse."""
    refusal = changed and verdict == "regression"
    count = 3 if verdict == "error" else 10
    texts = ["I'm sorry, but I can't help with that." if refusal and name == "Kim" else f"A fine lamp {number}."
             for name in ("Alex", "Kim") for number in range(count)]  # fmt: skip
    names = itertools.chain(["Alex"] * count, ["Kim"] * count)
    return "name,text\n" + "".join(f'{name},"{text}"\n' for name, text in zip(names, texts, strict=True))


def write(project: Project, *, changed: bool) -> None:
    """A project with an asked, a recorded and a tested item for each verdict."""
    project.write("app.py", APPLICATION)
    project.write("pytest.ini", ini(fairness_target_version="2" if changed else "1"))
    project.write("test_own.py", TEST)
    for verdict, gate in GATES.items():
        settings = PROBE.replace("{limit: 0.5, gate: point}", gate).replace("[Kim, Lou]", "[Kim]")
        trials = "trials: 3" if verdict == "error" else "trials: 10"
        asked = settings.replace("What would", f"For {verdict}, what would").replace("trials: 10", trials)
        project.probe(f"probes/asked_{verdict}.yaml", asked)
        recorded = settings.replace("prompt: What would you recommend to {name}?\n", "").replace("trials: 10\n", "")
        project.probe(f"probes/recorded_{verdict}.yaml", f"{recorded}responses: {{file: {verdict}.csv}}\n")
        project.write(f"probes/{verdict}.csv", rows(verdict, changed=changed))


def what_was_said(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of a report, in an order that is not that of the processes."""
    return sorted(report["items"], key=lambda item: (item["probe"], item["id"]))


@pytest.mark.timeout(170)
@pytest.mark.parametrize("workers", WORKERS.values(), ids=list(WORKERS))
def test_the_same_verdicts_and_reports_in_every_run(project: Project, workers: tuple[str, ...]) -> None:
    write(project, changed=False)
    project.run("--fairness-rebaseline")
    write(project, changed=True)
    # The first run asks, the second finds all answers, and the third finds the results of the second.
    reports = [project.report(*workers, target="python:app:changed") for _ in range(3)]
    assert [report["requests"]["sent"] for report in reports] == [reports[0]["requests"]["sent"], 0, 0]
    for report in reports:
        found = {item["probe"]: item["verdict"] for item in report["items"]}
        assert (
            found.items()
            >= {
                f"{kind}_{verdict}": verdict for kind in ("asked", "recorded", "own") for verdict in VERDICTS[:3]
            }.items()
        )
        assert {found[f"{kind}_error"] for kind in ("asked", "recorded")} == {"not-measurable"}
    said = [what_was_said(report) for report in reports]
    assert said[0] == said[1] == said[2]
    serial = said[0] if not workers else what_was_said(project.report(target="python:app:changed"))
    assert serial == said[0]
