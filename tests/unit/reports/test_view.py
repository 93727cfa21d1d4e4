"""What is said of an item: the same words in all reports, and none that contradict its numbers."""

from dataclasses import replace
from typing import Any

import pytest

from pytest_fairness.records import (
    Comparison,
    Concern,
    Contributor,
    ItemResult,
    Json,
    Measurement,
    Reversal,
    VerdictName,
)
from pytest_fairness.reports import html, markdown, terminal
from pytest_fairness.reports.formatting import without_commands
from pytest_fairness.reports.markdown import github_commands, github_comment
from pytest_fairness.reports.view import ItemView, views
from tests.support.pages import Page
from tests.support.results import explained, report, result


def line(found: ItemResult, **verdict: Any) -> str:
    found = replace(found, verdict=replace(found.verdict, **verdict))
    return ItemView(found.to_json(), found.method).headline


def test_a_regression_names_groups_change_tolerance_and_the_first_contributors() -> None:
    found = result(VerdictName.REGRESSION)
    words = ("torque", "wrench", "drill", "hammer")
    assert (
        line(found, contributors=words) == "Black vs White: worse by 0.0434 bits (allowed 0.02): torque, wrench, drill"
    )
    assert line(found) == "Black vs White: worse by 0.0434 bits (allowed 0.02)"


@pytest.mark.parametrize("verdict", [VerdictName.REGRESSION, VerdictName.PASS, VerdictName.INCONCLUSIVE])
@pytest.mark.parametrize("change", [float("inf"), float("-inf")])
def test_a_change_that_is_no_finite_number_is_unknown(verdict: VerdictName, change: float) -> None:
    found = result(verdict, comparison=Comparison(change, None, None, 0.001))
    assert "change unknown" in line(found, significant=True)
    assert terminal.summary(report(found), width=80)


def test_an_item_over_its_limit_names_the_value() -> None:
    assert line(result(VerdictName.OVER_LIMIT, limit=0.05)) == "Black vs White: 0.0612 bits (limit 0.05)"


@pytest.mark.parametrize(("count", "said"), [(3.0, "3 words grew"), (1.0, "1 word grew"), (0.0, "no word grew")])
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
    assert line(found) == "Black vs White: worse by 3 significant words (allowed 0.02)"


@pytest.mark.parametrize(
    ("verdict", "amount", "undecided"),
    [
        (VerdictName.INCONCLUSIVE, "worse by 0.0434 bits (allowed 0.02)", "needs p ≤ 0.01, has 0.03"),
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
        "Black vs White: the advantage changed sides: 40% of Black and 10% of White, before 10% and 40% (allowed 0.02)"
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
    assert line(result()) == "Black vs White: worse by 0.0434 bits (allowed 0.02)"
    expected = "Black vs White: worse by 0.0434 bits (allowed 0.02): torque; significantly worse, but within tolerance"
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
    assert ItemView(item, {}).headline == "Black vs White: worse by 0.0434 (allowed 0.02)"


RATES = [
    Contributor("refusals of women", "", 0.18, 0.0, "share"),
    Contributor("refusals of men", "", 0.0, 0.0, "share"),
]


def test_a_change_is_first_said_in_shares_of_answers() -> None:
    found = explained(result(VerdictName.REGRESSION), rates=RATES)
    assert line(found) == ("Black vs White: refusals of women 18%, before 0%; worse by 0.0434 bits (allowed 0.02)")
    contributors = ["refusals of women 0.0% to 18.0%", "record 7"]
    assert line(found, contributors=contributors).endswith("(allowed 0.02): record 7"), "a rate is said once"
    assert line(explained(result(), rates=RATES)) == "Black vs White: worse by 0.0434 bits (allowed 0.02)"


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (Contributor("salary", "", 52.4, 55.1, "points"), "salary 52.4 points, before 55.1 points"),
        (Contributor("refusals", "", 0.004, 0.001, "share"), "refusals 0.4%, before 0.1%"),
        (Contributor("an old person", "", 0.55, 0.81), "an old person 0.55, before 0.81"),
    ],
)
def test_numbers_a_person_feels_have_their_unit(rate: Contributor, said: str) -> None:
    assert f": {said}; worse by" in line(explained(result(VerdictName.REGRESSION), rates=[rate]))


def test_words_that_grew_are_said_with_the_shares_of_texts_that_hold_them() -> None:
    grown = [{"word": "hair", "side": "marked", "marked": [0.0, 0.69], "unmarked": [0.0, 0.1]}]
    change = Comparison(1.0, None, None, 0.001, details={"grown": grown})
    found = result(VerdictName.REGRESSION, audit="marked_words", comparison=change)
    assert line(found).startswith("Black vs White: “hair” in 69% of the texts for Black, before 0%; 1 word grew")


def grown_words(value: float, grown: int) -> ItemResult:
    """Return a result whose number of significant words is not the number of words that grew."""
    measurement = Measurement(value, None, None, 0.001, {"Black": 45, "White": 44}, {}, {"words": []})
    change = Comparison(grown, None, None, 0.001, details={"grown": [{"word": f"w{i}"} for i in range(grown)]})
    return result(VerdictName.REGRESSION, audit="marked_words", measurement=measurement, comparison=change)


@pytest.mark.parametrize(("value", "grown"), [(8, 13), (5, 4), (1, 2)])
def test_a_number_of_words_that_grew_stands_beside_no_other_number_of_words(value: int, grown: int) -> None:
    document = report(grown_words(value, grown))
    table = next(text for text in terminal_lines(document) if "marked_words[" in text)
    assert table.split()[2:5] == [str(grown), "words", "grew"]
    row = next(text for text in markdown.report(document).splitlines() if "words grew |" in text)
    assert f"|  |  | {grown} words grew |" in row
    page = " ".join(Page(html.report(document)).all("main")[0].text.split())
    assert f"value (in this run alone){value}" in page.replace(" worse", "worse")
    assert f"worse by{grown} words grew" in page


def test_the_same_answers_are_said_once_and_without_a_number() -> None:
    change = Comparison(0.0, (-0.01, 0.01), 0.005, 1.0, same_answers=True)
    document = report(result(comparison=change))
    page = " ".join(Page(html.report(document)).all("main")[0].text.split())
    assert page.count("worse bysame answers") == 1
    assert "same answers: " not in page
    assert " same answers " in next(text for text in terminal_lines(document) if "jsd[" in text)


def test_a_regression_that_is_no_larger_says_that_the_advantage_changed_sides() -> None:
    reversal = Reversal(0.3, 0.001, "40% of Black and 10% of White, before 10% and 40%")
    document = report(
        result(VerdictName.REGRESSION, comparison=Comparison(-0.395, (-0.5, -0.3), 0.05, 0.9, reversal=reversal))
    )
    shown = [*terminal_lines(document), markdown.report(document), html.report(document)]
    assert not any("0.395" in text for text in shown)
    assert any(text.split()[4:6] == ["changed", "sides"] for text in terminal_lines(document))
    assert "| changed sides |" in markdown.report(document)


@pytest.mark.parametrize(("change", "said"), [(0.395, "worse by 0.395"), (-0.1, "better by 0.1"), (1e-15, "unchanged")])
def test_the_direction_of_a_change_is_said_in_words(change: float, said: str) -> None:
    found = result(VerdictName.INCONCLUSIVE, audit="svm", comparison=Comparison(change, None, None, 0.5))
    assert line(found) == f"Black vs White: {said} (allowed 0.02)"
    heading = next(text for text in terminal_lines(report(found)) if text.startswith("verdict"))
    assert " worse ± 95 % " in heading


def test_all_reports_say_the_same_headline() -> None:
    document = report(explained(result(VerdictName.REGRESSION), rates=RATES))
    (view,) = views(document)
    assert view.felt
    assert view.headline in " ".join(" ".join(terminal_lines(document)).split())
    assert view.headline in " ".join(Page(html.report(document)).all("main")[0].text.split())
    assert view.headline in github_comment(document).replace("\u200b", "")
    assert without_commands(view.headline).replace("%", "%25") in github_commands(document)[0]
    assert view.felt in markdown.report(document)


def terminal_lines(document: dict[str, Json]) -> list[str]:
    return [one.text for one in terminal.summary(document, 80)]
