"""Output of commands to a file or to standard output."""

from __future__ import annotations

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
        raise FairnessError(f"{output}: cannot be written ({error.strerror}).") from error
