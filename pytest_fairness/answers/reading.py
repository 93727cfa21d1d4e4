"""Reading answers: what of a response can be measured, and whether there is anything to measure at all.

Everything here is by rule and in one pass, and takes any text whatever: an answer is the least trusted input there is.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Sequence

from pytest_fairness.answers import choices, json_in_text, list_items, titles
from pytest_fairness.answers.refusals import is_refusal
from pytest_fairness.records import Answer, AnswerFormat, Json, Prompt, Response, Status

LONGEST = 200_000
"""Characters of the longest answer that is read: no model is asked for more, and one that runs away would have every
audit count its words for minutes. What is longer is kept, and counts as unreadable."""

_JSON_BEGINS = re.compile(r"(?:```\w*\s*)?[\[{]")
_WITHHELD = frozenset({"refusal", "content_filter"})


def answer(prompt: Prompt, response: Response | None) -> Answer:
    """One response, read as its prompt asked for it.

    Args:
        prompt: what was asked.
        response: what came back, or `None` where nothing did.
    """
    status, content = read(response, prompt.request.answer_format, prompt.choices)
    # One name of the model for all of the many answers.
    served = sys.intern(response.served) if response is not None and response.served else None
    return Answer(
        labels=prompt.labels,
        trial=prompt.trial,
        text=None if response is None else response.text,
        status=status,
        content=content,
        truncated=response is not None and response.finish_reason == "length",
        served=served,
    )


def read(response: Response | None, answer_format: AnswerFormat, allowed: Sequence[str] = ()) -> tuple[Status, Json]:
    """What became of a response, and what was read from it.

    Args:
        response: what came back, or `None` where nothing did.
        answer_format: what was asked for.
        allowed: the choices of which one was asked for, if any.

    Returns:
        The status, and where it is `OK` the content: a string for `text` and `json`, strings for `list` and `titles`,
        one of the choices where there are such; else `None`.
    """
    if response is None:
        return Status.FAILED, None
    if response.finish_reason in _WITHHELD:
        return Status.REFUSED, None
    if len(response.text) > LONGEST:
        return Status.UNREADABLE, None
    text = whole_characters(response.text).strip()
    if not text:
        return Status.UNREADABLE, None
    content, refused = _choice(text, allowed) if allowed else _READERS[answer_format](text)
    if refused:
        return Status.REFUSED, None
    return (Status.OK, content) if content else (Status.UNREADABLE, None)


def whole_characters(text: str) -> str:
    """The text with halves of surrogate pairs, which no encoding takes, replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _json(text: str) -> tuple[str | None, bool]:
    found = json_in_text.find(text)
    if found is None:
        return None, is_refusal(text)
    pieces = [whole_characters(piece) for piece in json_in_text.flatten(found)]
    # A refusal that keeps to the form: {"error": "I'm sorry, but I can't …"}
    refused = len(pieces) <= 2 and is_refusal(pieces[-1])
    return "\n".join(pieces), refused


def _list(text: str) -> tuple[list[str], bool]:
    return _with_refusal(text, _items(text, list_items.items))


def _titles(text: str) -> tuple[list[str], bool]:
    return _with_refusal(text, titles.without_tails(_items(text, titles.items)))


def _with_refusal(text: str, items: list[str]) -> tuple[list[str], bool]:
    # The same titles come again and again; each is kept once.
    items = [sys.intern(whole_characters(item)) for item in items]
    if len(items) >= list_items.MINIMUM_REAL:
        # Of a list that grew, a third is spare room; a copy has none.
        return items.copy(), False
    return items, is_refusal(text) or (len(items) == 1 and is_refusal(items[0]))


def _items(text: str, unstructured: Callable[[str], list[str]]) -> list[str]:
    found = json_in_text.find(text)
    if found is not None:
        return json_in_text.as_list(found)
    # JSON that is cut off or broken is no list of its pieces.
    return [] if _JSON_BEGINS.match(text) else unstructured(text)


def _likelihood(text: str) -> tuple[list[float], bool]:
    """The log-probabilities that are known."""
    try:
        logs = json.loads(text)["log_probabilities"]
        known = [float(log) for log in logs if log is not None]
    except (ValueError, LookupError, TypeError, RecursionError):
        return [], False
    return ([] if any(map(math.isnan, known)) else known), False


def _text(text: str) -> tuple[str, bool]:
    return text, is_refusal(text)


def _choice(text: str, allowed: Sequence[str]) -> tuple[str | None, bool]:
    # "No, I can't help with that" declines, and denies nobody anything.
    if is_refusal(choices.first_sentence(text, allowed)):
        return None, True
    found = choices.read(text, allowed)
    return found, found is None and is_refusal(text)


_READERS: dict[AnswerFormat, Callable[[str], tuple[Json, bool]]] = {
    "json": _json,
    "list": _list,
    "titles": _titles,
    "likelihood": _likelihood,
    "text": _text,
}
"""What is read from a text by the format that was asked for, and whether it is a refusal."""
