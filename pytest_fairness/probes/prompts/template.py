"""Prompt templates: `{race}` is a placeholder, `{{` and `}}` stand for a literal brace; there is no other syntax.

`str.format` would let a probe file read attributes of objects; here values are inserted unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from pytest_fairness.probes.diagnostics import Diagnostic, Location, nearest, quoted, suggestion

MAX_DIAGNOSTICS = 50
"""Maximum number of different errors that are reported for one template."""

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LITERAL = "a literal brace is written {{ or }}"


def placeholders(template: str) -> list[str]:
    """Return the names of the placeholders, in the order of first occurrence."""
    names = (match[1] for match in _TOKEN.finditer(template))
    return list(dict.fromkeys(name for name in names if name is not None))


def spans(template: str) -> list[tuple[int, int]]:
    """Return the start and end index of each placeholder and literal brace in a template."""
    return [match.span() for match in _TOKEN.finditer(template)]


def intended(template: str, names: Collection[str]) -> set[str]:
    """Return the names of a template's placeholders; for a misspelt placeholder, also the most similar of `names`."""
    used = placeholders(template)
    misspelt = [name for name in used if name not in names][:MAX_DIAGNOSTICS]
    return {*used, *(near for name in misspelt if (near := nearest(name, names)) is not None)}


def diagnostics(template: str, names: Collection[str], location: Location = ()) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each single brace, invalid placeholder and unknown name in the template at `location`."""
    seen: set[str] = set()
    for match in _TOKEN.finditer(template):
        piece, name = match[0], match[1]
        if piece in ("{{", "}}") or name in names or piece in seen:
            continue
        if len(seen) == MAX_DIAGNOSTICS:
            return
        seen.add(piece)
        if name is None:
            message = f"a prompt contains a single {quoted(piece)}: {_LITERAL}"
        elif _NAME.fullmatch(name):
            cure = suggestion(name, names) or ": no axis is declared"
            message = f"unknown placeholder {quoted(piece)}{cure}"
        else:
            message = f"{quoted(piece)} is not a placeholder: only a name may stand between braces; {_LITERAL}"
        yield Diagnostic(location, message, piece=piece, occurrence=template.count(piece, 0, match.start()))


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with every placeholder replaced by its value; braces inside a value are kept.

    Raises:
        ValueError: the template is invalid, or a value is missing.
    """

    def replaced(match: re.Match[str]) -> str:
        piece, name = match[0], match[1]
        if piece in ("{{", "}}"):
            return piece[0]
        if name not in values:
            raise ValueError(f"{piece!r} in a prompt has no value")
        return values[name]

    return _TOKEN.sub(replaced, template)
