"""What is wrong with a probe file: where it stands, what it is, and the cure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

Location = tuple[str | int, ...]
"""Keys and indices from the top of the file to a value."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        location: the value that is at fault; a part that is not in the file leaves its parent.
        message: what is wrong, and the cure.
        at_key: whether the key is at fault, rather than the value.
        piece: the part of a text that is at fault, as it is written.
        occurrence: which one of such pieces in the text, from 0.
    """

    location: Location
    message: str
    at_key: bool = False
    piece: str | None = None
    occurrence: int = 0


def quoted(text: str) -> str:
    """The text in quotes, on one line, and cut where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def dotted(location: Location) -> str:
    """`axes.race.marked[0]`, the way a location is named in a message."""
    name = ""
    for part in location:
        if isinstance(part, int):
            name += f"[{part}]"
        else:
            part = part if len(part) <= 60 else part[:57] + "..."
            name += f".{part}" if name else part
    return name


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The one of the choices that was probably meant."""
    names = list(choices)
    # Nothing longer than any real name is a near miss, and it is slow to compare.
    if name in names or len(name) > 60:
        return name if name in names else None
    folded = {choice.casefold(): choice for choice in names}
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def suggestion(name: str, choices: Iterable[str]) -> str:
    """`: did you mean 'tolerance'?` for a near miss, the valid names otherwise, nothing where there are none."""
    names = list(choices)
    near = nearest(name, names)
    if near is not None:
        return f": did you mean {quoted(near)}?"
    return f": there are {', '.join(names)}" if names else ""
