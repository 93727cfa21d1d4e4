"""Columns of answer files that predict the group: seldom by chance, and with advice that fits the column."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pytest_fairness.audits.confounding import confounders, confounding_concern
from pytest_fairness.records import OtherColumn

GROUPS = ("man", "woman")


def column(name: str, rows: list[tuple[str, str, str]]) -> OtherColumn:
    """Return a column with rows of (stratum, group, value)."""
    return OtherColumn(name, "gender", Counter(rows))


def named(*columns: OtherColumn, strata: tuple[str, ...] = ()) -> list[str]:
    found = confounders(columns, strata, lambda text: text.replace("woman", "_").replace("man", "_"))
    return [each.note for each in found]


@pytest.mark.parametrize(("rows", "shares"), [(40, (0.5, 0.5)), (160, (0.5, 0.5)), (300, (0.1, 0.9))])
def test_unrelated_columns_are_named_in_at_most_1_of_200_files(rows: int, shares: tuple[float, float]) -> None:
    random, hits = np.random.default_rng(7), 0
    for _ in range(150):
        groups = random.choice(GROUPS, rows, p=shares)
        columns = []
        for values in (2, 3, 6, 20, 50):
            drawn = random.integers(values, size=rows)
            columns.append(column(f"{values}", [("", f"{g}", f"{v}") for g, v in zip(groups, drawn, strict=True)]))
        hits += bool(named(*columns))
    assert hits <= 4  # at most 0.75 are expected; Poisson: P(more than 4) = 0.001


def split(first: int, second: int, values: tuple[str, str] = ("law", "care")) -> list[tuple[str, str, str]]:
    """Return 100 rows of each group, with the first value in `first` rows of men and `second` rows of women."""
    rows = []
    for group, count in zip(GROUPS, (first, second), strict=True):
        rows += [("", group, values[0])] * count + [("", group, values[1])] * (100 - count)
    return rows


def test_the_note_names_the_column_its_strength_and_the_cure() -> None:
    (note,) = named(column("topic", split(80, 30)))
    assert "the undeclared column 'topic' predicts gender (Cramér's V 0.50; 'law' in 80% of the rows of man" in note
    assert "`strata: [topic]`" in note
    assert "`--strata topic`" in note


def test_declared_strata_stay_in_the_advice_and_names_are_quoted() -> None:
    (note,) = named(column("the topic: all", split(80, 30)), strata=("day",))
    assert '`strata: [day, "the topic: all"]`' in note
    assert "`--strata day --strata 'the topic: all'`" in note


@pytest.mark.parametrize("second", [80, 76])
def test_equal_and_nearly_equal_shares_are_no_confounding(second: int) -> None:
    assert named(column("topic", split(80, second))) == []


def test_a_column_that_only_names_the_group_is_not_named() -> None:
    assert named(column("who", split(100, 0, ("a man", "a woman")))) == []


def test_prompts_that_name_the_group_need_a_column_that_is_equal_for_both() -> None:
    rows = [("", group, f"{topic} of a {group}") for _, group, topic in split(80, 30)]
    (note,) = named(column("prompt", rows))
    assert "also without the words that name a group (Cramér's V 0.50; 'law of a _' in 80%" in note
    assert "`strata: [prompt]`" not in note


def test_a_column_whose_values_go_with_the_group_gets_no_advice_to_compare_within_them() -> None:
    found = confounders([column("model", split(100, 0, ("a", "b")))], (), str)
    assert "hardly any of its values occurs in several groups" in found[0].note
    assert "--strata" not in found[0].note
    assert confounding_concern(found) is None


def test_what_the_strata_explain_is_not_named() -> None:
    rows = split(80, 30)
    assert named(column("topic", [(topic, group, topic) for _, group, topic in rows]), strata=("prompt",)) == []


def test_columns_without_repeated_values_or_groups_are_not_named() -> None:
    assert named(column("id", [("", GROUPS[number % 2], str(number)) for number in range(50)])) == []
    assert named(column("topic", [("", "man", "law")] * 30)) == []
    assert named(column("topic", [])) == []
