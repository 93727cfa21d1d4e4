"""Lines of long downloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pytest_fairness.targets.http_client import bounded_lines


def lines(pieces: list[bytes], limit: int) -> list[bytes]:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def read() -> list[bytes]:
        return [line async for line in bounded_lines(body(), limit)]

    return asyncio.run(read())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_of_any_pieces(size: int) -> None:
    body = b"one\n\ntoo long a line\nthree\nfour"
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert lines(pieces, 5) == [b"one", b"", b"three", b"four"]
    assert lines(pieces, 100) == body.split(b"\n")


def test_a_line_without_end() -> None:
    assert lines([b"x" * 10] * 1_000, 5) == []
    assert lines([b"\n"], 5) == [b""]
    assert lines([], 5) == []
