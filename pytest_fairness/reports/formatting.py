"""Formatting of numbers, and escaping of text from models, probes and servers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_WORKFLOW_COMMAND = re.compile(
    r"(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?:\s|\x1b\[[0-9;]*[A-Za-z])*:(?=:)", re.MULTILINE
)
"""Pattern of the first colon of a workflow command of GitHub Actions, with blanks and colour codes before it."""
_LOG_COMMAND = re.compile(r"##\w*(?=\[)")
"""Pattern of the start of a log command: `##[` (GitHub, Azure Pipelines), `##vso[` or `##teamcity[`."""
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\x1b(?!\[[0-9;]*[mK])"
)
"""Pattern of the control and direction characters, and of the line separators, that pytest itself does not write."""
JOINERS = "\u200c\u200d"  # Persian and Indic words and emoji need these harmless characters.
LARGE = 1e9
"""Absolute value from which large numbers are written with an exponent."""
ROUNDING = 1e-12
"""Maximum absolute value that counts as a rounding error of 0."""


def number(value: float | None) -> str:
    """Return the number with 3 significant digits, or from 1,000 up to 10⁹ as a whole number.

    The result is `-` for `None`, infinity and NaN.
    """
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) < ROUNDING:
        return "0"
    is_whole = abs(value) < LARGE and (value == int(value) or abs(value) >= 999.5)
    return f"{value:.0f}" if is_whole else f"{value:.3g}"


def signed(value: float | None) -> str:
    """Return the number with its sign, such as `+0.02`; 0 has no sign."""
    text = number(value)
    return text if text in ("0", "-") or text.startswith("-") else f"+{text}"


def with_interval(text: str, interval: Sequence[float | None] | None) -> str:
    """Return a formatted estimate, followed by its interval if there is one: `0.02 [0.01, 0.03]`."""
    return f"{text} [{number(interval[0])}, {number(interval[1])}]" if interval else text


def age(seconds: float) -> str:
    """Return an age in the largest unit that fits at least twice: `50 s`, `3 h`, `12 days`."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def printable(text: str) -> str:
    """Return the text as one line with single spaces, in which control characters are escaped."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    r"""Return the text with control and direction characters as codes (`\x1b`), which have no effect in a terminal."""
    # Most texts need no codes, and checking the whole text takes much less time than checking each character.
    return text if text.isprintable() else "".join(map(_escaped_character, text))


def without_commands(text: str) -> str:
    """Return the text with a space inside each command of CI services (`: :error`), so that no command is executed."""
    return _LOG_COMMAND.sub(r"\g<0> ", _WORKFLOW_COMMAND.sub(r"\g<0> ", text))


def without_controls(text: str) -> str:
    r"""Return a terminal's text, of which colours and line ends stay, with other control characters as in `escaped`."""
    return _CONTROLS.sub(lambda found: _escaped_character(found[0]), text)


def _escaped_character(character: str) -> str:
    if character.isprintable() or character in JOINERS:
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")
