"""Files of weights, told apart without reading gigabytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytest_fairness.errors import TargetError

PART = 1 << 20


def fingerprint(file: Path, target: str) -> str:
    """Tells a file of weights from another of the same name: size, head (its description) and tail (its last weights).

    Args:
        file: the file.
        target: whose it is, for messages.

    Raises:
        TargetError: it cannot be read.
    """
    try:
        with file.open("rb") as content:
            size = content.seek(0, 2)
            content.seek(0)
            head = content.read(PART)
            content.seek(max(0, size - PART))
            digest = hashlib.sha256(head + content.read(PART)).hexdigest()
    except OSError as error:
        raise TargetError(f"{target}: the file {file} cannot be read: {error.strerror} (--fairness-target).") from error
    return f"size:{size} sha256 of ends:{digest}"
