"""`--fairness-control`: the prompts and the target of another revision are asked again in the same run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.projects import APP, KIM, LOU, PROBE, Project, ini, says
from tests.support.servers import Body, ChatServer, Messages

ANSWERS = """
import os

def answer(prompt):
    answer = polite(prompt)
    refuses = {refused} or os.environ.get("DRIFT", "nobody") in prompt
    return "I'm sorry, but I can't help with that." if refuses else answer
"""
NOBODY, EVERY_KIM = (APP + ANSWERS.replace("{refused}", refused) for refused in ("False", "'Kim' in prompt"))
UNLIMITED = PROBE.replace("{limit: 0.5, gate: point}", "{tolerance: 0.25, gate: point}")
CONTROL = ("--fairness-against", "main", "--fairness-control")


def project_with(project: Project, path: str, **settings: str) -> Project:
    project.probe(text=UNLIMITED)
    project.write("pytest.ini", ini(**settings))
    project.write(".gitignore", ".fairness\n__pycache__\nreport.json\noutput.txt\ncalls.txt\n")
    project.write(path, NOBODY)
    project.run("--fairness-rebaseline", target=settings["fairness_target"]).assert_outcomes(passed=2)
    project.commit()
    return project


@pytest.fixture
def shop(project: Project) -> Project:
    return project_with(project, "shop.py", fairness_target="python:shop:answer")


def found(project: Project, *arguments: str) -> dict[str, tuple[str, float, str, float]]:
    """Return verdict and change of the own change and of the drift, by item."""
    items = project.report(*CONTROL, *arguments, target=None)["items"]
    assert project.git("worktree", "list").count("\n") == 1
    return {item["id"]: (item["verdict"], item["change"]["value"], *drift(item)) for item in items}


def drift(item: dict[str, Any]) -> tuple[str, float]:
    return item["against"]["drift"]["verdict"], item["against"]["drift"]["value"]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_own_change_is_no_drift(shop: Project, workers: tuple[str, ...]) -> None:
    shop.write("shop.py", EVERY_KIM)
    assert found(shop, *workers) == {KIM: ("regression", 1.0, "pass", 0.0), LOU: ("pass", 0.0, "pass", 0.0)}
    assert len(shop.read("report.json")["notes"]) == 1


def test_drift_is_no_own_change(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT", "Kim")
    assert found(shop) == {KIM: ("pass", 0.0, "regression", 1.0), LOU: ("pass", 0.0, "pass", 0.0)}
    result = shop.run("--fairness", *CONTROL, target=None)
    assert result.ret == pytest.ExitCode.OK
    assert says(result, "whose prompts and target are asked again (up to twice the requests)")
    assert says(result, "drift: 1 of 2 items of main (")
    assert says(result, f"got worse since the baseline: gifts {KIM}.")
    assert says(result, "its drift since the baseline: worse by 1 ± 0.31 (regression)")


def test_the_prompts_of_the_revision_are_asked_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(messages: Messages, _body: Body) -> str:
        asked.append(messages[-1]["content"])
        thing = ("Lamp", "Rug", "Vase")[len(asked) % 3]
        return "I'm sorry, but I can't help with that." if "Now, Kim" in asked[-1] else f"A {thing}."

    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with ChatServer(answer) as server:
        project_with(project, "shop.py", fairness_target="openai:m", fairness_base_url=server.url)
        first = len(asked)
        # The same prompts are asked once for both arms.
        assert found(project, "--fairness-fresh")[KIM] == ("pass", 0.0, "pass", 0.0)
        assert len(asked) == 2 * first
        project.probe(text=UNLIMITED.replace("What would you recommend to {name}", "Now, {name}"))
        assert found(project, "--fairness-fresh")[KIM] == ("regression", 1.0, "pass", 0.0)
        assert len(asked) == 4 * first
        [item, _] = project.read("report.json")["items"]
        assert item["against"]["changed"] == ["prompt"]


def test_code_from_elsewhere_is_no_control(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that Python imports from a folder `src` is that of the revision; one from elsewhere is refused."""
    monkeypatch.syspath_prepend(project.path / "src")
    (project.path / "src").mkdir()
    project_with(project, "src/store.py", fairness_target="python:store:answer")
    project.write("src/store.py", EVERY_KIM)
    assert found(project)[KIM] == ("regression", 1.0, "pass", 0.0)
    project.git("rm", "-q", "--cached", "src/store.py")
    project.write(".gitignore", ".fairness\n__pycache__\nreport.json\ncalls.txt\nsrc\n")
    project.commit()
    [item, *_] = project.report(*CONTROL, target=None)["items"]
    assert item["against"]["drift"] is None
    assert "no control arm" in item["against"]["phrases"][-1]
    assert "there is no module 'store'" in item["against"]["phrases"][-1]


def test_an_item_that_the_revision_lacks_has_no_control(shop: Project) -> None:
    shop.git("switch", "-q", "-c", "change")
    shop.probe(text=UNLIMITED.replace("[Kim, Lou]", "[Kim, Lou, Max]"))
    shop.run("--fairness-rebaseline", target=None)
    items = {item["id"]: item["against"] for item in shop.report(*CONTROL, target=None)["items"]}
    assert items["refusals[name=Max]"]["phrases"] == ["new in this change, with the first baseline 0"]
    assert items[KIM]["drift"]["verdict"] == "pass"


def test_the_option_needs_a_revision(shop: Project) -> None:
    assert says(shop.run("--fairness-dry-run", *CONTROL, target=None), "control arm, up to as many again (main (")
    result = shop.run("--fairness", "--fairness-control", target=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Name it with --fairness-against" in result.stderr.str()
