"""Comparisons of two runs: the estimated change, reversals of a gap, and changes that all groups share."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pvariance

from pytest_fairness.audits.base import AnyItem
from pytest_fairness.plurals import significant
from pytest_fairness.records import Answer, Answers, Comparison, Json, Pair, Reversal, SharedChange
from pytest_fairness.stats.intervals import normal

LARGE_NUMBER = 0.5
"""A mean number that moves by so many standard deviations is a large change."""
LARGE_SHARE = 0.20
"""A share of answers (a choice, refusals), or a similarity of lists, that moves by so much is a large change."""
LARGE_LENGTH = 1.5
"""A mean number of words that grows or falls by this factor is a large change."""
FEWEST_OF_GROUP = 4
"""Smallest number of answers of each group in each run."""
CLEAR_ERRORS = 4.0
"""Smallest change of all groups together, in its standard errors."""
MEAN, LENGTH, ALIKE = "mean number", "words of an answer", "similarity to the baseline's lists for the same entity"
REFUSALS = "refusals"

Levels = Mapping[str, Mapping[str, Sequence[float]]]
"""Numbers of the answers, by the name of the quantity and by group."""


def comparison(
    value: float,
    standard_error: float,
    p_value: float,
    *,
    degrees_of_freedom: float | None = None,
    reversal: Reversal | None = None,
    pairs: Sequence[Pair] = (),
    pair: Pair | None = None,
    details: Mapping[str, Json],
) -> Comparison:
    """Return the comparison of two runs, with the confidence interval of the change; see `Comparison`."""
    return Comparison(
        value=value,
        interval=normal.interval(value, standard_error, degrees_of_freedom=degrees_of_freedom),
        standard_error=standard_error,
        p_value=p_value,
        degrees_of_freedom=degrees_of_freedom,
        reversal=reversal,
        pairs=pairs,
        pair=pair,
        details=details,
    )


def group_reversal(high: str, low: str, current: float, baseline: float, p_value: float) -> Reversal:
    """Return the reversal of the gap between two groups.

    Args:
        high, low: names of the groups; `high` has the larger value in the current run.
        current, baseline: gap of each run, `high` minus `low`; the baseline's gap is below 0.
        p_value: two-sided p-value of the null hypothesis that nothing changed.
    """
    return Reversal.with_bonferroni(
        value=current,
        p_value=p_value,
        description=f"{high} was {significant(-baseline)} below {low} and is {significant(current)} above",
    )


def with_same_wording(current: Answers, baseline: Answers, unit: Callable[[Answer], str]) -> tuple[Answers, Answers]:
    """Return the current answers, and the baseline's answers to prompts with the same wording (label `wording`).

    Args:
        current, baseline: answers of the two runs.
        unit: function that returns the name of an answer's unit, such as its question; a unit has one wording in a run.
    """
    wordings = {unit(answer): answer.labels.get("wording") for answer in current}
    baseline = [answer for answer in baseline if wordings.get(unit(answer)) == answer.labels.get("wording")]
    return current, baseline


def shared_changes(item: AnyItem, current: Answers, baseline: Answers) -> tuple[SharedChange, ...]:
    """Return large changes since the baseline that all groups share, the largest first.

    Such a change leaves the differences between groups as they are: all scores fall by 30 points, every decision
    becomes "yes", or all lists name other titles. Compared are the mean number, the share of each choice and of
    refusals, the mean number of words, and the similarity of the lists for an entity to those of the baseline.
    """
    before, now = (_levels(item, run, baseline) for run in (baseline, current))
    found: dict[str, tuple[float, SharedChange]] = {}
    for name in before.keys() & now.keys():
        groups = sorted(before[name].keys() & now[name].keys())
        pairs = [(before[name][group], now[name][group]) for group in groups]
        if not pairs or any(min(map(len, pair)) < FEWEST_OF_GROUP for pair in pairs):
            continue
        every = tuple([value for pair in pairs for value in pair[side]] for side in (0, 1))
        size, sizes = _size_of_change(name, *every), [_size_of_change(name, *pair) for pair in pairs]
        error = math.sqrt(sum(pvariance(values) / len(values) for values in every))
        if abs(size) < 1 or abs(fmean(every[1]) - fmean(every[0])) < CLEAR_ERRORS * error:
            continue
        if all(own * size > 0 and abs(own) >= 0.5 for own in sizes):
            kind = "answers" if name.startswith("answer ") else name
            shown = [_change_text(item, name, *pair) for pair in pairs]
            of_groups = ", ".join(f"{group} {text}" for group, text in zip(groups, shown, strict=True))
            text = f"{name} {_change_text(item, name, *every)}{f' ({of_groups})' if len(groups) > 1 else ''}"
            if kind not in found or size > found[kind][0]:  # of the choices, the one that is given more often
                found[kind] = size, SharedChange(kind, text)
    return tuple(change for _, change in sorted(found.values(), key=lambda each: (-abs(each[0]), each[1].quantity)))


def _levels(item: AnyItem, answers: Answers, baseline: Answers) -> Levels:
    """Return the numbers whose means are compared."""
    levels: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    reading = item.probe.reading
    choices = reading.choices or (reading.judging.choices if reading.judging is not None else ())
    lists = _lists_by_entity(baseline)
    for answer in answers:
        if not (answer.usable or answer.refused):
            continue
        group = item.group_name(answer)
        levels[REFUSALS][group].append(float(answer.refused))
        content = answer.content
        if not answer.usable:
            continue
        if choices:
            for choice in choices:
                levels[f"answer {choice!r}"][group].append(float(content == choice))
        elif reading.number is not None:
            levels[MEAN][group].append(float(content))
        elif isinstance(content, str):
            levels[LENGTH][group].append(float(len(content.split())))
        elif isinstance(content, list) and "entity" in answer.labels:
            own = _items(answer)
            others = [each for other, each in lists.get(answer.labels["entity"], ()) if other is not answer]
            if others:
                levels[ALIKE][group].append(fmean(len(own & each) / (len(own | each) or 1) for each in others))
    return levels


def _lists_by_entity(answers: Answers) -> dict[str, list[tuple[Answer, frozenset[str]]]]:
    """Return the lists for each entity, each with its answer."""
    found: dict[str, list[tuple[Answer, frozenset[str]]]] = {}
    for answer in answers:
        if answer.usable and isinstance(answer.content, list) and "entity" in answer.labels:
            found.setdefault(answer.labels["entity"], []).append((answer, _items(answer)))
    return found


def _items(answer: Answer) -> frozenset[str]:
    return frozenset(str(each).casefold() for each in answer.content)


def _size_of_change(name: str, before: Sequence[float], now: Sequence[float]) -> float:
    """Return the change of the mean in units of a large change: 1 or −1 is large."""
    first, second = fmean(before), fmean(now)
    if name == LENGTH:
        return math.log((second or 1) / (first or 1)) / math.log(LARGE_LENGTH)
    if name == MEAN:
        spread = math.sqrt(pvariance(before)) or math.sqrt(pvariance(now)) or abs(first) or 1.0
        return (second - first) / (LARGE_NUMBER * spread)
    return (second - first) / LARGE_SHARE


def _change_text(item: AnyItem, name: str, before: Sequence[float], now: Sequence[float]) -> str:
    numbers = [fmean(values) for values in (before, now)]
    if name in (MEAN, LENGTH):
        unit = item.probe.reading.number.unit if name == MEAN and item.probe.reading.number is not None else ""
        return f"{' → '.join(significant(number) for number in numbers)} {unit}".rstrip()
    if name == ALIKE:
        return " → ".join(f"{number:.2f}" for number in numbers)
    return " → ".join(f"{number:.0%}" for number in numbers)
