"""Findings of failed items: what they say, and that hostile words stay words."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pytest_fairness.records import Explanation, Json, Measurement, Quote, VerdictName
from pytest_fairness.reports import html, markdown, terminal
from tests.support.results import AUDITS, DETAILS, report, result, with_finding
from tests.unit.reports.test_markdown import tokens

HOSTILE = (
    "x\n---\nkind: evil",
    "'\"\\ # : - &a *b !!python/object",
    "\x00\x1b[31m\u202e\ud800",
    "<script>alert(1)</script>",
    "```\n# head\n[x](https://evil.example)",
    "{{ 7 * 7 }}",
)


NOTHING: dict[str, dict[str, Json]] = {
    "lexicon": {"terms": []},
    "refusals": {"shares": {"Black": 0.2, "White": 0.1}},
    "score": {"unit": "politeness", "scores": {"Black": {"mean": 0.4}, "White": {"mean": 0.6}}, "better": "higher"},
}
"""Details without a word or a value that stands out."""


def found(audit: str, details: Json = None, labels: dict[str, str] | None = None, **more: Any) -> str:
    given = (DETAILS.get(audit) or NOTHING.get(audit, {})) if details is None else details
    measurement = Measurement(0.5, (0.4, 0.6), 0.05, 0.001, {"Black": 45, "White": 44}, {}, given)
    failed = result(VerdictName.REGRESSION, audit=audit, measurement=measurement, **more)
    failed = failed if labels is None else replace(failed, labels=labels)
    return AUDITS[audit].finding(failed)


@pytest.mark.parametrize("audit", sorted(AUDITS))
def test_every_audit_has_a_finding(audit: str) -> None:
    assert re.fullmatch(r"[A-Z].*\.", found(audit))


def test_the_finding_of_scores_names_the_disadvantaged_group() -> None:
    equal = "Answers for White have a higher mean score of politeness (0.6) than answers for Black (0.4)."
    assert found("score") == f"{equal} Black is at a disadvantage."
    for better, worse in (("lower", "White"), (None, None)):
        assert found("score", {**NOTHING["score"], "better": better}) == (
            equal if worse is None else f"{equal} {worse} is at a disadvantage."
        )


@pytest.mark.parametrize("audit", ["marked_words", "jsd", "svm", "mmd"])
def test_the_finding_names_the_words_of_each_group(audit: str) -> None:
    said = found(audit)
    assert said.startswith("Answers for Black say hair")
    assert "answers for White say tie" in said
    assert "nice" not in said, "a word that is not significant"


def test_the_finding_names_the_worst_value_and_its_own_items() -> None:
    examples = [
        Quote("a Buddhist", "1. Temple songs\n2. Hello"),
        Quote("neutral", "1. Hello\n2. Skyfall"),
    ]
    details = {
        "worst": {"value": "a Buddhist", "effect": -0.2, "p_value": 0.01},
        "similarity": {"a Buddhist": {"mean": 0.31}, "a Hindu": {"mean": 0.52}},
    }
    assert found("snsr", details, {"attribute": "religion"}, explanation=Explanation(examples=examples)) == (
        "The most disadvantaged value of religion is a Buddhist "
        "(similarity to the neutral lists 0.31; other values of religion: 0.52 on average). "
        "In the examples, lists for a Buddhist contain Temple songs; the neutral lists do not."
    )


def test_the_finding_names_the_markers_that_occur() -> None:
    details = {"markers": {"nurse": {"stereotype": {"she": 9, "her": 0}, "anti_stereotype": {"he": 1}}}}
    assert found("markers", details, {"case": "nurse"}) == "Answers about nurse say she."


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_words_reach_no_report_as_code(hostile: str) -> None:
    words = [{"word": hostile, "bits": 9.0, "share": 1.0, "side": "marked"}]
    own = result(VerdictName.REGRESSION, value=hostile, probe=hostile)
    assert own.measurement is not None
    own = with_finding(replace(own, measurement=replace(own.measurement, details={"contributions": words})))
    run = report(own)
    assert html.report(run).count("<script") == 1, "the page's own"
    assert "\x1b" not in "".join(line.text for line in terminal.summary(run, verbose=True))
    html_of_markdown = [token.content for token in tokens(markdown.report(run)) if token.type.startswith("html")]
    assert not any("script" in part for part in html_of_markdown)
