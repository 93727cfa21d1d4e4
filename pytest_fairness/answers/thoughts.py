"""Separation of a model's thoughts from its answer, before any reader sees the answer.

Reasoning models write their thoughts into the text of a response, between marks such as `<think>` and `</think>`. If
an API returns thoughts apart from the text, targets join both with `records.with_thoughts`, so that thoughts have one
form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from pytest_fairness.languages.language import Marks


class Spoken(NamedTuple):
    """Answer and thoughts of a model in one response.

    Attributes:
        text: what the model says, without thoughts; empty if the response has nothing but thoughts.
        thoughts: the thoughts, joined with line ends; empty if there are none.
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
_LINE_START = re.compile(r"(?:^|\n)\s*$")
_EMPTY_FENCE = re.compile(r"```\w*\s*```")


def split(text: str, own: Marks = ()) -> Spoken:
    """Return what a model says in a response, apart from its thoughts.

    A mark between two backticks is a word about marks. An end without a beginning ends thoughts that began with the
    response, because chat templates may swallow the beginning. A beginning without an end counts at the beginning of a
    line only.

    Args:
        text: text of the response.
        own: marks that the probe declares, in addition to the known ones.
    """
    if "<|channel|>" in text or _BARE_START.match(text):
        spoken = _of_channels(text)
    else:
        marks = _marks(own)
        spoken = _outside_marks(text, marks) if marks.search(text) is not None else Spoken(text)
    if (answer := _ANSWER.fullmatch(spoken.text.strip())) is not None:
        inside = next(group for group in answer.groups()[1:] if group is not None)
        spoken = spoken._replace(text=inside)
    return spoken


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


def _outside_marks(text: str, marks: re.Pattern[str]) -> Spoken:
    found = [
        mark
        for mark in marks.finditer(text)
        if not text[mark.start() - 1 : mark.start()] == text[mark.end() : mark.end() + 1] == "`"
    ]
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
