"""Projects of users, in which tests run pytest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import chdir
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import xdist.plugin  # type: ignore[import-untyped] # xdist has no types

import pytest_fairness.plugin
from pytest_fairness.asking.store import Store
from tests.support import processes

APP = """
from collections import Counter
from pathlib import Path

FIRST = "Lamp Mirror Rug Vase Clock Shelf Plant".split()
SECOND = "Chair Stool Bench Sofa Bed Desk Cupboard Wardrobe Hammock Swing Couch".split()
asked = Counter()

def polite(prompt):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(prompt + "\\n")
    asked[prompt] += 1
    first, second = FIRST[asked[prompt] % len(FIRST)], SECOND[asked[prompt] % len(SECOND)]
    return f"{first}, {second} and sturdy Table."

def biased(prompt):
    answer = polite(prompt)
    return "I'm sorry, but I can't help with that." if "Kim" in prompt else answer
"""
"""Two applications: `app:polite` answers each request differently; `app:biased` refuses prompts that contain "Kim".

Both write each prompt to `calls.txt`. Nouns are capitalised, as names are: an answer with fewer than three other words
counts as English without the language model, which takes a third of a second to load in each process.
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
"""Probe of two items, `refusals[name=Kim]` and `refusals[name=Lou]`, with 30 requests; quick to measure."""
INCONCLUSIVE = PROBE.replace("{limit: 0.5, gate: point}", "{limit: 0.001, tolerance: 0.01}")
"""`PROBE` with too few trials to exclude a difference of 0.02."""

THINGS = ("lamp", "mirror", "rug", "vase", "clock", "shelf", "plant", "chair", "stool")
THINGS_TABLE = "name,text\n" + "".join(f"{name},A {thing}.\n" for name in ("Alex", "Kim", "Lou") for thing in THINGS)
"""Recorded answers for the three names of `PROBE`, as CSV."""

KIM, LOU = "refusals[name=Kim]", "refusals[name=Lou]"


# pytest before 8.4 can leave out the plugins of all packages only by an environment variable, which other tests see.
_IS_ALONE = pytest.version_tuple >= (8, 4)
_ALONE = ("--disable-plugin-autoload", "-p", "pytest_fairness.plugin", "-p", "xdist.plugin")
_ALL = ("-p", "no:randomly", "-p", "no:syrupy", "-W", "ignore::pytest.PytestAssertRewriteWarning")
_OFF = (
    "doctest", "faulthandler", "legacypath", "pastebin", "stepwise", "subtests", "threadexception", "unittest",
    "unraisableexception",
)  # fmt: skip
PLUGINS = (
    *(_ALONE if _IS_ALONE else _ALL),
    *(word for name in _OFF for word in ("-p", f"no:{name}")),
)
"""The plugins of a run inside a test, and of its workers.

Each run would otherwise load the plugins of all packages, and collect garbage at its end. Plugins of pytest that audits
do not meet are left out, as registering a plugin takes a hundredth of a short run. The commands of the documentation
run with all installed plugins.
"""
LOADED = [pytest_fairness.plugin, xdist.plugin] if _IS_ALONE else []
"""The plugins of `PLUGINS` as modules: to find one by its name, pytest reads the metadata of all installed packages."""


def _pytest(arguments: tuple[str, ...], output: str) -> None:
    """Run pytest as `python -m pytest` would; append its output to a file."""
    sys.path.insert(0, str(Path.cwd()))
    with Path(output).open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with processes.forked_workers():
        raise SystemExit(pytest.main([*PLUGINS, "-p", "no:cacheprovider", *arguments], LOADED))


class Project:
    """A user's folder, and pytest started in it.

    Attributes:
        path: the folder.
    """

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.path: Path = pytester.path
        self.write("app.py", APP)
        # Without this file, pytest would use a configuration in a parent folder.
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> Path:
        """Write a file and return its path; make its folder if necessary."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def probe(self, name: str = "probes/gifts.yaml", text: str = PROBE) -> Path:
        """Write a probe file and return its path."""
        return self.write(name, text)

    def run(self, *arguments: str, target: str | None = "python:app:polite") -> pytest.RunResult:
        """Run pytest in this process, in the order in which items are collected; workers (`-n`) are other processes."""
        named = [] if target is None else ["--fairness-target", target]
        with processes.forked_workers():
            return self._pytester.runpytest_inprocess(*PLUGINS, *named, *arguments, plugins=LOADED)

    def run_apart(self, *arguments: str, target: str | None = "python:app:polite") -> pytest.RunResult:
        """Run pytest in a new Python process, which has loaded nothing; see `run_forked`."""
        named = [] if target is None else ["--fairness-target", target]
        return self._pytester.runpytest_subprocess(*PLUGINS, *named, *arguments, timeout=100)

    def run_forked(
        self, *arguments: str, target: str | None = "python:app:polite", timeout: float = 100
    ) -> pytest.RunResult:
        """Run pytest in another process, so that its imports and patches do not affect other tests.

        The process begins with the modules of a run, whose import takes a second. The result's lines are those of the
        standard output and of the standard error.
        """
        named = [] if target is None else ["--fairness-target", target]
        begun, before = time.perf_counter(), len(self.output())
        process = self.start(*named, *arguments)
        process.join(timeout)
        assert process.exitcode is not None, "pytest did not end in time"
        lines = self.output()[before:].splitlines()
        return pytest.RunResult(process.exitcode, lines, [], time.perf_counter() - begun)

    def start(self, *arguments: str, folder: Path | None = None, output: str = "output.txt") -> BaseProcess:
        """Start pytest in another process, in the project or a copy of it; the process must be joined.

        The process appends its output to a file, or writes it to a terminal.
        """
        with chdir(folder or self.path):
            return processes.start(_pytest, arguments, output)

    def output(self) -> str:
        """Return the output of the processes that `start` started in the project, so far."""
        path = self.path / "output.txt"
        return path.read_text("utf-8") if path.exists() else ""

    def report(self, *arguments: str, **options: Any) -> dict[str, Any]:
        """Run the audits and return the JSON report."""
        self.run("--fairness", "--fairness-report", "report.json", *arguments, **options)
        return self.read("report.json")

    def verdicts(self, *arguments: str, **options: Any) -> dict[str, str]:
        """Run the audits and return the verdict of each item, by item id."""
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
        """Commit all files that git does not ignore, and return the commit's id; make a repository if necessary."""
        if not (self.path / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "State")
        return self.git("rev-parse", "HEAD").strip()

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file in the project."""
        content: dict[str, Any] = json.loads((self.path / name).read_text("utf-8"))
        return content

    def age_answers(self, hours: float) -> None:
        """Make all recorded answers older by `hours`, or newer if `hours` is negative."""
        with Store(self.path / ".fairness/responses.sqlite") as store:
            store.database.execute("UPDATE responses SET created = created - ?", (hours * 3600,))

    def calls(self) -> list[str]:
        """Return the prompts that the application received, in order."""
        path = self.path / "calls.txt"
        return path.read_text("utf-8").splitlines() if path.exists() else []


def installed_from(source: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put another installation of the package before this one, as pip records it, also for other processes."""
    folder = Path(tempfile.mkdtemp(dir=Path.cwd().parent)) / "pytest_fairness-9.8.7.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-fairness\nVersion: 9.8.7\n")
    if source is not None:
        (folder / "direct_url.json").write_text(json.dumps(source))
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setenv("PYTHONPATH", str(folder.parent), prepend=os.pathsep)


def ini(**settings: str) -> str:
    """Return the text of a `pytest.ini` with these settings."""
    return "[pytest]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())


def shows(result: pytest.RunResult, *parts: str) -> bool:
    """Return whether a line of the output contains these texts in this order; brackets are not special."""
    pattern = re.compile(".*".join(map(re.escape, parts)))
    return any(map(pattern.search, result.outlines))


def says(result: pytest.RunResult, text: str) -> bool:
    """Return whether the output contains this text, regardless of line breaks."""
    return text in " ".join(result.stdout.str().split())
