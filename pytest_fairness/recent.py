"""Results that are kept for the objects of the last few calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Recent(Generic[KeyT, ValueT]):
    """Function that keeps its results for the objects to which it was applied last.

    The items of a probe share their prompts and answers, which are the same objects for each of them. Objects are told
    apart by identity, so that they need no hash, and are kept with their results, so that no other object gets the same
    identity. They must not change.

    Args:
        function: the function.
        most: maximum number of kept results; when it is reached, all of them are freed.
    """

    def __init__(self, function: Callable[[KeyT], ValueT], most: int) -> None:
        self._function, self._most = function, most
        self._kept: dict[int, tuple[KeyT, ValueT]] = {}

    def __call__(self, key: KeyT) -> ValueT:
        """Return the function's result for an object."""
        kept = self._kept.get(id(key))
        if kept is None:
            if len(self._kept) >= self._most:
                self._kept.clear()
            kept = self._kept[id(key)] = key, self._function(key)
        return kept[1]

    def clear(self) -> None:
        """Free the kept results."""
        self._kept.clear()
