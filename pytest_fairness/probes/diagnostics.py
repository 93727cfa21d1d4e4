"""Diagnostics: errors of a probe file, each with its position in the file's tree of values, and a remedy."""

from __future__ import annotations

import bisect
import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from pytest_fairness.errors import ProbeError, counted
from pytest_fairness.records import Json

# Diagnostics: errors of a probe file, each with its location and a remedy.

Location = tuple[str | int, ...]
"""Keys and indices from the top of the file to a value."""

DIAGNOSTIC = "diagnostic"
"""Type of a pydantic error that holds a diagnostic in its context."""


MAX_LINES = 20
"""Maximum number of errors of a data file that are listed."""
MAX_FILES = 1000
"""Maximum number of files of a folder among which a similar name is looked for."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error of a probe file.

    Attributes:
        occurrence: number of the occurrence of `piece` in the text, from 0.
    """

    location: Location
    message: str
    at_key: bool = False
    piece: str | None = None
    occurrence: int = 0

    def below(self, *parent: str | int) -> Diagnostic:
        """Return the diagnostic with the location of an enclosing value, `parent`, prepended to its own location."""
        return replace(self, location=(*parent, *self.location))


@dataclass(frozen=True, slots=True)
class Part:
    """A value of a probe file, or of a row of a data file, with its location.

    Checks of several keys together read parts before pydantic validates them, so that one error does not hide the
    others: a part that is missing, or has another type than a check expects, is empty.
    """

    value: Json
    location: Location = ()

    def __getitem__(self, key: str) -> Part:
        return Part(self.value.get(key) if isinstance(self.value, Mapping) else None, (*self.location, key))

    def __contains__(self, key: object) -> bool:
        return isinstance(self.value, Mapping) and key in self.value

    def __iter__(self) -> Iterator[Part]:
        """Yield the values of a mapping or list."""
        if isinstance(self.value, Mapping):
            yield from (self[key] for key in self.value)
        elif isinstance(self.value, list | tuple):
            yield from (Part(value, (*self.location, place)) for place, value in enumerate(self.value))

    @property
    def name(self) -> str:
        return str(self.location[-1])

    @property
    def names(self) -> list[str]:
        return list(self.value) if isinstance(self.value, Mapping) else []

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str)

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else ""

    @property
    def texts(self) -> list[Part]:
        """The part itself if it is a text, and the texts of a list."""
        return [part for part in ([self] if self.is_text else self) if part.is_text]

    @property
    def mappings(self) -> list[Part]:
        return [part for part in self if isinstance(part.value, Mapping)]

    @property
    def quoted(self) -> str:
        return quoted(self.text)

    def fault(self, message: str, piece: str | None = None) -> Diagnostic:
        return Diagnostic(self.location, message, piece=piece)

    def key_fault(self, message: str) -> Diagnostic:
        """Return a diagnostic whose position is the key of the value."""
        return Diagnostic(self.location, message, at_key=True)


def raise_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    if listed := [*diagnostics]:
        raise diagnostics_error(listed)


def diagnostics_error(diagnostics: Iterable[Diagnostic]) -> ValidationError:
    """Return a pydantic error with these diagnostics, whose locations are relative to the value that is validated."""
    errors = [
        InitErrorDetails(
            type=PydanticCustomError(
                DIAGNOSTIC, "{message}", {"message": diagnostic.message, "diagnostic": diagnostic}
            ),
            loc=diagnostic.location,
            input=None,
        )
        for diagnostic in diagnostics
    ]
    return ValidationError.from_exception_data("probe", errors)


@contextmanager
def errors_at(*location: str | int) -> Iterator[None]:
    """Convert a `ProbeError` about a data file into diagnostics at a location, one for each line of its message."""
    try:
        yield
    except ProbeError as error:
        raise_diagnostics(Diagnostic(location, line) for line in str(error).split("\n"))


def raise_file_errors(errors: Sequence[str], name: str) -> None:
    """Raise `ProbeError` with the errors of a data file, if there are any; at most `MAX_LINES` errors are listed."""
    more = [f"{name}: {counted(len(errors) - MAX_LINES, 'more line')} with errors"] if len(errors) > MAX_LINES else []
    if errors:
        raise ProbeError("\n".join([*errors[:MAX_LINES], *more]))


def quoted(text: str) -> str:
    """Return the text in quotes, on one line, cut to 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def dotted(location: Location) -> str:
    """Return a location in the notation of messages: `axes.race.marked[0]`."""
    name = ""
    for part in location:
        if isinstance(part, int):
            name += f"[{part}]"
        else:
            part = part if len(part) <= 60 else part[:57] + "..."
            name += f".{part}" if name else part
    return name


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to a name; `None` if no choice is similar."""
    names = list(choices)
    # Text that is longer than any real name is no misspelt name, and difflib's time grows with its square.
    if name in names or len(name) > 60:
        return name if name in names else None
    folded = {choice.casefold(): choice for choice in names}
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def similar_file(path: Path) -> str:
    """Return the end of a message about a missing file: `: did you mean 'letters.yaml'?`.

    The text is empty if the file exists, or no file in its folder has a similar name.
    """
    try:
        names = [file.name for file in itertools.islice(path.parent.iterdir(), MAX_FILES)]
    except OSError:
        return ""
    near = None if path.name in names else nearest(path.name, names)
    return f": did you mean {quoted(near)}?" if near else ""


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return the end of a message about an invalid name: `: did you mean 'tolerance'?`, or ` (valid: limit, gate)`.

    The second form is for a name that resembles no valid name. Without valid names, the text is empty.
    """
    names = list(choices)
    near = nearest(name, names)
    if near is not None:
        return f": did you mean {quoted(near)}?"
    return f" (valid: {', '.join(names)})" if names else ""


# Probe file as a tree of values with their positions.


@dataclass(slots=True)
class Node:
    """One value of a probe file.

    Attributes:
        value: value of a scalar, a list of nodes, or a mapping from keys to nodes.
        written: the source text of an unquoted scalar; `None` for a quoted scalar, a list or a mapping.
        size: approximate number of characters of the value in the file, with each YAML alias replaced by its value.
    """

    value: Any
    start: int
    end: int
    keys: dict[str, int] = field(default_factory=dict)
    written: str | None = None
    size: int = 1

    def plain(self) -> Json:
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


@dataclass(slots=True)
class Document:
    """Text of a probe file, its tree, and the YAML errors."""

    text: str
    root: Node
    errors: list[tuple[int, str]]
    """Errors of the YAML text: character index and message."""

    def find(self, location: Location) -> tuple[Node, Location, bool]:
        """Return the innermost node on the path to a location, its location, and whether no part was skipped.

        Parts that do not exist in the file are skipped: missing keys, and the names by which pydantic distinguishes the
        alternatives of a union type.
        """
        node, found = self.root, []
        for part in location:
            inside = part in node.value if isinstance(node.value, dict) else False
            if isinstance(node.value, list) and isinstance(part, int):
                inside = part < len(node.value)
            if inside:
                node = node.value[part]
                found.append(part)
        return node, tuple(found), len(found) == len(location)

    def index(self, diagnostic: Diagnostic) -> int:
        """Return the index of the invalid key, of the invalid part of a text (`Diagnostic.piece`), or of the value."""
        if diagnostic.at_key and diagnostic.location:
            parent, _, _ = self.find(diagnostic.location[:-1])
            key = parent.keys.get(str(diagnostic.location[-1]))
            if key is not None:
                return key
        node, _, _ = self.find(diagnostic.location)
        inside = node.start
        for _ in range(diagnostic.occurrence + 1) if diagnostic.piece else ():
            inside = self.text.find(diagnostic.piece or "", inside + 1, node.end)
        return inside if inside >= 0 else node.start


class Lines:
    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    def position(self, index: int) -> tuple[int, int]:
        """Return the line and column of a character index; both start at 1."""
        line = bisect.bisect_right(self._starts, max(index, 0)) - 1
        return line + 1, max(index, 0) - self._starts[line] + 1


def not_text(what: str, node: Node) -> str:
    """Return the error message for a value that must be text; the message shows a number or boolean in quotes."""
    written = node.written or ""
    if node.value is None:
        return f"{what} must be text, but nothing is written"
    if isinstance(node.value, bool):
        return f'{what} must be text, but {written} without quotes is a boolean: write "{written}"'
    if isinstance(node.value, int | float):
        return f'{what} must be text, but {written} is a number: write "{written}"'
    if isinstance(node.value, list):
        return f"{what} must be text, not a list"
    (name, *others) = [*node.value] or [""]
    is_placeholder = name and not others and node.value[name].value is None
    cure = f': put the placeholder in quotes, "{{{name}}}"' if is_placeholder else ""
    return f"{what} must be text, not a mapping{cure}"
