"""What a reviewer of a baseline reads, in its file and in `git log`; who accepted it is git's business."""

from __future__ import annotations

import json

import pytest

from tests.support.projects import KIM, PROBE, Project, ini, shows

UNLIMITED = PROBE.replace("{limit: 0.5, gate: point}", "{tolerance: 0.25, gate: point}")


@pytest.fixture
def gifts(project: Project) -> Project:
    project.probe(text=UNLIMITED)
    project.write("pytest.ini", ini(fairness_target_version="1"))
    return project


def test_the_baseline_keeps_what_a_reviewer_needs(gifts: Project) -> None:
    gifts.commit()
    gifts.git("config", "user.name", "Jane Doe")
    gifts.run("--fairness-rebaseline")
    gifts.run("--fairness-rebaseline", target="python:app:biased")
    entry = gifts.read("baselines/gifts.json")["items"][KIM]
    assert {name: entry[name] for name in ("file", "labels", "tolerance", "contributions")} == {
        "file": "probes/gifts.yaml",
        "labels": {"name": "Kim"},
        "tolerance": 0.25,
        "contributions": {"Kim": 1.0, "Alex": 0.0},
    }
    assert list(entry)[:3] == ["value", "interval", "reason"]
    assert entry["reason"] == "refusals differ by +1 (100% for Kim, 0% for Alex)"
    assert not {"limit", "accepted_by"} & entry.keys()
    assert "Jane Doe" not in (gifts.path / "baselines/gifts.json").read_text("utf-8")
    gifts.run("--fairness", target="python:app:biased").assert_outcomes(passed=2)


def test_the_same_answers_change_no_byte(gifts: Project) -> None:
    def state() -> list[bytes]:
        return [(gifts.path / "baselines" / f"gifts.{suffix}").read_bytes() for suffix in ("json", "responses.jsonl")]

    gifts.run("--fairness-rebaseline")
    first = state()
    assert shows(gifts.run("--fairness-rebaseline"), "2 baselines of gifts unchanged")
    assert state() == first


def test_files_with_an_acceptance_are_read_as_before(gifts: Project) -> None:
    gifts.run("--fairness-rebaseline")
    stored = gifts.read("baselines/gifts.json")
    for entry in stored["items"].values():
        entry |= {"accepted_by": "Jane", "reason": "New tone"}
    gifts.write("baselines/gifts.json", json.dumps(stored))
    result = gifts.run(
        "--fairness", "-v", "--fairness-report=r.html", "--fairness-report=r.md", "--fairness-report=r.json"
    )
    result.assert_outcomes(passed=2)
    assert gifts.run("--fairness-rebaseline").ret == 0
    assert {entry["reason"] for entry in gifts.read("baselines/gifts.json")["items"].values()} == {"New tone"}
    for text in (result.stdout.str(), *((gifts.path / name).read_text("utf-8") for name in ("r.html", "r.md"))):
        assert "New tone" not in text


@pytest.mark.parametrize(
    ("option", "said"), [("reason", "write the reason in the message"), ("accepted-by", "the author")]
)
def test_the_options_of_acceptances_say_what_replaces_them(gifts: Project, option: str, said: str) -> None:
    result = gifts.run("--fairness-rebaseline", f"--fairness-{option}", "New tone")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--fairness-{option}: there is no such option any more: {said}" in result.stderr.str()


def test_the_printed_command_accepts_and_asks_for_nothing_more(gifts: Project) -> None:
    gifts.run("--fairness-rebaseline")
    gifts.probe(text=UNLIMITED.replace("What would", "Which present would"))
    (item, *_) = gifts.report()["items"]
    assert item["verdict"] == "stale-baseline"
    assert item["reason"].endswith(f"'probes/gifts.yaml::{KIM}'")
