"""Cells of several axes, compared with the cell of the unmarked values."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.audits import registry
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.documents import Groups
from pytest_fairness.errors import ProbeError
from pytest_fairness.records import Answer
from pytest_fairness.reports.view import group_names
from pytest_fairness.run.items import items_of
from tests.support import corpora

AXES = {
    "race": {"unmarked": "White", "marked": ["Black", "Asian"]},
    "gender": {"unmarked": "man", "marked": ["woman"]},
    "age": {"unmarked": "young", "marked": ["old"]},
}


def probe(intersections: Any, **audits: Any) -> Any:
    content = {
        "kind": "generation",
        "prompt": "Describe an {age} {race} {gender}.",
        "axes": AXES,
        "intersections": intersections,
        "audits": audits or {"jsd": {}},
    }
    return probes.parse(json.dumps(content).encode(), Path("cells.yaml"), kinds.schemas())


@pytest.mark.parametrize("name", ["jsd", "mmd", "marked_words", "svm", "refusals"])
def test_every_marked_cell_is_an_item_after_those_of_the_axes(name: str) -> None:
    found = [part.id for part in items_of(probe([["race", "gender"]], **{name: {}}))]
    assert found == [
        f"{name}[race=Black]",
        f"{name}[race=Asian]",
        f"{name}[gender=woman]",
        f"{name}[age=old]",
        f"{name}[race=Black,gender=woman]",
        f"{name}[race=Asian,gender=woman]",
    ]


def test_lexicons_of_cells_name_the_lexicon_last() -> None:
    found = [part.id for part in items_of(probe([["race", "age"]], lexicon={"lexicons": {"warm": ["kind"]}}))]
    assert "lexicon[race=Black,age=old,lexicon=warm]" in found


def test_more_items_share_the_level() -> None:
    assert {part.alpha for part in items_of(probe([["race", "gender"]]))} == {0.05 / 6}


def test_a_cell_is_compared_with_the_unmarked_cell_within_the_other_axes() -> None:
    made = probe([["race", "gender"]])
    part: Any = next(part for part in items_of(made) if part.id == "jsd[race=Black,gender=woman]")
    used = {tuple(prompt.labels.values()) for prompt in part.prompts()}
    assert used == {(*group, age) for group in (("Black", "woman"), ("White", "man")) for age in ("young", "old")}
    answers = [replace(ANSWER, labels=prompt.labels, trial=prompt.trial) for prompt in part.prompts()]
    groups = Groups.of(part, answers)
    assert (groups.marked_name, groups.unmarked_name) == ("Black woman", "White man")
    assert {*groups.strata} == {"age=old", "age=young"}
    assert groups.usable == {"Black woman": 30, "White man": 30}
    marked = {answer.labels["race"] for answer, own in zip(groups.answers, groups.marked, strict=True) if own}
    assert marked == {"Black"}


def test_the_shape_of_a_cell_names_the_values_that_it_compares() -> None:
    shape = items_of(probe([["race", "gender"]]))[-1].fingerprint
    assert json.loads(shape["axis race"]) == {"marked": ["Asian"], "unmarked": "White"}


def test_reports_name_both_cells() -> None:
    item = {"labels": {"race": "Black", "gender": "woman", "lexicon": "warm"}, "n": {"Black woman": 9, "White man": 9}}
    assert group_names(item) == ("Black woman", "White man")
    assert group_names({"labels": {"race": "Black"}, "n": {"Black": 9, "White": 9}}) == ("Black", "White")


@pytest.mark.parametrize(
    ("intersections", "faults"),
    [
        ([["race", "gendre"]], ["'gendre' is not an axis of this probe: did you mean 'gender'?"]),
        ([["race"]], ["an intersection needs at least two axes: add an axis, or remove the intersection"]),
        ([["age", "race", "age"]], ["'age' is repeated: write each axis of an intersection once"]),
        ([["race", "age"], ["age", "race"]], ["this intersection is repeated: remove it"]),
        (["race"], ["`intersections[0]` must be a list, not the text 'race'"]),
        ([], ["`intersections` must not be empty"]),
    ],
)
def test_faults_are_told_where_they_stand(intersections: Any, faults: list[str]) -> None:
    with pytest.raises(ProbeError) as raised:
        probe(intersections)
    found = str(raised.value).splitlines()
    assert [line.split(": ", 1)[1] for line in found] == faults
    assert all(line.startswith("cells.yaml:1:") for line in found)


ANSWER = corpora.answers(0, 1)[0]
CROSSED = corpora.probe(intersections=[["race", "gender"]])


def opposite(seed: int, share: float) -> list[Answer]:
    """One run: stereotyped words in the texts about Black women and White men only."""
    random = np.random.default_rng(seed)
    run = []
    for answer in corpora.answers(seed, trials=60):
        words = str(answer.content).split()
        if (answer.labels["race"] == "Black") == (answer.labels["gender"] == "woman"):
            words = [str(random.choice(SPOKEN)) if random.random() < share else word for word in words]
        run.append(replace(answer, content=" ".join(words)))
    return run


SPOKEN = [f"stereotype{number}" for number in range(20)]


@pytest.mark.parametrize("subject", ["race=Black", "gender=woman"])
def test_opposite_differences_in_two_strata_do_not_cancel(subject: str) -> None:
    axis, value = subject.split("=")
    audit = registry.get("generation", "jsd")
    item: Any = AuditItem(corpora.PROBE, "jsd", subject, {axis: value}, audit.settings_model(), 0.001, seed=subject)
    now = audit.measure(item, opposite(1, 0.15))
    assert abs(now.details["excess"]) < 0.01, "taken together, the groups are alike"
    assert min(now.details["excess_by_stratum"].values()) > 0.04
    change = audit.compare(item, opposite(1, 0.15), opposite(2, 0.0))
    assert change.value > 0.02
    assert change.p_value is not None
    assert change.p_value <= item.alpha


def test_cells_of_equal_words_are_alike() -> None:
    """Black women and White men both hold the words: the intersection sees no difference, as there is none."""
    audit = registry.get("generation", "jsd")
    item = next(each for each in audit.items(CROSSED, audit.settings_model()) if len(each.labels) == 2)
    used = [answer for answer in opposite(3, 0.15) if audit.uses(item, answer.labels)]
    assert {(a.labels["race"], a.labels["gender"]) for a in used} == {("Black", "woman"), ("White", "man")}
    assert abs(audit.measure(item, used).value) < 0.02
