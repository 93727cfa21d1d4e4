"""Cache of the last results of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Recent(Generic[KeyT, ValueT]):
    """Cache of a function's last results. Several items of a probe need the result for the same object.

    Arguments are compared by identity (`is`). They need not be hashable, but must not change. The cache keeps a
    reference to each argument, so that no other object gets its `id`.

    Args:
        function: function of one argument.
        most: maximum number of cached results; a full cache is emptied before the next result is added.
    """

    def __init__(self, function: Callable[[KeyT], ValueT], most: int) -> None:
        self._function, self._most = function, most
        self._entries: dict[int, tuple[KeyT, ValueT]] = {}

    def __call__(self, key: KeyT) -> ValueT:
        """Return the function's result for an object."""
        entry = self._entries.get(id(key))
        if entry is None:
            if len(self._entries) >= self._most:
                self._entries.clear()
            entry = self._entries[id(key)] = key, self._function(key)
        return entry[1]

    def clear(self) -> None:
        """Free the cached results."""
        self._entries.clear()
