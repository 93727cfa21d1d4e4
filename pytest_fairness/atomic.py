"""Atomic replacement of files: a reader sees either the whole old content or the whole new content."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

ATTEMPTS = 20
"""Number of attempts to replace a file on Windows."""


def replace_file(path: Path, data: bytes) -> None:
    """Replace the whole content of a file by `data`; create the file and its folder if needed.

    A file that already has this content is not written. If the path is a symbolic link, the file to which it points is
    replaced.

    Raises:
        OSError: the file cannot be written; its old content is kept.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.read_bytes() == data:
        return
    # A file that `tempfile` creates could be read only by its owner.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _replace(temporary: Path, path: Path) -> None:
    """Give a file its final name; on Windows, wait for up to a second while another program has the old file open."""
    for _ in range(ATTEMPTS - 1 if os.name == "nt" else 0):
        with suppress(PermissionError):
            temporary.replace(path)
            return
        time.sleep(1 / ATTEMPTS)
    temporary.replace(path)
