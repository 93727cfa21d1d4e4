"""Command `store`: shows the size of a store, deletes responses or batches, shrinks the file, or copies the store."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.commands.merge import existing_address
from pytest_fairness.commands.shared.output import write
from pytest_fairness.commands.shared.recorded import add_store_argument, store_argument, store_of
from pytest_fairness.errors import FairnessError
from pytest_fairness.option_types import in_folder
from pytest_fairness.plurals import counted

if TYPE_CHECKING:
    from pytest_fairness.asking.store.maintenance import Size
    from pytest_fairness.asking.store.store import Store

DAY = 86_400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_store_argument(parser)
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument(
        "--prune", type=_days, metavar="DAYS", help="delete the responses that are older than this number of days"
    )
    actions.add_argument("--vacuum", action="store_true", help="shrink the file to the size of the remaining responses")
    actions.add_argument(
        "--forget-batches",
        action="store_true",
        help="delete the store's records of all batches that were sent to providers, for example after an account was "
        "closed; later runs may send the requests of these batches again, and nothing is deleted at the provider",
    )
    actions.add_argument(
        "--copy-to",
        type=store_argument,
        metavar="STORE",
        help="copy the responses to another store, a file or the address of a database; copy the history of runs, too, "
        "if that store has none",
    )
    parser.add_argument(
        "--target",
        help="with --prune: delete only the responses of this target, such as openai:gpt-5 (without options, the "
        "command lists the names)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Show the number of responses of each target in a store.

    With --prune, --vacuum, --forget-batches or --copy-to, the command deletes old responses, shrinks the file, forgets
    batches, or copies the store instead.
    """
    from pytest_fairness.asking.store import maintenance
    from pytest_fairness.asking.store.store import Store

    if arguments.target is not None and arguments.prune is None:
        raise FairnessError("--target selects the responses that --prune deletes. Add --prune, or remove --target.")
    address = existing_address(store_of(arguments))
    with Store(address) as store:
        if arguments.prune is not None:
            _prune(store, arguments.prune, arguments.target)
        elif arguments.vacuum:
            store.database.execute("VACUUM")
            print(f"{address}: vacuumed")
        elif arguments.forget_batches:
            from pytest_fairness.asking.store.batch_table import BatchTable

            batches, requests = BatchTable(store).delete_all()
            unanswered = counted(requests, "unanswered request")
            print(f"{address}: batches forgotten: {batches:,}; {unanswered} may be sent again")
        elif arguments.copy_to is not None:
            to = in_folder(Path.cwd(), arguments.copy_to)
            if to == address:
                raise FairnessError(f"{to}: a store cannot be copied into itself. Name another store with --copy-to.")
            with Store(to) as destination:
                copied, found = maintenance.copy_responses(store, destination)
                runs = maintenance.copy_history(store, destination)
            history = f"the history of {counted(runs, 'run')}"
            print(f"{address}: copied {copied:,} of {counted(found, 'response')}, and {history}, to {to}")
        else:
            write(_table(maintenance.sizes(store)), None)


def _prune(store: Store, days: float, target: str | None) -> None:
    from pytest_fairness.asking.store.maintenance import prune, sizes

    known = [size.target for size in sizes(store)]
    if target is not None and target not in known:
        shown = ", ".join(known) or "none"
        raise FairnessError(f"--target {target}: no response of this target is recorded. Recorded targets: {shown}.")
    deleted = prune(store, older_than=store.database.now() - days * DAY, target=target)
    print(f"{counted(deleted, 'response')} deleted. Shrink the file with `python -m pytest_fairness store --vacuum`.")


def _table(sizes: list[Size]) -> list[str]:
    """Return the lines of a table with a row for each target, and a last row for all targets together."""
    rows = [("responses", "size", "oldest", "newest", "target")]
    for size in sizes:
        row = _day(size.oldest), _day(size.newest), size.target
        rows.append((f"{size.responses:,}", _size(size.characters), *row))
    characters = sum(size.characters for size in sizes)
    rows.append((f"{sum(size.responses for size in sizes):,}", _size(characters), "", "", "all targets"))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return [f"{row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:10}  {row[3]:10}  {row[4]}\n" for row in rows]


def _size(characters: int) -> str:
    return f"{characters / 1e6:,.1f} MB" if characters >= 1e6 else f"{characters / 1e3:,.1f} kB"


def _day(date: float) -> str:
    return datetime.fromtimestamp(date, UTC).date().isoformat()


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of days of at least 0, not {text!r}")
    return days
