"""JSON with placeholders, filled value by value: what is put in never becomes structure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from pytest_fairness.records import Json

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_ABSENT = object()


class JsonTemplate:
    """A JSON document whose strings may hold placeholders, `{name}`; `{{` and `}}` stand for braces.

    A string that is a placeholder and nothing else becomes the value itself, a number for a number. Where that value is
    `None`, the member that holds it is left out; in a list, the whole element that it is part of.

    Args:
        text: the document.
        known: names of placeholders that there are.

    Attributes:
        names: names of those that it holds.

    Raises:
        ValueError: it is no JSON, or holds a placeholder that there is not; the text says which.
    """

    def __init__(self, text: str, known: Collection[str]) -> None:
        try:
            self._document: Json = json.loads(text)
        except ValueError as error:
            raise ValueError(f"is no JSON ({error})") from error
        except RecursionError:
            raise ValueError("is nested too deeply") from None
        self.names = frozenset(_names(self._document))
        unknown = sorted(self.names - set(known))
        if unknown:
            there = ", ".join(f"{{{name}}}" for name in known)
            raise ValueError(f"has no placeholder {{{unknown[0]}}}; there are {there} ('{{{{' stands for a brace)")

    def filled(self, values: Mapping[str, Json]) -> Json:
        """The document with these values, plain JSON."""
        filled, _ = _filled(self._document, values)
        return None if filled is _ABSENT else filled


def _names(value: Json) -> list[str]:
    match value:
        case str():
            return [match[1] for match in _PLACEHOLDER.finditer(value) if match[1]]
        case dict():
            return [name for part in value.values() for name in _names(part)]
        case list():
            return [name for part in value for name in _names(part)]
        case _:
            return []


def _filled(value: Json, values: Mapping[str, Json]) -> tuple[Json, bool]:
    """The value, and whether it is whole: nothing of it was left out."""
    match value:
        case str():
            alone = re.fullmatch(r"\{(\w+)\}", value)
            if alone:
                found = values[alone[1]]
                return (_ABSENT, False) if found is None else (found, True)
            return _PLACEHOLDER.sub(lambda match: _text(match, values), value), True
        case dict():
            parts = {name: _filled(part, values) for name, part in value.items()}
            kept = {name: part for name, (part, _) in parts.items() if part is not _ABSENT}
            return kept, all(whole for _, whole in parts.values())
        case list():
            return [part for part, whole in (_filled(part, values) for part in value) if whole], True
        case _:
            return value, True


def _text(match: re.Match[str], values: Mapping[str, Json]) -> str:
    if match[1] is None:
        return match[0][0]
    found = values[match[1]]
    return "" if found is None else str(found)
