"""Placebo of a prompt: the same text with a change that names no other group."""

from __future__ import annotations

import re

from pytest_fairness.languages.swaps.reading import Reading, like, replaced

_NOT = ["do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "could", "would", "should"]
_EXPANDED = {f"{verb}n't": f"{verb} not" for verb in _NOT} | {"can't": "cannot", "won't": "will not"}
_EXPANDED_I = {"i'm": "I am", "i've": "I have", "i'll": "I will"}
_CONTRACTED = {full: short for short, full in _EXPANDED.items()} | {"I am": "I'm"}
_AFTER_VERB = (
    "i|you|we|they|it|he|she|my|your|our|their|his|her|the|an?|this|that|these|those|anyone|someone"  # "Don't you …"
)
_SHORT = re.compile(
    rf"(?<=[^\W\d_] )(?<!why )(?<!how )(?<!what )(?<!and )(?<!but )(?<!or )(?:{'|'.join(_EXPANDED)})"
    rf"(?= (?!(?:{_AFTER_VERB})\b)\w)|\b(?:{'|'.join(_EXPANDED_I)})(?= \w)".replace("'", "['’]"),
    re.IGNORECASE,
)
_LONG = re.compile(rf"(?<=[^\W\d_] )(?:{'|'.join(_CONTRACTED)})(?= \w)|\bI am(?= \w)")
_THANKS = {"en": "Thank you.", "de": "Danke.", "fr": "Merci.", "es": "Gracias."}
_SENTENCE_END = re.compile(r"[.!?][\"”')\]]*\s*$")
_STRAIGHT = re.compile(r"(?<=\w)'(?=\w)")
_CURLY = re.compile(r"(?<=\w)’(?=\w)")


def placebo(text: str, reading: Reading, code: str) -> str | None:
    """Return the prompt with a change that names no other group; `None` if no such change is possible.

    Names are replaced by other names of the same group. In a prompt without names, contractions or the form of
    apostrophes are changed, or a final "Thank you" is added.
    """
    if reading.placebos:
        return replaced(text, [(item.start, item.text, str(item.forms[0])) for item in reading.placebos])
    if code == "en" and (changed := _other_contractions(text)) != text:
        return changed
    for marks, other in ((_STRAIGHT, "’"), (_CURLY, "'")):
        if marks.search(text):
            return marks.sub(other, text)
    if code not in _THANKS:
        return None
    return text.rstrip() + (" " if _SENTENCE_END.search(text) else "\n") + _THANKS[code]


def _other_contractions(text: str) -> str:
    """Return the text with "don't" changed to "do not"; if it has no such contraction, "do not" becomes "don't"."""

    def expanded(match: re.Match[str]) -> str:
        short = match[0].lower().replace("’", "'")
        return _EXPANDED_I.get(short) or like(match[0][0], _EXPANDED[short])

    return _SHORT.sub(expanded, text) if _SHORT.search(text) else _LONG.sub(lambda match: _CONTRACTED[match[0]], text)
