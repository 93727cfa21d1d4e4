from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.probes import prompts
from pytest_fairness.probes.perturbations import Operation, Perturbed, error_count, typos, typos_in_template
from tests.support.templates import literal

operations = st.lists(st.sampled_from(get_args(Operation)), min_size=1, unique=True)
rates = st.floats(min_value=0.001, max_value=1)
seeds = st.integers(min_value=0, max_value=2**31)


def replayed(perturbed: Perturbed) -> str:
    """Return the clean text with the recorded errors applied, from the last to the first."""
    text = perturbed.clean
    for edit in reversed(perturbed.edits):
        end = edit.position + len(edit.before)
        assert text[edit.position : end] == edit.before
        text = text[: edit.position] + edit.after + text[end:]
    return text


@given(st.text(), rates, seeds, operations)
def test_every_error_is_recorded(text: str, rate: float, seed: int, kinds: list[Operation]) -> None:
    found = typos(text, rate, seed, kinds)
    assert replayed(found) == found.text
    assert {edit.operation for edit in found.edits} <= set(kinds)


@given(st.text(), rates, seeds)
def test_there_are_as_many_errors_as_declared(text: str, rate: float, seed: int) -> None:
    letters = sum(letter.isalpha() for letter in text)
    found = typos(text, rate, seed, ["swap", "drop", "insert", "replace"])
    if letters == 0:
        assert found.text == text
    elif rate <= 0.5:
        assert len(found.edits) == error_count(letters, rate)
        assert len(found.edits) == max(1, round(rate * letters))
    else:
        assert letters / 2 - 1 < len(found.edits) <= letters


@given(st.text(), rates, seeds, operations)
def test_the_same_seed_makes_the_same_errors(text: str, rate: float, seed: int, kinds: list[Operation]) -> None:
    assert typos(text, rate, seed, kinds) == typos(text, rate, seed, kinds)


def test_another_seed_makes_others() -> None:
    text = "a middle-aged, extraverted person"
    assert len({typos(text, 0.2, seed, ["replace"]).text for seed in range(20)}) > 10


@given(st.text(), st.text(), rates, seeds, operations)
def test_an_entity_is_never_touched(before: str, after: str, rate: float, seed: int, kinds: list[Operation]) -> None:
    clean = literal(before) + "{entity}" + literal(after)
    found = typos_in_template(clean, rate, seed, kinds)
    assert prompts.placeholders(found.text) == ["entity"]
    assert "Beyoncé" in prompts.fill(found.text, {"entity": "Beyoncé"})
    assert replayed(found) == found.text
