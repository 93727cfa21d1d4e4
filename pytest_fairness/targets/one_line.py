"""What other people's code and servers say, made fit for a message of one line."""

from __future__ import annotations

from pytest_fairness.records import Json


def identifier(value: Json) -> str | None:
    """Return what a server calls its model, fit for reports; `None` where it is no text."""
    return one_line(value, 100) or None if isinstance(value, str) else None


def one_line(value: object, length: int = 200) -> str:
    """The text of anything on one line, cut to `length` characters, without what a terminal would obey."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
