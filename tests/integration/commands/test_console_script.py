"""The script `pytest-fairness` and its completion in shells."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pytest_fairness.__main__ import main

ROOT = Path(__file__).parents[3]


def test_the_script_runs_the_commands_under_its_own_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert EntryPoint("pytest-fairness", project["scripts"]["pytest-fairness"], "console_scripts").load() is main
    for called, name in [
        ("/venv/bin/pytest-fairness", "pytest-fairness"),
        ("__main__.py", "python -m pytest_fairness"),
    ]:
        monkeypatch.setattr(sys, "argv", [called])
        with pytest.raises(SystemExit):
            main(["store", "--help"])
        assert capsys.readouterr().out.startswith(f"usage: {name} store")


@pytest.mark.skipif(sys.platform == "win32", reason="argcomplete serves shells of POSIX")
@pytest.mark.parametrize(
    ("line", "words"), [("pytest-fairness sc", ["schema"]), ("pytest-fairness store --vac", ["--vacuum"])]
)
def test_shells_complete_commands(line: str, words: list[str], tmp_path: Path) -> None:
    pytest.importorskip("argcomplete", reason="the extra `completion` is not installed")
    found = tmp_path / "found"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    script = "import sys; sys.argv = ['pytest-fairness']; from pytest_fairness.__main__ import main; main()"
    subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(found)},
        check=True,
        timeout=60,
    )
    assert found.read_text("utf-8").split() == words
