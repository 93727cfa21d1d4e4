"""SHA-256 of weight files; a file may have gigabytes, so the digest is cached until the file changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

import platformdirs

from pytest_fairness.atomic import replace_file
from pytest_fairness.errors import TargetError
from pytest_fairness.records import Json

CACHE_NAME = ".fairness-digests"
"""Name of the file with cached digests. It is beside the weights, or in the user's cache if their folder is
read-only."""
SETTLED = 2.0
"""A digest is cached only if the file's last change is at least this many seconds old: two changes in quick succession
may have the same time stamp."""


def digest(file: Path, target: str) -> str:
    """Return the digest of a weight file, as `sha256:…`.

    Args:
        target: the target's name, for messages.

    Raises:
        TargetError: the file cannot be read.
    """
    try:
        return f"sha256:{sha256(file)}"
    except OSError as error:
        raise TargetError(
            f"{target}: the file {file} cannot be read: {error.strerror}. Check its path (--fairness-target) and its "
            "permissions."
        ) from error


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hex digits, cached until its size, times or inode change.

    Raises:
        OSError: the file cannot be read.
    """
    file = file.absolute()
    places = (file.parent / CACHE_NAME, platformdirs.user_cache_path("pytest-fairness") / CACHE_NAME)
    state = _state(file.stat())
    for place in places:
        known = _cached_digests(place).get(str(file))
        if isinstance(known, dict) and known.get("state") == state and isinstance(known.get("sha256"), str):
            return str(known["sha256"])
    with file.open("rb") as content:
        state = _state(os.fstat(content.fileno()))
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        changed = os.fstat(content.fileno())
    if _state(changed) == state and time.time() - changed.st_mtime > SETTLED:
        for place in places:
            with contextlib.suppress(OSError):
                entry = {"state": state, "sha256": digest}
                replace_file(place, json.dumps({**_cached_digests(place), str(file): entry}, indent=1).encode())
                break
    return digest


def _state(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _cached_digests(place: Path) -> dict[str, Json]:
    """Return the digests in a cache file; an empty mapping if the file is missing or damaged."""
    try:
        content = json.loads(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
