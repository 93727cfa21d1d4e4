"""What other people's code and servers say, made fit for a message of one line."""

from __future__ import annotations


def one_line(value: object, length: int = 200) -> str:
    """The text of anything on one line, cut to `length` characters, without what a terminal would obey."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
