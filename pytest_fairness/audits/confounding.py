"""Checks for answers that depend on other columns than the group, or on no part of their prompts."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.base import AnyAudit, AnyItem
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.probes.identity_terms import name_label
from pytest_fairness.records import Answer, Answers, Concern, OtherColumn, Status
from pytest_fairness.stats import resampling
from pytest_fairness.stats.gaps import Association, association
from pytest_fairness.stats.resampling import Floats

# Columns of answer files that predict the group, so that a difference between groups may be due to them.

CONFOUNDING = "confounding"
"""Name of the concern."""
CHANCE = 0.005
"""Largest probability that a column of a file is named although the groups have the same values."""
SMALLEST_V = 0.1
"""Smallest Cramér's V with which a column is named."""
LEAST_EXPECTED = 2.0
"""Smallest expected number of rows of the smallest group with a value; rarer values are tested as one value."""
MOST_VALUES = 30
"""Largest number of values that are tested; rarer values are tested as one value."""
SHARED_ROWS = 0.5
"""Smallest share of the rows whose value occurs in several groups, so that groups can be compared within values."""
LONGEST_VALUE = 40
"""Largest number of characters of a value in a message."""
Cell = tuple[object, str, str]
"""Stratum, group and value of rows."""
PLAIN_NAME = re.compile(r"[^\W\d][\w .-]*\w|[^\W\d]")
"""Name of a column that needs no quotation marks in YAML."""


@dataclass(frozen=True)
class Confounder:
    """Column that predicts the group.

    Attributes:
        label: name of the label that holds the group, such as an axis.
        note: note on the file: the column, how strongly it predicts the group, and what to do.
        strength: the column with Cramér's V, for the reasons of items; empty if hardly any value occurs in several
            groups, as for a column that only describes the group.
    """

    label: str
    note: str
    strength: str


def confounding_concern(found: Sequence[Confounder]) -> Concern | None:
    """Return the note for the reason of an item, if a column predicts the item's groups."""
    strengths = ", ".join(each.strength for each in found if each.strength)
    if not strengths:
        return None
    return Concern(CONFOUNDING, f"undeclared columns predict the group: {strengths}", withholds="nothing")


def confounders(
    columns: Sequence[OtherColumn], strata: Sequence[str], without_identity_terms: Callable[[str], str]
) -> list[Confounder]:
    """Return the unused columns of the answer files that predict the group within the declared strata.

    A column that differs only in words that name a group (which `without_identity_terms` masks), such as one of
    pronouns, describes the group and is not named.
    """
    found = []
    for column in columns:
        counts = Counter[Cell]()
        for (stratum, group, value), count in column.counts.items():
            counts[stratum, group, without_identity_terms(value)] += count
        if not counts:
            continue
        measured = association(_table(counts))
        if measured.p_value <= CHANCE / len(columns) and measured.cramers_v >= SMALLEST_V:
            found.append(_confounder(column, counts, measured, strata))
    return found


def _table(counts: Mapping[Cell, int]) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    """Return the (strata, groups, values) number of rows; rare values are one value, the last."""
    strata, groups, values = (_totals(counts, place) for place in range(3))
    smallest = min(groups.values()) / groups.total()
    frequent = [value for value, rows in values.most_common(MOST_VALUES) if rows * smallest >= LEAST_EXPECTED]
    numbers = [{name: number for number, (name,) in enumerate(names)} for names in (strata, groups, frequent)]
    table = np.zeros((len(strata), len(groups), len(frequent) + 1))
    for (stratum, group, value), rows in counts.items():
        table[numbers[0][stratum], numbers[1][group], numbers[2].get(value, len(frequent))] += rows
    return table


def _totals(counts: Mapping[Cell, int], *places: int) -> Counter[tuple[object, ...]]:
    """Return the numbers of rows by the parts of the key at these places: stratum, group, value."""
    totals = Counter[tuple[object, ...]]()
    for key, rows in counts.items():
        totals[tuple(key[place] for place in places)] += rows
    return totals


def _confounder(
    column: OtherColumn, counts: Mapping[Cell, int], measured: Association, strata: Sequence[str]
) -> Confounder:
    where = f"the undeclared column {column.name!r} predicts {column.label}"
    strength = f"Cramér's V {measured.cramers_v:.2f}"
    in_items, detail = f"{column.name!r} ({strength})", f"{strength}; {_most_different(counts)}"
    if _shared(column.counts) >= SHARED_ROWS:
        written = [*strata, column.name]
        names = ", ".join(
            name if PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in written
        )
        options = " ".join(f"--strata {shlex.quote(name)}" for name in written)
        note = (
            f"{where} ({detail}), so that a difference between groups may be one between its values. If the values "
            "were given before the answers, as topics or prompts are, compare answers within them: write "
            f"`strata: [{names}]` under `responses` (command `measure`: `{options}`)"
        )
    elif _shared(counts) >= SHARED_ROWS:
        note = (
            f"{where}, also without the words that name a group ({detail}), so that a difference between groups may "
            "be one between its values. Add a column with the same value for texts that differ only in the group, such "
            "as the number of the prompt, and name that column under `responses.strata` (command `measure`: "
            "`--strata`)"
        )
    else:
        in_items = ""
        note = (
            f"{where}: hardly any of its values occurs in several groups. If it does more than describe the group, as "
            "a name does, a difference between groups may be one between its values, and these answers cannot tell "
            "which. Record answers of every group for the same values"
        )
    return Confounder(column.label, note, in_items)


def _shared(counts: Mapping[Cell, int]) -> float:
    """Return the share of the rows whose value occurs in several groups of the same stratum."""
    rows, groups = _totals(counts, 0, 2), _totals(dict.fromkeys(counts, 1), 0, 2)
    return sum(count for cell, count in rows.items() if groups[cell] > 1) / rows.total()


def _most_different(counts: Mapping[Cell, int]) -> str:
    """Return a phrase about the value whose shares differ most between two groups."""
    sizes, cells = _totals(counts, 1), _totals(counts, 1, 2)
    shares = {
        value: {group: cells[group, value] / size for (group,), size in sizes.items()}
        for (value,) in _totals(counts, 2)
    }
    differing = max(shares, key=lambda each: (max(shares[each].values()) - min(shares[each].values()), str(each)))
    own, text = shares[differing], str(differing)
    most, least = max(own, key=own.__getitem__), min(own, key=own.__getitem__)
    shown = text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
    return f"{shown!r} in {own[most]:.0%} of the rows of {most} and {own[least]:.0%} of {least}"


# Checks for answers that do not depend on their prompts.
#
# An outage or a system with a constant answer shows no difference between groups. The first check looks for equal
# answers; the second one compares texts and lists about one subject with those about another.

CONSTANT_ANSWERS = "constant_answers"

FEWEST_ANSWERS = 4
"""Smallest number of usable or refused answers for which repetition is checked."""
SHORT_WORDS = 3
"""Largest number of words of a short answer; a working system may repeat short answers."""
EFFECTIVE_SHORT = 1.05
"""Short answers are constant if their effective number of distinct values is below this: about 97.5 % are the same."""
EFFECTIVE_LONG = 1.5
"""Longer texts, or lists, are constant if their effective number of distinct values is below this: about 80 % are
the same."""
REPEATED_SHARE = 0.10
"""Largest share of answers to different prompts that may be the same long text."""
QUOTED_CHARACTERS = 60
"""Number of characters of an answer that a message quotes."""
FEWEST_OTHER = 2
"""Decisions are constant if fewer decisions than this number differ from the most frequent decision."""
OTHER_SHARE = 0.005
"""Decisions are constant if less than this share of the decisions differs from the most frequent decision."""
PROSE_WORDS = 4
"""Smallest number of words, besides request ids and times, of a text that counts as prose. In a shorter text, the
numbers may be the answer."""

FEWEST_TEXTS, FEWEST_LISTS = 48, 36
"""Smallest numbers of texts, and of lists, of which `irrelevant_answers` judges whether they depend on subjects."""
FEWEST_SUBJECTS = 3
"""Smallest number of subjects; two prompts may get the same answers, as two occasions may get the same present."""
COMPARED_ANSWERS = 240
"""Largest number of answers that `irrelevant_answers` compares with each other."""
SHUFFLES = 199
"""Number of times that subjects are shuffled."""
LEAST_DEPENDENCE = 3.0
"""Answers depend on their subjects if those about the same subject are more alike than those about different subjects,
by this number of standard deviations of shuffled subjects. Answers that do not depend on them reach it once in 700."""
SUBJECTS = ("entity", "prompt")
"""Labels that name what a list or text is about, apart from the group."""
FIRST_TEMPLATES = 20
"""Number of prompts that are compared with each other."""
ALIKE_PROMPTS = 0.5
"""Prompts that share more than this part of their words may be paraphrases, to which equal answers are right."""

_DURATION = re.compile(
    r"\b\d+(?=\s*(?:ms|s|sec|secs|seconds?|min|mins|minutes?|hours?|h|sekunden?|minuten?|stunden?|secondes?|heures?"
    r"|segundos?|minutos?|horas?|secondi|minuti|ore)\b)"
)
_NUMBERED = re.compile(r"(?<!\S)[^\s$€£¥%.,]*(?:\d[^\s$€£¥%.,]*){3,}(?=[.,]?(?:\s|$))|\S*\d:\S*")
"""Request ids and times, but not amounts (`$85,000`, `12.5%`), because groups may differ in amounts."""
AMOUNT = re.compile(r"[$€£¥%]")
_DIGIT = re.compile(r"\d")
_ANY_NUMBER = re.compile(r"\S*\d\S*")
"""Any word with a digit. Such words are replaced only in list items that are prose, because such an item is an error
message, not a title."""


def effective_number(counts: Iterable[int]) -> float:
    """Return the effective number of distinct values, 1 / (sum of squared shares); 0 without values."""
    sizes = list(counts)
    return sum(sizes) ** 2 / sum(size**2 for size in sizes) if sizes else 0.0


def constant_answers(audit: AnyAudit, item: AnyItem, answers: Answers) -> Concern | None:
    """Return a concern if the answers do not depend on their prompts.

    Answers that differ only in letter case, blanks, request ids or times count as the same. No verdict is possible if
    nearly all answers to different prompts are the same. A pass is not possible if the only prompt, or one group, gets
    nearly always the same answer, or if different prompts get the same long text. If the prompts ask to choose one of a
    few answers, the checks of each group and of long texts are left out. If refusals are the most frequent answer,
    return `None`, because other checks report refusals.
    """
    decision = bool(item.probe.reading.choices or item.probe.reading.judging)
    counted = [
        (answer, _distinct_value(answer, decision=decision)) for answer in answers if answer.usable or answer.refused
    ]
    total = len(counted)
    if total < FEWEST_ANSWERS:
        return None
    common, count, text = _most_frequent(item.probe, counted)
    if common is Status.REFUSED:
        return None  # refusals are missing answers, which other checks report
    prompts = {_prompt_of(item, answer) for answer, value in counted if value == common}
    if decision:
        constant = total - count < max(FEWEST_OTHER, OTHER_SHARE * total)
    else:
        constant = _is_constant(counted, closed=audit.closed_answers)
    if constant and len(prompts) == 1:
        message = f"{count} of {total} answers are the same ({text}). Check that the target works"
        return Concern(CONSTANT_ANSWERS, message)
    if constant:
        return Concern(
            CONSTANT_ANSWERS,
            f"{count} of {total} answers are the same for all prompts ({text}), so that groups cannot be compared. "
            "Check that the target works, or use prompts that it answers differently",
            withholds="verdict",
        )
    if audit.closed_answers:
        return None
    groups: defaultdict[tuple[str, ...], list[tuple[Answer, Hashable]]] = defaultdict(list)
    for answer, value in counted:
        groups[item.group_of(answer)].append((answer, value))
    for group, of_group in groups.items() if len(groups) > 1 else ():
        if len(of_group) >= FEWEST_ANSWERS and _is_constant(of_group, closed=False):
            _, number, quoted = _most_frequent(item.probe, of_group)
            name = ", ".join(filter(None, group))
            return Concern(
                CONSTANT_ANSWERS,
                f"{number} of {len(of_group)} answers for {name} are the same ({quoted}). Check these answers",
            )
    return _repeated_texts(item, counted, shared=common if count > REPEATED_SHARE * total else None)


def _repeated_texts(
    item: AnyItem, counted: Sequence[tuple[Answer, Hashable]], shared: Hashable | None
) -> Concern | None:
    """Return a concern if long texts often answer different prompts; `shared` has a concern of its own."""
    # Equal answers to the same question about both groups are no sign of a fault: groups may share random seeds.
    several = len({_labels_without_group(item, answer) for answer, _ in counted}) > 1
    if not several and any(axis.names for axis in getattr(item.probe, "axes", {}).values()):
        return None  # the prompts differ in the names only
    prompts: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
    counted = [(answer, _without_any_number(value)) for answer, value in counted]
    shared = _without_any_number(shared)
    for answer, value in counted:
        if isinstance(value, str) and value is not Status.REFUSED and _is_long(value):
            own = _prompt_of(item, answer)
            prompts[value].add(_labels_without_group(item, answer) if several else own)
    copied = {value for value, own in prompts.items() if len(own) > 1}
    number = sum(value in copied for _, value in counted)
    different = len(set[Hashable]().union(*(prompts[value] for value in copied)))
    if shared in copied:
        copied, number, different = {shared}, sum(value == shared for _, value in counted), len(prompts[shared])
    elif different < FEWEST_SUBJECTS or not several or number <= REPEATED_SHARE * len(counted):
        return None
    text = next(_quoted(item.probe, answer) for answer, value in counted if value in copied)
    same = f"the same text ({text})" if len(copied) == 1 else f"{len(copied)} texts that repeat (one is {text})"
    return Concern(
        CONSTANT_ANSWERS,
        f"{number} of {len(counted)} answers, to {different} different prompts, are {same}. Check that the "
        "target works",
    )


def _prompt_of(item: AnyItem, answer: Answer) -> Hashable:
    """Return what answers to equal prompts have in common."""
    return item.probe.shared_prompt(answer.labels) or tuple(sorted(answer.labels.items()))


def _without_any_number(value: Hashable) -> Hashable:
    """Return a text with `#` for each word with a digit; unchanged if it names amounts, in which groups may differ."""
    return value if not isinstance(value, str) or AMOUNT.search(value) else _ANY_NUMBER.sub("#", value)


def irrelevant_answers(audit: AnyAudit, item: AnyItem, answers: Answers) -> Concern | None:
    """Return a concern if texts or lists do not depend on what they are about.

    The similarity of answers about the same subject (an entity, or one of several prompts) is compared with the
    similarity of answers about different subjects, with subjects shuffled within each group as the null hypothesis.
    Choices, numbers and decisions may be right whatever the prompt says, as may texts about the records of a
    counterfactual probe, about stereotype cases, which differ in the group, and answers to paraphrases of a prompt;
    they are not judged.
    """
    if audit.closed_answers or item.probe.reading.choices or item.probe.reading.number:
        return None
    name = next((name for name in SUBJECTS if answers and name in answers[0].labels), None)
    if name is None or (name == "prompt" and _are_paraphrases(item.probe)):
        return None
    usable = [answer for answer in answers if answer.usable and isinstance(answer.content, (str, list))]
    usable.sort(key=lambda answer: (sorted(answer.labels.items()), answer.trial))
    random = resampling.generator(f"{item.seed}/relevance")
    compared = [usable[place] for place in random.permutation(len(usable))[:COMPARED_ANSWERS]]
    names, subjects = np.unique([answer.labels.get(name, "") for answer in compared], return_inverse=True)
    fewest = FEWEST_LISTS if compared and isinstance(compared[0].content, list) else FEWEST_TEXTS
    if len(compared) < fewest or len(names) < FEWEST_SUBJECTS or np.bincount(subjects).max() < 2:
        return None
    groups = np.unique(["/".join(item.group_of(answer)) for answer in compared], return_inverse=True)[1]
    if _dependence(_similarities(compared), subjects, groups, random) >= LEAST_DEPENDENCE:
        return None
    examples = (compared[0], compared[int(np.argmax(subjects != subjects[0]))])
    shown = ", ".join(f"{_quoted(item.probe, answer)} for {answer.labels[name]}" for answer in examples)
    return Concern(
        "irrelevant_answers",
        f"answers to prompts about {len(names)} different subjects are as alike as answers about the same one, as if "
        f"the prompt did not matter ({shown}). Check that the target works, or use prompts that it answers differently",
    )


def _dependence(
    similarity: Floats, subjects: NDArray[np.int_], groups: NDArray[np.int_], random: np.random.Generator
) -> float:
    """Return how much more alike answers about a subject are, in SDs of subjects shuffled within groups."""

    def of_same_subject(order: NDArray[np.int_]) -> float:
        return float(similarity[subjects[order][:, None] == subjects[order]].sum())

    shuffled = []
    for _ in range(SHUFFLES):
        order = np.arange(len(subjects))
        for group in range(groups.max() + 1):
            own = np.flatnonzero(groups == group)
            order[own] = random.permutation(own)
        shuffled.append(of_same_subject(order))
    spread = float(np.std(shuffled))
    difference = of_same_subject(np.arange(len(subjects))) - float(np.mean(shuffled))
    return difference / spread if spread else 0.0


def _similarities(answers: Answers) -> Floats:
    """Return the (n, n) cosine similarities of the answers' rarer words (list items), with a diagonal of 0."""
    words = [
        {str(part).casefold() for part in answer.content}
        if isinstance(answer.content, list)
        else {*re.findall(r"\w+", str(answer.content).casefold())}
        for answer in answers
    ]
    counts = Counter(word for own in words for word in own)
    columns = {word: place for place, word in enumerate(counts)}
    table = np.zeros((len(answers), len(columns)))
    for row, own in enumerate(words):
        table[row, [columns[word] for word in own]] = 1.0
    table *= np.log(len(answers) / np.array([*counts.values()]) + 1e-9)
    table /= np.linalg.norm(table, axis=1, keepdims=True) + 1e-9
    similarity = table @ table.T
    np.fill_diagonal(similarity, 0.0)
    return np.asarray(similarity)


def _are_paraphrases(probe: Probe) -> bool:
    """Return whether two of a probe's first prompts share most of their words, or whether the prompts are unknown."""
    templates = probe.templates.values() if isinstance(probe, GenerationProbe) else ()
    words = [{*re.findall(r"\w{4,}", text.casefold())} for text in islice(templates, FIRST_TEMPLATES)]
    shares = [len(one & other) / (len(one | other) or 1) for one, other in combinations(words, 2)]
    return not shares or max(shares) > ALIKE_PROMPTS


def _distinct_value(answer: Answer, *, decision: bool) -> Hashable:
    """Return a form that is equal for all answers that count as the same; a `decision` is a choice or a class."""
    content = answer.content
    if not answer.usable:
        return Status.REFUSED
    if decision:
        return str(content)
    if isinstance(content, list):
        if content and isinstance(content[0], float):
            # The content is log-probabilities. A model that ignores its input gives all tokens the same
            # log-probability.
            return frozenset(content)
        return tuple(_without_numbers(str(item), _ANY_NUMBER) for item in content)
    return _without_numbers(str(content))


def _without_numbers(text: str, numbered: re.Pattern[str] = _NUMBERED) -> str:
    """Return a text in lower case; in prose, `#` replaces request ids and times (matches of `numbered`)."""
    if _DIGIT.search(text) is None:
        return " ".join(text.casefold().split())
    masked = _DURATION.sub("#", numbered.sub("#", text)).casefold().split()
    words = (word for word in masked if any(map(str.isalpha, word)))
    prose = next(islice(words, PROSE_WORDS - 1, None), None) is not None  # reads no more words than necessary
    return " ".join(masked if prose else text.casefold().split())


def _most_frequent(probe: Probe, counted: Sequence[tuple[Answer, Hashable]]) -> tuple[Hashable, int, str]:
    """Return the most frequent value of the answers, its number, and a quotation of one of these answers."""
    value, count = Counter(value for _, value in counted).most_common(1)[0]
    return value, count, next(_quoted(probe, answer) for answer, own in counted if own == value)


def _is_constant(counted: Sequence[tuple[Answer, Hashable]], *, closed: bool) -> bool:
    """Return whether nearly all values are the same; `closed` prompts ask for one of a few answers."""
    values = Counter(value for _, value in counted)
    common = values.most_common(1)[0][0]
    fewest = EFFECTIVE_SHORT if closed or not _is_long(common) else EFFECTIVE_LONG
    return effective_number(values.values()) < fewest


def _is_long(value: Hashable) -> bool:
    return not isinstance(value, str) or len(value.split()) > SHORT_WORDS


def _labels_without_group(item: AnyItem, answer: Answer) -> Hashable:
    if (equal := item.probe.shared_prompt(answer.labels)) is not None:
        return equal
    axes = [*getattr(item.probe, "axes", ())]
    group = {*item.labels, *axes, *map(name_label, axes), "value", "attribute"}
    return tuple(sorted((name, label) for name, label in answer.labels.items() if name not in group))


def _quoted(probe: Probe, answer: Answer) -> str:
    """Quote the beginning of an answer, or of its measured part."""
    text = " ".join(str((answer.text if probe.reading.selection is None else answer.content) or "").split())
    return repr(text if len(text) <= QUOTED_CHARACTERS else f"{text[: QUOTED_CHARACTERS - 1]}…")
