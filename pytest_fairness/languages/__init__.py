"""Languages: words and patterns by which answers are parsed and measured, and detection of other languages."""

from __future__ import annotations

import re
import tomllib
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

# English names of languages, by ISO 639 code.

NAMES = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech",
    "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "kn": "Kannada", "ko": "Korean",
    "lt": "Lithuanian", "lv": "Latvian", "ml": "Malayalam", "mr": "Marathi", "ms": "Malay", "nb": "Norwegian",
    "nl": "Dutch", "nn": "Norwegian", "no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""Languages that are recognised. A text that the model of `detection` assigns to any other language is mostly a list of
names, or contains no sentence, such as numbers or code."""


# Normalised form of texts, and their words.

WITHOUT_BLANKS = ("zh", "ja", "th", "lo", "km", "my")
"""ISO 639 codes of languages that are written without blanks between words."""
_WORD = re.compile(r"\w[\w'-]*")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Sequence that colours a terminal, such as `\\x1b[31m`."""
_SPECIAL = re.compile("[\u00ad\u200b-\u200f\u2010-\u2013\u2060\ufeff]")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]|(?<=[a-z\u00df-\u024f])[\u200c\u200d]")
_DASH_IN_WORD = re.compile(r"(?<=[^\W\d_])[\u2010-\u2013](?=[^\W\d_])")


def normalise(text: str, *, fold: bool = True) -> str:
    """Return the text in NFKC form, with straight apostrophes and, unless `fold` is false, case-folded.

    Dashes inside of words become hyphens; soft hyphens, invisible characters and sequences that colour a terminal are
    removed.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    composed = unicodedata.normalize("NFKC", text)
    plain = straightened(composed.casefold() if fold else composed)
    if not plain.isascii() and _SPECIAL.search(plain):
        plain = _DASH_IN_WORD.sub("-", _INVISIBLE.sub("", plain))
    return plain


def straightened(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("\N{MODIFIER LETTER APOSTROPHE}", "'")


def words(text: str) -> list[str]:
    """Return the words of a normalised text; "don't" and "non-stick" are one word each."""
    return [word.rstrip("'-") for word in _WORD.findall(text)]


def segmented(text: str, code: str) -> list[str]:
    """Return the words of a normalised text in one of the languages `WITHOUT_BLANKS`."""
    # Deferred, as the package is an extra, which only these languages need.
    from icu4py.breakers import WordBreaker

    # Not split by `words`, for which the vowel signs of Thai are no letters.
    return [piece for piece in WordBreaker(text, code) if any(character.isalnum() for character in piece)]


def can_segment() -> bool:
    return find_spec("icu4py") is not None


# Words and patterns of a language, by which answers are parsed and measured.
#
# The data of the built-in languages are in `data/<code>.toml`. A probe can declare the words of other languages.

BUILT_IN = ("en", "de", "es", "fr", "it", "pt")
"""ISO 639 codes of the languages with a data file."""
Marks = tuple[tuple[str, str], ...]
"""Pairs of texts that begin and end a model's thoughts, such as `("<plan>", "</plan>")`."""
_PART = re.compile(r"\{([a-z_]+)\}")
_REQUIRED_PART = re.compile(r"\{[a-z_]+\}(?![?*]|\{\d)")
_NEVER = re.compile(r"(?!)")
_CONTRACTION = re.compile(r"(?:n't|'\w+)$")


@dataclass(frozen=True, eq=False, repr=False)
class RefusalPatterns:
    """Patterns of the refusals of one language, for texts in lower case.

    Attributes:
        core: statement that an act is declined, such as "i cannot help", anywhere in a sentence.
        own_life: sentence about the speaker's own life ("i can't walk, so i …"), or of a letter that informs of a
            decision, which is no refusal.
        late: statement that a task is declined, which counts in the last two sentences, too.
        unsure: sentence which only says that something is not known ("I can't predict …"): a longer text after it is an
            answer.
        opening: words that decline at the beginning of a sentence only, such as "no comment".
        redirection: pattern of a whole short text that only names somebody else to ask.
        lead: words such as "sorry"; if a sentence has such a word, the next sentence is searched, too.
        resumption: words at the beginning of a later sentence, such as "therefore", that is searched, too.
        concession: words after which a core is no refusal, such as "although" in "although i cannot help".
        praise: words before which a core is no refusal, such as "enough" in "i cannot recommend her enough".
        condition: words at the beginning of a sentence without a refusal, such as "if" in "if you cannot find us".
        continuation: words that announce help, such as "but here are"; a core before them in the same sentence is no
            refusal.
        answered: words that begin an answer, such as "here is"; a text with such an answer after a refusal counts as an
            answer.
        offer: end of the line before a list of what is offered instead ("what I can do:"), which is no answer.
    """

    core: re.Pattern[str]
    own_life: re.Pattern[str] = _NEVER
    late: re.Pattern[str] = _NEVER
    unsure: re.Pattern[str] = _NEVER
    opening: re.Pattern[str] = _NEVER
    redirection: re.Pattern[str] = _NEVER
    lead: re.Pattern[str] = _NEVER
    resumption: re.Pattern[str] = _NEVER
    concession: re.Pattern[str] = _NEVER
    praise: re.Pattern[str] = _NEVER
    condition: re.Pattern[str] = _NEVER
    continuation: re.Pattern[str] = _NEVER
    answered: re.Pattern[str] = _NEVER
    offer: re.Pattern[str] = _NEVER


@dataclass(frozen=True, eq=False, repr=False)
class DecisionWords:
    """Words around a decision in an answer, of a language and of English, for texts in lower case.

    Attributes:
        label: name of the decision before a colon or a verb, as in "final answer: yes"; the group `mark` is the colon.
        before: word that may stand before a choice in its clause, as in "I would say yes".
        after: word that may stand after a choice in its clause, as in "no because of …".
        negations: choices that may also negate the next word, as in "no service".
        denial: words that deny the next word, at the end of a text, as in "I would not".
        reason: word that begins a reason, such as "because".
        unknown: phrases that say that it is not known who or which is meant.
        takes_back: words that take an earlier answer back, such as "wait".
        commits: words after which an answer that began undecided may still choose, such as "probably".
    """

    label: re.Pattern[str]
    before: re.Pattern[str]
    after: re.Pattern[str]
    negations: frozenset[str]
    denial: re.Pattern[str]
    reason: re.Pattern[str]
    unknown: re.Pattern[str]
    takes_back: re.Pattern[str]
    commits: re.Pattern[str]

    def with_label(self, own: str) -> DecisionWords:
        source = self.label.pattern.replace("(?:", f"(?:{re.escape(own.lower())}|", 1)
        return replace(self, label=re.compile(source))

    @property
    def sources(self) -> list[object]:
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return [sorted(value) if isinstance(value, frozenset) else value.pattern for value in values]


@dataclass(frozen=True, eq=False, repr=False)
class Language:
    """The language, or the languages, in which a probe expects its answers.

    Two languages are equal only if they are the same object, which makes them fast keys of caches.

    Attributes:
        codes: ISO 639 codes.
        names: English names of the languages, in the order of `codes`.
        generic_words: words that name no group by themselves, such as "person" in a term "nonbinary person".
        no_identity_before: for each identity term, patterns of following words with which the term names no group, such
            as "tea" after "black".
        elisions: words that are written together with the next word, such as "l" in "l'homme".
        refusal_sources: mappings from attributes of `RefusalPatterns` to regular expressions: one mapping for each
            language with a data file, one for English (many models refuse in English), and one for the probe's phrases.
        thoughts: marks of thoughts that the probe declares, in addition to the known ones.
    """

    codes: tuple[str, ...]
    names: tuple[str, ...]
    identity_terms: tuple[str, ...]
    generic_words: frozenset[str]
    function_words: frozenset[str]
    no_identity_before: Mapping[str, tuple[str, ...]]
    elisions: frozenset[str]
    decisions: DecisionWords
    refusal_sources: tuple[Mapping[str, str], ...]
    refusals_missing: tuple[str, ...]
    thoughts: Marks = ()

    @property
    def shown(self) -> str:
        """Return the names of the languages for messages: "German or French"."""
        return " or ".join(self.names)

    @cached_property
    def refusals(self) -> tuple[RefusalPatterns, ...]:
        """Return the patterns of refusals, compiled at the first use: a run without new answers needs none of them."""
        return tuple(
            RefusalPatterns(**{name: re.compile(source) for name, source in sources.items()})
            for sources in self.refusal_sources
        )

    @cached_property
    def digest(self) -> str:
        """Return a hash of all words and patterns."""
        refusals = [source for sources in self.refusal_sources for source in sources.values()]
        choices = self.decisions.sources
        sets = [sorted(own) for own in (self.generic_words, self.function_words, self.elisions)]
        content: tuple[object, ...] = self.codes, self.identity_terms, sets, self.no_identity_before, choices, refusals
        if self.thoughts:
            content = (*content, self.thoughts)
        return sha256(repr(content).encode()).hexdigest()

    def words(self, text: str) -> list[str]:
        code = next((code for code in self.codes if code in WITHOUT_BLANKS), None)
        separate = words(text) if code is None else segmented(text, code)
        return self._with_split_elisions(separate) if self.elisions else separate

    def _with_split_elisions(self, given: Iterable[str]) -> list[str]:
        """Return the words with each elision as a word of its own: "l'homme" becomes "l" and "homme"."""
        split: list[str] = []
        for word in given:
            first, apostrophe, rest = word.partition("'")
            split += [first, rest] if apostrophe and rest and first.casefold() in self.elisions else [word]
        return split

    def is_function_word(self, word: str) -> bool:
        """Return whether a word is a function word, or a contraction of a function word, such as "it's"."""
        word = word.casefold()
        return not self.function_words.isdisjoint((word, word.replace("'", ""), _CONTRACTION.sub("", word)))

    def content_words(self, given: Iterable[str]) -> list[str]:
        """Return the words without function words; if all words are function words, return all words."""
        all_words = list(given)
        return [word for word in all_words if not self.is_function_word(word)] or all_words

    def with_words(
        self, identity_terms: Iterable[str] = (), function_words: Iterable[str] = (), refusals: Sequence[str] = ()
    ) -> Language:
        """Return the language with further words, which a probe declares.

        Args:
            refusals: phrases; a text with one of them in its first sentence is a refusal. If there are phrases,
                `refusals_missing` becomes empty.
        """
        return replace(
            self,
            identity_terms=(*self.identity_terms, *identity_terms),
            function_words=self.function_words.union(map(normalise, function_words)),
            refusal_sources=(*self.refusal_sources, *([_phrase_sources(refusals)] if refusals else [])),
            refusals_missing=() if refusals else self.refusals_missing,
        )


@cache
def language(*codes: str) -> Language:
    """Return one `Language` for all of these ISO 639 codes; a language without a data file adds no words."""
    known = [_data(code) for code in codes if code in BUILT_IN]
    names = {code: NAMES.get(code, code) for code in codes}

    def joined(key: str) -> tuple[str, ...]:
        return tuple(word for data in known for word in data.get(key, ()))

    return Language(
        codes=codes,
        names=tuple(names.values()),
        identity_terms=joined("identity_terms"),
        generic_words=frozenset(joined("generic_words")),
        function_words=frozenset(joined("function_words")),
        no_identity_before={
            term: tuple(following) for data in known for term, following in data.get("no_identity_before", {}).items()
        },
        elisions=frozenset(joined("elisions")),
        decisions=_decision_words([data["choices"] for data in (*known, _data("en"))]),
        refusal_sources=tuple(
            _refusal_sources(_data(code)["refusals"]) for code in dict.fromkeys([*codes, "en"]) if code in BUILT_IN
        ),
        refusals_missing=tuple(name for code, name in names.items() if code not in BUILT_IN),
    )


def _decision_words(tables: Sequence[Mapping[str, Sequence[str]]]) -> DecisionWords:
    def either(name: str) -> str:
        return _either(dict.fromkeys(word for table in tables for word in table[name]))

    links = rf"(?:\s+{either('links')})*\s*(?:\([^()\n]{{0,40}}\)\s*)?"
    between = r"[\s\"'\u201c\u201e\u00ab(\[]*"
    mark = r"(?P<mark>[:=\u2013\u2014]|(?<=\s)-|,(?=\s))"
    return DecisionWords(
        label=re.compile(rf"(?<!n't )(?<!not )\b{either('labels')}{links}{mark}?{between}"),
        before=re.compile(rf"\b{either('before')}$"),
        after=re.compile(rf"{either('after')}\b"),
        negations=frozenset(word for table in tables for word in table["negations"]),
        denial=re.compile(rf"(?:\b(?:not|never|{either('negators')})|(?<!ca)n't)(?:\s+{either('before')})*$"),
        reason=re.compile(rf"\b{either('reasons')}\b"),
        unknown=re.compile(rf"(?<!\w){either('unknown')}"),
        takes_back=re.compile(rf"\b{either('takes_back')}\b[\s,:.!-]*"),
        commits=re.compile(rf"\b{either('commits')}\b"),
    )


@cache
def _data(code: str) -> Mapping[str, Any]:
    return tomllib.loads(files(__package__).joinpath("data", f"{code}.toml").read_text(encoding="utf-8"))


def _refusal_sources(data: Mapping[str, Any]) -> dict[str, str]:
    parts = data["parts"]

    def either(name: str) -> str:
        return _either(_expanded(pattern, parts) for pattern in data[name])

    return {
        "core": rf"\b{_expanded(_either(_grouped(data['core'])), parts)}",
        "own_life": either("own_life"),
        "late": either("late"),
        "unsure": either("unsure"),
        "opening": either("opening"),
        "redirection": either("redirection"),
        "lead": rf"\b{either('lead')}\b",
        "resumption": rf"(?:^|[.!?\n]\W*){either('resumption')}\b",
        "concession": rf"\b{either('concession')}\s*$",
        "praise": rf"\b{either('praise')}\b",
        "condition": rf"{either('condition')}\b",
        "continuation": rf"\b{either('continuation')}\b",
        "answered": rf"\b{either('answered')}\b",
        "offer": rf"\b{either('offer')}\W*$",
    }


def _phrase_sources(phrases: Iterable[str]) -> dict[str, str]:
    """Return a pattern, under the key `core`, that matches a text with one of the phrases in its first sentence."""
    either = _either(r"\s+".join(map(re.escape, normalise(phrase).split())) for phrase in phrases)
    return {"core": rf"^.*(?<!\w){either}(?!\w)"}


def _either(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


def _grouped(patterns: Iterable[str]) -> Iterator[str]:
    """Yield one pattern for all patterns that begin with the same name in braces, such as `{subject}`, or with none.

    The joined pattern takes less time, because it is tried only where the alternatives for this name match. Therefore,
    a pattern with several alternatives must repeat the name in each of them: `{subject} cannot|{subject} refuse`.
    """
    groups: dict[str | None, list[str]] = {}
    for pattern in patterns:
        groups.setdefault((part := _REQUIRED_PART.match(pattern)) and part[0], []).append(pattern)
    for first, group in groups.items():
        yield _either(group) if first is None else f"(?={first}){_either(group)}"


def _expanded(pattern: str, parts: Mapping[str, Sequence[str]]) -> str:
    """Return the pattern with each `{name}` replaced by the alternatives in `parts[name]`, until no name is left."""
    while _PART.search(pattern):
        pattern = _PART.sub(lambda match: _either(parts[match[1]]), pattern)
    return pattern


ENGLISH = language("en")


# Detection of texts in another language than those that a probe declares.
#
# Refusals and identity terms in such texts are not recognised.
#
# The language model of `py3langid` (naive Bayes over byte n-grams) is loaded when the first text is classified. A
# text counts as another language only if all declared languages are improbable; a short text never counts.

HEAD = 300
"""Number of characters at the beginning of a text that are classified; a refusal is at the beginning."""
FEWEST_WORDS = 3
"""A text with fewer words than this never counts as another language. Capitalised words are not counted, because titles
and names belong to no language; two characters count as a word in scripts without blanks."""
LEAST_PROBABLE = 0.001
"""A text counts as another language if the probability of each declared language is below this."""
SAMPLE = 500
"""Largest number of texts of a group that are classified."""
KEPT = 8 * SAMPLE
"""Largest number of texts whose language is kept in memory, because several audits read the same answers."""

MOST_LETTERS = 0.5
"""A text in an unknown language counts as another language if a larger share of its letters than this is not Latin."""


def foreign_shares(texts: Mapping[str, Iterable[str]], declared: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return, for each group, the share of texts in each undeclared language, the most frequent language first."""
    codes = tuple(declared)
    return {group: _shares(sorted(own, key=_sampling_order)[:SAMPLE], codes) for group, own in texts.items()}


def other_language(text: str, declared: Sequence[str]) -> str | None:
    """Return the name of a text's language; `None` if the text may be in a declared language, or cannot be classified.

    An unknown language in a script other than Latin has the name `another language`.
    """
    return _other_language(text[:HEAD], tuple(declared))


@lru_cache(maxsize=KEPT)
def _other_language(head: str, declared: tuple[str, ...]) -> str | None:
    scores = _scores(head)
    if max((score for code, score in scores if code in declared), default=1.0) >= LEAST_PROBABLE:
        return None
    return NAMES.get(scores[0][0]) or ("another language" if _is_in_another_script(head) else None)


@lru_cache(maxsize=KEPT)
def _scores(head: str) -> list[tuple[str, float]]:
    """Return the probability of each language, the most probable first; empty if a text cannot be classified."""
    return _ranking()(head) if _word_count(head) >= FEWEST_WORDS else []


def _is_in_another_script(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    return sum(character > "\u024f" for character in letters) > MOST_LETTERS * len(letters)


def _shares(texts: list[str], declared: tuple[str, ...]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for text, count in Counter(texts).items():
        if (language := other_language(text, declared)) is not None:
            counts[language] += count
    return {
        language: count / len(texts) for language, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair))
    }


def _sampling_order(text: str) -> tuple[int, str]:
    """Return a sort key that puts texts into a pseudo-random but reproducible order."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")), text


def _word_count(text: str) -> int:
    """Return the number of words that reveal a text's language; see `FEWEST_WORDS`."""
    count = 0.0
    for word in text.split():
        letters = [character for character in word if character.isalpha()]
        if letters and _is_written_without_blanks(letters[0]):
            count += len(letters) / 2
        elif letters and not letters[0].isupper():
            count += 1
    return int(count)


def _is_written_without_blanks(character: str) -> bool:
    # Thai, Lao, Myanmar and Khmer; kana, Han and related blocks.
    return "\u0e00" <= character <= "\u109f" or "\u1780" <= character <= "\u17ff" or "\u2e80" <= character <= "\u9fff"


@cache
def _ranking() -> Callable[[str], list[tuple[str, float]]]:
    """Return a function that ranks languages for a text: pairs (ISO 639 code, probability), most probable first."""
    # Deferred, as the model takes half a second to load and only measuring needs it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    # py3langid 0.4 needs NumPy 2. With NumPy 1, version 0.2 is installed. Its older model mistakes more lists of names
    # for texts in another language.
    load = getattr(LanguageIdentifier, "from_model_file", None) or LanguageIdentifier.from_pickled_model
    ranking: Callable[[str], list[tuple[str, float]]] = load(MODEL_FILE, norm_probs=True).rank
    return ranking
