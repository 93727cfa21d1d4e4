"""Conversion of responses into answers; an answer has a status and a content.

One step comes before all readers: `thoughts.split` separates what the model says from what it thinks. Responses are
untrusted input: every parser is deterministic, takes linear time and accepts any text.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from pytest_fairness.answers import decisions, json_in_text, list_items, numbers, titles
from pytest_fairness.answers.refusals import is_refusal
from pytest_fairness.answers.structured import select
from pytest_fairness.answers.thoughts import Spoken, split
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
    Status,
    ToolCall,
    calls_in,
    reply_in,
    with_thoughts,
)

VERSION = 2
"""Version of the reading of answers; it changes whenever a text gets another status or content."""
LONGEST = 200_000
"""Maximum number of characters of an answer. A longer answer, from a model that never stops, counts as unreadable,
because audits would take minutes to count its words."""
NO_ANSWER = "only thoughts, no answer"
UNFINISHED = "thoughts that do not end"
CUT_OFF = "cut off at the token limit; raise `max_tokens`"

_JSON_BEGINS = re.compile(r"(?:```\w*\s*)?[\[{]")
_STATUS_KEYS = ("code", "status", "status_code", "error_code")
_STATUS_WORD = re.compile(
    r"(?:[45]\d\d|assistant|blocked|declined|denied|err(?:or)?e?|fail(?:ed|ure)?|false|no|none|null|ok|success|true"
    r"|not (?:applicable|available)|n\.?/?[ad]\.?|k\. ?a|s\. ?o|refus(?:al|ed|\u00e9e?)|rejected|unavailable|unknown"
    r"|fehler|abgelehnt|verweigert|rechazad[oa]|denegad[oa]|recusad[oa]|negad[oa]|rifiutat[oa]|negat[oa]|rejet\u00e9e?)\.?",
    re.IGNORECASE,
)
"""Text in JSON that is no answer beside a refusal."""


class Content(NamedTuple):
    """Content of a text: empty if it is a refusal or unreadable.

    Attributes:
        value: one of the allowed choices or a number (`float`), if the prompt asks for a choice or a number. Otherwise,
            a list of strings for the formats `list` and `titles`, a list of numbers for `likelihood`, and a string for
            any other format.
        refused: whether the text is a refusal.
        unread: reason why the text is unreadable, if there is one to name.
    """

    value: Json
    refused: bool = False
    unread: str = ""


def answer(prompt: Prompt, response: Response | None, language: Language) -> Answer:
    """Return the answer that a response holds.

    Args:
        prompt: the prompt, which defines the format of the answer.
        response: the response, or `None` if there is none.
        language: language of the answer, whose patterns recognise refusals.
    """
    if response is None:
        return Answer(prompt.labels, prompt.trial, None, Status.FAILED)
    is_text = prompt.request.answer_format not in ("likelihood", "embedding")
    spoken = split(response.text, language.thoughts) if is_text else Spoken(response.text)
    said = replace(response, text=spoken.text) if spoken.text is not response.text else response
    measures_thoughts = prompt.selection is not None and prompt.selection.thoughts
    cut = response.finish_reason == "length"
    if response.blocked:
        status, content = Status.BLOCKED, Content(None)
    elif len(said.text) + len(said.tool_calls or "") > LONGEST:
        status, content = Status.UNREADABLE, Content(None)
    elif measures_thoughts:
        content = Content(whole_characters(spoken.thoughts).strip()[:LONGEST], unread="no thoughts")
        status = Status.OK if content.value else Status.UNREADABLE
    elif spoken.thoughts and not said.text.strip() and not said.tool_calls:
        status = Status.UNREADABLE
        content = Content(None, unread=UNFINISHED if spoken.unfinished else NO_ANSWER)
    else:
        content = _content(prompt, said, language)
        usable = content.value or isinstance(content.value, float)
        status = Status.REFUSED if content.refused else Status.OK if usable else Status.UNREADABLE
    if cut and status is Status.UNREADABLE:
        status, content = Status.CUT_OFF, Content(None, unread=CUT_OFF)
    text = said.text
    if prompt.request.answer_format == "calls":
        text = Reply(said.text, calls_in(said.tool_calls)).as_json
    return Answer(
        labels=prompt.labels,
        trial=prompt.trial,
        text=with_thoughts(text, spoken.thoughts) if measures_thoughts else text,
        status=status,
        content=content.value if status is Status.OK else None,
        truncated=cut,
        thoughts=spoken.thoughts,
        unread=content.unread if status in (Status.UNREADABLE, Status.CUT_OFF) else "",
        # Interned to save memory, because thousands of answers are from the same model.
        served=sys.intern(response.served) if response.served else None,
    )


def recorded(prompt: Prompt, text: str | None, language: Language, *, refused: bool = False) -> Answer:
    """Return the answer in a recorded text, which comes from an `Answer` or from a file.

    Args:
        prompt: the prompt, which defines the format of the answer.
        text: the recorded text; `None` if there was no response. For the format `calls`, the text must be the JSON of a
            message, `CALLED` or `NOT_CALLED`.
        language: language of the answer.
        refused: whether the target reported a refusal, so that the answer is blocked.
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


def _content(prompt: Prompt, said: Response, language: Language) -> Content:
    """Return the content of a response without thoughts."""
    selected, answer_format = said.text, prompt.request.answer_format
    if prompt.selection is not None:
        found = select(said, prompt.selection)
        if found.text is None:
            return Content(None, is_refusal(selected, language), found.unread)
        selected, answer_format = found.text, prompt.selection.format
    text = whole_characters(selected).strip()
    if not text:
        return Content(None)
    if prompt.number is not None:
        cut = prompt.selection is None and said.finish_reason == "length"
        return _number(text, prompt.number, language, cut=cut)
    return _parsed(text, answer_format, language, prompt.choices)


# The items of a probe read the same responses, and a baseline often holds the responses of the run.
@lru_cache(maxsize=8_192)
def _parsed(text: str, answer_format: AnswerFormat, language: Language, allowed: tuple[str, ...]) -> Content:
    return _choice(text, allowed, language) if allowed else _READERS[answer_format](text, language)


def whole_characters(text: str) -> str:
    """Return the text with lone surrogates replaced, because they cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _json(text: str, language: Language) -> Content:
    found = json_in_text.find(text)
    if found is None:
        return Content(None, is_refusal(text, language))
    pieces = [whole_characters(piece) for piece in json_in_text.flatten(found)]
    return Content("\n".join(pieces), _refuses_in_json(found, language))


def _refuses_in_json(value: Json, language: Language) -> bool:
    """Return whether a text in JSON is a refusal, and nothing else in the JSON is an answer.

    For example, `{"products": [], "note": "I'm sorry, but I can't …"}`.
    """
    refused = False
    for key, leaf in json_in_text.leaves(value):
        if isinstance(leaf, json_in_text.Number):
            if key.casefold() not in _STATUS_KEYS:
                return False
        elif isinstance(leaf, str) and leaf.strip() and not _STATUS_WORD.fullmatch(leaf.strip()):
            if not is_refusal(leaf, language):
                return False
            refused = True
    return refused


def _list(text: str, language: Language) -> Content:
    return _with_refusal(text, _items(text, list_items.items), language)


def _titles(text: str, language: Language) -> Content:
    items = _items(text, lambda plain: titles.items(plain, language))
    return _with_refusal(text, titles.without_common_artist(items), language)


def _with_refusal(text: str, items: list[str], language: Language) -> Content:
    # Interned to save memory, because answers repeat the same titles.
    items = [sys.intern(whole_characters(item)) for item in items]
    if len(items) >= list_items.MINIMUM_REAL:
        # A copy, because a list that was filled item by item keeps up to a third more memory than it needs.
        return Content(items.copy())
    return Content(items, is_refusal(text, language) or (len(items) == 1 and is_refusal(items[0], language)))


def _items(text: str, unstructured: Callable[[str], list[str]]) -> list[str]:
    found = json_in_text.find(text)
    if found is not None:
        return json_in_text.as_list(found)
    # Broken JSON is unreadable rather than a list of its pieces.
    return [] if _JSON_BEGINS.match(text) else unstructured(text)


def _likelihood(text: str, _: Language) -> Content:
    """Return the known log-probabilities in a likelihood response; a likelihood is never a refusal."""
    try:
        logs = json.loads(text)["log_probabilities"]
        known = [float(log) for log in logs if log is not None]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Content([])
    return Content([] if any(map(math.isnan, known)) else known)


def _text(text: str, language: Language) -> Content:
    return Content(text, is_refusal(text, language))


def _choice(text: str, allowed: tuple[str, ...], language: Language) -> Content:
    found = decisions.choice(text, allowed, language)
    if found is not None:
        return Content(found)
    return Content(None, is_refusal(text, language), decisions.resembled(text, allowed))


@lru_cache(maxsize=8_192)
def _number(text: str, wanted: NumberFormat, language: Language, *, cut: bool) -> Content:
    # A text with a number that is marked as the answer is no refusal.
    if is_refusal(text, language, number_asked=True) and not numbers.is_marked(text, wanted):
        return Content(None, refused=True)
    found = numbers.read(text, wanted, cut=cut)
    return Content(found) if isinstance(found, float) else Content(None, unread=str(found))


_READERS: dict[AnswerFormat, Callable[[str, Language], Content]] = {
    "json": _json,
    "structured": _json,
    "calls": _text,
    "list": _list,
    "titles": _titles,
    "likelihood": _likelihood,
    "text": _text,
    "number": _text,
}
"""By answer format, the function that returns the content of a text."""
