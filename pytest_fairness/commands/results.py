"""Commands on results of runs and on the store: `compare`, `diff`, `history`, `merge` and `store`."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.commands import (
    add_store_argument,
    configured_baselines,
    project_root,
    store_argument,
    store_of,
    write,
)
from pytest_fairness.errors import FairnessError, counted, joined
from pytest_fairness.option_types import StoreAddress, in_folder
from pytest_fairness.options import DEFAULT_STORE

if TYPE_CHECKING:
    from pytest_fairness.asking.store import Size, Store


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, help="JSON report of the earlier run")
    parser.add_argument("new", type=Path, help="JSON report of the later run")
    parser.add_argument(
        "--format",
        choices=("terminal", "markdown", "html"),
        help="format of the output (default: by the suffix of --output, otherwise terminal)",
    )
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")


def run_compare(arguments: argparse.Namespace) -> None:
    """Compare the JSON reports of two runs: verdicts, values with 95 % confidence intervals, and requests."""
    from pytest_fairness.reports import files
    from pytest_fairness.reports.files import compare
    from pytest_fairness.reports.formatting import without_commands

    comparison = compare(files.read(arguments.old), files.read(arguments.new))
    by_suffix = {".md": "markdown", ".html": "html"}.get(
        arguments.output.suffix.lower() if arguments.output else "", "terminal"
    )
    match arguments.format or by_suffix:
        case "markdown":
            text = files.comparison_markdown(comparison)
        case "html":
            text = files.comparison_html(comparison)
        case _:
            text = without_commands(files.comparison_text(comparison, shutil.get_terminal_size((120, 24)).columns))
    write([text], arguments.output)


def add_diff_arguments(parser: argparse.ArgumentParser) -> None:
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


def run_diff(arguments: argparse.Namespace) -> None:
    """Show how the baselines changed since a git revision: their values and top contributors."""
    from pytest_fairness.baselines.changes import changes, ordered, snapshots
    from pytest_fairness.baselines.creep import creep_of
    from pytest_fairness.reports import command_output
    from pytest_fairness.reports.formatting import without_commands
    from pytest_fairness.run.remeasuring import remeasured

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
        creep = creep_of(folder, new.items, arguments.revision.partition("..")[2].lstrip(".") or "HEAD")
        found = [replace(change, creep=creep.get((change.baseline, change.id))) for change in found]
        problems = [*old.problems, *new.problems, *command_output.creep_warnings(creep)]
        if not (old.items or new.items or problems):
            raise FairnessError(
                f"{folder}: the folder has no baselines, neither in {old.name} nor in {new.name}. Make baselines with "
                "`pytest --fairness-rebaseline`, or name another folder with --baselines DIR."
            )
        unchanged = len(new.items) - sum(change.new is not None for change in found)
        title = command_output.changes_headline(found, old.name, new.name, unchanged)
    if as_markdown:
        text = command_output.changes_markdown(found, title, problems)
    else:
        text = without_commands(command_output.changes_text(found, title, problems, width))
    write([text], arguments.output)


SHOWN_NAMES = 20


def add_history_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--probe", help="show only this probe")
    parser.add_argument("--item", metavar="ID", help="show only this item, e.g. `jsd[race=Black]`")
    parser.add_argument(
        "--last", type=_positive, default=10, metavar="N", help="show only the last N runs of each item (default: 10)"
    )
    add_store_argument(parser)


def run_history(arguments: argparse.Namespace) -> None:
    """Show the values of earlier runs: one row for each item or, if only one item is shown, one row for each run."""
    from pytest_fairness.asking.store import Store
    from pytest_fairness.reports.command_output import history_table
    from pytest_fairness.reports.formatting import without_commands
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
    write([without_commands(history_table(points, arguments.last, shutil.get_terminal_size((120, 24)).columns))], None)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return number


def add_merge_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        nargs="+",
        type=store_argument,
        metavar="SOURCE",
        help="store of a job: its folder `.fairness`, a file, or the address of a PostgreSQL database",
    )
    add_store_argument(parser)


def run_merge(arguments: argparse.Namespace) -> None:
    """Copy the recorded responses of several stores into one store.

    If two stores have a response to the same request, the newer response is kept.
    """
    from pytest_fairness.asking.store import Store, copy_responses

    destination = store_of(arguments)
    sources = [existing_address(source) for source in arguments.sources]
    with Store(destination) as merged:
        for source in sources:
            if source == destination:
                raise FairnessError(f"{source}: a store cannot be copied into itself. Name only the other stores.")
            with Store(source) as store:
                copied, found = copy_responses(store, merged)
            print(f"{source}: copied {copied:,} of {counted(found, 'response')} into {destination}")


def existing_address(address: StoreAddress) -> StoreAddress:
    """Return the absolute address of a store; if the address is a folder, the path of the store's file in the folder.

    Raises:
        FairnessError: the file does not exist.
    """
    found = in_folder(Path.cwd(), address)
    if isinstance(found, Path) and found.is_dir():
        found /= DEFAULT_STORE.name
    if not found.exists():
        raise FairnessError(f"{found}: there is no store at this path. Give the path of a store's file or folder.")
    return found


DAY = 86_400.0


def add_store_arguments(parser: argparse.ArgumentParser) -> None:
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


def run_store(arguments: argparse.Namespace) -> None:
    """Show the number of responses of each target in a store.

    With --prune, --vacuum, --forget-batches or --copy-to, the command deletes old responses, shrinks the file, forgets
    batches, or copies the store instead.
    """
    from pytest_fairness.asking.store import Store, copy_history, copy_responses, sizes

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
            from pytest_fairness.asking.store import BatchTable

            batches, requests = BatchTable(store).delete_all()
            unanswered = counted(requests, "unanswered request")
            print(f"{address}: batches forgotten: {batches:,}; {unanswered} may be sent again")
        elif arguments.copy_to is not None:
            to = in_folder(Path.cwd(), arguments.copy_to)
            if to == address:
                raise FairnessError(f"{to}: a store cannot be copied into itself. Name another store with --copy-to.")
            with Store(to) as destination:
                copied, found = copy_responses(store, destination)
                runs = copy_history(store, destination)
            history = f"the history of {counted(runs, 'run')}"
            print(f"{address}: copied {copied:,} of {counted(found, 'response')}, and {history}, to {to}")
        else:
            write(_table(sizes(store)), None)


def _prune(store: Store, days: float, target: str | None) -> None:
    from pytest_fairness.asking.store import prune, sizes

    known = [size.target for size in sizes(store)]
    if target is not None and target not in known:
        shown = ", ".join(known) or "none"
        raise FairnessError(f"--target {target}: no response of this target is recorded. Recorded targets: {shown}.")
    deleted = prune(store, older_than=store.database.now() - days * DAY, target=target)
    print(f"{counted(deleted, 'response')} deleted. Shrink the file with `python -m pytest_fairness store --vacuum`.")


def _table(sizes: list[Size]) -> list[str]:
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
