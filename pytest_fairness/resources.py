"""Resources of a process: files that are replaced atomically, objects that must be closed, caches, garbage."""

from __future__ import annotations

import gc
import os
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

# Atomic replacement of files: a reader sees either the whole old content or the whole new content.

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


# Base class of objects that are closed at the end of a `with` block.


class Closing(ABC):
    """Object with resources that are released at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Release the resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


# Cache of the last results of a function.

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Recent(Generic[KeyT, ValueT]):
    """Cache of a function's last results, because several items of a probe need the result for the same object.

    Arguments are compared by identity (`is`). They need not be hashable, but must not change. The cache keeps a
    reference to each argument, so that no other object gets its `id`. A cache of `most` results is emptied before the
    next one is added.
    """

    def __init__(self, function: Callable[[KeyT], ValueT], most: int) -> None:
        self._function, self._most = function, most
        self._entries: dict[int, tuple[KeyT, ValueT]] = {}

    def __call__(self, key: KeyT) -> ValueT:
        entry = self._entries.get(id(key))
        if entry is None:
            if len(self._entries) >= self._most:
                self._entries.clear()
            entry = self._entries[id(key)] = key, self._function(key)
        return entry[1]

    def clear(self) -> None:
        self._entries.clear()


# Pace of Python's garbage collector while requests are in flight.

THRESHOLD = 300_000
"""Number of new objects after which Python searches for garbage. With Python's default of 700, searching through the
objects of 1,000 requests in flight takes a quarter of the processor time."""

_lock = threading.Lock()
_thresholds_before: list[tuple[int, int, int]] = []
"""For each engine that sends requests, the thresholds when it started."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Make Python search for garbage rarely in the `with` block; several threads may be in such blocks at once."""
    with _lock:
        _thresholds_before.append(gc.get_threshold())
        first, *others = _thresholds_before[0]
        if first:  # 0 means that the user has turned collections off
            gc.set_threshold(max(first, THRESHOLD), *others)
    try:
        yield
    finally:
        with _lock:
            first, *others = _thresholds_before.pop()
            if not _thresholds_before:
                gc.set_threshold(first, *others)
