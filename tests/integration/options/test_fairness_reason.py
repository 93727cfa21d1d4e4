"""`--fairness-reason` and `--fairness-accepted-by`: who accepted a baseline and why, and what else a reviewer reads."""

from __future__ import annotations

import re

import pytest

from tests.support.projects import KIM, LOU, PROBE, Project, ini, shows

UNLIMITED = PROBE.replace("{limit: 0.5, gate: point}", "{tolerance: 0.25, gate: point}")


@pytest.fixture
def gifts(project: Project) -> Project:
    project.probe(text=UNLIMITED)
    project.write("pytest.ini", ini(fairness_target_version="1"))
    return project


def entry(project: Project, item: str = KIM) -> dict[str, object]:
    found: dict[str, object] = project.read("baselines/gifts.json")["items"][item]
    return found


def test_the_baseline_keeps_what_a_reviewer_needs(gifts: Project) -> None:
    gifts.commit()
    gifts.git("config", "user.name", "Jane Doe")
    gifts.run("--fairness-rebaseline")
    result = gifts.run("--fairness-rebaseline", "--fairness-reason", "New\ttone, see #12", target="python:app:biased")
    assert shows(result, "  accepted by Jane Doe: New tone, see #12")
    assert {name: entry(gifts)[name] for name in ("accepted_by", "reason", "file", "labels", "tolerance")} == {
        "accepted_by": "Jane Doe",
        "reason": "New tone, see #12",
        "file": "probes/gifts.yaml",
        "labels": {"name": "Kim"},
        "tolerance": 0.25,
    }
    assert "limit" not in entry(gifts)
    assert entry(gifts)["contributions"] == {"Kim": 1.0, "Alex": 0.0}
    gifts.run("--fairness", target="python:app:biased").assert_outcomes(passed=2)


def test_the_same_answers_change_no_byte_unless_there_is_a_new_reason(gifts: Project) -> None:
    def state() -> list[bytes]:
        return [
            (gifts.path / "baselines" / f"gifts.{suffix}").read_bytes() for suffix in ("json", "responses.jsonl.gz")
        ]

    gifts.run("--fairness-rebaseline", "--fairness-reason", "First.", "--fairness-accepted-by", "Jane")
    first = state()
    result = gifts.run("--fairness-rebaseline", "--fairness-accepted-by", "Joe")
    assert shows(result, "2 baselines of gifts unchanged")
    assert state() == first
    result = gifts.run("--fairness-rebaseline", "-k", "Kim", "--fairness-reason", "Second.")
    assert shows(result, "  accepted: Second.")
    assert entry(gifts)["reason"] == "Second."
    assert (entry(gifts, LOU)["reason"], entry(gifts, LOU)["accepted_by"]) == ("First.", "Jane")
    assert state()[1] == first[1]


def test_a_changed_value_without_a_reason_is_noted(gifts: Project) -> None:
    gifts.run("--fairness-rebaseline")
    result = gifts.run("--fairness-rebaseline", target="python:app:biased")
    assert shows(result, "  accepted without a reason; add --fairness-reason TEXT to state the reason")
    assert "reason" not in entry(gifts)


def test_the_printed_command_asks_for_a_reason_and_its_placeholder_is_none(gifts: Project) -> None:
    first = gifts.run("--fairness")
    assert "--fairness-reason" not in first.stdout.str(), "nothing to justify"
    gifts.run("--fairness-rebaseline")
    failed = gifts.run("--fairness", target="python:app:biased")
    assert shows(failed, '--fairness-reason "..."')
    result = gifts.run("--fairness-rebaseline", "--fairness-reason", "...", target="python:app:biased")
    assert shows(result, "  accepted without a reason; add --fairness-reason TEXT to state the reason")
    assert "reason" not in entry(gifts)


def test_the_command_for_a_stale_baseline_asks_for_a_reason(gifts: Project) -> None:
    gifts.run("--fairness-rebaseline")
    gifts.probe(text=UNLIMITED.replace("What would", "Which present would"))
    (item, *_) = gifts.report()["items"]
    assert item["verdict"] == "stale-baseline"
    assert item["reason"].endswith(f"'probes/gifts.yaml::{KIM}' --fairness-reason \"...\"")


@pytest.mark.parametrize(
    ("environment", "arguments", "name"),
    [
        ({}, [], "Jane Doe"),
        ({"GITHUB_ACTOR": "octocat"}, [], "octocat"),
        ({"GITLAB_USER_LOGIN": "jdoe"}, [], "jdoe"),
        ({"GITHUB_ACTOR": "octocat"}, ["--fairness-accepted-by", "The board"], "The board"),
        ({"GITHUB_ACTOR": "octocat"}, ["--fairness-accepted-by", "none"], None),
        ({}, ["-o", "fairness_accepted_by=none"], None),
    ],
)
def test_who_accepted(
    gifts: Project,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    arguments: list[str],
    name: str | None,
) -> None:
    gifts.commit()
    gifts.git("config", "user.name", "Jane Doe")
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    gifts.run("--fairness-rebaseline", *arguments)
    assert entry(gifts).get("accepted_by") == name


def test_a_secret_of_the_environment_is_not_kept(gifts: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    gifts.run("--fairness-rebaseline", "--fairness-reason", "Measured with sk-1234567890.")
    assert entry(gifts)["reason"] == "Measured with [key]."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fairness", "--fairness-reason", "x"], "--fairness-reason has no effect without --fairness-rebaseline"),
        (
            ["--fairness-rebaseline", "--fairness-reason", "\x1b[2J"],
            "--fairness-reason must be one line of at most 500",
        ),
        (
            ["--fairness-rebaseline", "--fairness-reason", "x" * 501],
            "--fairness-reason must be one line of at most 500",
        ),
        (["--fairness-rebaseline", "--fairness-accepted-by", "\u202e"], "--fairness-accepted-by must be one line of"),
    ],
)
def test_wrong_use_is_an_error(gifts: Project, arguments: list[str], message: str) -> None:
    result = gifts.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert "\x1b[2J" not in result.stderr.str()


def test_reports_name_who_accepted_the_baseline_and_why(gifts: Project) -> None:
    gifts.run("--fairness-rebaseline", "--fairness-accepted-by", "Jane")
    reason = ("--fairness-reason", "New <tone>, see 12", "--fairness-accepted-by", "Joe")
    report = gifts.report("--fairness-rebaseline", "-k", "Kim", *reason)
    accepted = {"accepted_by": "Joe", "reason": "New <tone>, see 12"}
    assert {name: report["items"][0]["baseline"][name] for name in accepted} == accepted
    result = gifts.run("--fairness", "-v", "--fairness-report=report.html", "--fairness-report=report.md")
    text = result.stdout.str()
    assert re.search(
        r"baselines accepted:\n\S+ by Joe, 1 item: New <tone>, see 12\n\S+ by Jane, 1 item: no reason", text
    )
    assert "baselines accepted" not in gifts.run("--fairness").stdout.str()
    page = (gifts.path / "report.html").read_text("utf-8")
    assert "<dt>accepted</dt><dd>by Joe: New &lt;tone&gt;, see 12</dd>" in page
    assert "<dt>accepted</dt><dd>by Jane: no reason given</dd>" in page
    table = page[page.index("<caption>Accepted baselines</caption>") :].partition("</table>")[0]
    assert table.index(">Joe<") < table.index("New &lt;tone&gt;, see 12") < table.index(">Jane<")
    markdown = (gifts.path / "report.md").read_text("utf-8")
    assert "| Joe | New &lt;tone&gt;, see 12 | refusals\\[name=Kim\\] |" in markdown


def test_without_names_and_reasons_reports_have_no_table_of_acceptances(gifts: Project) -> None:
    gifts.write("pytest.ini", ini(fairness_target_version="1", fairness_accepted_by="none"))
    gifts.run("--fairness-rebaseline")
    result = gifts.run("--fairness", "-v", "--fairness-report=report.html", "--fairness-report=report.md")
    assert "baselines accepted" not in result.stdout.str()
    assert "Accepted baselines" not in (gifts.path / "report.html").read_text("utf-8")
    assert "Who accepted" not in (gifts.path / "report.md").read_text("utf-8")
