"""`score` of texts about records: values by hand and by SciPy, and what never passes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_fairness import kinds, probes
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes.counterfactual import CounterfactualProbe
from pytest_fairness.records import Answer, Measurement, Status, Verdict
from pytest_fairness.run.items import ProbeItem, items_of


def probe(*values: str) -> CounterfactualProbe:
    content = {
        "kind": "counterfactual",
        "prompt": "Write to number {id}, a {sex}.",
        "records": [{"id": f"r{number}", "sex": values[number % len(values)]} for number in range(4)],
        "flip": {"sex": list(values)},
        "answer": {"text": True},
        "audits": {"score": {"scorer": "words", "tolerance": 5}},
    }
    found = probes.parse(json.dumps(content).encode(), Path("mail.yaml"), kinds.schemas(), scorers={"words": "words"})
    assert isinstance(found, CounterfactualProbe)
    return found


ITEM = items_of(probe("man", "woman"))[0]


def run(men: Sequence[float | None], women: Sequence[float | None], **others: Sequence[float | None]) -> list[Answer]:
    """One answer about each record as a man, as a woman, and as others; all records are men."""
    answers = []
    for value, scores in {"man": men, "woman": women, **others}.items():
        form = {"form": "own"} if value == "man" else {"form": "flipped", "attribute": "sex", "to": value}
        for number, score in enumerate(scores):
            labels, text = {"record": f"r{number:03}", "sex": "man", **form}, f"{value} {number} has {score} words"
            answers.append(
                Answer(labels, 0, text, Status.UNREADABLE, error="words raised ValueError")
                if score is None
                else Answer(labels, 0, text, Status.OK, {"model": "words 1", "score": score})
            )
    return answers


def drawn(seed: int, gap: float = 0.0, records: int = 120) -> list[Answer]:
    random = np.random.default_rng(seed)
    level = np.random.default_rng(1).normal(100, 30, records)
    return run((level + random.normal(0, 10, records)).tolist(), (level - gap + random.normal(0, 10, records)).tolist())


def measure(answers: list[Answer], item: ProbeItem = ITEM) -> Measurement:
    return item.audit.measure(item, answers)


def judge(now: list[Answer], then: list[Answer]) -> Verdict:
    return decide(
        ITEM.audit,
        ITEM,
        measure(now),
        baseline=BaselineEntry(measure(then).value),
        comparison=ITEM.audit.compare(ITEM, now, then),
        trials=120,
        accept="",
    )


def test_the_value_is_the_paired_difference_in_the_order_of_the_probe() -> None:
    men, women = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0], [12.0, 19.0, 35.0, 41.0, 58.0, 63.0]
    measured = measure(run(men, women))
    paired = stats.ttest_rel(men, women)
    assert ITEM.id == "score[words,sex]"
    assert measured.value == pytest.approx(-3.0)
    assert measured.standard_error == pytest.approx(-3.0 / paired.statistic)
    assert measured.details["records"] == 6
    assert measured.details["scores"]["woman"]["mean"] == pytest.approx(38)
    assert ITEM.audit.explanation(ITEM, measured).phrase == (
        "mean scores differ by -3 (35 for man, 38 for woman); each mean over the same 6 records"
    )
    # Signs of the differences -2, 1, -5, -1, -8, -3: of 64, as extreme are those of a sum of at least 18.
    differences = np.subtract(men, women)
    signs = np.array([[1 if number >> place & 1 else -1 for place in range(6)] for number in range(64)])
    assert measured.p_value == pytest.approx(np.mean(np.abs(signs @ differences) >= 18))


def test_of_several_values_those_that_differ_most_are_compared() -> None:
    item = items_of(probe("man", "woman", "other"))[0]
    measured = measure(run([10.0, 20.0, 30.0, 40.0], [11.0, 21.0, 31.0, 41.0], other=[5.0, 15.0, 26.0, 34.0]), item)
    assert measured.value == pytest.approx(26 - 20)
    assert measured.details["values"] == ["woman", "other"]


@settings(max_examples=20)
@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=4, max_size=12))
def test_exchanged_values_have_the_opposite_difference(pairs: list[tuple[float, float]]) -> None:
    men, women = ([pair[side] for pair in pairs] for side in (0, 1))
    assert measure(run(men, women)).value == pytest.approx(-measure(run(women, men)).value)


def test_a_planted_gap_is_found_and_no_gap_is_not() -> None:
    for seed in range(5):
        assert judge(drawn(2 * seed + 100, gap=12), drawn(2 * seed + 101)).name == "regression"
        assert judge(drawn(2 * seed + 100), drawn(2 * seed + 101)).name == "pass"


def test_records_without_a_score_are_incomplete() -> None:
    measured = measure(run([10.0, 20.0, 30.0, 40.0, None], [12.0, 19.0, 35.0, 41.0, 58.0]))
    assert measured.value == pytest.approx(-1.75)
    assert (measured.n, measured.missing) == ({"man": 4, "woman": 5}, {"man": 1, "woman": 0})
    assert measured.details["unscored"]["answers"] == 1
    with pytest.raises(NotMeasurable, match=r"only 0 records .* 5 of 10 answers have no score: words raised"):
        measure(run([None] * 5, [1.0] * 5))


def test_equal_scores_are_a_concern() -> None:
    answers = run([7.0] * 10, [7.0] * 10)
    found = ITEM.audit.concerns(ITEM, answers, measure(answers))
    assert [(concern.name, concern.withholds) for concern in found] == [("constant_scores", "pass")]


def test_a_smaller_scale_makes_the_baseline_stale() -> None:
    small = run([0.1, 0.2, 0.3, 0.5] * 3, [0.2, 0.3, 0.4, 0.1] * 3)
    large = run([10.0, 20.0, 30.0, 50.0] * 3, [20.0, 30.0, 40.0, 10.0] * 3)
    with pytest.raises(BaselineStale, match="scale of words"):
        ITEM.audit.compare(ITEM, small, large)
