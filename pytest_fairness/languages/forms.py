"""Forms of German, French and Spanish nouns, determiners, adjectives and first names, from the data files.

The data files `de_gender.toml`, `fr_gender.toml` and `es_gender.toml` hold the forms. A *slot* is a form within a
gender: the case in German, the form before a consonant or a vowel in French.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pytest_fairness.languages.swap_terms import data

Forms = tuple[tuple[str, ...], tuple[str, ...]]
"""Male and female forms, one for each slot."""


@dataclass(frozen=True, eq=False)
class Noun:
    name: str
    forms: Forms
    plurals: frozenset[str]
    kind: str

    def compound(self, first: str) -> Noun:
        male, female = (tuple(first + form.lower() for form in forms) for forms in self.forms)
        plurals = frozenset(first + form.lower() for form in self.plurals)
        return Noun(first + self.name.lower(), (male, female), plurals, self.kind)


@dataclass(frozen=True, eq=False)
class Determiner:
    kind: str
    forms: Forms


@dataclass(frozen=True, eq=False)
class Grammar:
    content: Mapping[str, Any]
    determiners: Mapping[str, list[Determiner]]
    nouns: Mapping[str, list[Noun]]
    adjectives: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[int, tuple[str, str], tuple[str, str]]]
    other_names: frozenset[str]


@cache
def grammar(code: str) -> Grammar:
    content, names = data(f"{code}_gender"), data("names")
    determiners: dict[str, list[Determiner]] = defaultdict(list)
    for kind, *genders in content["determiners"]:
        male, female = (tuple(form.replace("_", " ") for form in forms.split()) for forms in genders)
        for form in dict.fromkeys([*male, *female]):
            determiners[form.lower()].append(Determiner(kind, (male, female)))
    columns, slots = content["columns"], len(male)
    listed = []
    for row in content["nouns"]:
        *forms, kind = f"{row} -".split()[: len(columns) + 1]
        by_key = dict(zip(columns, forms, strict=True))
        own = tuple(by_key[key] for key in columns[:slots]) if code == "de" else (by_key["m"],) * slots
        plurals = frozenset(form for key, form in by_key.items() if key.startswith(("pl", "fpl")))
        listed.append(Noun(by_key["f"], (own, (by_key["f"],) * slots), plurals, kind))
    for stem in content.get("adjectival", "").split():
        for kind, *genders in content["adjective_endings"]:
            male, female = (tuple(stem + end for end in ends.split()) for ends in genders)
            listed.append(Noun(stem, (male, female), frozenset([stem + "en"]), kind))
    nouns: dict[str, list[Noun]] = defaultdict(list)
    for noun in listed:
        for form in {*noun.forms[0], *noun.forms[1], *noun.plurals}:
            nouns[form].append(noun)
    pairs: dict[str, tuple[int, tuple[str, str], tuple[str, str]]] = {}
    groups = [names["pairs"][code], *(value for key, value in names["pairs"].items() if key != code)]
    for group in groups:
        rows = [(male, female) for male, _, female in (pair.partition("/") for pair in group.split())]
        for number, pair in enumerate(rows):
            if not pairs.keys() & {*pair}:
                pairs.update({name: (column, pair, rows[number - 1]) for column, name in enumerate(pair)})
    adjectives = {form: tuple(row.split()) for row in content.get("adjectives", ()) for form in row.split()}
    return Grammar(content, determiners, nouns, adjectives, pairs, frozenset(names["others"][code].split()))


@cache
def words(code: str, key: str) -> frozenset[str]:
    return frozenset(data(f"{code}_gender").get(key, "").split())
