"""Change of verbs if a singular "they" replaces "he" or "she": "he works" becomes "they work"."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pytest_fairness.languages.swaps.english.tokens import SENTENCE_END, Tokens
from pytest_fairness.languages.swaps.english.words import gender, third_person, words
from pytest_fairness.languages.swaps.reading import CannotSwapError

_CLAUSE_ENDS = frozenset(["", *SENTENCE_END, ",", "/"])
_ADVERBS_OF_TWO = frozenset(["no longer", "in fact", "of course", "at least", "as well", "kind of", "sort of"])


def base(verb: str) -> str:
    """Return the basic form of a verb in the third person: "works" becomes "work"."""
    irregular: Mapping[str, str] = gender()["irregular"]
    if verb in irregular:
        return irregular[verb]
    if re.search(r"[^aeiou]ies$", verb):
        return verb[:-3] + "y"
    return verb[:-2] if re.search(r"(?:ch|sh|ss|x|zz|[^aeiou]o)es$", verb) else verb[:-1]


def is_subject(word: str) -> bool:
    """Return whether the word is "he" or "she", or a contraction such as "he's"."""
    return re.fullmatch(r"(?:he|she)(?:'(?:s|d|ll))?|hes|shes", word) is not None


def plural_contraction(tokens: Tokens, index: int) -> str:
    """Return the contraction with "they" in place of "he" or "she": "he'd" becomes "they'd".

    Raises:
        CannotSwapError: "he's" may be "he is" or "he has".
    """
    word = tokens.lower(index)
    plain = word in ("hes", "shes")
    if not plain and not word.endswith("'s"):
        return "they" + word[word.index("'") :]
    after = _after_adverbs(tokens, index + 1)
    verb, then = tokens.lower(after), tokens.lower(after + 1)
    has, is_ = ("theyve", "theyre") if plain else ("they've", "they're")
    if verb in words("agreement", "has"):
        return has
    if verb.endswith("ed") or verb in words("agreement", "participles"):
        # A time is no object: "he's covered this year".
        is_time = tokens.lower(after + 2).rstrip("s") in words("pronouns", "units")
        objects = words("agreement", "object_starts") - {"to", "about", "that", "how", "what", "why", "whether"}
        if then in objects and not is_time:
            return has
        if verb in words("agreement", "is"):
            return is_
        raise CannotSwapError(f"'{tokens.all[index].text} {verb}' may contain 'is' or 'has'")
    return is_


def verb_edits(tokens: Tokens, index: int) -> list[tuple[int, str]]:
    """Return the position and new form of each verb that changes if the subject at `index` becomes "they".

    Raises:
        CannotSwapError: it is unclear which verbs belong to the subject.
    """
    subject = tokens.lower(index)
    contracted = subject not in ("he", "she")
    edits: list[tuple[int, str]] = []
    first = _after_parenthesis(tokens, _after_adverbs(tokens, index + 1))
    if not contracted:
        if _is_unclear(tokens, index, first):
            raise CannotSwapError(f"the verb of '{tokens.all[index].text}' is unclear")
        if tokens.lower(first) in ("and", "or"):
            return []
        finite = _plural(tokens, first)
        if (inverted := tokens.lower(index - 1)) in _auxiliaries() and _is_inverted(tokens, index, first, finite):
            edits.append((index - 1, _auxiliaries()[inverted]))
        elif finite:
            edits.append((first, finite))
    return edits + _coordinated_edits(tokens, first, tokens.lower(index - 1) == ",")


def _is_unclear(tokens: Tokens, index: int, first: int) -> bool:
    """Return whether it is unclear if the word at `first` is the verb of the subject at `index`."""
    verb, after = tokens.lower(first), tokens.lower(first + 1)
    if re.fullmatch(
        r"(?:what|where|when|how|who|why)'?s", tokens.lower(index - 1)
    ):  # "what's he need", "what's he like"
        return True
    inverted = tokens.lower(index - 1) in _auxiliaries()
    if verb in ("who", "that", "(", "–", "—", "-") or (verb == "," and after == "who"):
        return True
    if verb in ("and", "or"):
        return inverted
    if verb in words("agreement", "no_verbs_after_subject"):
        return not inverted
    verbs = words("agreement", "third_person") | _auxiliaries().keys()
    if not tokens.is_word(first):
        # A mark, as in "<b>he</b> is", unless it ends the clause.
        return verb not in _CLAUSE_ENDS and any(tokens.lower(first + distance) in verbs for distance in range(1, 5))
    known = verb.endswith("ed") or verb in words("agreement", "modals") | words("agreement", "past")
    return not known and not _plural(tokens, first) and after in verbs


def _auxiliaries() -> Mapping[str, str]:
    """Return each auxiliary verb with its form after "they": "is" becomes "are"."""
    auxiliaries: Mapping[str, str] = gender()["auxiliaries"]
    return auxiliaries


def _after_adverbs(tokens: Tokens, index: int) -> int:
    adverbs = words("agreement", "adverbs")
    while True:
        word = tokens.lower(index)
        if word in adverbs or (
            word.endswith("ly") and word not in words("agreement", "verbs_in_ly") and tokens.is_word(index)
        ):
            index += 1
        elif f"{word} {tokens.lower(index + 1)}" in _ADVERBS_OF_TWO:
            index += 2
        else:
            return index


def _after_parenthesis(tokens: Tokens, index: int) -> int:
    """Return the position after the parenthesis (between commas or brackets) that begins at `index`.

    Return `index` if no parenthesis begins there; a clause with "who" does not count as a parenthesis.
    """
    end = {",": ",", "(": ")"}.get(tokens.lower(index))
    if end is None or tokens.lower(index + 1) == "who":
        return index
    for other in range(index + 1, min(index + 8, len(tokens.all))):
        if tokens.all[other].text in ".!?;:\n":
            break
        if tokens.all[other].text == end:
            return _after_adverbs(tokens, other + 1)
    return index


def _plural(tokens: Tokens, index: int) -> str:
    """Return the form after "they" of the verb at `index`: "works" becomes "work"; "" if the word does not change."""
    word = tokens.lower(index)
    if word in _auxiliaries():
        return _auxiliaries()[word]
    if not tokens.is_word(index) or not word.endswith("s") or word.endswith("ss") or "'" in word:
        return ""
    if word == "thanks" and tokens.lower(index + 1) == "to":
        return ""
    return "" if word in words("agreement", "no_verbs") else base(word)


def _is_inverted(tokens: Tokens, index: int, first: int, finite: str) -> bool:
    """Return whether the auxiliary before a subject is the subject's verb, as in "is he ready".

    Args:
        tokens: tokens of the text.
        index: position of the subject.
        first: position of the first word after the subject that may be its verb.
        finite: form after "they" of the word at `first`; "" if the word does not change.

    Raises:
        CannotSwapError: it is unclear which word is the verb.
    """
    verb = tokens.lower(first)
    if finite or verb in words("agreement", "modals"):
        return False
    if (verb.endswith("ed") or verb in words("agreement", "past")) and tokens.lower(index - 1) in ("is", "was"):
        if tokens.starts_sentence(index - 1) or tokens.lower(index - 2) in words("agreement", "clause_starts"):
            return True
        before = index - 2
        while before >= 0 and not tokens.starts_sentence(before):
            before -= 1
        if tokens.lower(before) in ("how", "what", "which", "when", "where", "why"):
            return True
        raise CannotSwapError(f"the verb of '{tokens.all[index].text}' is unclear")
    return True


def _coordinated_edits(tokens: Tokens, first: int, inserted: bool) -> list[tuple[int, str]]:
    """Return the edits (see `verb_edits`) of further verbs of the same subject: "and lives", ", doesn't see".

    Args:
        tokens: tokens of the text.
        first: position of the first verb.
        inserted: whether a comma is before the subject, so that the clause may be inserted: "the card, he says, is".

    Raises:
        CannotSwapError: it is unclear whether a word is a verb, or whether it belongs to the subject.
    """
    edits: list[tuple[int, str]] = []
    verbs = {first}
    other_clause = False
    index = first + 1
    while (token := tokens.at(index)) is not None:
        if token.kind == "line" or (token.text in ".!?:…" and tokens.starts_sentence(index + 1)):
            break
        if is_subject(token.lower):
            break
        conjunction = token.lower in words("agreement", "conjunctions")
        if conjunction:
            candidate = _after_adverbs(tokens, index + 1)
            while tokens.lower(candidate) in ("and", "but", "then", "or"):
                candidate = _after_adverbs(tokens, candidate + 1)
            plural = "" if is_subject(tokens.lower(candidate)) else _coordinated_plural(tokens, index, candidate, verbs)
            if plural:
                if other_clause or (inserted and token.text == "," and index == first + 1):
                    raise CannotSwapError(f"the subject of '{tokens.all[candidate].text}' is unclear")
                edits.append((candidate, plural))
                verbs.add(candidate)
            index = max(candidate, index + 1)
            if plural:
                index += 1
            continue
        if _begins_clause(tokens, index):
            other_clause = True
        index += 1
    return edits


def _begins_clause(tokens: Tokens, index: int) -> bool:
    """Return whether the word at `index` may be another subject, or the verb of another subject."""
    word, after = tokens.lower(index), tokens.at(index + 1)
    if word in ("it", "you", "this", "that", "these", "those"):
        joins = words("agreement", "conjunctions") | words("agreement", "prepositions")
        return after is not None and after.kind == "word" and after.lower not in joins
    finite = {*_auxiliaries(), *words("agreement", "modals"), *words("agreement", "finite")}
    after_verb = tokens.lower(index - 1) in {"to", *words("agreement", "modals")}
    return word in words("agreement", "other_subjects") or (word in finite and not after_verb)


def _coordinated_plural(tokens: Tokens, conjunction: int, index: int, verbs: Collection[int]) -> str:
    """Return the form after "they" of the word behind a conjunction; "" if the word is no verb of the subject.

    Args:
        tokens: tokens of the text.
        conjunction: position of the conjunction.
        index: position of the word.
        verbs: positions of verbs of the subject.

    Raises:
        CannotSwapError: the word may be a verb or a noun.
    """
    plural, word = _plural(tokens, index), tokens.lower(index)
    if word in _auxiliaries() and tokens.lower(index + 1) in ("that", "this", "it", "there"):
        return ""  # a question with another subject: "he snores, is that dangerous?"
    before = tokens.lower(index - 1)
    after_adverb = index > conjunction + 1 and before not in words("agreement", "conjunctions")
    if not plural or word in _auxiliaries():
        return plural
    if tokens.lower(conjunction) in ("-", "/", "+"):
        return ""
    after = tokens.lower(index + 1)
    object_after = after in words("agreement", "object_starts") or after.isdigit()
    known = third_person("only_verbs")
    if before not in words("agreement", "before_nouns"):
        known |= words("agreement", "third_person")
    if after_adverb and word not in known:  # "and often calls", but "especially cars"
        raise CannotSwapError(f"'{tokens.all[index].text}' may be a verb or a noun")
    noun_before = conjunction - 1 not in verbs and _plural(tokens, conjunction - 1) != ""
    if word in words("agreement", "third_person"):
        if noun_before and not object_after and word in words("agreement", "also_nouns"):
            raise CannotSwapError(f"'{tokens.all[index].text}' may be a verb or a noun")
        return plural
    if tokens.is_capitalised(index) or word not in third_person("only_verbs") | third_person("also_nouns"):
        return ""
    if word in third_person("only_verbs"):
        return plural
    if after in words("agreement", "object_starts") - {"to", "about", "that", "all", "both"} and not noun_before:
        return plural
    raise CannotSwapError(f"'{tokens.all[index].text}' may be a verb or a noun")
