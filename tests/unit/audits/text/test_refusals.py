"""Refusals of two groups, compared with a baseline: prompts that differ, rare refusals, a gap that changes sides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.records import Answer, Comparison, Status, Verdict, VerdictName
from pytest_fairness.run import ProbeItem, items_of

Chance = Callable[[int], float]


def item(prompts: int, trials: int) -> ProbeItem:
    """The item of a probe with so many prompts about two groups."""
    written = {
        "kind": "generation",
        "name": "told",
        "prompt": [f"Write about {{group}}, number {number}." for number in range(prompts)],
        "axes": {"group": {"unmarked": "Ulm", "marked": ["Bern"]}},
        "trials": trials,
        "audits": {"refusals": {}},
    }
    probe = probes.parse(json.dumps(written).encode(), Path("told.yaml"), kinds.schemas())
    return items_of(probe)[0]


def run(random: np.random.Generator, prompts: int, trials: int, ulm: Chance, bern: Chance) -> list[Answer]:
    """One run; each prompt and group has a chance of being refused."""
    found = []
    for number in range(prompts):
        for group, chance in (("Ulm", ulm), ("Bern", bern)):
            for trial in range(trials):
                refused = random.random() < chance(number)
                labels = {"group": group, "prompt": str(number + 1)}
                status = Status.REFUSED if refused else Status.OK
                found.append(Answer(labels, trial, "A text.", status, None if refused else "A text."))
    return found


def always(share: float) -> Chance:
    return lambda _: share


def touchy(more: float) -> Chance:
    """One prompt in five is nearly always refused, the others are with a chance of 5 %; all of them `more` often."""
    return lambda number: min(0.95, (0.95 if number % 5 == 0 else 0.05) + more)


def compared(of: ProbeItem, now: list[Answer], then: list[Answer]) -> tuple[Comparison, Verdict]:
    present, earlier = (of.audit.measure(of, answers) for answers in (now, then))
    comparison = of.audit.compare(of, now, then)
    verdict = decide(
        of.audit, of, present,
        baseline=BaselineEntry(earlier.value), comparison=comparison, trials=10, accept="",
    )  # fmt: skip
    return comparison, verdict


@pytest.mark.parametrize(("prompts", "trials"), [(10, 10), (60, 1)])
@pytest.mark.parametrize("more", [0.0, 0.2])
def test_the_error_of_the_change_is_its_standard_deviation(prompts: int, trials: int, more: float) -> None:
    """One prompt in five is nearly always refused, which is no error of a change."""
    of, random = item(prompts, trials), np.random.default_rng(1)
    changes, errors = [], []
    for _ in range(80):
        now, then = (run(random, prompts, trials, touchy(0.0), touchy(0.15 + plus)) for plus in (more, 0.0))
        found = of.audit.compare(of, now, then)
        assert found.standard_error is not None
        changes.append(found.value)
        errors.append(found.standard_error)
    # The standard deviation of 80 changes is known to 8 %.
    assert 0.78 < np.mean(errors) / np.std(changes, ddof=1) < 1.3


def test_a_gap_that_grew_is_a_regression_on_either_side() -> None:
    of, random = item(10, 10), np.random.default_rng(2)
    then = run(random, 10, 10, always(0.1), always(0.1))
    for shares in ((0.1, 0.45), (0.45, 0.1)):
        comparison, verdict = compared(of, run(random, 10, 10, *map(always, shares)), then)
        assert comparison.value == pytest.approx(0.35, abs=0.15)
        assert verdict.name == "regression"


def test_a_gap_that_changed_sides_is_a_regression_though_it_is_no_larger() -> None:
    of, random = item(10, 10), np.random.default_rng(3)
    then, now = (run(random, 10, 10, always(first), always(second)) for first, second in ((0.4, 0.1), (0.1, 0.4)))
    comparison, verdict = compared(of, now, then)
    assert comparison.reversal is not None
    assert comparison.reversal.value == pytest.approx(0.3, abs=0.15)
    assert verdict.name == "regression"
    assert "changed sides" in verdict.reason


def test_a_gap_that_may_have_changed_sides_does_not_pass() -> None:
    """Too few answers to prove it, and the gap is no larger than before."""
    of, random = item(2, 10), np.random.default_rng(6)
    then, now = (run(random, 2, 10, always(first), always(second)) for first, second in ((0.4, 0.1), (0.1, 0.4)))
    comparison, verdict = compared(of, now, then)
    assert comparison.reversal is not None
    assert comparison.reversal.value > 0.1
    assert verdict.name in ("inconclusive", "regression")


def test_an_unchanged_system_hardly_ever_fails() -> None:
    of, random = item(5, 10), np.random.default_rng(4)
    names = [
        compared(of, *(run(random, 5, 10, always(0.3), always(0.3)) for _ in range(2)))[1].name for _ in range(100)
    ]
    assert names.count(VerdictName.REGRESSION) <= 3


def test_a_single_refusal_in_few_answers_proves_nothing() -> None:
    of, random = item(2, 10), np.random.default_rng(5)
    then = run(random, 2, 10, always(0), always(0))
    first, *rest = then
    now = [Answer(first.labels, first.trial, "No.", Status.REFUSED, None), *rest]
    comparison, verdict = compared(of, now, then)
    assert comparison.standard_error is not None
    assert comparison.standard_error > 0.08
    assert verdict.name == "inconclusive"
