"""Leaving out of a prompt what is not known: the smallest clause around a placeholder that has no value.

A clause ends at `,` or `;` before a blank, and with its sentence or line. What leads up to it with a colon stays
("described as follows: age is {age}; …"), unless nothing stands between colon and placeholder ("age: {age}; …").
Something in parentheses is a clause of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from pytest_fairness.probes import template

# Lookbehinds keep long runs of blanks and marks, which a stranger's probe may hold, from being tried at every place.
_PARENTHESIS = re.compile(r"(?<!\s)\s*\([^()]*\)")
_END = re.compile(r"(?P<clause>[;,]\s+)|(?P<sentence>(?<![.!?])[.!?]++(?:\s+|$)|(?<![ \t])[ \t]*+\n\s*)")
_COLON = re.compile(r":\s+")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause, what ends it, and whether its sentence ends there as well."""

    text: str
    end: str
    last: bool


def without(text: str, names: Collection[str]) -> str:
    """A template without the clauses that hold one of these placeholders.

    Args:
        text: the template.
        names: the placeholders that have no value.
    """
    if not names:
        return text
    text = _PARENTHESIS.sub(lambda match: "" if _holds(match[0], names) else match[0], text)
    kept = ""
    sentence: list[_Clause] = []
    for clause in _clauses(text):
        sentence.append(clause)
        if clause.last:
            words = _without(sentence, names)
            if words is None and "\n" in clause.end and kept:
                # The line ends there still, if not with these words.
                kept = kept.rstrip() + clause.end[len(clause.end.rstrip()) :]
            kept += words or ""
            sentence = []
    return kept.rstrip()


def _clauses(text: str) -> list[_Clause]:
    clauses, start = [], 0
    for match in _END.finditer(text):
        clauses.append(_Clause(text[start : match.start()], match[0], match["sentence"] is not None))
        start = match.end()
    return [*clauses, _Clause(text[start:], "", last=True)]


def _without(sentence: list[_Clause], names: Collection[str]) -> str | None:
    """One sentence with its end; `None` where nothing of it is left."""
    left = []
    lead = ""
    for clause in sentence:
        if not _holds(clause.text, names):
            left.append(_Clause(lead + clause.text, clause.end, clause.last))
            lead = ""
        else:
            lead += _lead(clause.text)
    if not left and not lead:
        # An empty line between paragraphs is no sentence, and stays.
        return None if any(clause.text.strip() for clause in sentence) else sentence[-1].end
    words = "".join(clause.text + clause.end for clause in left[:-1])
    words += left[-1].text if left else lead.rstrip().rstrip(":")
    return words + sentence[-1].end


def _lead(clause: str) -> str:
    """What stands before a colon, if the placeholder has words of its own behind it."""
    first = next(iter(_placeholder_starts(clause)), len(clause))
    for colon in reversed(list(_COLON.finditer(clause, 0, first))):
        if any(character.isalnum() for character in clause[colon.end() : first]):
            return clause[: colon.end()]
    return ""


def _placeholder_starts(text: str) -> list[int]:
    return [start for start, end in template.spans(text) if end - start > 2]


def _holds(text: str, names: Collection[str]) -> bool:
    return any(name in names for name in template.placeholders(text))
