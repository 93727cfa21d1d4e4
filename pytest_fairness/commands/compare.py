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
    from pytest_fairness.reports import comparison_formats, files
    from pytest_fairness.reports.formatting import without_commands
    from pytest_fairness.reports.run_comparison import compare

    changes = compare(files.read(chosen.old), files.read(chosen.new))
    named = {".md": "markdown", ".html": "html"}.get(chosen.output.suffix.lower() if chosen.output else "", "terminal")
    match chosen.format or named:
        case "markdown":
            text = comparison_formats.markdown(changes)
        case "html":
            text = comparison_formats.html(changes)
        case _:
            text = without_commands(comparison_formats.terminal(changes, shutil.get_terminal_size((120, 24)).columns))
    write([text], chosen.output)
