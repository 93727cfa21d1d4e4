"""Output of commands to files or to standard output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from pytest_fairness.errors import FairnessError


def write(parts: Iterable[str], output: Path | None) -> None:
    """Write texts to the file `output`, or to standard output if `output` is `None`.

    Raises:
        FairnessError: the file cannot be written.
    """
    try:
        with nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as file:
            file.writelines(parts)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise FairnessError(f"{output}: cannot be written ({error.strerror}). Name another file.") from error


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the files of the tables of measurements and words."""
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
