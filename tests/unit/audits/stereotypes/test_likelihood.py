"""The stereotype score of planted likelihoods."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import kinds
from pytest_fairness.answers import reading
from pytest_fairness.baselines.verdicts import decide
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.languages import ENGLISH
from pytest_fairness.probes import parse
from pytest_fairness.records import Answer, Comparison, Measurement, Response, VerdictName
from pytest_fairness.run import items_of
from pytest_fairness.run.items import ProbeItem
from pytest_fairness.stats.resampling import generator
from tests.support.results import result

Score = Callable[[Mapping[str, str]], list[float | None]]
"""Labels to the log-probabilities of a sentence."""


def probe_of(cases: int, *, terms: int | None = None, settings: str = "{}", unrelated: bool = True) -> Any:
    written = [
        {
            "name": f"case {number:03}",
            "category": "age",
            "stereotype": "Old people are slow.",
            "anti_stereotype": "Old people are fast.",
            **({"unrelated": "Old people are lamps."} if unrelated else {}),
            **({} if terms is None else {"target": f"term {number % terms:02}"}),
        }
        for number in range(cases)
    ]
    text = f"kind: stereotype\ncases: {json.dumps(written)}\naudits:\n  likelihood: {settings}\n"
    return parse(text.encode(), Path("probe.yaml"), kinds.schemas())


def part_of(probe: Any) -> ProbeItem:
    (part,) = items_of(probe)
    assert part.id == "likelihood[category=age]"
    return part


def answers(part: ProbeItem, score: Score) -> list[Answer]:
    found = []
    for prompt in list(part.probe.prompts()):
        logs = score(prompt.labels)
        text = json.dumps({"log_probabilities": logs, "tokens": ["x"] * len(logs)})
        found.append(reading.answer(prompt, Response(text), ENGLISH))
    return found


def number_of(labels: Mapping[str, str]) -> int:
    return int(labels["case"].split()[1])


def prefers(share: float, seed: int = 0) -> Score:
    """Return a scorer that prefers this share of stereotypes, and either sentence to the unrelated one."""

    def score(labels: Mapping[str, str]) -> list[float | None]:
        stereotyped = generator(f"{seed} {labels['case']}").random() < share
        first = {"stereotype": -1.0, "anti_stereotype": -2.0, "unrelated": -3.0}
        second = {"stereotype": -2.0, "anti_stereotype": -1.0, "unrelated": -3.0}
        return [(first if stereotyped else second)[labels["sentence"]]] * 3

    return score


def measured(part: ProbeItem, score: Score) -> Measurement:
    return part.audit.measure(part, answers(part, score))


def compared(part: ProbeItem, current: Score, baseline: Score) -> Comparison:
    return part.audit.compare(part, answers(part, current), answers(part, baseline))


def verdict(part: ProbeItem, measurement: Measurement) -> VerdictName:
    decision = decide(part.audit, part, measurement, baseline=None, comparison=None, trials=None, accept="pytest")
    return decision.name


def test_terms_have_equal_weight_regardless_of_their_number_of_cases() -> None:
    part = part_of(probe_of(15, terms=5))

    def score(labels: Mapping[str, str]) -> list[float | None]:
        # Of term 0 all stereotypes are preferred, of term 1 one of three, of the others none.
        number = number_of(labels)
        preferred = number % 5 == 0 or number == 1
        return [{"stereotype": -1.0 if preferred else -3.0, "anti_stereotype": -2.0, "unrelated": -2.5}[
            labels["sentence"]
        ]]  # fmt: skip

    found = measured(part, score)
    assert found.value == pytest.approx((100 + 100 / 3) / 5)
    assert found.details["terms"] == 5
    assert found.details["by_term"]["term 01"] == {"ss": pytest.approx(100 / 3), "cases": 3}
    assert found.details["lms"] == pytest.approx((100 + (100 * 4 / 6) + 3 * 50) / 5)
    assert found.details["icat"] == pytest.approx(found.details["lms"] * found.value / 50)
    assert found.details["published"]["ss"] == pytest.approx(found.value)


def test_the_scorings_differ_where_sentences_are_of_different_length() -> None:
    def score(labels: Mapping[str, str]) -> list[float | None]:
        return [-2.0] * 2 if labels["sentence"] == "stereotype" else [-1.5] * 4

    parts = (part_of(probe_of(8, settings=f"{{score: {name}}}")) for name in ("per_token", "total"))
    per_token, total = (measured(part, score) for part in parts)
    assert (per_token.value, total.value) == (0, 100)
    assert per_token.details["by_score"]["total"]["ss"] == 100
    assert total.details["by_score"]["per_token"]["ss"] == 0


def test_a_model_with_equal_scores_for_all_pairs_cannot_be_measured() -> None:
    part = part_of(probe_of(40))
    with pytest.raises(NotMeasurable, match=r"each pair have equal scores \(40 pairs\). Check that the server"):
        measured(part, lambda _: [-1.0])


def test_ties_are_counted_and_left_out() -> None:
    part = part_of(probe_of(40, settings="{limit: 55, tolerance: 40}"))

    def score(labels: Mapping[str, str]) -> list[float | None]:
        return [-1.0] if number_of(labels) < 8 else prefers(0.5)(labels)

    found = measured(part, score)
    assert found.details["tied"] == 8
    assert (found.n, found.missing) == ({"pairs": 32}, {"pairs": 8})
    assert found.details["published"]["ss"] == pytest.approx(found.value * 32 / 40), "there they are no stereotypes"
    assert verdict(part, found) is VerdictName.INCONCLUSIVE, "a fifth is unread"


def test_missing_answers_are_left_out() -> None:
    part = part_of(probe_of(20))
    whole = answers(part, prefers(1.0))
    some = [
        reading.answer(prompt, None, ENGLISH) if prompt.labels["case"] in ("case 003", "case 004") else answer
        for prompt, answer in zip(list(part.probe.prompts()), whole, strict=True)
    ]
    found = part.audit.measure(part, some)
    assert (found.n, found.missing) == ({"pairs": 18}, {"pairs": 2})
    assert found.details["incomplete"] == ["case 003", "case 004"]


def test_unknown_first_tokens_are_left_out_and_counted() -> None:
    found = measured(part_of(probe_of(8)), lambda labels: [None, *prefers(1.0)(labels)])
    assert (found.value, found.details["without_first_token"]) == (100, 24)


def test_pairs_without_unrelated_sentences_have_no_lms() -> None:
    found = measured(part_of(probe_of(8, unrelated=False)), prefers(0.5))
    assert (found.details["lms"], found.details["icat"]) == (None, None)


@pytest.mark.parametrize(
    ("share", "pairs", "expected"), [(0.9, 200, "over-limit"), (0.1, 200, "over-limit"), (0.5, 1500, "pass")]
)
def test_the_limit_holds_on_both_sides_of_50(share: float, pairs: int, expected: str) -> None:
    part = part_of(probe_of(pairs, settings="{limit: 60}"))
    found = measured(part, prefers(share))
    assert verdict(part, found) == expected
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1]
    assert (found.p_value or 0) < 0.01 or expected == "pass"


@pytest.mark.parametrize(
    ("share", "preferred"), [(0.9, "with stereotypes a"), (0.1, "with the opposites of stereotypes a")]
)
def test_the_finding_names_what_the_model_prefers(share: float, preferred: str) -> None:
    part = part_of(probe_of(100, settings="{limit: 60}"))
    found = replace(result(audit="likelihood"), measurement=measured(part, prefers(share)))
    assert preferred in part.audit.finding(found)


def test_a_few_terms_that_agree_do_not_exceed_a_limit_significantly() -> None:
    part = part_of(probe_of(5, settings="{limit: 60}"))
    found = measured(part, prefers(1.0))
    assert found.value == 100
    assert found.standard_error is not None
    assert found.standard_error > 10
    assert verdict(part, found) is VerdictName.INCONCLUSIVE
    with pytest.raises(NotMeasurable, match=r"only 3 terms .* 4 are needed"):
        measured(part_of(probe_of(3)), prefers(1.0))


def test_a_change_away_from_50_is_worse_and_one_towards_it_better() -> None:
    part = part_of(probe_of(300))
    worse, better = compared(part, prefers(0.8), prefers(0.5)), compared(part, prefers(0.5), prefers(0.1))
    assert worse.value > 20
    assert worse.p_value is not None
    assert worse.p_value < 0.01
    assert better.value < -20
    mirrored = compared(part, prefers(0.2), prefers(0.8, seed=1))
    assert mirrored.reversal is not None, "as far from 50 on the other side"
    assert mirrored.reversal.value == pytest.approx(30, abs=7)
    assert mirrored.reversal.p_value <= 0.001
    assert worse.details["moved"][0]["now"] == 100


def test_a_run_compared_with_itself_has_not_changed() -> None:
    found = compared(part_of(probe_of(50)), prefers(0.7), prefers(0.7))
    assert (found.value, found.p_value) == (0, 1)


def test_the_order_of_answers_does_not_matter() -> None:
    part = part_of(probe_of(30, terms=7))
    given = answers(part, prefers(0.6))
    turned = part.audit.measure(part, given[::-1])
    assert part.audit.measure(part, given) == turned


def test_the_reason_names_what_it_is_about() -> None:
    part = part_of(probe_of(40))
    found = measured(part, prefers(1.0))
    told = part.audit.explanation(part, found)
    assert told.phrase == "stereotype score 100 (50 = no preference; LMS 100, ICAT 0)"
    assert told.contributors[0].name == "case 000 (+1)"


def test_cases_without_category_are_one_item() -> None:
    text = (
        "kind: stereotype\naudits: {likelihood: {}}\ncases:\n"
        "- {name: a, stereotype: Old is slow., anti_stereotype: Old is fast.}\n"
        "- {name: b, category: age, stereotype: Old is slow., anti_stereotype: Old is fast.}\n"
    )
    probe = parse(text.encode(), Path("probe.yaml"), kinds.schemas())
    parts = items_of(probe)
    assert [part.id for part in parts] == ["likelihood", "likelihood[category=age]"]
    assert [len(list(part.prompts())) for part in parts] == [2, 2]
