"""Selection of the measured part of a structured answer: the call of a tool, its argument, or a value in JSON."""

from __future__ import annotations

import json
from typing import NamedTuple

from pytest_fairness import json_paths
from pytest_fairness.answers import json_in_text
from pytest_fairness.answers.json_in_text import Pairs
from pytest_fairness.records import CALLED, NOT_CALLED, Json, Response, Selection, calls_in


class Selected(NamedTuple):
    """Selected part of an answer as text; `None`, with a reason, if the answer does not contain the part."""

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
        found = json_in_text.find_all(response.text)
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
        found = json_paths.compiled(selection.path or "$").find(_plain(document))
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
