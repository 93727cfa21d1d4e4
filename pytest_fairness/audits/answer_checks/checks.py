"""Checks of an item's answers, for every audit: can a verdict be based on these answers?

An audit measures differences between groups. Answers that do not depend on the prompt, such as an error text or a
constant list, show no difference, which is no sign of fairness. Each check returns a `Concern`: the reason for doubt,
and the verdicts that are therefore ruled out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from pytest_fairness.audits.answer_checks import repeats
from pytest_fairness.audits.answer_checks.constant_answers import constant_answers, irrelevant_answers
from pytest_fairness.audits.answer_checks.foreign_answers import FOREIGN_ANSWERS, mostly_foreign
from pytest_fairness.audits.answer_checks.service_messages import service_messages
from pytest_fairness.audits.base import AnyAudit, AnyItem
from pytest_fairness.errors import short_message
from pytest_fairness.plurals import counted
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Answers, Concern, Json, Measurement, RowsWithoutGroup, Status

VERSION = 11
"""Version of the checks, and of the fields of stored measurements and comparisons; results in the store are reused only
for the same version."""

TRUNCATED_SHARE = 0.10
"""Largest share of the usable or cut off answers that may be cut off at `max_tokens`."""
WITHOUT_GROUP_SHARE = 0.10
"""Largest share of the rows of an answer file that may be left out because they name no group."""


def concerns(audit: AnyAudit, item: AnyItem, answers: Answers, measurement: Measurement) -> tuple[Concern, ...]:
    """Return the reasons to doubt a measurement, the most serious first.

    Args:
        audit: audit of the item.
        item: item that was measured.
        answers: the item's answers in any order, with their original content (not the output of `Audit.preparation`).
        measurement: measurement of the answers.
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
    return ("verdict", "test", "pass", "nothing").index(concern.withholds)


def _no_answers(audit: AnyAudit, item: AnyItem, answers: Answers) -> Concern | None:
    """Return the gravest concern that the texts are no answers to the prompts, but an outage; `None` without one."""
    possible = (
        constant_answers(audit, item, answers),
        service_messages(item, answers),
        irrelevant_answers(audit, item, answers),
    )
    return min((concern for concern in possible if concern is not None), key=_gravity, default=None)


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


def blocked(item: AnyItem, answers: Answers) -> dict[str, tuple[int, int]]:
    """Return two counts by group: its blocked answers, and all its answers; empty if no answer was blocked."""
    groups = defaultdict[str, list[bool]](list)
    for answer in answers:
        groups[_group_name(item, answer)].append(answer.status is Status.BLOCKED)
    return {name: (sum(own), len(own)) for name, own in groups.items()} if any(map(any, groups.values())) else {}


def _group_name(item: AnyItem, answer: Answer) -> str:
    return " ".join(filter(None, item.group_of(answer))) or "all"


def _blocked_answers(item: AnyItem, answers: Answers) -> Concern | None:
    """Return a note with the number of answers that the provider blocked, by group; `None` if there are none."""
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
    """Return a row for each group and reason with the number of answers; loss that is not random shows in them."""
    counts = Counter((_group_name(item, answer), answer.unread) for answer in answers if answer.unread)
    return [{"group": group, "reason": why, "answers": count} for (group, why), count in counts.most_common()]


def _equal_prompts(audit: AnyAudit, item: AnyItem, measurement: Measurement) -> Concern | None:
    """Return a note with the number of different prompts if it is smaller than that of records, cases or questions."""
    text, observations = item.probe.equal_prompts_text, measurement.details.get("observations")
    if observations is not None:
        text = text or f"{measurement.details[audit.counted]:,} {audit.counted}"
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

    Such a file was written or joined several times. Rows that are equal by chance have another order. Audits of texts
    count such rows once (`Groups.without_repeats`).
    """
    copied = probe.responses is not None and probe.kind != "generation"
    rows = [(answer.labels, answer.text) for answer in answers] if copied else []
    for times in range(2, repeats.MOST_COPIES + 1):
        once = len(rows) // times
        if (
            once < repeats.LEAST_COPIED
            or len(rows) % times
            or rows[:-once] != rows[once:]
            or rows[:1] * once == rows[:once]
        ):
            continue
        return Concern(
            "copied_rows",
            f"all {once:,} rows occur {times} times in the same order, so that each answer counts {times} times. "
            "Remove the copies from the file",
            withholds="test",
        )
    return None


def _unclassified_answers(item: AnyItem, answers: Answers) -> Concern | None:
    """Return a note if the model that recognises refusals failed on some answers, else `None`."""
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
    """Return a concern if many rows of an answer file were left out because they name no group, else `None`."""
    if left_out.rows <= WITHOUT_GROUP_SHARE * left_out.of:
        return None
    return Concern(
        "rows_without_group",
        f"{left_out}: more than {WITHOUT_GROUP_SHARE:.0%}, so that the answers of a group may be missing. "
        f"{left_out.remedy}",
    )


def truncated(probe: Probe, answers: Iterable[Answer]) -> dict[str, int]:
    """Return two counts: `answers` (answers that were cut off at `max_tokens`) and `of` (usable or cut off answers).

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
    """Return a concern if many answers were cut off, so that only their beginnings were measured, else `None`."""
    count, total = truncated(probe, answers).values()
    if count <= TRUNCATED_SHARE * total:
        return None
    return Concern(
        "truncated_answers",
        f"{count} of {total} answers ({count / total:.0%}) were cut off at the token limit. Raise `max_tokens`",
    )


def _letters_and_digits(text: object) -> str:
    return "".join(filter(str.isalnum, str(text).casefold()))
