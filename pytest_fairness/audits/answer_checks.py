"""Checks of an item's answers, for every audit: can a verdict be based on these answers?

An audit measures differences between groups. Answers that do not depend on the prompt (an error text, a constant list,
the same decision for all records) show no difference, although the system might show one when it works. Each check
returns a `Concern`: the reason for doubt, and the verdicts that are therefore ruled out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from itertools import islice

from pytest_fairness.audits.base import AnyAudit, AnyItem
from pytest_fairness.errors import short_message
from pytest_fairness.languages.detection import foreign_shares
from pytest_fairness.plurals import counted
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Answers, Concern, Measurement, RowsWithoutGroup, Status

VERSION = 5
"""Version of the checks, and of the fields of stored measurements and comparisons; results in the store are reused only
for the same version."""

CONSTANT_ANSWERS = "constant_answers"
FOREIGN_ANSWERS = "foreign_answers"

FEWEST_ANSWERS = 4
"""Smallest number of usable answers for which repetition is checked."""
SHORT_WORDS = 3
"""Largest number of words of a short answer; a working system may repeat short answers."""
EFFECTIVE_SHORT = 1.05
"""Short answers are constant if their effective number of distinct values is below this: about 97.5 % are the same."""
EFFECTIVE_LONG = 1.5
"""Longer texts, or lists, are constant if their effective number of distinct values is below this: about 80 % are
the same."""
REPEATED_SHARE = 0.10
"""Largest share of answers to different prompts that may be the same long text."""
MISSING_IN_EVERY_GROUP = 0.10
"""Share of missing answers above which audits of missing answers report a concern, if every group has such a share."""
TRUNCATED_SHARE = 0.10
"""Largest share of the usable answers that may be cut off at `max_tokens`."""
FOREIGN_SHARE = 0.10
"""Largest share of a group's answers that may be in another language than the probe's, for audits of refusals."""
WITHOUT_CLASS_SHARE = 0.05
"""Largest share of a group's answers for which the model that recognises refusals may name no class."""
WITHOUT_GROUP_SHARE = 0.10
"""Largest share of the rows of an answer file that may be left out because they name no group."""
MOSTLY = 0.50
"""Share of answers in other languages than the probe's above which every audit of texts adds a note."""
QUOTED = 60
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
"""Any word with a digit. Such words are replaced in list items that are prose, which are error messages rather than
titles."""


def concerns(
    probe: Probe, audit: AnyAudit, item: AnyItem, answers: Answers, measurement: Measurement
) -> tuple[Concern, ...]:
    """Return the reasons to doubt a measurement, the most serious first.

    Args:
        probe: probe of the item.
        audit: audit of the item.
        item: item that was measured.
        answers: the item's answers in any order, with their original content (not the output of `Audit.preparation`).
        measurement: measurement of the answers.
    """
    found = [
        _constant_answers(probe, audit, item, answers),
        _truncated_answers(probe, answers),
        failed_requests(answers),
        _without_class(probe, item, answers),
        *audit.concerns(probe, item, answers, measurement),
    ]
    known = [concern for concern in found if concern is not None]
    if all(concern.name != FOREIGN_ANSWERS for concern in known):
        known += _mostly_foreign(probe, answers)
    return tuple(sorted(known, key=lambda concern: ("verdict", "test", "pass", "nothing").index(concern.withholds)))


def missing_in_every_group(measurement: Measurement) -> list[Concern]:
    """Return the concern that many answers are missing in every group; only for audits that measure missing answers.

    Args:
        measurement: measurement whose details have the number of `refused` and of `unreadable` answers by group.
    """
    refused, unreadable = measurement.details["refused"], measurement.details["unreadable"]
    shares = {}
    for group, n in measurement.n.items():
        failed = measurement.missing.get(group, 0)
        if n + failed:
            shares[group] = (failed + refused.get(group, 0) + unreadable.get(group, 0)) / (n + failed)
    if not shares or min(shares.values()) <= MISSING_IN_EVERY_GROUP:
        return []
    named = ", ".join(f"{share:.0%} for {group}" for group, share in shares.items())
    return [
        Concern(
            "missing_answers",
            f"more than {MISSING_IN_EVERY_GROUP:.0%} of the answers are missing in every group ({named}), so that a "
            "small difference between groups says nothing. Check that the target works",
        )
    ]


def unrecognised_refusals(probe: Probe, item: AnyItem, answers: Answers) -> list[Concern]:
    """Return the concern that refusals may have been counted as answers, because of the language of the answers.

    This concern is only for audits that measure refusals, and for refusals that are recognised by patterns.
    """
    if probe.refusals.by != "patterns":
        return []
    missing = " and ".join(probe.language.refusals_missing)
    if missing:
        return [
            Concern(
                FOREIGN_ANSWERS,
                f"refusals in {missing} are not recognised, so that a refusal may have been counted as an answer. List "
                "phrases of refusals under `language.terms.refusals`",
            )
        ]
    texts: defaultdict[Hashable, list[str]] = defaultdict(list)
    for answer in answers:
        if (text := _text_of(probe, answer)) is not None:
            texts[_group(item, answer)].append(text)
    # Refusals in English are recognised in every language.
    shares = foreign_shares(texts, (*probe.language.codes, "en"))
    if max((sum(share.values()) for share in shares.values()), default=0.0) <= FOREIGN_SHARE:
        return []
    named = "; ".join(
        f"{name or 'answers'} {_percentages(share)}"
        for group, share in sorted(shares.items(), key=lambda pair: str(pair[0]))
        for name in [", ".join(part for part in group if part) if isinstance(group, tuple) else ""]
        if share
    )
    return [
        Concern(
            FOREIGN_ANSWERS,
            f"some answers are in other languages than {probe.language.shown} ({named}). Their refusals are not "
            "recognised, so that a refusal may have been counted as an answer. Name the languages of the answers under "
            "`language`, such as `language: de`, or tell the target to answer in one language",
        )
    ]


def _mostly_foreign(probe: Probe, answers: Answers) -> list[Concern]:
    """Return the note that most answers are in other languages than the probe's."""
    texts = [text for answer in answers if (text := _text_of(probe, answer)) is not None]
    shares = foreign_shares({"": texts}, probe.language.codes)[""]
    if sum(shares.values()) <= MOSTLY:
        return []
    unknown = "refusals and identity terms" if probe.refusals.by == "patterns" else "identity terms"
    return [
        Concern(
            FOREIGN_ANSWERS,
            f"most answers are in other languages than {probe.language.shown} (about {_percentages(shares)}), in which "
            f"{unknown} are not recognised. Name the languages of the answers under `language`",
            withholds="nothing",
        )
    ]


def _text_of(probe: Probe, answer: Answer) -> str | None:
    """Return the text of a usable answer; `None` if the answer is not usable, or is a list."""
    if not answer.usable or isinstance(answer.content, list):
        return None
    return answer.text if probe.choices or probe.judging or probe.number else str(answer.content)


def _percentages(shares: Mapping[str, float]) -> str:
    """Return shares by language as a list: `40% German, 10% French`."""
    return ", ".join(f"{share:.0%} {name}" for name, share in shares.items())


def failed_requests(answers: Answers) -> Concern | None:
    """Return a note with the number of failed requests and the most frequent error; `None` if no request failed."""
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


def _without_class(probe: Probe, item: AnyItem, answers: Answers) -> Concern | None:
    """Return the concern that the model that recognises refusals named no class for some answers; else `None`."""
    if probe.refusals.by == "patterns":
        return None
    groups: defaultdict[tuple[str, ...], list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.judged is not None:
            groups[_group(item, answer)].append(answer)
    counts = {group: sum(each.status is Status.FAILED for each in own) for group, own in groups.items()}
    if not any(counts.values()):
        return None
    errors = Counter(short_message(each.error or "") for own in groups.values() for each in own if each.error)
    many = any(count > WITHOUT_CLASS_SHARE * len(groups[group]) for group, count in counts.items())
    named = ", ".join(
        f"{count} of {len(groups[group])} answers{f' for {name}' if name else ''}"
        for group, count in counts.items()
        for name in [", ".join(part for part in group if part)]
    )
    return Concern(
        "answers_without_class",
        f"whether answers are refusals is unknown for {named}, which count as missing: {errors.most_common(1)[0][0]}",
        withholds="pass" if many else "nothing",
    )


def rows_without_group(left_out: RowsWithoutGroup) -> Concern | None:
    """Return the concern that many rows of an answer file name no group; `None` if only few do."""
    if left_out.rows <= WITHOUT_GROUP_SHARE * left_out.of:
        return None
    return Concern(
        "rows_without_group",
        f"{left_out}: more than {WITHOUT_GROUP_SHARE:.0%}, so that the answers of a group may be missing. "
        f"{left_out.remedy}",
    )


def truncated(probe: Probe, answers: Iterable[Answer]) -> dict[str, int]:
    """Return two counts: `answers` (usable answers that were cut off at `max_tokens`) and `of` (all usable answers).

    An answer that consists of one of the allowed choices counts as complete.
    """
    usable = [answer for answer in answers if answer.usable]
    cut = [answer for answer in usable if answer.truncated]
    if probe.choices or probe.judging:
        cut = [answer for answer in cut if _letters(answer.text) != _letters(answer.content)]
    return {"answers": len(cut), "of": len(usable)}


def _truncated_answers(probe: Probe, answers: Answers) -> Concern | None:
    """Return the concern that many answers were cut off, so that only their beginnings were measured; else `None`."""
    count, total = truncated(probe, answers).values()
    if count <= TRUNCATED_SHARE * total:
        return None
    return Concern(
        "truncated_answers",
        f"{count} of {total} answers ({count / total:.0%}) were cut off at the token limit. Raise `max_tokens`",
    )


def _letters(text: object) -> str:
    """Return the letters and digits of a text, case-folded."""
    return "".join(filter(str.isalnum, str(text).casefold()))


def effective_number(counts: Iterable[int]) -> float:
    """Return the effective number of distinct values, 1 / (sum of squared shares); 0 if there are no counts."""
    sizes = list(counts)
    return sum(sizes) ** 2 / sum(size**2 for size in sizes) if sizes else 0.0


def _constant_answers(probe: Probe, audit: AnyAudit, item: AnyItem, answers: Answers) -> Concern | None:
    """Return the concern that answers do not depend on their prompts; `None` if they do.

    Answers that differ only in letter case, blanks, request ids or times count as the same. No verdict is possible if
    nearly all answers to different prompts are the same. A pass is not possible if the only prompt, or one group, gets
    nearly always the same answer, or if different prompts get the same long text.
    """
    decided = bool(probe.choices or probe.judging)
    came = (answer for answer in answers if answer.usable or answer.status is Status.REFUSED)
    kept = [(answer, _distinct_value(answer, decision=decided)) for answer in came]
    if len(kept) < FEWEST_ANSWERS:
        return None
    values = Counter(value for _, value in kept)
    common, count = values.most_common(1)[0]
    if common is Status.REFUSED:
        return None  # all answers are missing, which another check reports
    text = next(_quoted(answer) for answer, value in kept if value == common)
    prompts = {tuple(sorted(answer.labels.items())) for answer, value in kept if value == common}
    if decided:
        others = len(kept) - count
        constant = others < FEWEST_OTHER or others < OTHER_SHARE * len(kept)
    else:
        constant = _is_constant(values, closed=audit.closed_answers)
    if constant and len(prompts) == 1:
        message = f"{count} of {len(kept)} answers are the same ({text}). Check that the target works"
        return Concern(CONSTANT_ANSWERS, message)
    if constant:
        return Concern(
            CONSTANT_ANSWERS,
            f"{count} of {len(kept)} answers are the same for all prompts ({text}), so that groups cannot be "
            "compared. Check that the target works, or use prompts that it answers differently",
            withholds="verdict",
        )
    if audit.closed_answers:
        return None
    groups: defaultdict[tuple[str, ...], Counter[Hashable]] = defaultdict(Counter)
    for answer, value in kept:
        groups[_group(item, answer)][value] += 1
    for group, own in groups.items():
        if own.total() >= FEWEST_ANSWERS and _is_constant(own, closed=False) and len(groups) > 1:
            own_value, most = own.most_common(1)[0]
            own_text = next(
                _quoted(answer) for answer, value in kept if value == own_value and _group(item, answer) == group
            )
            named = ", ".join(name for name in group if name)
            message = f"{most} of {own.total()} answers for {named} are the same ({own_text}). Check these answers"
            return Concern(CONSTANT_ANSWERS, message)
    if count > REPEATED_SHARE * len(kept) and isinstance(common, str) and _is_long(common):
        # Equal answers to the same question about both groups are no sign of a fault.
        several = len({_labels_without_group(probe, item, answer) for answer, _ in kept}) > 1
        asked = (
            {_labels_without_group(probe, item, answer) for answer, value in kept if value == common}
            if several
            else prompts
        )
        if len(asked) > 1:
            return Concern(
                CONSTANT_ANSWERS,
                f"{count} of {len(kept)} answers, to {len(asked)} different prompts, are the same text "
                f"({text}). Check that the target works",
            )
    return None


def _distinct_value(answer: Answer, *, decision: bool) -> Hashable:
    """Return the value by which answers are compared; it is equal for answers that count as the same."""
    content = answer.content
    if not answer.usable:
        return answer.status
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
    """Return a text in lower case; in prose, request ids and times (matches of `numbered`) are replaced."""
    if _DIGIT.search(text) is None:
        return " ".join(text.casefold().split())
    masked = _DURATION.sub("#", numbered.sub("#", text)).casefold().split()
    words = (word for word in masked if any(map(str.isalpha, word)))
    prose = next(islice(words, PROSE_WORDS - 1, None), None) is not None  # reads no more words than necessary
    return " ".join(masked if prose else text.casefold().split())


def _is_constant(values: Counter[Hashable], *, closed: bool) -> bool:
    """Return whether nearly all values are the same; `closed`: whether prompts ask to choose one of a few answers."""
    common = values.most_common(1)[0][0]
    fewest = EFFECTIVE_SHORT if closed or not _is_long(common) else EFFECTIVE_LONG
    return effective_number(values.values()) < fewest


def _is_long(value: Hashable) -> bool:
    """Return whether a value is a list, or a text of more than `SHORT_WORDS` words."""
    return not isinstance(value, str) or len(value.split()) > SHORT_WORDS


def _labels_without_group(probe: Probe, item: AnyItem, answer: Answer) -> Hashable:
    """Return the labels of an answer's prompt without the labels that name the group."""
    group = {*item.labels, *getattr(probe, "axes", ()), "value", "attribute"}
    return tuple(sorted((name, label) for name, label in answer.labels.items() if name not in group))


def _group(item: AnyItem, answer: Answer) -> tuple[str, ...]:
    """Return the names of an answer's group, from its labels; empty names if the labels do not name the group."""
    labels = answer.labels
    return (*(labels.get(name, "") for name in item.labels), labels.get("value", "") if "attribute" in labels else "")


def _quoted(answer: Answer) -> str:
    """Return the beginning of an answer in quotation marks."""
    text = " ".join((answer.text or "").split())
    return repr(text if len(text) <= QUOTED else f"{text[: QUOTED - 1]}…")
