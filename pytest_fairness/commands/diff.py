"""Command `diff`: changes of baselines against a git revision."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from pytest_fairness.commands.shared.configuration import configured_baselines, project_root
from pytest_fairness.commands.shared.output import write
from pytest_fairness.errors import FairnessError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "revision",
        nargs="?",
        default="HEAD",
        metavar="REV",
        help="git revision with which the working tree is compared; or A..B to compare two revisions, or A...B to show "
        "the changes in B since B branched off A (default: HEAD)",
    )
    parser.add_argument(
        "--baselines",
        type=Path,
        metavar="DIR",
        help="folder of the baselines (default: the ini option `fairness_baselines`)",
    )
    parser.add_argument(
        "--format",
        choices=("terminal", "markdown"),
        help="format of the output (default: markdown for --output FILE.md, otherwise terminal)",
    )
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")


def run(arguments: argparse.Namespace) -> None:
    """Show how the baselines changed since a git revision: values, top contributors, acceptors and reasons."""
    from pytest_fairness.baselines.changes import changes, ordered
    from pytest_fairness.baselines.revisions import snapshots
    from pytest_fairness.reports.changes import baseline_changes
    from pytest_fairness.reports.formatting import without_commands
    from pytest_fairness.run.comparing.remeasured import remeasured

    folder = configured_baselines() if arguments.baselines is None else Path.cwd() / arguments.baselines
    suffix = "" if arguments.output is None else arguments.output.suffix.lower()
    if suffix in (".html", ".pdf"):
        raise FairnessError(
            f"--output {arguments.output.name}: diff writes text and Markdown. Name a file that ends in .md."
        )
    as_markdown = (arguments.format or ("markdown" if suffix == ".md" else "terminal")) == "markdown"
    width = shutil.get_terminal_size((80, 24)).columns
    with snapshots(folder, arguments.revision) as (old, new):
        found = ordered(remeasured(changes(old, new), old, new, project_root()))
        problems = [*old.problems, *new.problems]
        if not (old.items or new.items or problems):
            raise FairnessError(
                f"{folder}: the folder has no baselines, neither in {old.name} nor in {new.name}. Make baselines with "
                "`pytest --fairness-rebaseline`, or name another folder with --baselines DIR."
            )
        unchanged = len(new.items) - sum(change.new is not None for change in found)
        title = baseline_changes.headline(found, old.name, new.name, unchanged)
    if as_markdown:
        text = baseline_changes.markdown(found, title, problems)
    else:
        text = without_commands(baseline_changes.terminal(found, title, problems, width))
    write([text], arguments.output)
