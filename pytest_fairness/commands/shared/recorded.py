"""Common arguments and settings of the commands that read recorded answers: `export` and `sample`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.commands.shared.configuration import configured_store, configured_text, declared_scorers
from pytest_fairness.option_types import STORE, StoreAddress, in_folder
from pytest_fairness.options import DEFAULT_TARGET, RunSettings

if TYPE_CHECKING:
    from pytest_fairness.run import Run


def add_arguments(parser: argparse.ArgumentParser, source: str | None = None) -> None:
    """Add the arguments of commands that read recorded answers.

    Args:
        parser: the command's parser.
        source: help text of the first argument if the probe file is optional; `None` if the probe file is required.
    """
    parser.add_argument("probe", type=Path, nargs="?" if source else None, help=source or "probe file")
    parser.add_argument("--target", help="target of the answers (default: all targets)")
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="endpoint of an openai: target")
    parser.add_argument("--target-version", help="version of the target; see the ini option fairness_target_version")
    add_store_argument(parser)
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")


def add_store_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the store."""
    parser.add_argument(
        "--store",
        type=store_argument,
        help="store of recorded responses: a file, or the address of a PostgreSQL database (default: "
        "PYTEST_FAIRNESS_STORE, the ini option `fairness_store`, or .fairness/responses.sqlite)",
    )


def store_of(arguments: argparse.Namespace) -> StoreAddress:
    """Return the address of the store that `--store` names or, by default, that a run of pytest would use."""
    if arguments.store is None:
        return configured_store()
    return in_folder(Path.cwd(), arguments.store)


def replay_run(arguments: argparse.Namespace) -> Run:
    """Return a run that reads recorded answers and sends no requests."""
    from pytest_fairness.run import Run

    return Run(replay_settings(arguments))


def replay_settings(arguments: argparse.Namespace) -> RunSettings:
    """Return the settings of a run that reads recorded answers and sends no requests."""
    return RunSettings(
        root=Path.cwd(),
        store=store_of(arguments),
        target=arguments.target or DEFAULT_TARGET,
        base_url=arguments.base_url,
        target_version=arguments.target_version,
        judge=configured_text("fairness_judge"),
        judge_base_url=configured_text("fairness_judge_base_url"),
        scorers=declared_scorers(),
        replay=True,
    )


def store_argument(text: str) -> StoreAddress | None:
    """Return the address of a store, or raise the error that argparse prints."""
    try:
        address: StoreAddress | None = STORE.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return address
