"""Commands of `python -m pytest_fairness`: arguments, settings and output that several commands share."""

from __future__ import annotations

import argparse
import configparser
import os
import sys
import tomllib
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FairnessError
from pytest_fairness.option_types import SCORERS, STORE, StoreAddress, in_folder
from pytest_fairness.options import DEFAULT_STORE, DEFAULT_TARGET, RunSettings

if TYPE_CHECKING:
    from pytest_fairness.run import Run


# Settings of pytest's configuration file, for commands that run without pytest.

STORE_VARIABLE = "PYTEST_FAIRNESS_STORE"

CONFIGURATIONS = {
    "pytest.toml": "[pytest]",
    ".pytest.toml": "[pytest]",
    "pytest.ini": "[pytest]",
    ".pytest.ini": "[pytest]",
    "pyproject.toml": "[tool.pytest.ini_options]",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
"""Pytest's configuration files in the order in which pytest looks for them, each with the heading of its settings."""


def configured_baselines() -> Path:
    """Return the folder of baselines that a run of pytest in the working directory would use."""
    root, settings = _configuration()
    return root / (str(settings.get("fairness_baselines", "")).strip() or RunSettings(root).baselines)


def configured_store() -> StoreAddress:
    """Return the address of the store that a run of pytest in the working directory would use.

    Raises:
        FairnessError: the environment variable or the ini option holds no valid address.
    """
    root, settings = _configuration()
    for name, written in (
        (STORE_VARIABLE, os.environ.get(STORE_VARIABLE, "")),
        ("fairness_store", str(settings.get("fairness_store", ""))),
    ):
        try:
            address = STORE.parse(written)
        except ValueError as error:
            raise FairnessError(f"{name} {error}") from error
        if address is not None:
            return in_folder(root, address)
    return root / DEFAULT_STORE


def configured_scorers() -> dict[str, str]:
    """Return the scorers that a run of pytest in the working directory would know; see `known_scorers`.

    Raises:
        FairnessError: the ini option is invalid, or two scorers have the same name.
    """
    # Imported here, because few commands score answers.
    from pytest_fairness.scorers import known_scorers

    return known_scorers(dict(declared_scorers()))


def declared_scorers() -> tuple[tuple[str, str], ...]:
    """Return the scorers in the ini file, each with its definition.

    Raises:
        FairnessError: the ini option is invalid, or names a scorer twice.
    """
    _, settings = _configuration()
    written = settings.get("fairness_scorers", ())
    try:
        return tuple(SCORERS.parse(written.splitlines() if isinstance(written, str) else written))
    except ValueError as error:
        raise FairnessError(f"fairness_scorers {error}") from error


def configured_text(name: str) -> str | None:
    """Return the text of the ini option with this name; `None` if it is absent or empty."""
    return str(_configuration()[1].get(name, "")).strip() or None


def project_root() -> Path:
    """Return the folder of pytest's configuration file; without a file, the working directory."""
    return _configuration()[0]


def _configuration() -> tuple[Path, dict[str, Any]]:
    here = Path.cwd()
    for folder in (here, *here.parents):
        for file in CONFIGURATIONS:
            settings = _settings(folder / file)
            if settings is not None:
                return folder, settings
    return here, {}


def _settings(path: Path) -> dict[str, Any] | None:
    own = path.name.lstrip(".").startswith("pytest.")  # pytest uses such a file even without the heading
    try:
        text = path.read_text("utf-8", "replace")
        if path.suffix == ".toml":
            tables = tomllib.loads(text)
            if own:
                return dict(tables.get("pytest", {}))
            table = tables.get("tool", {}).get("pytest")
            return None if table is None else {**table, **table.get("ini_options", {})}
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(text)
    except (OSError, ValueError, configparser.Error):
        return None
    section = CONFIGURATIONS[path.name].strip("[]")
    return dict(parser[section]) if section in parser else {} if own else None


# Arguments and settings of commands that read recorded answers, such as `export`.


def add_recorded_arguments(parser: argparse.ArgumentParser, source: str | None = None) -> None:
    """Add the arguments of commands that read recorded answers.

    `source` is the help text of the first argument if the probe file is optional.
    """
    parser.add_argument("probe", type=Path, nargs="?" if source else None, help=source or "probe file")
    parser.add_argument("--target", help="target of the answers (default: all targets)")
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="endpoint of an openai: target")
    parser.add_argument("--target-version", help="version of the target; see the ini option fairness_target_version")
    add_store_argument(parser)
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")


def add_store_argument(parser: argparse.ArgumentParser) -> None:
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
    from pytest_fairness.run import Run

    return Run(replay_settings(arguments))


def replay_settings(arguments: argparse.Namespace) -> RunSettings:
    return RunSettings(
        root=Path.cwd(),
        store=store_of(arguments),
        target=arguments.target or DEFAULT_TARGET,
        base_url=arguments.base_url,
        target_version=arguments.target_version,
        judge=configured_text("fairness_judge"),
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


# Output of commands to files or to standard output.


def write(parts: Iterable[str], output: Path | None) -> None:
    """Write texts to a file or, by default, to standard output; raise `FairnessError` if it cannot be written."""
    try:
        with nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as file:
            file.writelines(parts)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise FairnessError(f"{output}: cannot be written ({error.strerror}). Name another file.") from error


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--measurements",
        type=Path,
        metavar="FILE",
        help="write to FILE a table with one row for each item; FILE ends in .csv, .parquet or .tex",
    )
    parser.add_argument(
        "--words",
        type=Path,
        metavar="FILE",
        help="write to FILE a table with one row for each word of each item that compares texts; FILE ends in .csv, "
        ".parquet or .tex",
    )
