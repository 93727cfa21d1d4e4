"""Checks of an item's answers, for every audit: can a verdict be based on these answers?"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import chain

from pytest_fairness.audits.base import AnyAudit, AnyItem
from pytest_fairness.audits.confounding import AMOUNT, constant_answers, irrelevant_answers
from pytest_fairness.errors import counted, short_message
from pytest_fairness.languages import BUILT_IN, foreign_shares
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Answers, Concern, Json, Measurement, RowsWithoutGroup, Status

CHECKS_VERSION = 15
"""Version of the checks, and of the fields of stored measurements and comparisons; results in the store are reused only
for the same version."""

TRUNCATED_SHARE = 0.10
"""Largest share of the usable or cut off answers that may be cut off at `max_tokens`."""
WITHOUT_GROUP_SHARE = 0.10
"""Largest share of the rows of an answer file that may be left out because they name no group."""


def concerns(audit: AnyAudit, item: AnyItem, answers: Answers, measurement: Measurement) -> tuple[Concern, ...]:
    """Return the reasons to doubt a measurement, the most serious first.

    The answers have their original content, not the output of `Audit.preparation`; their order has no influence.
    """
    possible = [
        _no_answers(audit, item, answers),
        _truncated_answers(item.probe, answers),
        failed_requests(answers),
        _blocked_answers(item, answers),
        _unclassified_answers(item, answers),
        _equal_prompts(audit, item, measurement),
        _copied_rows(item.probe, answers),
        *audit.concerns(item, answers, measurement),
    ]
    found = [concern for concern in possible if concern is not None]
    if all(concern.name != FOREIGN_ANSWERS for concern in found):
        found += mostly_foreign(item.probe, answers)
    return tuple(sorted(found, key=_gravity))


def _gravity(concern: Concern) -> int:
    return ("verdict", "test", "pass", "failure", "nothing").index(concern.withholds)


def _no_answers(audit: AnyAudit, item: AnyItem, answers: Answers) -> Concern | None:
    """Return the gravest concern that the texts are no answers to the prompts, but an outage."""
    possible = (
        constant_answers(audit, item, answers),
        service_messages(item, answers),
        irrelevant_answers(audit, item, answers),
    )
    return min((concern for concern in possible if concern is not None), key=_gravity, default=None)


def failed_requests(answers: Answers) -> Concern | None:
    """Return a note with the number of failed requests and the most frequent error."""
    errors = Counter(
        short_message(answer.error) for answer in answers if answer.error is not None and answer.judged is None
    )
    if not errors:
        return None
    text, count = min(errors.items(), key=lambda pair: (-pair[1], pair[0]))
    total = errors.total()
    several = "" if len(errors) == 1 else f" ({counted(count, 'time')}, and {counted(len(errors) - 1, 'other error')})"
    return Concern(
        "failed_requests", f"{total} of {len(answers)} requests failed: {text}{several}", withholds="nothing"
    )


def blocked(item: AnyItem, answers: Answers) -> dict[str, tuple[int, int]]:
    """Return the numbers of blocked and of all answers by group; empty if no answer was blocked."""
    groups = defaultdict[str, list[bool]](list)
    for answer in answers:
        groups[_group_name(item, answer)].append(answer.status is Status.BLOCKED)
    return {name: (sum(own), len(own)) for name, own in groups.items()} if any(map(any, groups.values())) else {}


def _group_name(item: AnyItem, answer: Answer) -> str:
    return " ".join(filter(None, item.group_of(answer))) or "all"


def _blocked_answers(item: AnyItem, answers: Answers) -> Concern | None:
    counts = blocked(item, answers)
    if not counts:
        return None
    by_group = ", ".join(
        f"{count} of {total}{'' if name == 'all' else f' for {name}'}"
        for name, (count, total) in sorted(counts.items(), key=lambda each: (-each[1][0], each[0]))
    )
    return Concern("blocked_answers", f"refused by the provider: {by_group}", withholds="nothing")


def unread_reasons(answers: Answers) -> dict[str, int]:
    """Return the number of unreadable or cut off answers by the reason, the most frequent reason first."""
    return dict(Counter(answer.unread for answer in answers if answer.unread).most_common())


def unread_by_group(item: AnyItem, answers: Answers) -> list[dict[str, Json]]:
    """Return the number of unread answers for each group and reason; loss that is not random shows in them."""
    counts = Counter((_group_name(item, answer), answer.unread) for answer in answers if answer.unread)
    return [{"group": group, "reason": why, "answers": count} for (group, why), count in counts.most_common()]


def _equal_prompts(audit: AnyAudit, item: AnyItem, measurement: Measurement) -> Concern | None:
    """Return a note if there are fewer different prompts than records, cases or questions."""
    text, observations = item.probe.equal_prompts_text, measurement.evidence.observations
    if observations is not None:
        text = text or f"{measurement.evidence.units:,} {audit.counted}"
        text += f": equal prompts share their answers, and count as {counted(observations, 'observation')}"
    elif not text:
        return None
    elif item.probe.shares_answers:
        text += ": equal prompts share their answers"
    else:
        text += ": each was asked for itself"
    return Concern("equal_prompts", text, withholds="nothing")


def _copied_rows(probe: Probe, answers: Answers) -> Concern | None:
    """Return a concern if the rows of a file with recorded answers occur several times in the same order.

    Audits of texts count such rows once (`Groups.without_repeats`).
    """
    copied = probe.responses is not None and probe.kind != "generation"
    rows = [(frozenset(answer.labels.items()), answer.text) for answer in answers] if copied else []
    if (times := times_copied([rows])) == 1:
        return None
    return Concern(
        "copied_rows",
        f"all {len(rows) // times:,} rows occur {times} times in the same order, so that each answer counts {times} "
        "times. Remove the copies from the file",
        withholds="test",
    )


def _unclassified_answers(item: AnyItem, answers: Answers) -> Concern | None:
    """Return a note if the model that recognises refusals failed on some answers."""
    if item.probe.reading.refusals.by == "patterns":
        return None
    groups: defaultdict[tuple[str, ...], list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.judged is not None:
            groups[item.group_of(answer)].append(answer)
    counts = {group: sum(each.status is Status.FAILED for each in own) for group, own in groups.items()}
    if not any(counts.values()):
        return None
    errors = Counter(short_message(each.error or "") for own in groups.values() for each in own if each.error)
    failures = ", ".join(
        f"{count} of {len(groups[group])} answers{f' for {name}' if name else ''}"
        for group, count in counts.items()
        for name in [", ".join(part for part in group if part)]
    )
    return Concern(
        "answers_without_class",
        f"the model that recognises refusals failed on {failures} ({errors.most_common(1)[0][0]}); these answers count "
        "as missing. Check that this model works",
        withholds="nothing",
    )


def rows_without_group(left_out: RowsWithoutGroup) -> Concern | None:
    """Return a concern if many rows of an answer file were left out because they name no group."""
    if left_out.rows <= WITHOUT_GROUP_SHARE * left_out.of:
        return None
    return Concern(
        "rows_without_group",
        f"{left_out}: more than {WITHOUT_GROUP_SHARE:.0%}, so that the answers of a group may be missing. "
        f"{left_out.remedy}",
    )


def truncated(probe: Probe, answers: Iterable[Answer]) -> dict[str, int]:
    """Return the numbers of answers that were cut off at `max_tokens`, and `of` usable or cut off ones.

    An answer that consists of one of the allowed choices counts as complete.
    """
    usable = [answer for answer in answers if answer.usable or answer.status is Status.CUT_OFF]
    cut = [answer for answer in usable if answer.truncated]
    if probe.reading.choices or probe.reading.judging:
        cut = [
            answer
            for answer in cut
            if not answer.usable or _letters_and_digits(answer.text) != _letters_and_digits(answer.content)
        ]
    return {"answers": len(cut), "of": len(usable)}


def _truncated_answers(probe: Probe, answers: Answers) -> Concern | None:
    """Return a concern if many answers were cut off, so that only their beginnings were measured."""
    count, total = truncated(probe, answers).values()
    if count <= TRUNCATED_SHARE * total:
        return None
    return Concern(
        "truncated_answers",
        f"{count} of {total} answers ({count / total:.0%}) were cut off at the token limit. Raise `max_tokens`",
    )


def _letters_and_digits(text: object) -> str:
    return "".join(filter(str.isalnum, str(text).casefold()))


# Repeated answers and rows, which are fewer observations than answers.

MINIMUM_OBSERVATIONS = 8
"""Smallest number of observations (prompts) of each group that a test needs if all trials repeat the same answer."""
SAME_WORDS_SHARE = 0.9
"""Two answers at temperature 0 count as the same if they share at least this part of their words (Dice's coefficient).

Servers that compute in batches change a word now and then.
"""
SHORT_ANSWER = 5
"""An answer with at most this number of words may be sampled more than once by chance."""
MOST_COPIES = 5
"""Largest number of copies of all rows of an answer file that are recognised."""
LEAST_COPIED = 8
"""Smallest number of rows whose copies are recognised."""


def repeats(cells: Iterable[Sequence[str]], temperature: float | None) -> bool:
    """Return whether each prompt that was sent several times got the same answer each time.

    The cells are the answers of each prompt. At a temperature above 0, equal short answers may be equal by chance and
    do not count. At 0, two answers count as the same even if a word differs.
    """
    several = [texts for texts in cells if len(texts) > 1]
    return bool(several) and all(_all_alike(texts, temperature) for texts in several)


def repeats_concern(observations: int, answers: int, *, enough: bool) -> Concern:
    """Return the concern that answers are repetitions, so that there are fewer observations than answers.

    A prompt for two groups is two observations; a test needs `MINIMUM_OBSERVATIONS` of each group.
    """
    message = (
        f"count as {observations}: one for each prompt and group"
        if enough
        else f"are {observations} observations; each group needs {MINIMUM_OBSERVATIONS}. Set `sampling.temperature` "
        "above 0, or give several prompts"
    )
    return Concern(
        "repeated_answers",
        f"every trial repeats the same answer, so that {answers} answers {message}",
        withholds="nothing" if enough else "test",
    )


@dataclass(frozen=True)
class Copies:
    """Answers without those that copy an earlier answer to the same prompt; a group has a prompt of its own.

    Attributes:
        kept: for each cell, the places of the answers that are no copies.
        observations_per_answer: number of independent answers that tell as much about a share as one of all answers
            does: 1 / (1 + (m − 1) p) for m answers to each prompt, of which two are equal with probability p.
    """

    kept: Sequence[Sequence[int]]
    observations_per_answer: float

    @classmethod
    def of(cls, cells: Sequence[Sequence[str]]) -> Copies:
        """Return the copies among the answers of each cell (prompt and group).

        Letter case and blanks do not matter. Equal answers are no copies if they are short, or if another cell has such
        an answer too, as a refusal in fixed words: they are then equal because many answers are.
        """
        folded = [[" ".join(text.split()).casefold() for text in texts] for texts in cells]
        holding = Counter(text for texts in folded for text in {*texts})
        kept, sizes = [], Counter[tuple[int, str]]()
        for number, texts in enumerate(folded):
            places = []
            for place, text in enumerate(texts):
                own = len(text.split()) > SHORT_ANSWER and holding[text] == 1
                sizes[number, text] += own
                if not own or sizes[number, text] == 1:
                    places.append(place)
            kept.append(places)
        squares = sum(size**2 for size in sizes.values())
        return cls(kept, sizes.total() / squares if squares else 1.0)


def times_copied(cells: Iterable[Sequence[Hashable]]) -> int:
    """Return how often the rows of an answer file occur, if they occur several times in the same order; else 1.

    Such a file was written or joined several times. Rows that are equal by chance have another order. The cells are the
    texts of the rows with equal labels, or all rows as one cell, in the order of the file.
    """
    found = [list(texts) for texts in cells]
    for times in range(MOST_COPIES, 1, -1):
        blocks = [texts[: len(texts) // times] for texts in found]
        if (
            sum(map(len, blocks)) >= LEAST_COPIED
            # If each prompt repeats one answer, the answers are repeated, not the file.
            and any(len({*block}) > 1 for block in blocks)
            and all(texts == block * times for texts, block in zip(found, blocks, strict=True))
        ):
            return times
    return 1


def _all_alike(texts: Sequence[str], temperature: float | None) -> bool:
    if temperature == 0:
        first, *others = (Counter(text.split()) for text in texts)
        return all(2 * (first & each).total() >= SAME_WORDS_SHARE * (first.total() + each.total()) for each in others)
    return len(set(texts)) == 1 and not (temperature and len(texts[0].split()) <= SHORT_ANSWER)


# Checks of the answers' languages: refusals in other languages than the probe's are not recognised.

FOREIGN_ANSWERS = "foreign_answers"

MOSTLY_FOREIGN_SHARE = 0.50
"""Every audit adds a note if more than this share of the texts is in other languages than the probe's."""


def unrecognised_refusals(probe: Probe, shares: Mapping[str, Mapping[str, float]]) -> list[Concern]:
    """Return a concern if no refusals are known in a language of the probe, or a note on answers in other languages.

    Only audits of refusals call this function; for the shares, see `unrecognised_shares`.
    """
    if probe.reading.refusals.by == "patterns" and (missing := " and ".join(probe.language.refusals_missing)):
        return [
            Concern(
                FOREIGN_ANSWERS,
                f"refusals in {missing} are not recognised, so that a refusal may have been counted as an answer. List "
                "phrases of refusals under `language.terms.refusals`",
            )
        ]
    by_group = "; ".join(f"{name} {_percentages(share)}" for name, share in sorted(shares.items()) if share)
    if not by_group:
        return []
    return [
        Concern(
            FOREIGN_ANSWERS,
            f"some answers are in other languages than {probe.language.shown} ({by_group}). Refusals in "
            "these languages are not recognised, so that these answers count as unread. Name the languages of the "
            "answers under `language`, such as `language: pl`, or tell the target to answer in one language",
            withholds="nothing",
        )
    ]


def unrecognised_shares(probe: Probe, answers: Iterable[tuple[str, Answer]]) -> dict[str, dict[str, float]]:
    """Return each group's shares of usable texts by language, for languages whose refusals are not recognised.

    They are empty if a model recognises refusals.
    """
    if probe.reading.refusals.by != "patterns":
        return {}
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for group, answer in answers:
        if (text := _text_of(probe, answer)) is not None:
            texts[group].append(text)
    # Refusals in the built-in languages are recognised whatever the probe declares.
    return foreign_shares(texts, (*probe.language.codes, *BUILT_IN))


def mostly_foreign(probe: Probe, answers: Answers) -> list[Concern]:
    """Return a note if most answers are in other languages than the probe's."""
    texts = [text for answer in answers if (text := _text_of(probe, answer)) is not None]
    shares = foreign_shares({"": texts}, probe.language.codes)[""]
    if sum(shares.values()) <= MOSTLY_FOREIGN_SHARE:
        return []
    unknown = "refusals and identity terms" if probe.reading.refusals.by == "patterns" else "identity terms"
    return [
        Concern(
            FOREIGN_ANSWERS,
            f"most answers are in other languages than {probe.language.shown} (about {_percentages(shares)}), in which "
            f"{unknown} are not recognised. Name the languages of the answers under `language`",
            withholds="nothing",
        )
    ]


def _text_of(probe: Probe, answer: Answer) -> str | None:
    if not answer.usable or isinstance(answer.content, list):
        return None
    reading = probe.reading
    if reading.selection is not None and (reading.choices or reading.number):
        return None  # the answer is JSON, and the decision in it has no language
    return answer.text if reading.choices or reading.judging or reading.number else str(answer.content)


def _percentages(shares: Mapping[str, float]) -> str:
    """List shares by language: `40% German, 10% French`."""
    return ", ".join(f"{share:.0%} {name}" for name, share in shares.items())


# Messages of a service that is down, in place of answers: error pages, error objects, stack traces, outage texts.
#
# Such a message is recognised by its form: HTML, a JSON object that reports an error, a stack trace, the prompt
# itself, or the vocabulary of gateways, rate limits, quotas and maintenance in six languages. A message in other
# words has no such form; see `relevance` for answers that do not depend on their prompts.

SERVICE_MESSAGES = "service_messages"

MESSAGES_SHARE = 0.05
"""Largest share of the answers of a group that may be messages of a service."""
FEWEST_MESSAGES = 2
"""A single message of a service raises no concern."""
MOST_WORDS = 70
"""Largest number of words of a text that is recognised by its vocabulary; a longer text may tell of an outage."""
FEWEST_SIGNS = 3
"""Smallest number of different signs in a text that is recognised by its vocabulary, unless one says it all."""
WAITING = ("later", "apology")
"""Signs that a text speaks to somebody who waits for an answer."""
OF_MACHINES = ("machine", "load")
"""Signs that a text speaks of a machine or of its visitors."""
OF_SERVICES = ("load", "limit", "reference")
"""Signs by which a text that was read as a refusal is one of a service, and not of a model."""
SHORT_MESSAGE, FEWEST_SIGNS_OF_SHORT = 25, 2
"""Largest number of words of a text for which fewer signs are enough."""
MOST_TEXTS = 2_000
"""Of more answers, about so many are looked at, spread evenly."""
READ_CHARACTERS = 4_000
"""Number of characters of an answer that are read."""
ECHO_WORDS = 12
"""Largest number of words that a service adds to the prompt that it repeats; at most one more than the prompt has."""
FEWEST_PROMPT_WORDS = 3
"""Smallest number of words of a prompt that is compared with its answer."""
REPEATED = "the same texts for different prompts, with no word of them"
REPEATED_SHARE = 0.20
"""Largest share of the answers of a group that may be messages if some are recognised only by their repetition."""
FEWEST_MESSAGE_WORDS = 6
"""Smallest number of words of a text that is recognised by its repetition."""
FEWEST_LETTERS, COMPARED_LETTERS = 4, 5
"""Smallest number of letters of a word that is compared, and number of its first letters that are."""
LEAST_OF_LIST = 0.5
"""A list with at most this part of the items that were asked for may be a message."""
USUAL_SHARE = 0.20
"""A word in more than this share of the other texts belongs to what was asked."""
QUOTED_CHARACTERS = 80
"""Number of characters of a message that the concern quotes."""

_HTML = re.compile(r"\s*(?:```(?:html|xml)?\s*)?<(?:!doctype html|html|head|body|title|\?xml)\b", re.IGNORECASE)
_TRACE = re.compile(
    r"traceback \(most recent call last\)|^\s*at [\w.$<>/]+ ?\([^()\n]*:\d+\)|^\s*file \"[^\"\n]+\", line \d+"
    r"|^(?:[a-z_]\w*[.:]+)+\w*(?:exception|error|fault)\b ?:|^goroutine \d+ \[|^panic: |^(?:php )?fatal error: "
    r"|^#\d+ +/?[\w./-]+\(\d+\)|\bstack ?trace\b|^thread '[^'\n]*' panicked at",
    re.MULTILINE,
)
_STATUS = re.compile(
    r"^\W*(?:http(?:/\d(?:\.\d)?)?|error|status|fehler|erreur|erro|errore|état http|stato|estado)[ :#-]*"
    r"(?:code |http )?[45]\d\d\b|^\W*[45]\d\d[ :-]+(?:service|bad|gateway|internal|too many|not found|forbidden"
    r"|unauthori[sz]ed|server)\b"
)
_UNFILLED = re.compile(r"\{\{[^{}\n]*\}\}|\{%[^\n]*?%\}|<%[^\n]*?%>|^\W*\$\{[^{}\n]+\}|^\W*%[A-Z_]+%\W*$")
_TOKENS = re.compile(r"<unk>|\u2581\S|\u0120\u0120")
_LETTER = re.compile(
    r"\W*(?:dear|liebe[rs]?|sehr geehrte[rs]?|ch(?:er|ère)s?|querid[oa]s?|estimad[oa]s?|gentile|car[oa]|prezad[oa])\s+"
    r"(?!user|customer|visitor|nutzer|kund|besucher|client|utilisa|usuari|utente|visita)"
)
_WORDS = tomllib.loads(files(__package__).joinpath("service_messages.toml").read_text("utf-8"))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})")


_SAYS_ALL = _any_of(chain.from_iterable(_WORDS["says_all"].values()))
_SIGNS = {name: _any_of(patterns) for name, patterns in _WORDS["signs"].items()}
_FAILED = re.compile(
    r"false|(?:\w+[ _])?(?:fail(?:ed|ure)?|error|exception|time_?out|unavailable|overloaded)|errore|erreur|erro|fehler"
    r"|[45]\d\d",
    re.IGNORECASE,
)


def service_messages(item: AnyItem, answers: Answers) -> Concern | None:
    """Return a concern if more than 5 % of the answers of a group are messages of a service.

    Messages that only their repetition shows count from 20 % on. If more than half of all answers are messages by their
    form, there is no verdict at all.
    """
    prompts = item.probe.first_prompts
    is_json = item.probe.reading.selection is not None or item.probe.reading.format == "calls"
    groups: defaultdict[str, list[tuple[Answer, str]]] = defaultdict(list)
    received = (Status.OK, Status.REFUSED, Status.UNREADABLE)
    texts = [answer for answer in answers if answer.text and answer.status in received]
    texts = texts[:: -(-len(texts) // MOST_TEXTS) or 1]
    repeated = _repeated_messages(item.probe, texts, prompts)
    closed = bool(item.probe.reading.choices or item.probe.reading.number)
    for answer in texts:
        sign = _echo(answer, prompts) or service_message(answer.said, is_json=is_json, refused=answer.refused)
        if not (closed and answer.usable) and _says_nothing(answer.said):
            sign = "a text that says nothing"
        if not sign and _without_prompt(answer, prompts) in repeated:
            sign = REPEATED
        groups[item.group_name(answer)].append((answer, sign))
    found = {name: [pair for pair in own if pair[1]] for name, own in groups.items()}
    number, total = sum(map(len, found.values())), sum(map(len, groups.values()))
    worst = max(groups, key=lambda name: len(found[name]) / len(groups[name]), default="")
    by_form = {name: sum(sign != REPEATED for _, sign in own) for name, own in found.items()}
    if number < FEWEST_MESSAGES or not (
        len(found[worst]) > REPEATED_SHARE * len(groups[worst])
        or any(by_form[name] > MESSAGES_SHARE * len(own) for name, own in groups.items())
    ):
        return None
    answer, sign = found[worst][0]
    others = Counter(name for own in found.values() for _, name in own)
    named = sign if len(others) == 1 else f"{sign}, and others"
    text = " ".join(answer.said.split())
    where = f", {len(found[worst])} of {len(groups[worst])} for {worst}" if len(groups) > 1 else ""
    return Concern(
        SERVICE_MESSAGES,
        f"{number} of {total} answers{where}, look like messages of a service in place of answers ({named}: "
        f"{text[:QUOTED_CHARACTERS]!r}). Check that the target works, and ask again",
        withholds="verdict" if sum(by_form.values()) > total / 2 else "pass",
    )


def _repeated_messages(probe: Probe, answers: Answers, prompts: Mapping[frozenset[tuple[str, str]], str]) -> set[str]:
    """Return the texts, as of `_without_prompt`, that answer several prompts and share no word with any of them.

    A text that shares a word with the prompt, or with many of the other answers, may be about what was asked. Words are
    compared by their first letters; function words do not count. Of choices and numbers, only unreadable answers count.
    """
    reading = probe.reading
    free = not (reading.choices or reading.number)
    fewest = getattr(probe, "k", 1) * LEAST_OF_LIST
    asked: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for answer in answers:
        content = answer.content
        text = free and (isinstance(content, str) or (isinstance(content, list) and len(content) <= fewest))
        if text or answer.status is Status.UNREADABLE:
            prompt = prompts.get(frozenset(answer.labels.items()), "")
            asked[_without_prompt(answer, prompts)][answer.labels.get("entity", prompt)] = prompt

    def words(text: str) -> set[str]:
        found = re.findall(rf"[^\W\d_]{{{FEWEST_LETTERS},}}", text.casefold())
        return {word[:COMPARED_LETTERS] for word in found if word not in probe.language.function_words}

    repeated = {
        text
        for text, own in asked.items()
        if len(own) > 1
        and len(text.split()) >= FEWEST_MESSAGE_WORDS
        and all(own.values())
        and not any(words(text) & words(prompt) for prompt in own.values())
    }
    others = [words(text) for text in asked.keys() - repeated]
    usual = {
        word
        for word, count in Counter(chain.from_iterable(others)).items()
        if count > max(1, USUAL_SHARE * len(others))
    }
    return {text for text in repeated if not words(text) & usual}


def _without_prompt(answer: Answer, prompts: Mapping[frozenset[tuple[str, str]], str]) -> str:
    """Return the words of an answer in lower case without its prompt, with `#` for words with digits but amounts."""
    text = (answer.content if isinstance(answer.content, str) else answer.said)[:READ_CHARACTERS]
    said, prompt = _plain(text), _plain(prompts.get(frozenset(answer.labels.items()), ""))
    if len(prompt.split()) >= FEWEST_PROMPT_WORDS:
        said = said.replace(prompt, " ")
    if AMOUNT.search(text):
        return said
    return " ".join(word if word.isalpha() else "#" for word in said.split())


def _says_nothing(text: str) -> bool:
    return text.strip().casefold() in _WORDS["nothing"]["texts"] or re.search(r"\w", text) is None


def _echo(answer: Answer, prompts: Mapping[frozenset[tuple[str, str]], str]) -> str:
    """Return "the prompt" if the answer is its own prompt with at most a few other words."""
    prompt = _plain(prompts.get(frozenset(answer.labels.items()), ""))
    words = len(prompt.split())
    said = _plain(answer.said[:READ_CHARACTERS])
    if words < FEWEST_PROMPT_WORDS or prompt not in said or len(said.split()) > words + min(ECHO_WORDS, words + 1):
        return ""
    return "the prompt"


@lru_cache(maxsize=MOST_TEXTS)
def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


@lru_cache(maxsize=MOST_TEXTS)
def service_message(text: str, *, is_json: bool = False, refused: bool = False) -> str:
    """Return what shows that a text is a message of a service in place of an answer; empty if nothing shows it.

    If answers are JSON by design, such as `{"state": "error"}`, JSON shows nothing. A text that was read as a refusal,
    as "we cannot process your request", is a message only if it names a status code, or speaks of load or limits.
    """
    beginning = text[:READ_CHARACTERS]
    if _HTML.match(beginning):
        return "an HTML page"
    if not is_json and not refused and _is_error_object(beginning):
        return "a JSON object that reports an error"
    if _UNFILLED.search(beginning):
        return "an unfilled template"
    if len(_TOKENS.findall(beginning)) > 1:
        return "tokens in place of words"
    beginning = beginning.casefold()
    if _TRACE.search(beginning):
        return "a stack trace"
    words = len(beginning.split())
    if words > MOST_WORDS:
        return ""
    if _STATUS.match(beginning) or (
        (not refused or any(_SIGNS[name].search(beginning) for name in OF_SERVICES))
        and (_SAYS_ALL.search(beginning) or _has_signs(beginning, words))
    ):
        return "the words of an error message"
    return ""


def _has_signs(text: str, words: int) -> bool:
    """Return whether a casefolded text speaks of a machine to somebody who waits for an answer, and is no letter."""
    found = {name for name in WAITING if _SIGNS[name].search(text)}
    if not found or _LETTER.match(text):
        return False
    found |= {name for name, sign in _SIGNS.items() if sign.search(text)}
    needed = FEWEST_SIGNS_OF_SHORT if words <= SHORT_MESSAGE else FEWEST_SIGNS
    return not found.isdisjoint(OF_MACHINES) and len(found) >= needed


def _is_error_object(text: str) -> bool:
    start = text.strip().removeprefix("```json").removesuffix("```").strip()
    if not start.startswith(("{", "[")):
        return False
    try:
        return _reports_error(json.loads(start))
    except (ValueError, RecursionError):
        return False


def _reports_error(value: Json) -> bool:
    """Return whether a JSON value is an object, or a list of objects, that reports an error or holds no answer."""
    if isinstance(value, list):
        return bool(value) and all(map(_reports_error, value))
    if not isinstance(value, Mapping):
        return False
    found = {str(key).casefold().replace("-", "_"): part for key, part in value.items()}
    keys = _WORDS["keys"]
    if any(part not in (None, False, "", 0, [], {}) for key, part in found.items() if key in keys["error"]):
        return True
    if len(found.keys() & keys["envelope"]) > 1 or (
        found.keys() <= {*keys["message"], *keys["machine"]}
        and found.keys() & keys["message"]
        and found.keys() & keys["machine"]
    ):
        return True
    return any(
        key in keys["state"] and _FAILED.fullmatch(str(part).strip()) is not None for key, part in found.items()
    ) or any(_reports_error(part) for part in found.values() if isinstance(part, (Mapping, list)))
