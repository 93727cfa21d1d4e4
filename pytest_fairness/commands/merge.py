"""Command `merge`: copies the stores of several jobs into one store."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_fairness.commands.shared.recorded import add_store_argument, store_argument, store_of
from pytest_fairness.errors import FairnessError
from pytest_fairness.option_types import StoreAddress, in_folder
from pytest_fairness.options import DEFAULT_STORE
from pytest_fairness.plurals import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "sources",
        nargs="+",
        type=store_argument,
        metavar="SOURCE",
        help="store of a job: its folder `.fairness`, a file, or the address of a PostgreSQL database",
    )
    add_store_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Copy the recorded responses of several stores into one store.

    If two stores have a response to the same request, the newer response is kept.
    """
    from pytest_fairness.asking.store.maintenance import copy_responses
    from pytest_fairness.asking.store.store import Store

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
