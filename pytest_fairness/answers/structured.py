"""Structured answers: JSON in texts, calls of tools, and the part of an answer that a probe measures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pytest_fairness.records import CALLED, NOT_CALLED, Json, Response, Selection, calls_in, requests

# Selection of the measured part of a structured answer: the call of a tool, its argument, or a value in JSON.


class Selected(NamedTuple):
    """Selected part of an answer as text; `None`, with a reason, if the answer does not contain it."""

    text: str | None
    unread: str = ""


def select(response: Response, selection: Selection) -> Selected:
    """Return the selected part of an answer.

    - Without a tool, the part is the value at the path in the last JSON of the answer that has the path. All JSON with
      the path must give the same value.
    - With a tool and a path, the part is the value at the path in the tool's arguments. All calls of the tool must
      give the same value.
    - With a tool and no path, the part is `CALLED` or `NOT_CALLED`. An answer that does not call the tool and is cut
      off or empty gives `None`.

    A path must match exactly one value; for formats other than `json` and `list`, this value must not be an object or a
    list. A call of the tool with malformed arguments has no part, because such a call cannot be carried out.
    """
    if selection.tool is None:
        found = find_all_json(response.text)
        parts = [part for part in (_value_at_path(value, selection) for value in found) if part is not None]
        if len({*map(_comparison_form, parts)}) > 1:
            return Selected(None, f"JSON with different values at {selection.path}")
        return Selected(parts[-1]) if parts else Selected(None, f"nothing at {selection.path}" if found else "no JSON")
    return Selected(_call_or_argument(response, selection))


def _call_or_argument(response: Response, selection: Selection) -> str | None:
    calls = calls_in(response.tool_calls)
    own = [call.arguments for call in calls if call.name == selection.tool]
    if any(isinstance(arguments, str) for arguments in own):
        return None
    if selection.path is not None:
        values = {_value_at_path(arguments, selection) for arguments in own}
        return values.pop() if len(values) == 1 else None
    if own:
        return CALLED
    complete = response.finish_reason != "length" and (calls or response.text.strip())
    return NOT_CALLED if complete else None


def _comparison_form(part: str) -> str | float:
    """Return a form that is equal for equal values: a number as `float`, since 90 and 90.0 are the same."""
    try:
        return float(part)
    except ValueError:
        return part.strip()


def _value_at_path(document: Json, selection: Selection) -> str | None:
    try:
        found = requests.compiled_path(selection.path or "$").find(_plain(document))
    except (ValueError, RecursionError):
        return None
    value = found[0] if len(found) == 1 else None
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list) and selection.format not in ("json", "list"):
        return None
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Json) -> Json:
    """Return JSON with objects as dictionaries; of repeated keys, the last one counts."""
    if isinstance(value, Pairs):
        return {key: _plain(part) for key, part in value}
    return [_plain(part) for part in value] if isinstance(value, list) else value


# Search for JSON in texts (such as a code block in prose), and extraction of plain text from JSON.

_OPENING = re.compile(r"""\{\s*["}]|\[\s*["\[{\]tfn0-9-]""")
# The closing quote is optional, as a text of escaped quotes would otherwise take quadratic time.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_MAX_BROKEN = 50
"""Number of broken pieces of JSON after which the search ends, because it would otherwise take too long."""

_TITLES = ("title", "song_title", "movie_title", "name", "item", "product", "song", "movie", "film", "book", "artist")


class Pairs(list[tuple[str, Json]]):
    """JSON object as a list of its (key, value) members in the written order; repeated keys are kept."""


class Number(str):
    """JSON number in the spelling of the text (`1.0` stays `1.0`)."""

    __slots__ = ()


# Not strict: models write raw line ends inside of strings.
_decoder = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=Number, strict=False
)


def is_json(text: str) -> bool:
    """Return whether a whole text is a JSON object or array."""
    if text.strip()[:1] not in ("{", "["):
        return False
    try:
        _decoder.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def find_json(text: str) -> Json | None:
    """Return the longest JSON object or array in a text, or `None`; JSON with nothing but numbers does not count.

    Broken JSON (also JSON that is cut off) counts as one piece, whose parts are not searched. Return `None` also if the
    longest piece is broken, or if any piece is nested too deeply.
    """
    try:
        # JSON with numbers only, such as the `[1]` of a footnote, does not count.
        pieces = [
            (length, value)
            for length, value in _pieces(text)
            if value is None or any(not isinstance(piece, Number) for piece in flatten(value))
        ]
    except RecursionError:
        return None
    return max(pieces, key=lambda piece: piece[0])[1] if pieces else None


def find_all_json(text: str) -> list[Json]:
    """Return all JSON objects and arrays in a text, in their order; none if one of them is nested too deeply."""
    try:
        return [value for _, value in _pieces(text) if value is not None]
    except RecursionError:
        return []


def _pieces(text: str) -> Iterator[tuple[int, Json | None]]:
    """Yield the length and the value of each piece of JSON; the value of a broken piece is `None`."""
    broken, index = 0, 0
    while (opening := _OPENING.search(text, index)) is not None and broken < _MAX_BROKEN:
        start = opening.start()
        try:
            value, index = _decoder.raw_decode(text, start)
        except ValueError:
            broken += 1
            value, index = None, _end_of_bracket(text, start)
        yield index - start, value


def leaves(value: Json) -> Iterator[tuple[str, Json]]:
    """Yield each text, number and constant in a JSON value, with its key or the key of its list ("" without a key)."""
    stack: list[tuple[str, Json]] = [("", value)]
    while stack:
        key, part = stack.pop()
        if isinstance(part, Pairs):
            stack.extend(reversed(part))
        elif isinstance(part, list):
            stack.extend((key, item) for item in reversed(part))
        else:
            yield key, part


def _end_of_bracket(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one at `start`; the text's length without one."""
    depth = 0
    for token in _STRUCTURE.finditer(text, start):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def flatten(value: Json) -> Iterator[str]:
    """Yield the keys, texts and numbers of a JSON value and of all values nested in it, in the written order.

    If an array or object contains two or more objects and nothing else, keys that all these objects share are left out:
    they are field names, such as `product` and `explanation`, and not part of the answer.
    """
    stack: list[tuple[Json, frozenset[str]]] = [(value, frozenset())]
    while stack:
        current, fields = stack.pop()
        if isinstance(current, str):
            if current.strip():
                yield current if isinstance(current, Number) else current.strip()
        elif isinstance(current, Pairs):
            inner = _shared_keys([part for _, part in current])
            for key, part in reversed(current):
                stack.append((part, inner))
                if key not in fields:
                    stack.append((key, frozenset()))
        elif isinstance(current, list):
            inner = _shared_keys(current)
            stack.extend((part, inner) for part in reversed(current))


def _shared_keys(siblings: list[Any]) -> frozenset[str]:
    """Return the keys that all siblings share; none unless they are two or more objects."""
    if len(siblings) < 2 or not all(isinstance(part, Pairs) for part in siblings):
        return frozenset()
    return frozenset.intersection(*(frozenset(key for key, _ in part) for part in siblings))


def as_list(value: Json) -> list[str]:
    """Return the items of an array, or of an object's only one; else its keys or, if these are numbers, its values."""
    if isinstance(value, Pairs):
        arrays = [part for _, part in value if isinstance(part, list) and not isinstance(part, Pairs)]
        if len(arrays) != 1 and value and all(key.strip().isdecimal() for key, _ in value):
            return [text for _, part in value if (text := _item_text(part))]
        if len(arrays) != 1:
            return [key.strip() for key, _ in value if key.strip()]
        value = arrays[0]
    return [text for part in value if (text := _item_text(part))]


def _item_text(value: Json) -> str:
    if isinstance(value, Pairs):
        texts = {key.casefold(): part for key, part in reversed(value) if isinstance(part, str) and part.strip()}
        title = next((texts[key] for key in _TITLES if key in texts), None)
        if title is not None:
            return str(title).strip()
    return value.strip() if isinstance(value, str) else " ".join(flatten(value))
