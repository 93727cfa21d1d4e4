"""Comparison of two runs."""

from typing import Any

import pytest

from pytest_fairness.records import ItemResult, Json, Measurement, VerdictName
from pytest_fairness.reports.files import ItemComparison, compare, comparison_html, comparison_text
from pytest_fairness.reports.formatting import width_of
from tests.support.pages import Page
from tests.support.results import report, result


def measured(number: float, error: float | None = 0.01, verdict: VerdictName = VerdictName.PASS, **more: Any) -> Json:
    measurement = Measurement(number, None, error, None, {}, {}, {})
    return result(verdict, measurement=measurement, **more)


def changes(old: ItemResult, new: ItemResult) -> ItemComparison:
    (item,) = compare(report(old), report(new)).items
    return item


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        (measured(0.1), measured(0.12), "unchanged"),
        (measured(0.1), measured(0.13), "value changed"),
        (measured(0.13), measured(0.1), "value changed"),
        (measured(1, None), measured(2, None), "unchanged"),
        (measured(0.1), measured(0.1, verdict=VerdictName.REGRESSION), "worse"),
        (measured(0.1, verdict=VerdictName.OVER_LIMIT), measured(0.1, verdict=VerdictName.INCONCLUSIVE), "better"),
        (result(VerdictName.ERROR), measured(0.1), "better"),
    ],
)
def test_the_state_of_an_item_follows_verdict_and_interval(old: ItemResult, new: ItemResult, state: str) -> None:
    assert changes(old, new).state == state


def test_the_difference_has_the_interval_of_independent_runs() -> None:
    item = changes(measured(0.1, 0.03), measured(0.4, 0.04))
    assert item.difference == pytest.approx(0.3)
    assert item.interval == pytest.approx((0.3 - 1.96 * 0.05, 0.3 + 1.96 * 0.05), abs=1e-5)
    assert changes(measured(1.0, None), measured(3.0)).interval is None
    assert changes(result(VerdictName.ERROR), measured(3.0)).difference is None


def test_the_same_number_of_words_may_be_other_words() -> None:
    def counted(*words: str) -> ItemResult:
        details = {"words": [{"word": word, "z": 5.0, "significant": word != "chance"} for word in words]}
        measurement = Measurement(2.0, None, None, None, {}, {}, details)
        verdict = VerdictName.REGRESSION if "oil" in words else VerdictName.PASS
        return result(verdict, audit="marked_words", measurement=measurement)

    text = comparison_text(compare(report(counted("hair", "care")), report(counted("hair", "oil", "chance"))))
    assert "pass → regression    2    2  0 (1 new word, 1 gone)" in text


def test_new_and_removed_items_are_listed_in_order_of_state() -> None:
    old = report(measured(0.1, value="gone"), measured(0.1, value="same"), measured(0.1, value="bad"))
    new = report(
        measured(0.1, value="new"), measured(0.1, value="same"), measured(0.1, value="bad", verdict=VerdictName.ERROR)
    )
    found = compare(old, new)
    assert [(item.id, item.state) for item in found.items] == [
        ("jsd[race=bad]", "worse"),
        ("jsd[race=new]", "new"),
        ("jsd[race=gone]", "removed"),
        ("jsd[race=same]", "unchanged"),
    ]
    assert ("requests sent", 200, 200) in found.facts
    text = comparison_text(found, 100)
    assert text.startswith("4 items: 1 worse, 1 new, 1 removed, 1 unchanged\n")
    assert "race=same" not in text
    assert "pass → error" in text
    assert max(map(width_of, text.splitlines())) <= 100


def test_the_html_comparison_is_well_formed_and_escaped() -> None:
    new = report(measured(0.9, value="<script>x</script>", verdict=VerdictName.REGRESSION))
    new["target"] = "<img src=x onerror=y>"
    page = Page(comparison_html(compare(report(), new)))
    assert not page.all("script", "img")
    assert any("<script>x</script>" in cell.text for cell in page.all("th"))
    assert all(table.children[0] == "caption" for table in page.all("table"))
