"""Removal of clauses: a placeholder without a value is removed with its clause, and no other text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.probes import prompts
from pytest_fairness.probes.prompts import remove_clauses

PERSON = "A person is described as follows: age is {age}; work is {work}; sex is {sex}. Born in {country}.\nRich?"


@pytest.mark.parametrize(
    ("names", "left"),
    [
        ([], PERSON),
        (["other"], PERSON),
        (["age"], "A person is described as follows: work is {work}; sex is {sex}. Born in {country}.\nRich?"),
        (["work"], "A person is described as follows: age is {age}; sex is {sex}. Born in {country}.\nRich?"),
        (["sex"], "A person is described as follows: age is {age}; work is {work}. Born in {country}.\nRich?"),
        (["age", "work"], "A person is described as follows: sex is {sex}. Born in {country}.\nRich?"),
        (["country"], "A person is described as follows: age is {age}; work is {work}; sex is {sex}.\nRich?"),
        (["age", "work", "sex"], "A person is described as follows. Born in {country}.\nRich?"),
    ],
)
def test_clauses_of_a_sentence(names: list[str], left: str) -> None:
    assert remove_clauses(PERSON, names) == left


@pytest.mark.parametrize(
    ("text", "names", "left"),
    [
        ("Age: {age}; sex: {sex}.\nRich?", ["age"], "sex: {sex}.\nRich?"),
        ("Known of someone. Age: {age}; sex: {sex}.", ["age"], "Known of someone. sex: {sex}."),
        ("age: {age}\nsex: {sex}\njob: {job}\n\nRich?", ["age"], "sex: {sex}\njob: {job}\n\nRich?"),
        ("age: {age}\nsex: {sex}\njob: {job}\n\nRich?", ["job"], "age: {age}\nsex: {sex}\n\nRich?"),
        ("A {sex} person (aged {age}) works as {job}.", ["age"], "A {sex} person works as {job}."),
        ("One, aged {age}, earns $50,000.", ["age"], "One, earns $50,000."),
        ("Is {a} rich? Is {b}?", ["a"], "Is {b}?"),
    ],
)
def test_other_ways_to_write(text: str, names: list[str], left: str) -> None:
    assert remove_clauses(text, names) == left


@pytest.mark.timeout(30)  # quadratic time would take many minutes
def test_long_runs_of_marks_are_read_in_linear_time() -> None:
    runs = [mark * 200_000 for mark in (" ", ".", "(", ",", "\n", ":")]
    assert "{age}" not in remove_clauses("x".join(runs) + "{age}", ["age"])


@given(st.text(alphabet="ab,;.:? \n()", max_size=60), st.text(alphabet="ab,;.:? \n()", max_size=60))
def test_the_clause_of_a_missing_field_is_removed_and_no_text_is_added(before: str, after: str) -> None:
    left = remove_clauses(f"{before}{{age}}{after} {{sex}}", ["age"])
    assert "age" not in prompts.placeholders(left)
    assert not list(prompts.template_diagnostics(left, ["sex"]))
    assert set(left) <= set(before + after + "{sex} .")
