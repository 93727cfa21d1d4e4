"""Replacing a file as a whole: a reader sees the old content or the new, never a part, however the writer ends."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` where `path` points, making its folder if need be; a file that already holds `data` is left alone.

    The new content is written beside the file, forced to the disk and then moved over it. A link is written through.

    Raises:
        OSError: the file cannot be written; the old content, if any, is still there.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.read_bytes() == data:
        return
    # Not `tempfile`: its files are private to their owner, and would make the report or baseline so.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
