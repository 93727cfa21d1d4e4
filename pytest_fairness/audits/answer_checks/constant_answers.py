"""Check for answers that do not depend on their prompts.

An outage or a system with a constant answer shows no difference between groups.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from itertools import islice

from pytest_fairness.audits.base import AnyAudit, AnyItem
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Answers, Concern, Status

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

_DURATION = re.compile(r"\b\d+(?=\s*(?:ms|s|sec|secs|seconds?|minutes?|hours?)\b)")
_NUMBERED = re.compile(r"(?<!\S)[^\s$€£¥%.,]*(?:\d[^\s$€£¥%.,]*){3,}(?=[.,]?(?:\s|$))|\S*\d:\S*")
"""Request ids and times, but not amounts (`$85,000`, `12.5%`), because groups may differ in amounts."""
_DIGIT = re.compile(r"\d")
_ANY_NUMBER = re.compile(r"\S*\d\S*")
"""Any word with a digit. Such words are replaced only in list items that are prose, because such an item is an error
message, not a title."""


def effective_number(counts: Iterable[int]) -> float:
    """Return the effective number of distinct values, 1 / (sum of squared shares); 0 if there are no counts."""
    sizes = list(counts)
    return sum(sizes) ** 2 / sum(size**2 for size in sizes) if sizes else 0.0


def constant_answers(audit: AnyAudit, item: AnyItem, answers: Answers) -> Concern | None:
    """Return a concern if the answers do not depend on their prompts, else `None`.

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
    frequencies = Counter(value for _, value in counted)
    common, count = frequencies.most_common(1)[0]
    if common is Status.REFUSED:
        return None  # refusals are missing answers, which other checks report
    text = next(_quoted(item.probe, answer) for answer, value in counted if value == common)
    prompts = {
        item.probe.shared_prompt(answer.labels) or tuple(sorted(answer.labels.items()))
        for answer, value in counted
        if value == common
    }
    if decision:
        others = total - count
        constant = others < FEWEST_OTHER or others < OTHER_SHARE * total
    else:
        constant = _is_constant(frequencies, closed=audit.closed_answers)
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
        in_group = Counter(value for _, value in of_group)
        if len(of_group) >= FEWEST_ANSWERS and _is_constant(in_group, closed=False):
            group_value, group_count = in_group.most_common(1)[0]
            group_text = next(_quoted(item.probe, answer) for answer, value in of_group if value == group_value)
            name = ", ".join(filter(None, group))
            return Concern(
                CONSTANT_ANSWERS,
                f"{group_count} of {len(of_group)} answers for {name} are the same ({group_text}). Check these answers",
            )
    if count > REPEATED_SHARE * total and isinstance(common, str) and _is_long(common):
        # Equal answers to the same question about both groups are no sign of a fault.
        several = len({_labels_without_group(item, answer) for answer, _ in counted}) > 1
        different = {_labels_without_group(item, answer) for answer, value in counted if value == common}
        number = len(different if several else prompts)
        if number > 1:
            return Concern(
                CONSTANT_ANSWERS,
                f"{count} of {total} answers, to {number} different prompts, are the same text ({text}). Check that "
                "the target works",
            )
    return None


def _distinct_value(answer: Answer, *, decision: bool) -> Hashable:
    """Return the answer in a form that is equal for all answers that count as the same.

    Args:
        answer: a usable or refused answer.
        decision: whether the content of a usable answer is a choice or a class.
    """
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


def _is_constant(values: Counter[Hashable], *, closed: bool) -> bool:
    """Return whether nearly all values are the same; `closed`: whether prompts ask for one of a few answers."""
    common = values.most_common(1)[0][0]
    fewest = EFFECTIVE_SHORT if closed or not _is_long(common) else EFFECTIVE_LONG
    return effective_number(values.values()) < fewest


def _is_long(value: Hashable) -> bool:
    """Return whether a value is a list, or a text of more than `SHORT_WORDS` words."""
    return not isinstance(value, str) or len(value.split()) > SHORT_WORDS


def _labels_without_group(item: AnyItem, answer: Answer) -> Hashable:
    if (equal := item.probe.shared_prompt(answer.labels)) is not None:
        return equal
    group = {*item.labels, *getattr(item.probe, "axes", ()), "value", "attribute"}
    return tuple(sorted((name, label) for name, label in answer.labels.items() if name not in group))


def _quoted(probe: Probe, answer: Answer) -> str:
    """Return the beginning of an answer, or of its measured part, in quotation marks."""
    text = " ".join(str((answer.text if probe.reading.selection is None else answer.content) or "").split())
    return repr(text if len(text) <= QUOTED_CHARACTERS else f"{text[: QUOTED_CHARACTERS - 1]}…")
