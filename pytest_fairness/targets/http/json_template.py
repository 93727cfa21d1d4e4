"""JSON documents with placeholders, which are replaced by values."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from pytest_fairness.records import Json

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_ABSENT = object()


class JsonTemplate:
    """JSON document whose strings may contain placeholders `{name}`; `{{` and `}}` stand for literal braces.

    A string that consists of one placeholder is replaced by the placeholder's value, such as a number. If this value is
    `None`, the string is left out. An object then loses the member with this string. A list loses the whole element in
    which the string occurs. A placeholder in a longer string is replaced by its value as text; `None` is an empty text.

    Args:
        text: the document.
        known: names of valid placeholders.

    Attributes:
        names: names of the placeholders in the document.

    Raises:
        ValueError: the text is not JSON, is nested too deeply, or contains an unknown placeholder. The message has no
            subject; the caller writes the name of the setting before it.
    """

    def __init__(self, text: str, known: Collection[str]) -> None:
        try:
            self._document: Json = json.loads(text)
        except ValueError as error:
            raise ValueError(f"is not JSON ({error})") from error
        except RecursionError:
            raise ValueError("is nested too deeply") from None
        self.names = frozenset(_placeholders_in(self._document))
        unknown = sorted(self.names - set(known))
        if unknown:
            valid = ", ".join(f"{{{name}}}" for name in known)
            raise ValueError(f"contains {{{unknown[0]}}}; valid placeholders are {valid} (write a brace as '{{{{')")

    def filled(self, values: Mapping[str, Json]) -> Json:
        """Return the document with its placeholders replaced by these values.

        The result is `None` if the document is one placeholder with the value `None`.
        """
        filled, _ = _filled(self._document, values)
        return None if filled is _ABSENT else filled


def _placeholders_in(value: Json) -> list[str]:
    match value:
        case str():
            return [match[1] for match in _PLACEHOLDER.finditer(value) if match[1]]
        case dict():
            return [name for part in value.values() for name in _placeholders_in(part)]
        case list():
            return [name for part in value for name in _placeholders_in(part)]
        case _:
            return []


def _filled(value: Json, values: Mapping[str, Json]) -> tuple[Json, bool]:
    """Return the value with its placeholders replaced, and whether it is complete.

    A string that consists of one placeholder with the value `None` is left out, and is incomplete. An object is
    incomplete if one of its members is incomplete. A list leaves out its incomplete elements, and is itself complete.
    All other values are complete.
    """
    match value:
        case str():
            alone = re.fullmatch(r"\{(\w+)\}", value)
            if alone:
                replacement = values[alone[1]]
                return (_ABSENT, False) if replacement is None else (replacement, True)
            return _PLACEHOLDER.sub(lambda match: _replacement(match, values), value), True
        case dict():
            parts = {name: _filled(part, values) for name, part in value.items()}
            kept = {name: part for name, (part, _) in parts.items() if part is not _ABSENT}
            return kept, all(complete for _, complete in parts.values())
        case list():
            return [part for part, complete in (_filled(part, values) for part in value) if complete], True
        case _:
            return value, True


def _replacement(match: re.Match[str], values: Mapping[str, Json]) -> str:
    if match[1] is None:
        return match[0][0]
    replacement = values[match[1]]
    return "" if replacement is None else str(replacement)
