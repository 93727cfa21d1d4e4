"""Singular and plural of nouns after a number."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 request`, `1,200 requests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
