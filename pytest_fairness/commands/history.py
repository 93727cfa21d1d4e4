"""`python -m pytest_fairness history`: what earlier runs measured."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from pytest_fairness.commands.output import write
from pytest_fairness.errors import FairnessError
from pytest_fairness.options import RunSettings


def declare(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("--probe", help="of this probe only")
    parser.add_argument("--item", metavar="ID", help="of this item only, as `jsd[race=Black]`")
    parser.add_argument("--last", type=_positive, default=10, metavar="N", help="most runs of an item (default: 10)")
    parser.add_argument("--store", type=Path, help="file of recorded responses (default: .fairness/responses.sqlite)")


def run(chosen: argparse.Namespace) -> None:
    """Show what earlier runs measured: a row an item, or of a single item a row a run."""
    from pytest_fairness.asking.store import Store
    from pytest_fairness.reports.formatting import without_commands
    from pytest_fairness.reports.terminal.history import history
    from pytest_fairness.run.history import History

    path = Path.cwd() / (chosen.store or RunSettings(Path.cwd()).store)
    if not path.exists():
        raise FairnessError(f"{path}: nothing is recorded there. Give the --store that pytest used.")
    with Store(path) as store:
        points = [
            point
            for point in History(store).points()
            if chosen.probe in (None, point["probe"]) and chosen.item in (None, point["id"])
        ]
    if not points:
        raise FairnessError(f"{path} holds no run of such an item. `pytest --fairness` adds one each time.")
    write([without_commands(history(points, chosen.last, shutil.get_terminal_size((120, 24)).columns))], None)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return number
