"""The finding of an item on one line."""

from dataclasses import replace
from typing import Any

import pytest

from pytest_fairness.records import Comparison, Concern, ItemResult, Measurement, Reversal, VerdictName
from pytest_fairness.reports.findings import finding
from tests.support.results import result


def line(found: ItemResult, **verdict: Any) -> str:
    found = replace(found, verdict=replace(found.verdict, **verdict))
    return finding(found.to_json(), found.method)


def test_a_regression_names_groups_change_tolerance_and_the_first_contributors() -> None:
    found = result(VerdictName.REGRESSION)
    words = ("torque", "wrench", "drill", "hammer")
    assert line(found, contributors=words) == "Black vs White: +0.0434 bits (allowed 0.02): torque, wrench, drill"
    assert line(found) == "Black vs White: +0.0434 bits (allowed 0.02)"


def test_an_item_over_its_limit_names_the_value() -> None:
    assert line(result(VerdictName.OVER_LIMIT, limit=0.05)) == "Black vs White: 0.0612 bits (limit 0.05)"


@pytest.mark.parametrize(("count", "said"), [(3.0, "3 words grew"), (1.0, "1 word grew"), (0.0, "0 words grew")])
def test_words_that_grew_are_not_said_to_be_a_change_of_the_value(count: float, said: str) -> None:
    change = Comparison(count, None, None, 0.001, details={"grown": []})
    found = result(VerdictName.REGRESSION, audit="marked_words", comparison=change)
    assert line(found, contributors=("hair",)) == f"Black vs White: {said} (allowed 0.02): hair (more for Black)"


def test_contributing_words_are_listed_by_the_group_that_uses_them_more() -> None:
    grown = [{"word": "hair", "side": "marked"}, {"word": "watch", "side": "unmarked"}]
    change = Comparison(3.0, None, None, 0.001, details={"grown": grown})
    found = result(VerdictName.REGRESSION, audit="marked_words", comparison=change)
    assert line(found, contributors=("watch", "hair", "the rest")) == (
        "Black vs White: 3 words grew (allowed 0.02): watch (more for White); hair (more for Black); the rest"
    )


def test_a_change_without_the_baselines_answers_is_a_difference_of_values() -> None:
    change = Comparison(3.0, None, None, None, from_answers=False)
    found = result(VerdictName.INCONCLUSIVE, audit="marked_words", comparison=change)
    assert line(found) == "Black vs White: +3 significant words (allowed 0.02)"


@pytest.mark.parametrize(
    ("verdict", "amount", "undecided"),
    [
        (VerdictName.INCONCLUSIVE, "+0.0434 bits (allowed 0.02)", "needs p ≤ 0.01, has 0.03"),
        (VerdictName.STALE_BASELINE, "0.0612 bits", "changed since the baseline was made: prompt"),
        (VerdictName.NO_BASELINE, "0.0612 bits; no baseline and no limit", "12% of the answers are missing"),
    ],
)
def test_an_item_without_decision_says_why(verdict: VerdictName, amount: str, undecided: str) -> None:
    assert line(result(verdict), undecided=undecided) == f"Black vs White: {amount}; {undecided}"


def test_a_gap_that_changed_sides_is_described() -> None:
    reversal = Reversal(0.3, 0.001, "40% of Black and 10% of White, before 10% and 40%")
    comparison = Comparison(0.0, (-0.02, 0.02), 0.01, 0.5, reversal=reversal)
    assert line(result(VerdictName.REGRESSION, comparison=comparison)) == (
        "Black vs White: 0 bits (allowed 0.02); the advantage changed sides: 40% of Black and 10% of White, before "
        "10% and 40%"
    )


def test_a_measured_item_without_effect_size_says_why_there_is_none() -> None:
    found = result(VerdictName.MEASURED, audit="robustness", comparison=None, tolerance=None)
    assert line(found) == (
        "Black vs White: 0.0612; no effect size: no value means “no effect”, because even two answers to the same "
        "question differ; compare the value with the noise floor"
    )


def test_a_pass_says_what_speaks_against_it() -> None:
    measurement = Measurement(1.0, None, None, None, {"Black": 9, "White": 9}, {}, concerns=[Concern("x", "9 cut off")])
    assert line(result(measurement=measurement)).endswith("; 9 cut off")


def test_a_pass_says_that_it_is_significantly_worse() -> None:
    assert line(result()) == "Black vs White: +0.0434 bits (allowed 0.02)"
    expected = "Black vs White: +0.0434 bits (allowed 0.02): torque; significantly worse, but within tolerance"
    assert line(result(), significant=True, contributors=["torque"]) == expected


def test_an_error_is_its_reason() -> None:
    assert line(result(VerdictName.ERROR, reason="jsd[race=Black]: the target is down")) == "the target is down"


@pytest.mark.parametrize(
    ("labels", "groups", "compared"),
    [
        ({"race": "Black", "gender": "woman"}, ["Black woman", "White", "man"], "Black woman vs the others"),
        ({"attribute": "sex"}, ["Male", "Female"], "Male vs Female"),
        ({"attribute": "age"}, ["young", "old", "neutral"], "age"),
        ({}, ["a", "b", "c"], "Different vocabulary"),
    ],
)
def test_the_groups_are_named_as_far_as_they_are_known(
    labels: dict[str, str], groups: list[str], compared: str
) -> None:
    measurement = Measurement(1.0, None, None, None, dict.fromkeys(groups, 9), {})
    found = replace(result(VerdictName.OVER_LIMIT), labels=labels, measurement=measurement)
    assert line(found) == f"{compared}: 1 bit"


def test_documents_of_older_versions_have_a_finding() -> None:
    item = result(VerdictName.REGRESSION).to_json()
    del item["contributors"], item["undecided"]
    assert finding(item, {}) == "Black vs White: +0.0434 (allowed 0.02)"
