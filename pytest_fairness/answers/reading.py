"""Conversion of responses into answers; an answer has a status and a content.

Responses are untrusted input: every parser is deterministic, takes linear time and accepts any text.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache

from pytest_fairness.answers import choices, json_in_text, list_items, numbers, titles
from pytest_fairness.answers.refusals import is_refusal
from pytest_fairness.answers.structured import select
from pytest_fairness.languages.language import Language
from pytest_fairness.records import (
    CALLED,
    NOT_CALLED,
    Answer,
    AnswerFormat,
    Json,
    NumberFormat,
    Prompt,
    Reply,
    Response,
    Selection,
    Status,
    ToolCall,
    calls_in,
    reply_in,
)

LONGEST = 200_000
"""Maximum number of characters of an answer. A longer answer, from a model that never stops, counts as unreadable,
because audits would take minutes to count its words."""

_JSON_BEGINS = re.compile(r"(?:```\w*\s*)?[\[{]")
_WITHHELD = frozenset({"refusal", "content_filter"})


def answer(prompt: Prompt, response: Response | None, language: Language) -> Answer:
    """Return the answer that a response holds.

    Args:
        prompt: the prompt, which defines the format of the answer.
        response: the response, or `None` if there is none.
        language: language of the answer.
    """
    status, content = read(
        response, prompt.request.answer_format, language, prompt.choices, prompt.number, prompt.selection
    )
    text = None if response is None else response.text
    if response is not None and prompt.request.answer_format == "calls":
        text = Reply(response.text, calls_in(response.tool_calls)).as_json
    # Interned to save memory, because thousands of answers are from the same model.
    served = sys.intern(response.served) if response is not None and response.served else None
    return Answer(
        labels=prompt.labels,
        trial=prompt.trial,
        text=text,
        status=status,
        content=content,
        truncated=response is not None and response.finish_reason == "length",
        served=served,
    )


def recorded(prompt: Prompt, text: str | None, language: Language, *, refused: bool = False) -> Answer:
    """Return the answer in a recorded text, which comes from an `Answer` or from a file.

    Args:
        prompt: the prompt, which defines the format of the answer.
        text: the recorded text; `None` if there was no response. For the format `calls`, the text must be the JSON of a
            message, `CALLED` or `NOT_CALLED`.
        language: language of the answer.
        refused: whether the target reported a refusal.
    """
    reason = "refusal" if refused else None
    if text is None or prompt.request.answer_format != "calls":
        return answer(prompt, None if text is None else Response(text, reason), language)
    reply = reply_in(text)
    if reply is None and prompt.selection is not None and prompt.selection.tool and text.strip().casefold() == CALLED:
        reply = Reply("", (ToolCall(prompt.selection.tool, {}),))
    elif reply is None and text.strip().casefold() == NOT_CALLED:
        reply = Reply(text, ())
    if reply is None:
        return Answer(prompt.labels, prompt.trial, text, Status.UNREADABLE)
    return answer(prompt, Response(reply.text, reason, tool_calls=reply.calls_as_json), language)


def read(
    response: Response | None,
    answer_format: AnswerFormat,
    language: Language,
    allowed: Sequence[str] = (),
    number: NumberFormat | None = None,
    selection: Selection | None = None,
) -> tuple[Status, Json]:
    """Return the status and the content of a response.

    Args:
        response: the response, or `None` if there is none.
        answer_format: the format that the request asked for.
        language: language of the answer, whose patterns recognise refusals.
        allowed: possible choices; empty if the request did not ask for a choice.
        number: form of the number that the request asked for; `None` if it asked for no number.
        selection: the part of the response that is read; `None` for the whole response.

    Returns:
        The status and the content. The content is `None` unless the status is `OK`. If the request asked for a choice
        or a number, the content is this choice or number. Otherwise, it is a list of strings for the formats `list` and
        `titles`, a list of numbers for `likelihood`, and a string for any other format.
    """
    if response is None:
        return Status.FAILED, None
    if response.finish_reason in _WITHHELD:
        return Status.REFUSED, None
    if len(response.text) + len(response.tool_calls or "") > LONGEST:
        return Status.UNREADABLE, None
    selected = response.text
    if selection is not None:
        found = select(response, selection)
        if found is None:
            return (Status.REFUSED if is_refusal(selected, language) else Status.UNREADABLE), None
        selected, answer_format = found, selection.format
    text = whole_characters(selected).strip()
    if not text:
        return Status.UNREADABLE, None
    if number is not None:
        cut = selection is None and response.finish_reason == "length"
        content, refused = _number(text, number, language, cut=cut)
    else:
        content, refused = _parsed(text, answer_format, language, tuple(allowed))
    if refused:
        return Status.REFUSED, None
    return (Status.OK, content) if content or isinstance(content, float) else (Status.UNREADABLE, None)


# The items of a probe read the same responses, and a baseline often holds the responses of the run.
@lru_cache(maxsize=8_192)
def _parsed(text: str, answer_format: AnswerFormat, language: Language, allowed: tuple[str, ...]) -> tuple[Json, bool]:
    """Return the content of a text (empty if unreadable), and whether the text is a refusal."""
    return _choice(text, allowed, language) if allowed else _READERS[answer_format](text, language)


def whole_characters(text: str) -> str:
    """Return the text with lone surrogates replaced, because they cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _json(text: str, language: Language) -> tuple[str | None, bool]:
    found = json_in_text.find(text)
    if found is None:
        return None, is_refusal(text, language)
    pieces = [whole_characters(piece) for piece in json_in_text.flatten(found)]
    # A refusal in JSON: {"error": "I'm sorry, but I can't …"}
    refused = len(pieces) <= 2 and is_refusal(pieces[-1], language)
    return "\n".join(pieces), refused


def _list(text: str, language: Language) -> tuple[list[str], bool]:
    return _with_refusal(text, _items(text, list_items.items), language)


def _titles(text: str, language: Language) -> tuple[list[str], bool]:
    items = _items(text, lambda plain: titles.items(plain, language))
    return _with_refusal(text, titles.without_common_artist(items), language)


def _with_refusal(text: str, items: list[str], language: Language) -> tuple[list[str], bool]:
    # Interned to save memory, because answers repeat the same titles.
    items = [sys.intern(whole_characters(item)) for item in items]
    if len(items) >= list_items.MINIMUM_REAL:
        # A copy, because a list that was filled item by item keeps up to a third more memory than it needs.
        return items.copy(), False
    return items, is_refusal(text, language) or (len(items) == 1 and is_refusal(items[0], language))


def _items(text: str, unstructured: Callable[[str], list[str]]) -> list[str]:
    found = json_in_text.find(text)
    if found is not None:
        return json_in_text.as_list(found)
    # Broken JSON is unreadable rather than a list of its pieces.
    return [] if _JSON_BEGINS.match(text) else unstructured(text)


def _likelihood(text: str, _: Language) -> tuple[list[float], bool]:
    """Return the known log-probabilities in a likelihood response, and `False`: a likelihood is never a refusal."""
    try:
        logs = json.loads(text)["log_probabilities"]
        known = [float(log) for log in logs if log is not None]
    except (ValueError, LookupError, TypeError, RecursionError):
        return [], False
    return ([] if any(map(math.isnan, known)) else known), False


def _text(text: str, language: Language) -> tuple[str, bool]:
    return text, is_refusal(text, language)


def _choice(text: str, allowed: Sequence[str], language: Language) -> tuple[str | None, bool]:
    # "No, I can't help with that" is a refusal, not the choice "no".
    if is_refusal(choices.first_sentence(text, allowed, language), language):
        return None, True
    found = choices.read(text, allowed, language)
    return found, found is None and is_refusal(text, language)


@lru_cache(maxsize=8_192)
def _number(text: str, wanted: NumberFormat, language: Language, *, cut: bool) -> tuple[float | None, bool]:
    """Return the number in a text, and whether the text is a refusal.

    A text with a number that is marked as the answer is no refusal; see `numbers.is_marked`.
    """
    if is_refusal(text, language) and not numbers.is_marked(text, wanted):
        return None, True
    found = numbers.read(text, wanted, cut=cut)
    return (None if isinstance(found, numbers.Unread) else found), False


_READERS: dict[AnswerFormat, Callable[[str, Language], tuple[Json, bool]]] = {
    "json": _json,
    "structured": _json,
    "calls": _text,
    "list": _list,
    "titles": _titles,
    "likelihood": _likelihood,
    "text": _text,
    "number": _text,
}
"""By answer format, the function that returns the content of a text and whether the text is a refusal."""
