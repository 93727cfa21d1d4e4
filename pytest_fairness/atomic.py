"""Atomic replacement of files: readers see the old content or the new one, never a part of it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Replace the content of a file by `data`, and create its folder; a file with this content is not touched.

    The new content is written to a file beside it, synced to the disk and renamed. A link is followed.

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
