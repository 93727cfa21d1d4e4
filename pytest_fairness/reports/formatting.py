"""Text for a terminal: numbers, widths, and other people's words made harmless."""

from __future__ import annotations

import math
import re

_LEADING = re.compile(r"(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?:\s|\x1b\[[0-9;]*[A-Za-z])*:(?=:)", re.MULTILINE)
"""GitHub's command at the start of a line, after blanks and colours."""
_MARKED = re.compile(r"##\w*(?=\[)")
"""`##[` of GitHub and Azure Pipelines, `##vso[`, `##teamcity[`."""
JOINERS = "\u200c\u200d"  # wanted in Persian and Indic words and in emoji, and harmless


ROUNDING = 1e-12
"""What sums of fractions leave where nothing is."""


def number(value: float | None) -> str:
    """A number at 3 significant digits, whole numbers whole; `-` where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) < ROUNDING:
        return "0"
    return f"{value:.0f}" if value == int(value) or abs(value) >= 999.5 else f"{value:.3g}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 request`, `1,200 requests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def age(seconds: float) -> str:
    """Return how old something is, in the largest unit of which there are at least two: `50 s`, `3 h`, `12 days`."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def printable(text: str) -> str:
    """Text on one line, its white space single spaces, that no terminal takes for a command."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    r"""Text with control and direction characters shown (`\x1b`), so that they are not sent to a terminal."""
    return "".join(_shown(character) for character in text)


def without_commands(text: str) -> str:
    """Return the text with a space inside whatever the runner of a CI service would obey: `: :error`, `## [error]`."""
    return _MARKED.sub(r"\g<0> ", _LEADING.sub(r"\g<0> ", text))


def _shown(character: str) -> str:
    if character.isprintable() or character in JOINERS:
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")
