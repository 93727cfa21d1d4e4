"""Table of the answers to multiple-choice questions, with a row for each template."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from pytest_fairness.audits.choices.coded_answers import Coded, context_of, counts, examples
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.probes.multiple_choice.question import Question
from pytest_fairness.stats.intervals import proportions


def sums_table(
    coded: Sequence[Coded], columns: Sequence[str], rows: Sequence[Sequence[float]], groups: Sequence[str]
) -> UnitTable:
    """Return the table of one run, with a row for each template; a row holds sums over the template's answers.

    The sums are divided by the number of trials, so that runs with different numbers of trials can be compared.

    Args:
        coded: coded answers.
        columns: names of the columns.
        rows: for each answer, the number that it adds to each column; ignored for a missing answer.
        groups: for each answer, the name of its group, for the numbers of usable and missing answers.
    """
    units = tuple(sorted({each.question.template for each in coded}))
    places = {unit: row for row, unit in enumerate(units)}
    table = np.full((len(units), len(columns)), np.nan)
    n, missing = (Counter(dict.fromkeys(sorted({*groups}), 0)) for _ in range(2))
    for each, row, group in zip(coded, rows, groups, strict=True):
        (missing if each.choice is None else n)[group] += 1
        if each.choice is not None:
            place = places[each.question.template]
            table[place] = np.nan_to_num(table[place]) + row
    table /= 1 + max((each.trial for each in coded), default=0)
    usable = [each for each in coded if each.choice is not None]
    distinct = len({(each.question.name, each.choice) for each in usable})
    # If all trials of each question give the same answer, only whole questions can change.
    questions = len({each.question.name for each in usable})
    answers = questions if distinct == questions else len(usable)
    return UnitTable(
        units,
        tuple(columns),
        table,
        n=n,
        missing=missing,
        details={
            "cells": _counts_by(coded, _cell),
            "by_template": _counts_by(coded, lambda question: question.template),
            "questions": examples(each for each in coded if each.choice is not None and not each.right),
        },
        step=1 / answers if answers else 0.0,
        least_error=proportions.least_difference_error(answers),
    )


def _cell(question: Question) -> str:
    """Return the type of context and the polarity of a question, such as `ambiguous, negative`."""
    polarity = "negative" if question.negative else "non-negative"
    return f"{context_of(question).removesuffix(' context')}, {polarity}"


def _counts_by(coded: Sequence[Coded], group_of: Callable[[Question], str]) -> dict[str, dict[str, int]]:
    """Return the number of answers by code, for each group of questions; `group_of` names a question's group."""
    groups: defaultdict[str, list[Coded]] = defaultdict(list)
    for each in coded:
        groups[group_of(each.question)].append(each)
    return {group: counts(own) for group, own in sorted(groups.items())}
