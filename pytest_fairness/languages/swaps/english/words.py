"""The English word lists of `data/`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pytest_fairness.languages.swaps.data_files import data, either


@dataclass(frozen=True, eq=False)
class Term:
    """A term with its counterparts.

    Attributes:
        column: the term's group: 0 for male, 1 for female, 2 for gender-neutral.
        forms: the term and its counterparts, in the order of the groups; "" where a group has no such term.
        one_way: whether swapping a counterpart back would give another term.
    """

    column: int
    forms: tuple[str, str, str]
    one_way: bool = False


@dataclass(frozen=True, eq=False)
class Names:
    """First names.

    Attributes:
        listed: names with counterparts, in lower case.
        neutral: gender-neutral counterparts, in lower case.
        same_origin: for each listed name, the other names of its group and origin: first those of later rows, then
            those of earlier rows.
        others: names with a gender and without counterparts.
        words_at_start: names in `others` that may be an ordinary word at the beginning of a sentence, such as "Will".
        second: second parts of first names, such as "Ann" in "Mary Ann".
        with_gendered_surnames: listed names of origins whose surnames have a gender.
        famous: pattern that matches names of famous people and of products.
        before_places: words after which a name belongs to a place, such as "San".
        places: words before which a name belongs to a place or an organisation, such as "Street".
        no_names: words that are no names of people although they may have a capital, such as "Monday".
    """

    listed: Mapping[str, Term]
    neutral: frozenset[str]
    same_origin: Mapping[str, tuple[str, ...]]
    others: frozenset[str]
    words_at_start: frozenset[str]
    second: frozenset[str]
    with_gendered_surnames: frozenset[str]
    famous: re.Pattern[str]
    before_places: frozenset[str]
    places: frozenset[str]
    no_names: frozenset[str]


def gender() -> Mapping[str, Any]:
    """Return the data of `en_gender.toml`."""
    return data("en_gender")


@cache
def words(table: str, key: str) -> frozenset[str]:
    """Return the words under a key of a table in `en_gender.toml`."""
    return frozenset(gender()[table][key].split())


@cache
def third_person(key: str) -> frozenset[str]:
    """Return the verbs under a key of `en_verbs.toml`."""
    return frozenset(data("en_verbs")[key].split())


@cache
def pattern(table: str, key: str) -> re.Pattern[str]:
    """Return one pattern for all patterns under a key of a table in `en_gender.toml`; it matches whole words only."""
    return re.compile(rf"(?<!\w){either(gender()[table][key])}(?!\w)", re.IGNORECASE)


@cache
def terms() -> Mapping[str, Term]:
    """Return the terms for which prompts are searched, by their form in lower case."""
    rows = [tuple(row) for row in gender()["rows"]]
    counts = Counter(form for row in rows for form in set(row))
    by_form = {
        form: Term(column, row)
        for row in rows
        for column, form in enumerate(row)
        if counts[form] == 1 and (column < 2 or form in gender()["neutral"])
    }
    for column, group in enumerate(("male", "female")):
        for form, (other, neutral) in gender()["one_way"][group].items():
            forms = (form, other, neutral) if column == 0 else (other, form, neutral)
            by_form[form] = Term(column, forms, one_way=True)
    return {
        **by_form,
        "ms": Term(1, ("Mr", "Ms", "Mx")),
        "mr": Term(0, ("Mr", "Ms", "Mx")),
        "mx": Term(2, ("Mr", "Ms", "Mx")),
    }


@cache
def names() -> Names:
    """Return the lists of first names in `en_names.toml`."""
    content = data("en_names")
    listed: dict[str, Term] = {}
    same_origin: dict[str, tuple[str, ...]] = {}
    for rows in content["rows"].values():
        for number, row in enumerate(rows):
            others = [*rows[number + 1 :], *rows[:number]]
            for column in (0, 1):
                listed[row[column].lower()] = Term(column, tuple(row))
                same_origin[row[column].lower()] = tuple(other[column] for other in others)
    famous = [re.escape(name.strip()) for name in content["famous"].replace("\n", " ").split(",")]
    return Names(
        listed=listed,
        neutral=frozenset(term.forms[2].lower() for term in listed.values()),
        same_origin=same_origin,
        others=frozenset(content["others"].split() + content["others_of_faker"].split()),
        words_at_start=frozenset(content["words_at_start"].split()),
        with_gendered_surnames=frozenset(
            name.lower()
            for origin in content["origins_with_gendered_surnames"]
            for row in content["rows"][origin]
            for name in row[:2]
        ),
        second=frozenset(content["second"].split()),
        famous=re.compile(rf"(?<!\w){either(famous)}(?!\w)", re.IGNORECASE),
        before_places=frozenset(content["before_places"].split()),
        places=frozenset(content["places"].split()),
        no_names=frozenset([*content["capitalised"].split(), *content["places"].split(), *_words_of_lists()]),
    )


def _words_of_lists() -> set[str]:
    """Return all words of the lists in `en_gender.toml`."""
    tables = [table for table in gender().values() if isinstance(table, dict)]
    return {word for table in tables for value in table.values() if isinstance(value, str) for word in value.split()}
