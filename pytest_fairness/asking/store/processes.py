"""Names of processes, and whether a named process has ended."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


def this_process() -> str:
    """Return the name of this process, `machine/process id`."""
    return f"{_machine()}/{os.getpid()}"


def is_gone(process: str) -> bool:
    """Return whether the process has certainly ended.

    The result is `False` if this is not known: for a process on another machine, and on Windows.
    """
    if process == this_process():
        return False
    machine, _, number = process.rpartition("/")
    if machine != _machine() or os.name == "nt":  # on Windows, `os.kill` with signal 0 ends the process
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return _is_zombie(int(number))


def _is_zombie(number: int) -> bool:
    """Return whether the process has ended, although its parent has not collected its exit status yet.

    The result is `False` on systems other than Linux, where this is not checked.
    """
    try:
        return Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


@cache
def _machine() -> str:
    """Return a name of the machine: its host name and, on Linux, its boot id and the namespace of process ids."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        space = boot = ""
    return f"{platform.node()}/{boot}/{space}"
