"""Prompt templates: `{race}` stands for a value, `{{` and `}}` for a brace; there is no other syntax.

`str.format` would let a probe file read attributes of objects; here each value is inserted once, as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from pytest_fairness.probes.diagnostics import Diagnostic, nearest, quoted, suggestion

MAX_DIAGNOSTICS = 50
"""Most different errors that are reported of one template."""

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LITERAL = "a literal brace is written {{ or }}"


def placeholders(template: str) -> list[str]:
    """Return the names of the placeholders, in their order and without repeats."""
    names = (match[1] for match in _TOKEN.finditer(template))
    return list(dict.fromkeys(name for name in names if name is not None))


def spans(template: str) -> list[tuple[int, int]]:
    """Return start and end of each placeholder and brace; the rest of the template is text."""
    return [match.span() for match in _TOKEN.finditer(template)]


def intended(template: str, names: Collection[str]) -> set[str]:
    """Return the names that a template uses; a misspelt placeholder counts as the name that it is similar to."""
    used = placeholders(template)
    misspelt = [name for name in used if name not in names][:MAX_DIAGNOSTICS]
    return {*used, *(near for name in misspelt if (near := nearest(name, names)) is not None)}


def diagnostics(template: str, names: Collection[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each different piece that is neither text nor a placeholder of one of the names."""
    seen: set[str] = set()
    for match in _TOKEN.finditer(template):
        piece, name = match[0], match[1]
        if piece in ("{{", "}}") or name in names or piece in seen:
            continue
        if len(seen) == MAX_DIAGNOSTICS:
            return
        seen.add(piece)
        if name is None:
            message = f"a single {quoted(piece)} in a prompt: {_LITERAL}"
        elif _NAME.fullmatch(name):
            cure = suggestion(name, names) or ": no axis is declared"
            message = f"unknown placeholder {quoted(piece)}{cure}"
        else:
            message = f"{quoted(piece)} is no placeholder: only a bare name stands between braces; {_LITERAL}"
        yield Diagnostic((), message, piece=piece, occurrence=template.count(piece, 0, match.start()))


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the text with every placeholder replaced; braces inside a value are kept as they are.

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


def literal(text: str) -> str:
    """Return a template whose filled text is exactly this text."""
    return text.replace("{", "{{").replace("}", "}}")
