"""SHA-256 of whole files of weights, which may be gigabytes: computed once for each state of a file and kept."""

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

KEPT_IN = ".fairness-digests"
"""Name of the file that keeps digests: beside the weights, or in the user's cache folder if that is read-only."""
SETTLED = 2.0
"""Seconds since its last change after which a file's state tells it from any later one; clocks of files are coarse."""


def fingerprint(file: Path, target: str) -> str:
    """Return what tells a file of weights from every other one, as `sha256:…`.

    Args:
        file: the file.
        target: whose it is, for messages.

    Raises:
        TargetError: it cannot be read.
    """
    try:
        return f"sha256:{sha256(file)}"
    except OSError as error:
        raise TargetError(f"{target}: the file {file} cannot be read: {error.strerror} (--fairness-target).") from error


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file, in hex digits; computed where its size, times and inode are not those of last time.

    Raises:
        OSError: it cannot be read.
    """
    file = file.absolute()
    places = (file.parent / KEPT_IN, platformdirs.user_cache_path("pytest-fairness") / KEPT_IN)
    state = _state(file.stat())
    for place in places:
        known = _known(place).get(str(file))
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
                replace_file(place, json.dumps({**_known(place), str(file): entry}, indent=1).encode())
                break
    return digest


def _state(found: os.stat_result) -> list[int]:
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _known(place: Path) -> dict[str, Json]:
    """Return what is kept in a file; nothing where it is missing or not ours."""
    try:
        content = json.loads(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
