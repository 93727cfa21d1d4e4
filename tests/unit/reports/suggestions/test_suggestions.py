"""Suggestions for failed items: content, and escaping of text to copy."""

import ast
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from pytest_fairness.records import Explanation, Json, Measurement, Quote, VerdictName
from pytest_fairness.reports import html, markdown, terminal
from pytest_fairness.reports.findings import narrowed, suggestions, variant_yaml
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


def test_a_test_is_told_what_to_pass_and_not_what_a_probe_file_takes() -> None:
    failed = result(VerdictName.REGRESSION)
    item = {**failed.to_json(), "nodeid": "tests/test_letters.py::test_letters"}
    prompt, *others = suggestions(item, AUDITS["jsd"].finding(failed))["try"]
    assert prompt["text"].startswith("Try another system prompt: pass it to the fixture `corpus_generator`")
    own = suggested("jsd")["try"][0]["paste"].partition(">-")[2]
    assert " ".join(ast.literal_eval(prompt["paste"].removeprefix("system=")).split()) == " ".join(own.split())
    assert [each["action"] for each in others] == ["filter"]


def suggested(audit: str, details: Json = None, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Json]:
    given = (DETAILS.get(audit) or NOTHING.get(audit, {})) if details is None else details
    measurement = Measurement(0.5, (0.4, 0.6), 0.05, 0.001, {"Black": 45, "White": 44}, {}, given)
    failed = result(VerdictName.REGRESSION, audit=audit, measurement=measurement, **more)
    failed = failed if labels is None else replace(failed, labels=labels)
    return suggestions(failed.to_json(), AUDITS[audit].finding(failed))


def actions(found: dict[str, Json]) -> list[str]:
    return [each["action"] for each in found["try"]]


def system_of(yaml: str) -> str:
    ((_, variant),) = dict(YAML(typ="safe").load(yaml).get("variants") or YAML(typ="safe").load(yaml)).items()
    return str(variant["system"])


@pytest.mark.parametrize("audit", sorted(AUDITS))
def test_every_audit_has_suggestions(audit: str) -> None:
    found = suggested(audit)
    assert found["found"].endswith(".")
    assert found["try"]
    for each in found["try"]:
        if each["action"] == "variant":
            assert system_of(each["paste"])


def test_the_finding_of_scores_names_the_disadvantaged_group() -> None:
    equal = "Answers for White have a higher mean score of politeness (0.6) than answers for Black (0.4)."
    assert suggested("score")["found"] == f"{equal} Black is at a disadvantage."
    for better, worse in (("lower", "White"), (None, None)):
        found = suggested("score", {**NOTHING["score"], "better": better})["found"]
        assert found == (equal if worse is None else f"{equal} {worse} is at a disadvantage.")


@pytest.mark.parametrize("audit", ["marked_words", "jsd", "svm", "mmd"])
def test_the_finding_names_the_words_of_each_group(audit: str) -> None:
    found = suggested(audit)
    assert found["found"].startswith("Answers for Black say hair")
    assert "answers for White say tie" in found["found"]
    assert "nice" not in str(found), "a word that is not significant"
    variant, words, sample = found["try"]
    assert "answer for Black as you would for White" in system_of(variant["paste"])
    assert "hair" in system_of(variant["paste"])
    assert words["paste"].splitlines()[0] == "hair"
    assert sample["paste"] == "python -m pytest_fairness sample probes/products.yaml -o sample.jsonl"


def test_the_finding_names_the_worst_value_and_its_own_items() -> None:
    examples = [
        Quote("a Buddhist", "1. Temple songs\n2. Hello"),
        Quote("neutral", "1. Hello\n2. Skyfall"),
    ]
    details = {
        "worst": {"value": "a Buddhist", "effect": -0.2, "p_value": 0.01},
        "similarity": {"a Buddhist": {"mean": 0.31}, "a Hindu": {"mean": 0.52}},
    }
    found = suggested("snsr", details, {"attribute": "religion"}, explanation=Explanation(examples=examples))
    assert found["found"] == (
        "The most disadvantaged value of religion is a Buddhist "
        "(similarity to the neutral lists 0.31; other values of religion: 0.52 on average). "
        "In the examples, lists for a Buddhist contain Temple songs; the neutral lists do not."
    )
    assert actions(found) == ["variant", "sample"]


def test_the_finding_names_the_favoured_group() -> None:
    details = {"values": ["Male", "Female"], "n10": 9, "n01": 2}
    found = suggested("flip_rate", details, {"attribute": "sex"})
    assert (
        "9 records get the positive answer more often as Male than as Female; 2 records get it more often as Female."
        in found["found"]
    )


def test_markers_suggest_a_filter_and_likelihoods_no_system_prompt() -> None:
    details = {"markers": {"nurse": {"stereotype": {"she": 9, "her": 0}, "anti_stereotype": {"he": 1}}}}
    found = suggested("markers", details, {"case": "nurse"})
    assert actions(found) == ["variant", "filter"]
    assert found["found"] == "Answers about nurse say she."
    assert actions(suggested("likelihood", {}, {"category": "age"})) == ["other"]


def test_a_measured_variant_that_reduces_bias_comes_first() -> None:
    lower = {"effect": "lower", "change": -0.2, "value": 0.3}
    unclear = {"effect": "unclear", "change": -0.4, "value": 0.1}
    found = suggested("jsd", {**DETAILS["jsd"], "variants": {"a": unclear, "b": lower}})
    assert actions(found) == ["adopt", "filter", "sample"]
    assert found["try"][0]["text"].startswith("The variant b reduces bias.")
    found = suggested("jsd", {**DETAILS["jsd"], "variants": {"debiased": unclear}})
    assert "debiased-2:" in found["try"][0]["paste"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_words_do_not_reach_suggestions_as_code(hostile: str) -> None:
    words = [{"word": hostile, "bits": 9.0, "share": 1.0, "side": "marked"}]
    own = result(VerdictName.REGRESSION, value=hostile, probe=hostile, system=hostile)
    assert own.measurement is not None
    own = replace(own, measurement=replace(own.measurement, details={"contributions": words}))
    own = with_finding(own)
    (hostile_item,) = report(own)["items"]
    found = hostile_item["suggestions"]
    for each in found["try"]:
        if each["action"] == "variant":
            loaded = YAML(typ="safe").load(each["paste"])
            assert list(loaded) == ["variants"]
            assert list(loaded["variants"]) == ["debiased"]
            assert list(loaded["variants"]["debiased"]) == ["system"]
        assert each["action"] != "filter"
    run = report(own)
    assert html.report(run).count("<script") == 1, "the page's own"
    assert "\x1b" not in "".join(line.text for line in terminal.summary(run))
    html_of_markdown = [token.content for token in tokens(markdown.report(run)) if token.type.startswith("html")]
    assert not any("script" in part for part in html_of_markdown)


@given(st.text(), st.text())
def test_suggested_yaml_parses_to_the_instruction(instruction: str, own: str) -> None:
    assert system_of(variant_yaml("x", f"Be {instruction}")).startswith("Be")
    clean = "".join(character if character.isprintable() else " " for character in instruction)
    expected = " ".join(f"Be {clean}".split())
    for text in (variant_yaml("x", f"Be {clean}"), narrowed(variant_yaml("x", f"Be {clean}"), 40)):
        assert system_of(text) == expected
    before = "".join(character if character.isprintable() else "\n" for character in own).rstrip("\n") or "You."
    assert system_of(variant_yaml("x", f"Be {clean}", before)) == f"{before}\n{expected}"
