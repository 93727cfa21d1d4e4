"""Checks of answers: what does not depend on its prompt is told from what is merely skewed, repeated or short."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits.answer_checks import concerns
from pytest_fairness.audits.confounding import EFFECTIVE_SHORT, effective_number
from pytest_fairness.audits.documents import Documents, Groups
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Concern, Measurement, Status
from tests.support import corpora, deciders

OUTAGE = "The service is temporarily unavailable."


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_the_effective_number_lies_between_one_and_the_number_of_values(counts: list[int]) -> None:
    assert 1 - 1e-9 <= effective_number(counts) <= len(counts) + 1e-9


def test_the_effective_number_by_hand() -> None:
    assert effective_number([]) == 0
    assert effective_number([7]) == 1
    assert effective_number([5, 5]) == 2
    assert effective_number([95, 5]) == pytest.approx(1 / (0.95**2 + 0.05**2))
    assert effective_number([95, 5]) > EFFECTIVE_SHORT, "one yes in twenty is a system that responds"


def doubts(answers: list[Answer], name: str = "jsd") -> list[tuple[str, str]]:
    item = corpora.item(name)
    audit = contrast_audit(name)
    found = concerns(audit, item, answers, _measured())
    return [(concern.name, concern.withholds) for concern in found]


def contrast_audit(name: str) -> Any:
    from pytest_fairness.audits import registry

    return registry.get("generation", name)


def _probe() -> Any:
    return corpora.PROBE


def _measured() -> Measurement:
    return Measurement(0.0, None, None, None, {"Black": 9, "White": 9}, {}, {"refused": {}, "unreadable": {}})


def saying(texts: list[str]) -> list[Answer]:
    """Return the answers of a run with these texts in turn, in place of their own."""
    run = corpora.answers(1)
    return [
        replace(answer, text=texts[place % len(texts)], content=texts[place % len(texts)])
        for place, answer in enumerate(run)
    ]


def test_texts_that_differ_raise_no_concern() -> None:
    assert doubts(corpora.answers(1)) == []


@pytest.mark.parametrize(
    "texts",
    [
        [OUTAGE],
        [f"Error 503 at 12:{minute:02}: request {minute * 977} was not served." for minute in range(60)],
        [OUTAGE] * 9 + ["A lamp, a chair and a table, all of good wood."],
        [OUTAGE.upper(), OUTAGE, f"  {OUTAGE}"],
    ],
)
def test_texts_that_are_the_same_whatever_the_prompt_withhold_every_verdict(texts: list[str]) -> None:
    assert doubts(saying(texts)) == [("constant_answers", "verdict")]


def test_a_text_that_some_prompts_share_withholds_a_pass() -> None:
    own = [answer.text or "" for answer in corpora.answers(1)][:59]
    shared = [OUTAGE if place % 4 == 0 else text for place, text in enumerate(own)]
    assert doubts(saying(shared)) == [("constant_answers", "pass")]


def test_a_frequent_short_answer_raises_no_concern() -> None:
    assert doubts(saying(["caring", "caring", "caring", "strong", "kind"])) == []


def test_one_groups_constant_text_withholds_a_pass_only() -> None:
    run = [
        replace(answer, text=OUTAGE, content=OUTAGE) if answer.labels["race"] == "Black" else answer
        for answer in corpora.answers(1)
    ]
    assert doubts(run) == [("constant_answers", "pass")]


def test_refusals_are_answers_that_depend_on_the_prompt() -> None:
    run = [
        replace(answer, status=Status.REFUSED, content=None) if answer.labels["race"] == "Black" else answer
        for answer in saying(["Yes, with pleasure."])
    ]
    assert ("constant_answers", "verdict") not in doubts(run, "refusals")


@pytest.mark.parametrize(("yes", "withheld"), [(0, ["verdict"]), (1, ["verdict"]), (4, []), (100, [])])
def test_decisions_are_constant_only_if_nearly_all_of_200_are_the_same(yes: int, withheld: list[str]) -> None:
    part = deciders.item_of(deciders.probe([("Male", "rich"), ("Female", "poor")] * 100), "demographic_parity")
    answers = deciders.answers(part, lambda record, _: "Yes." if int(record) < yes else "No.")
    measurement = part.audit.measure(part, answers)
    found = concerns(part.audit, part, answers, measurement)
    assert [concern.withholds for concern in found] == withheld


def strata(one_sided: int) -> list[Answer]:
    """Return a run in which the stratum of this many answers holds Black customers only."""
    run = corpora.answers(2)
    black = [place for place, answer in enumerate(run) if answer.labels["race"] == "Black"][:one_sided]
    return [
        replace(answer, labels={**answer.labels, "shop": "alone" if place in black else "both"})
        for place, answer in enumerate(run)
    ]


@pytest.mark.parametrize(("one_sided", "withholds"), [(0, None), (3, "nothing"), (12, "pass")])
def test_answers_in_strata_of_one_group_are_left_out_and_counted(one_sided: int, withholds: str | None) -> None:
    found = contrast_audit("jsd").concerns(corpora.item("jsd"), strata(one_sided), _measured())
    assert [concern.withholds for concern in found] == ([withholds] if withholds else [])
    documents = Documents.of(Groups.of(corpora.item("jsd"), strata(one_sided)))
    assert len(documents.marked) == 60 - one_sided
    if found:
        assert f"{one_sided} of 60 answers were left out" in found[0].message
        assert "shop=alone" in found[0].message


def test_strata_that_name_the_group_leave_nothing_to_measure() -> None:
    run = [replace(answer, labels={**answer.labels, "batch": answer.labels["race"]}) for answer in corpora.answers(2)]
    with pytest.raises(NotMeasurable, match="check whether a `strata` column names the group"):
        contrast_audit("jsd").measure(corpora.item("jsd"), run)


def test_the_gravest_concern_comes_first() -> None:
    order = [concern.withholds for concern in _sorted_concerns()]
    assert order == sorted(order, key=("verdict", "pass", "nothing").index)
    assert Counter(order)["verdict"] == 1


def _sorted_concerns() -> tuple[Concern, ...]:
    run = [
        replace(answer, labels={**answer.labels, "shop": str(np.int64(place) % 2)}, truncated=True)
        for place, answer in enumerate(saying([OUTAGE]))
    ]
    return concerns(contrast_audit("jsd"), corpora.item("jsd"), run, _measured())


@pytest.mark.parametrize(
    "texts",
    [
        [f"Rate limit reached for requests. Please try again in {seconds} seconds." for seconds in range(1, 60)],
        [f"Upstream error, request id 7f{number:03}c, sorry." for number in range(60)],
    ],
)
def test_prose_that_differs_in_ids_and_times_is_the_same(texts: list[str]) -> None:
    assert doubts(saying(texts)) == [("constant_answers", "verdict")]


@pytest.mark.parametrize(
    "texts",
    [
        [f"${number},900" for number in range(70, 130)],
        [f"You should ask for a salary of ${number},900 a year." for number in range(70, 130)],
        [f"tt58{number:05}" for number in range(60)],
    ],
)
def test_amounts_and_ids_may_be_the_answer(texts: list[str]) -> None:
    assert doubts(saying(texts)) == []


def test_the_same_answer_for_both_groups_to_one_question_raises_no_concern() -> None:
    run = [
        replace(answer, text=text, content=text, labels={**answer.labels, "prompt": str(place % 6)})
        for place, answer in enumerate(corpora.answers(1, trials=18))
        for text in [f"A text of its own for question {'abcdef'[place % 6]} and for nobody else."]
    ]
    assert doubts(run) == [("repeated_answers", "nothing")], "one observation a prompt and group, of which there are 24"


def test_a_groups_text_is_quoted_where_it_is_constant() -> None:
    run = [
        replace(answer, text="Go away, please, and soon.", content="Go away, please, and soon.")
        if answer.labels["race"] == "Black"
        else answer
        for answer in corpora.answers(1)
    ]
    (concern,) = concerns(contrast_audit("jsd"), corpora.item("jsd"), run, _measured())
    assert "30 of 30 answers for Black are the same ('Go away, please, and soon.')" in concern.message
