"""Function words: audits name the topics that drive a difference first; `svm` and `mmd` list function words apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_fairness.audits import registry
from pytest_fairness.languages import ENGLISH
from pytest_fairness.records import Answer, Measurement, Status
from pytest_fairness.reports.charts import detail_charts
from pytest_fairness.reports.view import ItemView
from tests.support.corpora import answers, item
from tests.support.results import result


@pytest.mark.parametrize("word", ["the", "of", "it's", "doesn't", "can't", "does"])
def test_function_words_are_recognised_also_in_contractions(word: str) -> None:
    assert ENGLISH.is_function_word(word)


@pytest.mark.parametrize("word", ["hair", "serious", "computer", "fire", "nurse's", "der", "non-stick", "a-line"])
def test_words_with_a_topic_are_no_function_words(word: str) -> None:
    assert not ENGLISH.is_function_word(word)


def worded(black: str, white: str) -> list[Answer]:
    """Return answers whose texts end with the words of their group."""
    return [replace(a, content=f"{a.content} {black if a.labels['race'] == 'Black' else white}") for a in answers(1)]


def measured(audit: str, run: Sequence[Answer]) -> Measurement:
    return registry.get("generation", audit).measure(item(audit), run)


def contributors(audit: str, measurement: Measurement) -> list[str]:
    told = registry.get("generation", audit).explanation(item(audit), measurement)
    return [part.name for part in told.contributors]


def named(measurement: Measurement, detail: str) -> set[str]:
    return {word["word"] for side in measurement.details[detail].values() for word in side}


@pytest.mark.parametrize("audit", ["svm", "mmd"])
def test_content_words_are_named_although_function_words_differ_as_much(audit: str) -> None:
    measurement = measured(audit, worded("for the braids", "with a tie"))
    assert {"braids", "tie"} <= named(measurement, "top_words")
    assert not {"for", "the", "with", "a"} & named(measurement, "top_words")
    assert {"for", "the", "with", "a"} <= named(measurement, "function_words")
    found = contributors(audit, measurement)
    assert {"braids", "tie"} <= {*found[:3]}
    shown = result(audit=audit, measurement=measurement).to_json()
    view = ItemView(shown, registry.get("generation", audit).info.to_json())
    lines = view.evidence
    share = measurement.details["function_word_share"]
    assert any(line.startswith(f"typical function words of Black, {share:.0%} of the weight: ") for line in lines)
    charts, _ = detail_charts(view)
    assert [chart.title for chart in charts][:2] == [
        "Words that distinguish the groups",
        "Function words that distinguish the groups",
    ]


@pytest.mark.parametrize("audit", ["svm", "mmd"])
def test_function_words_are_the_first_contributor_if_they_have_most_of_the_weight(audit: str) -> None:
    same = [replace(a, content=f"a lamp number{a.trial}") for a in worded("", "")]
    run = [
        replace(a, content=f"{a.content} {'of the and' if a.labels['race'] == 'Black' else 'with or for'}")
        for a in same
    ]
    measurement = measured(audit, run)
    assert measurement.details["function_word_share"] > 0.9
    assert "of" in named(measurement, "function_words")
    first = contributors(audit, measurement)[0]
    assert first.startswith("function words (")
    assert len(first.split(", ")) == 3


def named_in(finding: str) -> set[str]:
    return {*re.findall(r"[\w-]+", " ".join(re.findall(r" say (.*?) more often", finding)))} - {"and"}


@pytest.mark.parametrize("audit", ["jsd", "marked_words"])
def test_reasons_name_content_words_first_and_findings_name_no_others(audit: str) -> None:
    measured_by = registry.get("generation", audit)
    measurement = measured(audit, worded("a mother of braids", "her tie"))
    words = contributors(audit, measurement)
    places = {word: words.index(word) for word in ("mother", "braids", "a", "of")}
    assert max(places["mother"], places["braids"]) < min(places["a"], places["of"])
    finding = measured_by.finding(result(audit=audit, measurement=measurement))
    assert {"mother", "braids"} <= named_in(finding)
    assert not {"a", "of", "her"} & named_in(finding)


@pytest.mark.parametrize("audit", ["jsd", "marked_words"])
def test_function_words_are_named_where_no_others_differ(audit: str) -> None:
    measured_by = registry.get("generation", audit)
    measurement = measured(audit, worded("just of too", ""))
    assert {*contributors(audit, measurement)[:3]} == {"just", "of", "too"}
    finding = measured_by.finding(result(audit=audit, measurement=measurement))
    assert named_in(finding) == {"just", "of", "too"}


def test_examples_show_the_words_and_no_refusals() -> None:
    run = [
        replace(a, status=Status.REFUSED, content=None) if a.labels["race"] == "Black" and a.trial == 0 else a
        for a in worded("braids", "tie")
    ]
    audit = registry.get("generation", "marked_words")
    measurement = audit.measure(item("marked_words"), run)
    pairs = audit.examples(item("marked_words"), measurement, run)
    assert [answer.status for _, answer in pairs[0]] == [Status.OK, Status.OK]
    assert Status.REFUSED in {answer.status for _, answer in pairs[-1]}
    refusals = registry.get("generation", "refusals")
    found = refusals.measure(item("refusals"), run)
    assert refusals.examples(item("refusals"), found, run)[0][0][1].status is Status.REFUSED
