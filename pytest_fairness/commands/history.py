"""Command `history`: values of earlier runs."""

from __future__ import annotations

import argparse
import shutil

from pytest_fairness.commands.shared.output import write
from pytest_fairness.commands.shared.recorded import add_store_argument, store_of
from pytest_fairness.errors import FairnessError
from pytest_fairness.plurals import joined

SHOWN_NAMES = 20


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

    path = store_of(arguments)
    if not path.exists():
        raise FairnessError(
            f"{path}: there is no store at this path. Run `pytest --fairness` first. If your store is elsewhere, give "
            "its path with --store, or set `fairness_store` in pytest's configuration file."
        )
    with Store(path) as store:
        recorded = list(History(store).points())
    if not recorded:
        raise FairnessError(f"{path}: no run is recorded yet. Run `pytest --fairness` to record one.")
    points = recorded
    for option, field in (("probe", "probe"), ("item", "id")):
        wanted = getattr(arguments, option)
        known = sorted({point[field] for point in points})
        points = [point for point in points if wanted in (None, point[field])]
        if not points:
            of_probe = f" of the probe {arguments.probe}" if option == "item" and arguments.probe is not None else ""
            raise FairnessError(
                f"--{option} {wanted}: no run{of_probe} in {path} has this {option}. Recorded {option}s: "
                f"{joined(known, SHOWN_NAMES)}."
            )
    write([without_commands(history(points, arguments.last, shutil.get_terminal_size((120, 24)).columns))], None)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return number
