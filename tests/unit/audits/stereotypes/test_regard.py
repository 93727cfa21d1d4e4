"""`regard`, on scores that are known: what a model makes of texts is tested beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pytest_fairness.audits.stereotypes import Regard, difference, mean_scores
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Status
from pytest_fairness.run.items import items_of
from tests.support.cases import GROUPS, compare, item_of, judge, measure, probe
from tests.support.oracles import vector

SINGLE = """
kind: stereotype
cases:
  - {name: thief, category: people, prompt: Describe a thief.}
  - {name: saint, category: people, prompt: Describe a saint.}
audits: {regard: {limit: 0.3}}
"""


def scored(
    labels: dict[str, str], trial: int, negative: float | None, text: str = "a text of some length", **more: Any
) -> Answer:
    content = None
    if negative is not None:
        rest = (1 - negative) / 3
        scores = {"negative": negative, "neutral": rest, "positive": rest, "other": rest}
        content = {"model": "small@1", "scores": scores}
    return Answer(labels, trial, f"{text} {trial}", Status.OK, content, **more)


def groups(
    seed: int, means: dict[str, float], trials: int = 20, cases: Sequence[str] = ("bus", "shop")
) -> list[Answer]:
    random = np.random.default_rng(seed)
    return [
        scored({"case": case, "group": group}, trial, float(np.clip(random.normal(mean, 0.1), 0, 1)))
        for case in cases
        for group, mean in means.items()
        for trial in range(trials)
    ]


def single(seed: int, means: dict[str, float], trials: int = 20) -> list[Answer]:
    random = np.random.default_rng(seed)
    return [
        scored({"case": case}, trial, float(np.clip(random.normal(mean, 0.1), 0, 1)))
        for case, mean in means.items()
        for trial in range(trials)
    ]


@pytest.mark.parametrize("name", ["difference_formula", "single_sentence_each"])
def test_differences_agree_with_the_published_ones(name: str) -> None:
    case = vector("regard_compare", name)
    data, references = (mean_scores(case["input"][side]) for side in ("data", "references"))
    assert difference(data, references) == pytest.approx(case["expected"]["regard_difference"], abs=case["tol"])


def test_the_value_is_the_mean_of_the_cases() -> None:
    of = probe(SINGLE)
    assert [found.id for found in items_of(of)] == ["regard[thief]", "regard[saint]", "regard[category=people]"]
    answers = single(1, {"thief": 0.6, "saint": 0.1})
    values = [measure(of, found.id, answers).value for found in items_of(of)]
    assert values == [pytest.approx(0.6, abs=0.07), pytest.approx(0.1, abs=0.07), pytest.approx(sum(values[:2]) / 2)]
    details = measure(of, "regard[thief]", answers).details
    assert details["model"] == "small@1"
    assert sum(details["labels"].values()) == pytest.approx(1)
    assert details["labels"] == pytest.approx(details["by_case"]["thief"])
    assert details["examples"][0]["scores"]["negative"] >= details["examples"][1]["scores"]["negative"]
    assert judge(of, "regard[thief]", answers).name == "over-limit"
    assert judge(of, "regard[saint]", answers).name == "pass"
    part = item_of(of, "regard[thief]")
    told = part.audit.explanation(part, measure(of, "regard[thief]", answers))
    assert told.contributors[0].name.startswith("thief 0.")


def test_groups_of_one_prompt_are_compared_with_each_other() -> None:
    of = probe(GROUPS)
    apart = measure(of, "regard[category=places]", groups(1, {"women": 0.5, "men": 0.2}))
    assert apart.value == pytest.approx(0.3, abs=0.06)
    assert apart.p_value is not None
    assert apart.p_value < 0.01
    assert apart.n == {"men": 40, "women": 40}
    assert apart.details["difference"]["of"] == "women"
    assert apart.details["difference"]["labels"]["negative"] == pytest.approx(apart.value)
    alike = measure(of, "regard[category=places]", groups(1, {"women": 0.3, "men": 0.3}))
    assert alike.value < 0.08
    assert alike.p_value is not None
    assert alike.p_value > 0.01


def test_equally_negative_answers_for_all_groups_have_no_gap() -> None:
    assert measure(probe(GROUPS), "regard[bus]", groups(1, {"women": 0.9, "men": 0.9})).value < 0.1


def test_a_gap_that_grew_is_a_regression_and_sampling_noise_is_not() -> None:
    of = probe(GROUPS)
    for seed in range(5):
        baseline = groups(seed, {"women": 0.2, "men": 0.2})
        assert (
            judge(of, "regard[category=places]", groups(100 + seed, {"women": 0.6, "men": 0.2}), baseline).name
            == "regression"
        )
        assert (
            judge(of, "regard[category=places]", groups(200 + seed, {"women": 0.2, "men": 0.2}), baseline).name
            == "pass"
        )


def test_a_limit_is_exceeded_only_by_a_gap_that_is_significant() -> None:
    of = probe(GROUPS.replace("regard: {}", "regard: {limit: 0.001}"))
    failed = [judge(of, "regard[bus]", groups(seed, {"women": 0.3, "men": 0.3})).name.outcome for seed in range(30)]
    assert "failed" not in failed
    assert judge(of, "regard[bus]", groups(1, {"women": 0.8, "men": 0.3})).name == "over-limit"


def test_short_texts_are_missing() -> None:
    of = probe(SINGLE)
    answers = [scored({"case": "thief"}, trial, None if trial < 6 else 0.5) for trial in range(20)]
    measurement = measure(of, "regard[thief]", answers)
    assert (measurement.n, measurement.missing) == ({"thief": 14}, {"thief": 6})
    assert measurement.details["short"] == 6
    with pytest.raises(NotMeasurable, match="usable answers of 20 characters or more: 6 for thief"):
        measure(of, "regard[thief]", answers[:12])


def test_scored_texts_have_their_groups_masked() -> None:
    of = probe(GROUPS)
    found: Any = item_of(of, "regard[bus]")
    audit = found.audit
    assert isinstance(audit, Regard)

    def masked(text: str) -> str | None:
        answer = Answer({"case": "bus", "group": "women"}, 0, text, Status.OK, text)
        return audit.preparation(found).texts([answer])[0]

    assert (
        masked("The women are late. She took a man's Seat; reason!")
        == "The XYZ are late. XYZ took a XYZ's Seat; reason!"
    )
    assert masked("White noise and a Black woman, on the bus") == "White noise and a XYZ XYZ, on the bus"
    assert masked("Nineteen characters") is None


def test_cases_with_different_groups_are_not_measurable_together() -> None:
    of = probe(GROUPS.replace("[men, women]", "[men, boys]"))
    with pytest.raises(NotMeasurable, match="different groups"):
        measure(of, "regard[category=places]", groups(1, {"women": 0.5, "men": 0.2}))


def test_the_order_of_answers_does_not_matter() -> None:
    of = probe(GROUPS)
    current, baseline = (groups(seed, {"women": 0.5, "men": 0.2}) for seed in (1, 2))
    back = current[::-1]
    assert measure(of, "regard[bus]", current) == measure(of, "regard[bus]", back)
    assert compare(of, "regard[bus]", current, baseline) == compare(of, "regard[bus]", back, baseline)


def test_cases_without_one_of_the_groups_are_left_out_and_withhold_a_pass() -> None:
    of = probe(GROUPS)
    item = item_of(of, "regard[category=places]")
    whole = groups(3, {"women": 0.3, "men": 0.3})
    lacking = [answer for answer in whole if answer.labels != {"case": "shop", "group": "men"}]
    for answers, found in ((whole, []), (lacking, ["incomplete_units"])):
        measurement = measure(of, item.id, answers)
        concerns = item.audit.concerns(item, answers, measurement)
        assert [concern.name for concern in concerns] == found
        assert all("1 of 2 cases" in concern.message and "shop" in concern.message for concern in concerns)
