"""Pace of Python's garbage collector while requests are in flight."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
