"""Pace of Python's garbage collector while requests are in flight."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_fairness.resources import THRESHOLD, rare_collections
from pytest_fairness.targets.python import CallableTarget
from tests.support.asking import engine_for, questions, settings_in


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Restore the thresholds of the process of the tests."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_until_the_last_engine_has_ended() -> None:
    gc.set_threshold(500, 5, 5)
    first, second = ExitStack(), ExitStack()
    first.enter_context(rare_collections())
    second.enter_context(rare_collections())
    first.close()
    assert gc.get_threshold() == (THRESHOLD, 5, 5)
    second.close()
    assert gc.get_threshold() == (500, 5, 5)


@pytest.mark.parametrize("first", [0, 10 * THRESHOLD])
def test_rarer_collections_of_the_user_stay(first: int) -> None:
    gc.set_threshold(first, 5, 5)
    with rare_collections():
        assert gc.get_threshold() == (first, 5, 5)
    assert gc.get_threshold() == (first, 5, 5)


def test_collections_are_rare_while_an_engine_sends_requests(tmp_path: Path) -> None:
    gc.set_threshold(500, 5, 5)
    seen: list[int] = []

    def answer(prompt: str) -> str:
        seen.append(gc.get_threshold()[0])
        return prompt

    with engine_for(settings_in(tmp_path), CallableTarget(answer, "callable")) as engine:
        engine.answers(questions(2))
    assert seen == [THRESHOLD] * 2
    assert gc.get_threshold() == (500, 5, 5)
