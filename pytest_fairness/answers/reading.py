"""Reading of responses: separation of thoughts, an answer's status and content, votes of a judge model."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pytest_fairness.answers import choices, lists_and_refusals, numbers, structured
from pytest_fairness.answers.lists_and_refusals import is_refusal
from pytest_fairness.answers.structured import select
from pytest_fairness.languages import ENGLISH, Language, Marks
from pytest_fairness.probes import prompts
from pytest_fairness.probes.prompts import NONE
from pytest_fairness.probes.recorded_rows import whole_characters
from pytest_fairness.records import (
    CALLED,
    NOT_CALLED,
    REFUSAL_CLASSES,
    Answer,
    AnswerFormat,
    Json,
    Judged,
    Judging,
    NumberFormat,
    Prompt,
    Reply,
    Request,
    Response,
    Status,
    ToolCall,
    calls_in,
    reply_in,
    with_thoughts,
)

# Conversion of responses into answers; an answer has a status and a content.
#
# One step comes before all readers: `split` separates what the model says from what it thinks. Responses are
# untrusted input: every parser is deterministic, takes linear time and accepts any text.

VERSION = 6
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
    """Content of a text: empty if it is a refusal or, for the reason `unread`, unreadable.

    The value is one of the allowed choices or a number (`float`), if the prompt asks for a choice or a number.
    Otherwise, it is a list of strings for the formats `list` and `titles`, a list of numbers for `likelihood`, and a
    string for any other format.
    """

    value: Json
    refused: bool = False
    unread: str = ""


def answer(prompt: Prompt, response: Response | None, language: Language) -> Answer:
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
        created=response.created,
    )


def recorded(prompt: Prompt, text: str | None, language: Language, *, refused: bool = False) -> Answer:
    """Return the answer in a recorded text, which comes from an `Answer` or from a file.

    The text is `None` if there was no response. For the format `calls`, the text must be the JSON of a message,
    `CALLED` or `NOT_CALLED`. `refused` means that the target reported a refusal, so that the answer is blocked.
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


def _json(text: str, language: Language) -> Content:
    found = structured.find_json(text)
    if found is None:
        return Content(None, is_refusal(text, language))
    pieces = [whole_characters(piece) for piece in structured.flatten(found)]
    return Content("\n".join(pieces), _refuses_in_json(found, language))


def _refuses_in_json(value: Json, language: Language) -> bool:
    """Return whether JSON is only a refusal, as `{"products": [], "note": "I'm sorry, but I can't …"}`."""
    leaves = list(structured.leaves(value))
    if any(isinstance(leaf, structured.Number) and key.casefold() not in _STATUS_KEYS for key, leaf in leaves):
        return False
    texts = [leaf.strip() for _, leaf in leaves if isinstance(leaf, str) and not isinstance(leaf, structured.Number)]
    texts = [text for text in texts if text and not _STATUS_WORD.fullmatch(text)]
    return bool(texts) and all(is_refusal(text, language) for text in texts)


def _list(text: str, language: Language) -> Content:
    return _with_refusal(text, _items(text, lists_and_refusals.list_items), language)


def _titles(text: str, language: Language) -> Content:
    items = _items(text, lambda plain: lists_and_refusals.titles(plain, language))
    return _with_refusal(text, lists_and_refusals.without_common_artist(items), language)


def _with_refusal(text: str, items: list[str], language: Language) -> Content:
    # Interned to save memory, because answers repeat the same titles.
    items = [sys.intern(whole_characters(item)) for item in items]
    if len(items) >= lists_and_refusals.MINIMUM_REAL:
        # A copy, because a list that was filled item by item keeps up to a third more memory than it needs.
        return Content(items.copy())
    return Content(items, is_refusal(text, language) or (len(items) == 1 and is_refusal(items[0], language)))


def _items(text: str, unstructured: Callable[[str], list[str]]) -> list[str]:
    found = structured.find_json(text)
    if found is not None:
        return structured.as_list(found)
    # Broken JSON is unreadable rather than a list of its pieces.
    return [] if _JSON_BEGINS.match(text) else unstructured(text)


def _likelihood(text: str, _: Language) -> Content:
    """Return the known log-probabilities; a likelihood is never a refusal."""
    try:
        logs = json.loads(text)["log_probabilities"]
        known = [float(log) for log in logs if log is not None]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Content([])
    return Content([] if any(map(math.isnan, known)) else known)


def _text(text: str, language: Language) -> Content:
    return Content(text, is_refusal(text, language))


def _choice(text: str, allowed: tuple[str, ...], language: Language) -> Content:
    found = choices.choice(text, allowed, language)
    if found is not None:
        return Content(found)
    return Content(None, is_refusal(text, language), choices.resembled(text, allowed))


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


# Requests to a judge model, which classifies a free-text answer, and the votes of a judge model or a scorer.

REFUSED = REFUSAL_CLASSES[0]


def request(judging: Judging, text: str, vote: int) -> Request:
    """Return the request for a vote, whose number is the trial; equal answers have equal requests, sent only once."""
    return Request(prompts.filled_judge_prompt(judging, whole_characters(text)), trial=vote)


def vote(judging: Judging, response: Response | None) -> str | None:
    """Return the choice that the judge model named; `None` if it named no choice or several, or did not answer."""
    if response is None:
        return None
    named = choices.choice(whole_characters(split(response.text).text), (*judging.choices, NONE), ENGLISH)
    return None if named == NONE else named


def needs_votes(answer: Answer) -> bool:
    return answer.status is not Status.BLOCKED and answer.text is not None and bool(answer.text.strip())


def needs_refusal_class(answer: Answer) -> bool:
    return needs_votes(answer) and not answer.refused


def with_majority_choice(answer: Answer, judged: Judged, language: Language) -> Answer:
    """Return the answer with the choice of more than half of the votes, else as refused (by patterns) or unreadable."""
    choice = judged.majority
    if choice is not None:
        return replace(answer, status=Status.OK, content=choice, judged=judged)
    refused = answer.text is not None and is_refusal(answer.text, language)
    return replace(answer, status=Status.REFUSED if refused else Status.UNREADABLE, content=None, judged=judged)


def with_refusal_class(answer: Answer, judged: Judged, error: str | None = None) -> Answer:
    """Return the answer with the status that follows from the class that most votes name.

    The status becomes `REFUSED` for the class of refusals, and `FAILED` if no class has a majority, for the reason
    `error` or a general one. Otherwise, it stays unchanged.
    """
    if judged.majority == REFUSED:
        return replace(answer, status=Status.REFUSED, content=None, judged=judged)
    if judged.majority is not None:
        return replace(answer, judged=judged)
    error = error or f"{judged.by} gave no class, or votes for different classes"
    return replace(answer, status=Status.FAILED, content=None, judged=judged, error=error)


def vote_requests(judging: Judging, texts: Sequence[str]) -> list[list[Request]]:
    return [[request(judging, text, number) for number in range(judging.votes)] for text in texts]


# Separation of a model's thoughts from its answer, before any reader sees the answer.
#
# Reasoning models write their thoughts into the text of a response, between marks such as `<think>` and `</think>`.
# If an API returns thoughts apart from the text, targets join both with `records.with_thoughts`, so that thoughts
# have one form.


class Spoken(NamedTuple):
    """Answer and thoughts of a model in one response.

    Attributes:
        text: what the model says, without thoughts; empty if the response has nothing but thoughts.
        thoughts: the thoughts, joined with line ends.
        unfinished: whether the last thought does not end, so that nothing after it is an answer.
    """

    text: str
    thoughts: str = ""
    unfinished: bool = False


_NAME = "think(?:ing)?|thoughts?|reasoning|reflection|scratchpad"
_PAIRS = (
    (rf"<(?:\w+:)?(?:{_NAME})(?:\s[^<>]*)?>", rf"</(?:\w+:)?(?:{_NAME})\s*>"),
    (r"\[(?-i:(?:THINK(?:ING)?|REASONING)\])", r"\[/(?-i:(?:THINK(?:ING)?|REASONING)\])"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    (r"<\|(?:begin_of_thought|START_THINKING)\|>", r"<\|(?:end_of_thought|END_THINKING)\|>"),
    (r"<\|channel>thought\b", r"<channel\|>"),
    (r"<details type=\"reasoning\"[^<>]*>", "</details>"),
)
"""Regular expressions of the marks at the beginning and the end of thoughts, in any letter case."""
_ONLY_IN_PAIRS = f"e{len(_PAIRS) - 1}"
"""Group of the end that also has other uses, so that it ends no thoughts without its beginning."""

_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
"""Message of gpt-oss with its channel: only the channel `final` is the answer."""
_BARE_CHANNEL = re.compile(r"(?:^|assistant)(analysis|commentary|final)(?=\S)")
"""Beginning of a message of gpt-oss whose special tokens a server has removed: `analysis…assistantfinal…`."""
_BARE_START = re.compile(r"\s*analysis(?=[^\sa-z])")
_ANSWER = re.compile(
    r"<(answer|response|output|final_answer)>(.*)</\1>|<\|begin_of_solution\|>(.*?)(?:<\|end_of_solution\|>)?"
    r"|<\|START_RESPONSE\|>(.*?)(?:<\|END_RESPONSE\|>)?|<\|begin_of_box\|>(.*)<\|end_of_box\|>",
    re.DOTALL | re.IGNORECASE,
)
"""Whole text between marks of the answer."""
_UNESCAPED_QUOTE = re.compile(r'(?<!\\)"')
_LINE_START = re.compile(r"(?:^|\n)\s*$")
_EMPTY_FENCE = re.compile(r"```\w*\s*```")


def split(text: str, own: Marks = ()) -> Spoken:
    """Return what a model says in a response, apart from its thoughts.

    A mark between two backticks is a word about marks. An end without a beginning ends thoughts that began with the
    response, because chat templates may swallow the beginning. A beginning without an end counts at the beginning of a
    line only. In a response that is JSON as a whole, only pairs of marks inside one of its texts count.
    """
    marks = [mark for mark in _marks(own).finditer(text) if not _is_quoted(mark)]
    channels = "<|channel|>" in text
    is_json = (channels or bool(marks)) and structured.is_json(text)
    if (channels and not is_json) or _BARE_START.match(text) is not None:
        spoken = _of_channels(text)
    else:
        marks = _pairs_in_values(text, marks) if is_json else marks
        spoken = _outside_marks(text, marks) if marks else Spoken(text)
    if "<" in spoken.text and (answer := _ANSWER.fullmatch(spoken.text.strip())) is not None:
        inside = next(group for group in answer.groups()[1:] if group is not None)
        spoken = spoken._replace(text=inside)
    return spoken


def _is_quoted(mark: re.Match[str]) -> bool:
    text = mark.string
    return text[mark.start() - 1 : mark.start()] == text[mark.end() : mark.end() + 1] == "`"


def _pairs_in_values(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    pairs = [
        (begin, end)
        for begin, end in pairwise(marks)
        if f"e{(begin.lastgroup or '')[1:]}" == end.lastgroup != begin.lastgroup
        and _UNESCAPED_QUOTE.search(text, begin.end(), end.start()) is None
    ]
    return [mark for pair in pairs for mark in pair]


def _of_channels(text: str) -> Spoken:
    if "<|channel|>" in text:
        messages = [(found[1], found[2]) for found in _CHANNEL.finditer(text)]
    else:
        starts = list(_BARE_CHANNEL.finditer(text.lstrip()))
        ends = [*(start.start() for start in starts[1:]), None]
        messages = [(start[1], text.lstrip()[start.end() : end]) for start, end in zip(starts, ends, strict=True)]
    said = [part for channel, part in messages if channel == "final"]
    thoughts = [part.strip() for channel, part in messages if channel != "final"]
    return Spoken("\n".join(said), "\n".join(filter(None, thoughts)), unfinished=not said)


def _outside_marks(text: str, found: list[re.Match[str]]) -> Spoken:
    last_end = {mark.lastgroup: mark.start() for mark in found}
    said: list[str] = []
    thoughts: list[str] = []
    position, opened = 0, None
    for mark in found:
        name = mark.lastgroup or ""
        end, part = f"e{name[1:]}", text[position : mark.start()]
        if opened is None and name != end:
            before = text[max(0, mark.start() - 20) : mark.start()]
            if last_end.get(end, 0) < mark.start() and not _LINE_START.search(before):
                continue
            said.append(part)
            opened = end
        elif opened == name:
            thoughts.append(part.strip())
            opened = None
        elif opened is None and name != _ONLY_IN_PAIRS:
            thoughts.append("".join([*said, part]).strip())
            said = []
        else:
            continue
        position = mark.end()
    if opened is not None:
        return Spoken("", "\n".join(filter(None, [*thoughts, text[position:].strip()])), unfinished=True)
    pieces = _EMPTY_FENCE.sub("", "".join(_spaced([*said, text[position:]])))
    return Spoken(pieces, "\n".join(filter(None, thoughts)))


def _spaced(parts: Sequence[str]) -> Iterator[str]:
    """Yield the parts with a blank between two words or sentences that only a thought separates."""
    for place, part in enumerate(parts):
        before = parts[place - 1][-1:] if place else ""
        yield f" {part}" if part[:1].isalnum() and (before.isalnum() or before in tuple(".!?,;:")) else part


@lru_cache
def _marks(own: Marks) -> re.Pattern[str]:
    """Return a pattern that finds all marks: the group `b0` for the beginning of the first pair, `e0` for its end."""
    pairs = [*_PAIRS, *((re.escape(begin), re.escape(end)) for begin, end in own)]
    sources = [
        (f"{name}{place}", mark) for place, pair in enumerate(pairs) for name, mark in zip("be", pair, strict=True)
    ]
    # The first character stands before the group, because the search then skips all other characters quickly.
    cuts = [(name, mark, 1 + mark.startswith("\\")) for name, mark in sources]
    named = [f"{mark[:cut]}(?P<{name}>{mark[cut:]})" for name, mark, cut in cuts]
    return re.compile("|".join(named), re.IGNORECASE)
