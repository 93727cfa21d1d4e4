"""Language of answers: refusals are recognised, and identity words removed, in English only.

The model of `py3langid` (naive Bayes over byte n-grams) is loaded when the first text is judged. The model is
asked whether a text is clearly not English; texts too short to tell count as English.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache

HEAD = 300
"""Characters of a text that are looked at: a model that declines does so at once."""
FEWEST_WORDS = 3
"""Words that do not begin with a capital, or pairs of characters of a script without blanks, in the shortest text that
is judged: titles and names are of no language."""
NOT_ENGLISH = 0.001
"""Probability of English below which a text is taken for another language."""
SAMPLE = 500
"""Texts of a group that are judged."""

MOST_LETTERS = 0.5
"""Share of letters of another script from which on a text is not English, whatever the model takes it for."""

NAMES = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech",
    "da": "Danish", "de": "German", "el": "Greek", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "kn": "Kannada", "ko": "Korean",
    "lt": "Lithuanian", "lv": "Latvian", "ml": "Malayalam", "mr": "Marathi", "ms": "Malay", "nb": "Norwegian",
    "nl": "Dutch", "nn": "Norwegian", "no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The languages that are looked for, by their ISO 639 codes. What the model takes for any other is mostly a list of
names, or no text at all."""


def foreign_shares(texts: Mapping[Hashable, Iterable[str]]) -> dict[Hashable, dict[str, float]]:
    """Return for each group the share of its texts in each other language than English, the most frequent first.

    Args:
        texts: by group, in any order. Of more than `SAMPLE` a part is judged, which depends on the texts alone.
    """
    return {group: _shares(sorted(own, key=_place)[:SAMPLE]) for group, own in texts.items()}


def language_of(text: str) -> str | None:
    """Return the name of the language of a text that is not in English; `None` for a text that is or may be English."""
    head = text[:HEAD]
    if _words(head) < FEWEST_WORDS:
        return None
    scores = _ranking()(head)
    english = next(score for code, score in scores if code == "en")
    if english >= NOT_ENGLISH:
        return None
    return NAMES.get(scores[0][0]) or ("another language" if _is_in_another_script(head) else None)


def _is_in_another_script(text: str) -> bool:
    """Return whether most letters are not Latin ones."""
    letters = [character for character in text if character.isalpha()]
    return sum(character > "\u024f" for character in letters) > MOST_LETTERS * len(letters)


def _shares(texts: list[str]) -> dict[str, float]:
    repeated = Counter(texts)
    found: Counter[str] = Counter()
    for text, count in repeated.items():
        if (language := language_of(text)) is not None:
            found[language] += count
    return {
        language: count / len(texts) for language, count in sorted(found.items(), key=lambda pair: (-pair[1], pair))
    }


def _place(text: str) -> tuple[int, str]:
    """Return a pseudo-random but reproducible position for each text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")), text


def _words(text: str) -> int:
    """Return the number of words that show a text's language; capitalised words may be names in any language."""
    count = 0.0
    for word in text.split():
        letters = [character for character in word if character.isalpha()]
        if letters and _is_written_without_blanks(letters[0]):
            count += len(letters) / 2
        elif letters and not letters[0].isupper():
            count += 1
    return int(count)


def _is_written_without_blanks(character: str) -> bool:
    # Thai, Lao, Myanmar and Khmer; kana, Han and what belongs to them.
    return "\u0e00" <= character <= "\u109f" or "\u1780" <= character <= "\u17ff" or "\u2e80" <= character <= "\u9fff"


@cache
def _ranking() -> Callable[[str], list[tuple[str, float]]]:
    # Deferred, as the model takes half a second to load and only measuring needs it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    ranking: Callable[[str], list[tuple[str, float]]] = identifier.rank
    return ranking
