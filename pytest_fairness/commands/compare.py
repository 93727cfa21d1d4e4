"""`python -m pytest_fairness compare`: what changed between two runs."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from pytest_fairness.commands.output import write


def declare(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("old", type=Path, help="JSON report of the earlier run")
    parser.add_argument("new", type=Path, help="JSON report of the later run")
    parser.add_argument("--format", choices=("terminal", "markdown", "html"), help="default: as -o ends, or terminal")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")


def run(chosen: argparse.Namespace) -> None:
    """Show what changed between two runs: items, verdicts, values with 95 % intervals, requests."""
    from pytest_fairness.reports import files
    from pytest_fairness.reports.compare import compare
    from pytest_fairness.reports.terminal import comparison
    from pytest_fairness.reports.terminal.text import without_commands

    changes = compare(files.read(chosen.old), files.read(chosen.new))
    named = {".md": "markdown", ".html": "html"}.get(chosen.output.suffix.lower() if chosen.output else "", "terminal")
    match chosen.format or named:
        case "markdown":
            text = comparison.markdown(changes)
        case "html":
            text = comparison.html(changes)
        case _:
            text = without_commands(comparison.terminal(changes, shutil.get_terminal_size((120, 24)).columns))
    write([text], chosen.output)
