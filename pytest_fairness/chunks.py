"""Lists of a limited size, for data that is not processed all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def chunks_of(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of this size; the last list may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
