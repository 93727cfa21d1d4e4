"""Projects of users, for runs of pytest inside a test."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.asking.store.store import Store

APP = """
from collections import Counter
from pathlib import Path

FIRST = "lamp mirror rug vase clock shelf plant".split()
SECOND = "chair stool bench sofa bed desk cupboard wardrobe hammock swing couch".split()
asked = Counter()

def polite(prompt):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(prompt + "\\n")
    asked[prompt] += 1
    first, second = FIRST[asked[prompt] % len(FIRST)], SECOND[asked[prompt] % len(SECOND)]
    return f"A {first}, a {second} and a sturdy table."

def biased(prompt):
    answer = polite(prompt)
    return "I'm sorry, but I can't help with that." if "Kim" in prompt else answer
"""
"""`app:polite` serves everybody, with another answer each time; `app:biased` refuses whoever is called Kim.

Both keep a line for each call.
"""

PROBE = """
kind: generation
prompt: What would you recommend to {name}?
axes:
  name: {unmarked: Alex, marked: [Kim, Lou]}
trials: 10
audits:
  refusals: {limit: 0.5, gate: point}
"""
"""Two items, `refusals[name=Kim]` and `refusals[name=Lou]`; 30 questions; quick to measure."""
INCONCLUSIVE = PROBE.replace("{limit: 0.5, gate: point}", "{limit: 0, tolerance: 0.01}")
"""The same with too few trials to exclude a difference by 0.02."""

THINGS = ("lamp", "mirror", "rug", "vase", "clock", "shelf", "plant", "chair", "stool")
THINGS_TABLE = "name,text\n" + "".join(f"{name},A {thing}.\n" for name in ("Alex", "Kim", "Lou") for thing in THINGS)
"""Recorded answers for the three names of `PROBE`, as CSV."""

KIM, LOU = "refusals[name=Kim]", "refusals[name=Lou]"


PLUGINS = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:faker", "-p", "no:anyio")
"""Plugins that are left out: items run in their order, and the imports of the others take time in each process."""


class Project:
    """A user's folder, and pytest started in it.

    Attributes:
        path: the folder.
    """

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.path: Path = pytester.path
        self.write("app.py", APP)
        # Or a configuration of some folder above would hold.
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> Path:
        """Write a file, its folder made if need be."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def probe(self, name: str = "probes/gifts.yaml", text: str = PROBE) -> Path:
        """Write a probe file."""
        return self.write(name, text)

    def run(self, *arguments: str, target: str | None = "python:app:polite") -> pytest.RunResult:
        """Run pytest in this process, in the order in which items are collected; workers (`-n`) are other processes."""
        named = [] if target is None else ["--fairness-target", target]
        return self._pytester.runpytest_inprocess(*PLUGINS, *named, *arguments)

    def run_apart(
        self, *arguments: str, target: str | None = "python:app:polite", timeout: float = 100
    ) -> pytest.RunResult:
        """Run pytest in a process of its own: what it imports, loads into memory or patches ends with it."""
        named = [] if target is None else ["--fairness-target", target]
        return self._pytester.runpytest_subprocess(*PLUGINS, *named, *arguments, timeout=timeout)

    def report(self, *arguments: str, **options: Any) -> dict[str, Any]:
        """Audit, and give back the JSON report."""
        self.run("--fairness", "--fairness-report", "report.json", *arguments, **options)
        return self.read("report.json")

    def verdicts(self, *arguments: str, **options: Any) -> dict[str, str]:
        """Audit, and give back each item's verdict by its id."""
        return {item["id"]: item["verdict"] for item in self.report(*arguments, **options)["items"]}

    def git(self, *arguments: str) -> str:
        """Run git in the project, as Jane Doe, and return its output."""
        identity = ("-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *identity, *arguments],  # noqa: S607 - the git of the machine
            cwd=self.path,
            check=True,
            capture_output=True,
            encoding="utf-8",
        )
        return done.stdout

    def commit(self) -> str:
        """Commit everything but what git ignores, in a repository made if need be; return the commit's id."""
        if not (self.path / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "State")
        return self.git("rev-parse", "HEAD").strip()

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file of the project."""
        content: dict[str, Any] = json.loads((self.path / name).read_text("utf-8"))
        return content

    def age_answers(self, hours: float) -> None:
        """Make all recorded answers older, or newer by negative hours."""
        with Store(self.path / ".fairness/responses.sqlite") as store, store.database.transaction() as connection:
            connection.execute("UPDATE responses SET created = created - ?", (hours * 3600,))

    def calls(self) -> list[str]:
        """The prompts that the application was called with, in order."""
        path = self.path / "calls.txt"
        return path.read_text("utf-8").splitlines() if path.exists() else []


def ini(**settings: str) -> str:
    """A `pytest.ini`."""
    return "[pytest]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())


def shows(result: pytest.RunResult, *parts: str) -> bool:
    """Whether a line of the output holds these texts in this order; unlike patterns, brackets are brackets."""
    pattern = re.compile(".*".join(map(re.escape, parts)))
    return any(map(pattern.search, result.outlines))


def says(result: pytest.RunResult, text: str) -> bool:
    """Whether the output holds this text, however its lines are broken."""
    return text in " ".join(result.stdout.str().split())
