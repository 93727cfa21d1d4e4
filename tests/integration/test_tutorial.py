"""The tutorial, walked to the letter: its files, its commands, and the output that it shows."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.integration.test_docs import BLOCKS, HARMLESS, TUTORIAL, Block, write
from tests.support.projects import LOADED, PLUGINS, installed_from

STEPS = [block for block in BLOCKS if block.page == TUTORIAL]


def runs() -> Iterator[tuple[Block, str]]:
    """Each block of a command, and the output that is shown below it."""
    for block, following in pairwise([*STEPS, None]):
        if block is not None and block.language == "bash":
            yield block, following.text if following and following.language == "text" else ""


def test_the_page_leads_from_green_to_red_to_green() -> None:
    counts = [line for _, shown in runs() for line in shown.splitlines() if line.endswith(" pass")]
    assert counts == ["✓ 2 pass", "✗ 1 regression, ✓ 1 pass", "✓ 2 pass"]


def test_it_does_what_it_shows(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    installed_from(None, monkeypatch)
    shown = dict(runs())
    versions = []
    for block in STEPS:
        if block.title is not None:
            write(block, pytester.path)
            versions += [block.text] if block.title == "shop/gifts.py" else []
        elif block.language == "bash":
            for command in block.text.splitlines():
                if not command.startswith(HARMLESS):
                    follow(command, shown[block], pytester)
    assert len(set(versions)) == 3


def follow(command: str, shown: str, pytester: pytest.Pytester) -> None:
    program, *arguments = shlex.split(command)
    if program == "pytest":
        # One call at a time, so that equal prompts are answered in the order of their trials on a busy machine, too.
        one = ["--fairness-concurrency", "1"] if "--fairness" in command else []
        result = pytester.runpytest_inprocess(*PLUGINS, *arguments, *one, plugins=LOADED)
        output, status = result.stdout.str(), result.ret
    else:
        assert program == "python", command
        run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
        output, status = run.stdout, run.returncode
    assert status == (1 if "tolerance" in shown or "✗" in shown else 0), output
    assert shown in output + "\n", f"{command} says:\n{output}"
