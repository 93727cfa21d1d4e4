"""Removal of clauses from a prompt: if a placeholder has no value, the clause that contains it is removed.

A clause ends at `,` or `;` before a blank, or at the end of its sentence or line. If words stand between a colon and
the placeholder, the words before the colon are kept ("described as follows: age is {age}; …"). If the placeholder
directly follows the colon, these words are removed ("age: {age}; …"). Text in parentheses is a separate clause.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from pytest_fairness.probes.prompts import template

# Without the lookbehinds, a match would be tried from each blank of a long run, which takes quadratic time.
_PARENTHESIS = re.compile(r"(?<!\s)\s*\([^()]*\)")
_END = re.compile(r"(?P<clause>[;,]\s+)|(?P<sentence>(?<![.!?])[.!?]++(?:\s+|$)|(?<![ \t])[ \t]*+\n\s*)")
_COLON = re.compile(r":\s+")


@dataclass(frozen=True, slots=True)
class _Clause:
    """Clause, the punctuation that ends the clause, and whether this punctuation also ends the sentence."""

    text: str
    end: str
    ends_sentence: bool


def remove_clauses(text: str, names: Collection[str]) -> str:
    """Return the template `text` without the clauses that contain one of the placeholders `names`."""
    if not names:
        return text
    text = _PARENTHESIS.sub(lambda match: "" if _has_placeholder(match[0], names) else match[0], text)
    result = ""
    sentence: list[_Clause] = []
    for clause in _clauses(text):
        sentence.append(clause)
        if clause.ends_sentence:
            words = _sentence_without(sentence, names)
            if words is None and "\n" in clause.end and result:
                # The line end stays, although its clause is removed.
                result = result.rstrip() + clause.end[len(clause.end.rstrip()) :]
            result += words or ""
            sentence = []
    return result.rstrip()


def _clauses(text: str) -> list[_Clause]:
    clauses, start = [], 0
    for match in _END.finditer(text):
        clauses.append(_Clause(text[start : match.start()], match[0], match["sentence"] is not None))
        start = match.end()
    return [*clauses, _Clause(text[start:], "", ends_sentence=True)]


def _sentence_without(sentence: list[_Clause], names: Collection[str]) -> str | None:
    """Return a sentence without the clauses that contain one of the placeholders `names`; keep its final punctuation.

    Return `None` if nothing of the sentence is left.
    """
    left = []
    lead = ""
    for clause in sentence:
        if not _has_placeholder(clause.text, names):
            left.append(replace(clause, text=lead + clause.text))
            lead = ""
        else:
            lead += _introduction(clause.text)
    if not left and not lead:
        # An empty line between paragraphs is no sentence and stays.
        return None if any(clause.text.strip() for clause in sentence) else sentence[-1].end
    words = "".join(clause.text + clause.end for clause in left[:-1])
    words += left[-1].text if left else lead.rstrip().rstrip(":")
    return words + sentence[-1].end


def _introduction(clause: str) -> str:
    """Return the introduction of a clause: the text up to the last colon before the first placeholder.

    A colon counts only if words stand between the colon and the placeholder. Return an empty text if no colon counts.
    """
    first = next((start for start, end in template.spans(clause) if end - start > 2), len(clause))
    for colon in reversed(list(_COLON.finditer(clause, 0, first))):
        if any(character.isalnum() for character in clause[colon.end() : first]):
            return clause[: colon.end()]
    return ""


def _has_placeholder(text: str, names: Collection[str]) -> bool:
    return any(name in names for name in template.placeholders(text))
