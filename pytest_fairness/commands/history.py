"""Command `history`: values of earlier runs."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from pytest_fairness.commands.output import write
from pytest_fairness.commands.recorded import add_store_argument
from pytest_fairness.errors import FairnessError
from pytest_fairness.option_types import in_folder
from pytest_fairness.options import DEFAULT_STORE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--probe", help="show only this probe")
    parser.add_argument("--item", metavar="ID", help="show only this item, e.g. `jsd[race=Black]`")
    parser.add_argument(
        "--last", type=_positive, default=10, metavar="N", help="show only the last N runs of each item (default: 10)"
    )
    add_store_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Show the values of earlier runs: one row for each item or, if only one item is shown, one row for each run."""
    from pytest_fairness.asking.store.store import Store
    from pytest_fairness.reports.formatting import without_commands
    from pytest_fairness.reports.terminal.history import history
    from pytest_fairness.run.history import History

    path = in_folder(Path.cwd(), arguments.store or DEFAULT_STORE)
    if not path.exists():
        raise FairnessError(
            f"{path}: the store does not exist. Name its file with --store (the value of the ini option "
            "`fairness_store`)."
        )
    with Store(path) as store:
        points = [
            point
            for point in History(store).points()
            if arguments.probe in (None, point["probe"]) and arguments.item in (None, point["id"])
        ]
    if not points:
        raise FairnessError(
            f"{path}: no recorded run has an item that matches --probe/--item. Run `pytest --fairness` to record one."
        )
    write([without_commands(history(points, arguments.last, shutil.get_terminal_size((120, 24)).columns))], None)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return number
