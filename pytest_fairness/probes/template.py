"""Prompts with placeholders: `{race}` stands for a value, `{{` and `}}` for a brace, and nothing else is understood.

Python's own formatting would let a probe file reach into objects; here a value is put in as it is, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_fairness.probes.loading.diagnostics import quoted, suggestion

MAX_FAULTS = 50
"""Most different faults that are named in one prompt."""

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LITERAL = "a brace that is meant as such is written {{ or }}"


@dataclass(frozen=True, slots=True)
class TemplateFault:
    """What is wrong in a template: the piece as it is written, which one of its like (from 0), and the message."""

    piece: str
    occurrence: int
    message: str


def placeholders(template: str) -> list[str]:
    """The names between single braces, in order, each once."""
    names = (match[1] for match in _TOKEN.finditer(template))
    return list(dict.fromkeys(name for name in names if name is not None))


def spans(template: str) -> list[tuple[int, int]]:
    """Where placeholders and braces stand, as pairs of start and end; everything else is text."""
    return [match.span() for match in _TOKEN.finditer(template)]


def faults(template: str, names: Iterable[str]) -> Iterator[TemplateFault]:
    """What in a template is neither text nor one of the names between braces; the first fifty different pieces."""
    known = list(names)
    seen: set[str] = set()
    for match in _TOKEN.finditer(template):
        piece, name = match[0], match[1]
        if piece in ("{{", "}}") or name in known or piece in seen:
            continue
        if len(seen) == MAX_FAULTS:
            return
        seen.add(piece)
        if name is None:
            message = f"a single {quoted(piece)} in a prompt: {_LITERAL}"
        elif _NAME.fullmatch(name):
            cure = suggestion(name, known) or ": no axis is declared"
            message = f"unknown placeholder {quoted(piece)}{cure}"
        else:
            message = f"{quoted(piece)} is no placeholder: only a bare name stands between braces; {_LITERAL}"
        yield TemplateFault(piece, template.count(piece, 0, match.start()), message)


def fill(template: str, values: Mapping[str, str]) -> str:
    """The text with every placeholder replaced; a value is not read again, whatever it holds.

    Raises:
        ValueError: the template has faults.
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
    """A template that fills to exactly this text."""
    return text.replace("{", "{{").replace("}", "}}")
