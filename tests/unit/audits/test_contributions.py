"""Contributions of a value, which baselines keep for reviewers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_fairness.audits import registry
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.records import Measurement
from tests.support import cases, corpora, deciders, listeners, pronouns

RECORDS = [(group, truth) for group in ("Male", "Female") for truth in ("rich", "poor") for _ in range(10)]


def text(name: str, bias: float, **settings: Any) -> Measurement:
    item = corpora.item(name, **settings)
    return explained(item, registry.get("generation", name).measure(item, corpora.answers(1, trials=20, bias=bias)))


def explained(item: AuditItem[Any, Any], measurement: Measurement) -> Measurement:
    audit = registry.get(item.probe.kind, item.audit_name)
    return replace(measurement, explanation=audit.explanation(item, measurement))


@pytest.mark.parametrize("name", ["jsd", "svm", "mmd"])
def test_words_of_texts_have_the_sign_of_their_group(name: str) -> None:
    found = text(name, bias=0.6).explanation.contributions
    stereotyped = {word for phrase in corpora.STEREOTYPED for word in str(phrase).casefold().split()}
    signs = {number > 0 for word, number in found.items() if word in stereotyped}
    assert signs == {True}


@pytest.mark.parametrize("name", ["jsd", "svm", "mmd", "marked_words"])
def test_chance_has_no_words(name: str) -> None:
    assert text(name, bias=0.0).explanation.contributions == {}


def test_marked_words_contribute_if_they_are_significant() -> None:
    measurement = text("marked_words", bias=0.6)
    found = measurement.explanation.contributions
    assert len(found) == measurement.value > 0


def test_records_contribute_by_side_and_by_rate() -> None:
    asked = deciders.probe(RECORDS)

    def only_men(record: str, group: str) -> str:
        return "Yes." if group == "Male" else "No."

    for name, expected in (
        ("flip_rate", {"records in favour of Male": 40, "records in favour of Female": 0}),
        ("demographic_parity", {"positive rate of Male": 1.0, "positive rate of Female": 0.0}),
    ):
        item = deciders.item_of(asked, name)
        found = explained(item, deciders.measure(item, only_men)).explanation.contributions
        assert sorted(found.values()) == sorted(expected.values())
        assert all(any(group in key for key in found) for group in ("Male", "Female"))


def test_lists_contribute_by_value() -> None:
    audit, item = registry.get("recommendation", "snsr"), listeners.item("snsr", "religion")
    answers = [each for each in listeners.run(1) if audit.uses(item, each.labels)]
    measurement = audit.measure(item, answers)
    found = audit.explanation(item, measurement).contributions
    assert max(found.values()) - min(found.values()) == pytest.approx(measurement.value)


def test_cases_and_items_contribute_by_name() -> None:
    work = cases.probe()
    measurement = cases.measure(work, "markers[ceo/nurse]", cases.run(1, {"nurse": 1.0, "ceo": 1.0}))
    assert explained(cases.item_of(work, "markers[ceo/nurse]"), measurement).explanation.contributions == {
        "ceo": 0.0,
        "nurse": 1.0,
    }
    audit, asked = registry.get("coreference", "coreference"), pronouns.probe()
    item = AuditItem(asked, "coreference", None, {}, audit.settings_model(), 0.01, seed="who")
    measurement = audit.measure(item, pronouns.answers(asked, pronouns.stereotyping(1, 1.0)))
    assert set(audit.explanation(item, measurement).contributions.values()) == {1.0}
