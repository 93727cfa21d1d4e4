"""Numbers with their nouns, and lists that are cut after some names, in messages and reports."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 request`, `1,200 requests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def significant(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, but with all digits before the point: `8070`, `0.0123`."""
    return f"{value:.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"


def joined(names: Sequence[str], most: int = 8) -> str:
    """Return the first `most` names and the number of the others as a phrase: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
