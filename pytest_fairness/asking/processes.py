"""Telling whether a process that left its name somewhere is still there."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


def this_process() -> str:
    """A name of this process that means something on this machine: `machine/number`."""
    return f"{_machine()}/{os.getpid()}"


def is_gone(process: str) -> bool:
    """Whether the process has certainly ended; of processes of other machines nothing is known."""
    machine, _, number = process.rpartition("/")
    if machine != _machine() or os.name == "nt":  # on Windows, asking would end it
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return _is_zombie(int(number))


def _is_zombie(number: int) -> bool:
    """Whether it has ended, but whoever started it has not taken notice yet; known on Linux only."""
    try:
        return Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


@cache
def _machine() -> str:
    """The host and, where there are containers, the space in which process numbers count."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        space = boot = ""
    return f"{platform.node()}/{boot}/{space}"
