"""Conversion of texts to a single line, for use in messages."""

from __future__ import annotations

from pytest_fairness.records import Json


def identifier(value: Json) -> str | None:
    """Return a name in a server's response on one line of at most 100 characters; `None` if it is empty or no text."""
    return one_line(value, 100) or None if isinstance(value, str) else None


def one_line(value: object, length: int = 200) -> str:
    """Return the text of a value on one line, shortened to `length` characters, without control characters."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
