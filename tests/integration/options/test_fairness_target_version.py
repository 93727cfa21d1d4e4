"""`fairness_target_version`, and what a server says of the model behind a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.asking.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.run.results import served_change
from pytest_fairness.targets import open_target
from tests.support.messages_server import MessagesServer
from tests.support.projects import KIM, LOU, PROBE, Project, ini, says, shows
from tests.support.servers import ChatServer, Reply, fair_answer

UNLIMITED = PROBE.replace("{limit: 0.5, gate: point}", "{gate: point}")
TARGETS = [
    "local",
    "openai:tiny",
    "anthropic:tiny",
    "transformers:tiny/model",
    "python:app:polite",
    "http://localhost/a",
]


@pytest.mark.parametrize("spec", TARGETS)
def test_the_version_is_part_of_every_targets_identity(tmp_path: Path, spec: str) -> None:
    plain, versioned = (open_target(spec, RunSettings(tmp_path, target_version=version)) for version in (None, "7"))
    assert versioned.identity == f"{plain.identity} version 7"
    assert versioned.name == plain.name
    assert versioned.reusable


def test_answers_of_another_version_do_not_count(project: Project) -> None:
    project.probe()
    with ChatServer() as server:
        for version, count in (("1", 30), ("1", 30), ("2", 60), ("1", 60)):
            project.write("pytest.ini", ini(fairness_target_version=version))
            project.report("--fairness-base-url", server.url, target="openai:tiny")
            assert server.count == count


def test_a_model_that_changed_behind_its_name_is_said_everywhere(project: Project) -> None:
    project.probe(text=UNLIMITED)
    reports = ("--fairness-report", "report.json", "--fairness-report", "report.md", "--fairness-report", "report.html")
    with ChatServer(lambda *asked: Reply(fair_answer(*asked), model="gpt-x-2026-05")) as server:
        asked = ("--fairness-base-url", server.url)
        project.run("--fairness-rebaseline", *asked, target="openai:gpt-x").assert_outcomes(passed=2)
        assert {tuple(entry["served"]) for entry in project.read("baselines/gifts.json")["items"].values()} == {
            ("gpt-x-2026-05",)
        }
        result = project.run("--fairness", *asked, *reports, target="openai:gpt-x")
        assert not says(result, "served model changed")
        server.answer = lambda *asked: Reply(fair_answer(*asked), model="gpt-x-2026-09", fingerprint="fp_1")
        result = project.run("--fairness", "--fairness-fresh", *asked, *reports, target="openai:gpt-x")
    result.assert_outcomes(passed=2)
    changed = "gpt-x-2026-05 → gpt-x-2026-09"
    assert shows(result, f"served model changed: {changed}")
    items = {item["id"]: item for item in project.read("report.json")["items"]}
    for name in (KIM, LOU):
        assert items[name]["verdict"] == "pass"
        assert items[name]["reason"].endswith(f". Note: the served model changed: {changed}.")
        assert items[name]["details"]["served_model"] == "gpt-x-2026-09 (fp_1)"
        assert items[name]["details"]["served_model_changed"] == changed
    for file in ("report.md", "report.html"):
        text = (project.path / file).read_text("utf-8").replace("\\", "")
        assert "gpt-x-2026-05 → gpt-x-2026-09" in text, file
    with Store(project.path / ".fairness" / "responses.sqlite") as store:
        (response,) = {(kept.response.model, kept.response.fingerprint) for kept in store.all_recorded()}
        assert response == ("gpt-x-2026-09", "fp_1")


def test_a_change_is_named_by_models_or_else_by_fingerprints() -> None:
    assert served_change([], ["a"]) is served_change(["a"], []) is served_change(["a (1)"], ["a (1)"]) is None
    assert served_change(["b (2)"], ["a (1)"]) == "a → b"
    assert served_change(["a (1)", "a (2)"], ["a (1)"]) == "a (1) → a (1), a (2)"
    assert served_change(["a"], [f"m{number}" for number in range(5)]) == "m0, m1, m2 and 2 more → a"


def test_what_anthropic_says_is_kept_too(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe(text=UNLIMITED)
    with MessagesServer(lambda *asked: Reply(fair_answer(*asked), model="claude-x-20260505")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        project.run("--fairness-rebaseline", target="anthropic:claude-x").assert_outcomes(passed=2)
    assert project.read("baselines/gifts.json")["items"][KIM]["served"] == ["claude-x-20260505"]


def test_what_a_server_says_of_its_model_is_no_risk(project: Project) -> None:
    project.probe(text=UNLIMITED)
    with ChatServer(lambda *asked: Reply(fair_answer(*asked), model="evil\x1b[31m\n" + "long" * 1000)) as server:
        project.run("--fairness-rebaseline", "--fairness-base-url", server.url, target="openai:tiny")
    (served,) = project.read("baselines/gifts.json")["items"][KIM]["served"]
    assert served.startswith("evil [31m long")
    assert len(served) == 100
