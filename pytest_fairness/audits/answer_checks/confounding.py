"""Columns of answer files that predict the group, so that a difference between groups may be due to them."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.records import Concern, OtherColumn
from pytest_fairness.stats.groups.association import Association, association

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
PLAIN_NAME = re.compile(r"[^\W\d][\w .-]*\w|[^\W\d]")
"""Name of a column that needs no quotation marks in YAML."""


@dataclass(frozen=True)
class Confounder:
    """Column that predicts the group.

    Attributes:
        label: name of the label that holds the group, such as an axis.
        note: note on the file: the column, how strongly it predicts the group, and what to do.
        strength: the column with Cramér's V, for the reasons of items; empty if hardly any value occurs
            in several groups, as for a column that only describes the group.
    """

    label: str
    note: str
    strength: str


def concern(found: Sequence[Confounder]) -> Concern | None:
    """Return the note for the reason of an item; `None` if no column predicts the item's groups."""
    strengths = ", ".join(each.strength for each in found if each.strength)
    if not strengths:
        return None
    return Concern(CONFOUNDING, f"undeclared columns predict the group: {strengths}", withholds="nothing")


def confounders(
    columns: Sequence[OtherColumn], strata: Sequence[str], without_identity_terms: Callable[[str], str]
) -> list[Confounder]:
    """Return the columns that predict the group within the strata that the probe declares.

    Args:
        columns: columns of the answer files that the probe does not use.
        strata: the columns that the probe declares as strata.
        without_identity_terms: function that masks the words of a text that name a group. A column that differs only
            in these words, such as one of pronouns, describes the group and is not named.
    """
    found = []
    for column in columns:
        counts: Counter[tuple[object, str, str]] = Counter()
        for (stratum, group, value), count in column.counts.items():
            counts[stratum, group, without_identity_terms(value)] += count
        if not counts:
            continue
        measured = association(_table(counts))
        if measured.p_value <= CHANCE / len(columns) and measured.cramers_v >= SMALLEST_V:
            found.append(_confounder(column, counts, measured, strata))
    return found


def _table(counts: Mapping[tuple[object, str, str], int]) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    """Return the (strata, groups, values) number of rows; rare values are one value, the last."""
    groups, values = (_totals(counts, place) for place in (1, 2))
    smallest = min(groups.values()) / groups.total()
    frequent = [value for value, rows in values.most_common(MOST_VALUES) if rows * smallest >= LEAST_EXPECTED]
    numbers = [{name: number for number, name in enumerate(names)} for names in (_totals(counts, 0), groups, frequent)]
    table = np.zeros((len(numbers[0]), len(groups), len(frequent) + 1))
    for (stratum, group, value), rows in counts.items():
        table[numbers[0][stratum], numbers[1][group], numbers[2].get(value, len(frequent))] += rows
    return table


def _totals(counts: Mapping[tuple[object, str, str], int], place: int) -> Counter[object]:
    """Return the number of rows by stratum, group or value: the part of the key at this place."""
    totals: Counter[object] = Counter()
    for key, rows in counts.items():
        totals[key[place]] += rows
    return totals


def _confounder(
    column: OtherColumn, counts: Mapping[tuple[object, str, str], int], measured: Association, strata: Sequence[str]
) -> Confounder:
    """Return the confounder with its note; `counts` are the column's, without the words that name a group."""
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


def _shared(counts: Mapping[tuple[object, str, str], int]) -> float:
    """Return the share of the rows whose value occurs in several groups of the same stratum."""
    rows: Counter[tuple[object, str]] = Counter()
    groups: Counter[tuple[object, str]] = Counter()
    for (stratum, _, value), count in counts.items():
        rows[stratum, value] += count
        groups[stratum, value] += 1
    return sum(count for cell, count in rows.items() if groups[cell] > 1) / rows.total()


def _most_different(counts: Mapping[tuple[object, str, str], int]) -> str:
    """Return a phrase about the value whose shares differ most between two groups."""
    sizes, cells = _totals(counts, 1), Counter[tuple[object, object]]()
    for (_, group, value), rows in counts.items():
        cells[group, value] += rows
    shares = {
        value: {group: cells[group, value] / size for group, size in sizes.items()} for value in _totals(counts, 2)
    }
    differing = max(shares, key=lambda each: (max(shares[each].values()) - min(shares[each].values()), str(each)))
    own, text = shares[differing], str(differing)
    most, least = max(own, key=own.__getitem__), min(own, key=own.__getitem__)
    shown = text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
    return f"{shown!r} in {own[most]:.0%} of the rows of {most} and {own[least]:.0%} of {least}"
