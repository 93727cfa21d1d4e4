"""Command `compare`: comparison of two JSON reports."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from pytest_fairness.commands.shared.output import write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("old", type=Path, help="JSON report of the earlier run")
    parser.add_argument("new", type=Path, help="JSON report of the later run")
    parser.add_argument(
        "--format",
        choices=("terminal", "markdown", "html"),
        help="format of the output (default: by the suffix of --output, otherwise terminal)",
    )
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")


def run(arguments: argparse.Namespace) -> None:
    """Compare the JSON reports of two runs: verdicts, values with 95 % confidence intervals, and requests."""
    from pytest_fairness.reports import files
    from pytest_fairness.reports.changes import comparison_formats
    from pytest_fairness.reports.changes.run_comparison import compare
    from pytest_fairness.reports.formatting import without_commands

    comparison = compare(files.read(arguments.old), files.read(arguments.new))
    by_suffix = {".md": "markdown", ".html": "html"}.get(
        arguments.output.suffix.lower() if arguments.output else "", "terminal"
    )
    match arguments.format or by_suffix:
        case "markdown":
            text = comparison_formats.markdown(comparison)
        case "html":
            text = comparison_formats.html(comparison)
        case _:
            text = without_commands(
                comparison_formats.terminal(comparison, shutil.get_terminal_size((120, 24)).columns)
            )
    write([text], arguments.output)
