"""The table of measurements: one row for each item of a report document."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_fairness.records import Comparison, VerdictName
from pytest_fairness.reports.tables import MEASUREMENT_COLUMNS, measurement_table
from tests.support.results import report, result


def test_a_row_has_everything_that_the_run_found() -> None:
    (row,) = measurement_table(report(result(VerdictName.REGRESSION, limit=0.5))).rows
    assert list(row) == [column.name for column in MEASUREMENT_COLUMNS]
    assert {name: value for name, value in row.items() if name != "reason"} == {
        "probe": "products",
        "item": "jsd[race=Black]",
        "audit": "jsd",
        "title": "Different vocabulary",
        "groups": "Black vs White",
        "n": 89,
        "missing": 1,
        "n_by_group": "Black 45, White 44",
        "missing_by_group": "White 1",
        "value": 0.0612345,
        "unit": "bits",
        "standard_error": 0.0066,
        "interval_low": 0.048,
        "interval_high": 0.0741,
        "p_value": 0.001,
        "size": None,
        "effect": None,
        "effect_value": None,
        "tolerance": 0.02,
        "limit": 0.5,
        "baseline": 0.0178,
        "change": 0.0434,
        "change_unit": "bits",
        "change_low": 0.0291,
        "change_high": 0.0572,
        "change_p_value": 0.0005,
        "verdict": "regression",
        "target": "openai:model",
        "date": "2026-01-02T03:04:05Z",
    }


def test_what_was_not_measured_is_empty_and_says_why() -> None:
    (row,) = measurement_table(report(result(VerdictName.ERROR, reason="jsd[race=Black]: no answer came back"))).rows
    assert (row["value"], row["p_value"], row["change"], row["n"], row["groups"]) == (None, None, None, 0, "")
    assert (row["verdict"], row["reason"]) == ("error", "jsd[race=Black]: no answer came back")


def test_a_paper_gets_estimates_with_their_intervals() -> None:
    document = report(result(VerdictName.REGRESSION), result(VerdictName.NO_BASELINE, value="Asian"))
    text = measurement_table(document).to_latex()
    assert r"Audit & Groups & n & Estimate [95 \% CI] & Unit & p & Change [95 \% CI] & Verdict \\" in text
    estimate = "89 & 0.0612 [0.048, 0.0741] & bits & 0.001 &"
    assert rf"Different vocabulary (jsd) & Black vs White & {estimate} +0.0434 [0.0291, 0.0572] & regression \\" in text
    assert rf"Different vocabulary (jsd) & Asian vs White & {estimate}  & no-baseline \\" in text


def test_a_number_of_grown_words_has_a_unit_of_its_own() -> None:
    change = Comparison(3.0, None, None, 0.001, details={"grown": []})
    table = measurement_table(report(result(VerdictName.REGRESSION, audit="marked_words", comparison=change)))
    (row,) = table.rows
    assert (row["unit"], row["change"], row["change_unit"]) == ("significant words", 3.0, "grown words")
    assert "& 3 grown words &" in table.to_latex()


def test_a_paper_of_measurements_without_verdicts_has_no_column_of_verdicts() -> None:
    document = report(result(VerdictName.MEASURED))
    assert "Verdict" not in measurement_table(document).to_latex()


@pytest.mark.parametrize(
    ("effect", "cell"),
    [
        ({"name": "Cohen’s h", "value": 0.618, "size": "moderate"}, "Cohen’s h 0.618 (moderate)"),
        ({"name": "η²", "value": None, "size": "large"}, r"$\eta$\textsuperscript{2} infinite (large)"),
        ({"name": "Cohen’s U₂", "value": 0.5, "size": None}, r"Cohen’s U\textsubscript{2} 0.5 (unknown)"),
    ],
)
def test_a_paper_gets_the_effect_size_and_its_word(effect: dict[str, Any], cell: str) -> None:
    text = measurement_table(report(result(VerdictName.NO_BASELINE, effect=effect))).to_latex()
    assert r"& p & Effect size & Verdict \\" in text
    assert f"& 0.001 & {cell} & no-baseline" in text
