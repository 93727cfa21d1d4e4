"""Diagnostics: errors of a probe file, each with its location and a remedy."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from pytest_fairness.errors import ProbeError
from pytest_fairness.plurals import counted

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
        location: location of the invalid value, or the location at which a missing value should be.
        message: description of the error and its remedy.
        at_key: whether the key is invalid, rather than the value.
        piece: the invalid part of a text, as written in the file.
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


def raise_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise a pydantic error with these diagnostics, if there are any; see `diagnostics_error`."""
    if listed := [*diagnostics]:
        raise diagnostics_error(listed)


def diagnostics_error(diagnostics: Iterable[Diagnostic]) -> ValidationError:
    """Return a pydantic error with these diagnostics.

    The locations of the diagnostics are relative to the value that pydantic validates.
    """
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
    """Convert a `ProbeError` about a data file into diagnostics, one for each line of its message.

    Args:
        *location: location of the diagnostics, relative to the value that pydantic validates; by default, this value.
    """
    try:
        yield
    except ProbeError as error:
        raise_diagnostics(Diagnostic(location, line) for line in str(error).split("\n"))


def raise_file_errors(errors: Sequence[str], name: str) -> None:
    """Raise `ProbeError` with the errors of a data file, if there are any; at most `MAX_LINES` errors are listed.

    Args:
        errors: the errors, each as `file:line: message`.
        name: name of the file for messages.
    """
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
