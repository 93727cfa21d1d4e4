"""The runner of a CI service obeys nothing that a model, a server or a probe file has written into a run's log."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pytest_fairness.pytest_integration.terminal import GuardedFile
from pytest_fairness.reports.formatting import without_commands, without_controls
from tests.support.projects import Project
from tests.support.servers import Body, ChatServer, Messages, Reply

PIECES = st.text(alphabet=":#[ \t\n\r\x0b\u2028va\x1b", max_size=12)
COMMAND = "::error title=you::are owned"
NAMES = ("::stop-commands::x", "##[error]owned", " ::add-mask::a", "##vso[task.setvariable]1", "A::B")
PROBE = f"""
kind: generation
prompt: What would you recommend to {{name}}?
axes:
  name: {{unmarked: Alex, marked: [{", ".join(f'"{name}"' for name in NAMES)}]}}
trials: 10
audits:
  jsd: {{limit: 0.000001, gate: point}}
  marked_words: {{}}
"""


def commands(text: str) -> list[str]:
    """The lines that GitHub's runner, or that of Azure Pipelines or TeamCity, obeys."""
    lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).splitlines()
    return [line for line in lines if line.strip().startswith("::") or re.search(r"##\w*\[", line)]


def test_only_commands_are_broken_up() -> None:
    assert without_commands("  ::error::x\na::b ## [x] [::] ##[group]") == "  : :error::x\na::b ## [x] [::] ## [group]"
    assert without_commands("\x1b[31m::error") == "\x1b[31m: :error"
    assert without_commands("pytest 'a.yaml::jsd[a::b]'") == "pytest 'a.yaml::jsd[a::b]'"


@given(st.lists(PIECES, max_size=8))
def test_a_command_in_pieces_is_broken_up_too(pieces: list[str]) -> None:
    file = io.StringIO(newline="")
    guarded = GuardedFile(file)
    guarded.writelines(pieces)
    assert commands(file.getvalue()) == []
    assert re.sub(r"\s", "", file.getvalue()) == re.sub(r"\s", "", without_controls("".join(pieces))), "nothing is lost"


def test_a_long_line_is_written_as_it_is() -> None:
    file = io.StringIO()
    guarded = GuardedFile(file)
    for _ in range(1000):
        guarded.write("a::")
    assert file.getvalue() == "a::" * 1000


@pytest.mark.parametrize(("workers", "width"), [((), "50"), (("-n", "1"), "80")], ids=["alone", "a worker"])
def test_a_run_writes_no_command(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...], width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    number = itertools.count()

    def answer(messages: Messages, body: Body) -> Reply:
        place = next(number)
        if place % 7 == 3:
            return Reply(f"\n{COMMAND}\n##[error]", status=400)
        word = "x" * (place % 40)
        return Reply(f"{word} {COMMAND} {word} ##[warning]b {word}:: {'lady' if 'A::B' in str(messages) else 'man'}")

    project.probe(text=PROBE)
    project.probe("probes/faulty.yaml", f'kind: generation\n"##[error]": 1\n"{COMMAND}": 2\n')
    project.write(
        "test_letters.py",
        "def test_letter(llm_client):\n"
        "    answers = llm_client.complete('hello', trials=3)\n"
        "    assert all(answer.text == '\\n::debug::' for answer in answers)\n",
    )
    with ChatServer(answer) as server:
        arguments = ("--fairness", "-vv", "-rA", "--log-level=INFO", "--fairness-base-url", server.url, *workers)
        result = project.run("--continue-on-collection-errors", *arguments, target="openai:tiny")
        more = project.run("--fairness-dry-run", *arguments[1:], target="openai:tiny")
    for output in (result.outlines + result.errlines, more.outlines + more.errlines):
        assert commands("\n".join(output)) == []
    assert any("are owned" in line for line in result.outlines), "it is shown, and harmless"
    assert commands(Path(project.path / "summary.md").read_text("utf-8")) == []


CONTROLS = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
"""Characters that move the cursor, turn the direction of a text, or end a line for some readers."""
HARMFUL = r"\x9b31m \u202e \u2066 \u2028::error::a \x85##[error]b ##vso[c] ##teamcity[d]"
MARKUP = "![a](http://evil.example/b.png) @octo <img src=c> [d](javascript:alert(1)) <!-- e -->"
WRITTEN = f"""
kind: generation
description: "{HARMFUL} {MARKUP}"
prompt: What would you recommend to {{name}}?
axes:
  name: {{unmarked: Alex, marked: ["Kim {HARMFUL}", "Kim {MARKUP}", Lou]}}
trials: 10
audits:
  refusals: {{limit: 0.5, gate: point, xfail: {{reason: "xfail {HARMFUL} {MARKUP}", groups: ["name=Lou"]}}}}
  jsd: {{limit: 1, skip: "skip {HARMFUL} {MARKUP}"}}
"""


@pytest.mark.parametrize(
    "arguments", [("-v", "-rA"), ("-q", "--co"), ("-rA", "-n", "1"), ("-v", "--fairness-measure")], ids=str
)
def test_names_of_a_probe_are_escaped_everywhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.write(
        "app.py", "def refuses(prompt):\n    return 'I cannot help with that.' if 'Alex' not in prompt else prompt\n"
    )
    project.probe(text=WRITTEN)
    reports = ("--fairness-report", "report.md", "--fairness-report", "pr.comment.md")
    result = project.run("--fairness", *arguments, *reports, target="python:app:refuses")
    assert result.parseoutcomes().get("errors", 0) == 0
    output = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout.str())
    assert "Kim" in output
    assert re.search(CONTROLS, output) is None
    assert re.search(r"##\w*\[", output) is None
    for name in ("report.md", "pr.comment.md") if "--co" not in arguments else ():
        text = (project.path / name).read_text("utf-8")
        assert re.search(CONTROLS, text) is None
        assert "@octo" not in text
        rendered = MarkdownIt("gfm-like", {"linkify": False}).render(text)
        assert "<img" not in rendered
        assert "javascript:" not in rendered or "href" not in rendered
        assert "<!-- e" not in rendered
