"""Atomic replacement of files: a reader sees either the whole old content or the whole new content."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` as the whole content of a file; create its folder if needed.

    A file that already has this content is not written.

    The content is written to a temporary file in the same folder, synced to the disk, and renamed. If the path is a
    symbolic link, the file to which it points is replaced.

    Raises:
        OSError: the file cannot be written; its old content is kept.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.read_bytes() == data:
        return
    # Not `tempfile`, whose files only their owner can read.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
