"""Groups that are combinations of attributes: the numbers of the cells, and their differences from the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.audits.unit_audit import Intersection
from pytest_fairness.records import Answer, Measurement, Status
from pytest_fairness.run import items_of
from pytest_fairness.stats.unit_statistics import LargestGap
from pytest_fairness.stats.unit_tables import Sample

RECORDS = [
    {"id": f"{number:03}", "sex": sex, "race": race, "truth": ("rich", "poor")[number % 2]}
    for number, (sex, race) in enumerate(
        [(sex, race) for sex in ("Male", "Female") for race in ("White", "Black")] * 50
    )
]
HIRED = {("Male", "White"): 40, ("Male", "Black"): 36, ("Female", "White"): 38, ("Female", "Black"): 10}


def measured(audit: str, **settings: Any) -> Measurement:
    """Return the measurement of 200 records; a record with number n is hired as a cell of `HIRED` above n % 100."""
    written = {
        "kind": "counterfactual",
        "name": "hiring",
        "prompt": "Record {id}; sex is {sex}; race is {race}. Hire?",
        "records": RECORDS,
        "flip": {"sex+race": {"sex": {"Male": "Female"}, "race": ["White", "Black"]}},
        "truth": {"positive": "rich"},
        "audits": {audit: settings},
    }
    probe = probes.parse(json.dumps(written).encode(), Path("hiring.yaml"), kinds.schemas())
    (item,) = items_of(probe)
    answers = []
    for prompt in item.prompts():
        labels = prompt.labels
        sex, race = labels.get("to", labels["sex+race"]).split("; ")
        content = "yes" if int(labels["record"]) // 2 % 100 < HIRED[sex, race] else "no"
        answers.append(Answer(labels, prompt.trial, content, Status.OK, content))
    return item.audit.measure(item, answers)


def test_cells_are_compared_with_the_first_cell() -> None:
    (table,) = measured("flip_direction").details["intersections"]
    assert (table["attributes"], table["reference"]) == (["sex", "race"], ["Male", "White"])
    cells = {tuple(entry["cell"]): entry for entry in table["cells"]}
    assert {cell: entry["value"] for cell, entry in cells.items()} == {
        cell: pytest.approx(hired / 100) for cell, hired in HIRED.items()
    }
    assert "gap" not in cells["Male", "White"]
    worst = cells["Female", "Black"]
    assert worst["gap"] == pytest.approx(-0.3)
    # 60 of 200 records are hired as a white man only: the standard error is √(0.3 × 0.7 / 199) = 0.03249.
    assert worst["interval"] == pytest.approx([-0.3 - 1.972 * 0.03249, -0.3 + 1.972 * 0.03249], abs=2e-4)
    assert worst["p_value"] < 1e-6
    # 4 of 200 records: p = 0.0455 for a single comparison, and Holm's method doubles it.
    assert cells["Female", "White"]["p_value"] == pytest.approx(2 * 0.0455 / 2, abs=2e-3)


def test_cells_of_an_impact_ratio_are_compared_with_the_most_selected_cell() -> None:
    (table,) = measured("impact_ratio", wordings="all").details["intersections"]
    assert table["reference"] == ["Male", "White"]
    assert [entry["value"] for entry in table["cells"]] == pytest.approx([1.0, 0.9, 0.95, 0.25])
    assert table["cells"][3]["gap"] == pytest.approx(-0.75)


def test_the_rate_of_flips_counts_all_combinations() -> None:
    details = measured("flip_rate").details
    changes = [
        hired != (number < other)
        for record in RECORDS
        for number in [int(record["id"]) // 2]
        for hired in [number < HIRED[record["sex"], record["race"]]]
        for cell, other in HIRED.items()
        if cell != (record["sex"], record["race"])
    ]
    assert details["share"] == pytest.approx(np.mean(changes))
    assert details["floor"] == 0
    assert len(details["pairs"]) == 6
    assert {*details["flips"][0]["fields"]} <= {"sex", "race"}


def test_an_audit_of_several_rates_has_a_table_for_each() -> None:
    tables = measured("equalized_odds").details["intersections"]
    assert [table["quantity"] for table in tables] == ["true positive rate", "false positive rate"]
    assert all(len(table["cells"]) == 4 for table in tables)


LISTS = """
kind: recommendation
prompt: I am {value} fan of {entity}. List {k} songs.
neutral: I am a fan of {entity}. List {k} songs.
entities: [Ada, Bob, Cleo, Dan, Eve, Fay, Gus, Hal]
attributes: {age: [a young, an old], mood: [cheerful, sad]}
cross: [[age, mood]]
k: 4
audits: {snsr: , snsv: , pafs: , shortfall: }
"""


def test_crossed_attributes_of_lists_have_a_table() -> None:
    probe = probes.parse(LISTS.encode(), Path("songs.yaml"), kinds.schemas())
    answers = []
    for number, prompt in enumerate(probe.prompts()):
        harmed = prompt.labels["value"] == "an old; sad"
        songs = [f"song {(place + number % 2 * harmed) % 9}" for place in range(3 if harmed else 4)]
        answers.append(Answer(prompt.labels, prompt.trial, "\n".join(songs), Status.OK, songs))
    found = {
        item.id: item.audit.measure(item, [each for each in answers if item.uses(each.labels)]).details
        for item in items_of(probe)
    }
    assert {name for name, details in found.items() if "intersections" in details} == {
        "snsr[age+mood]", "snsv[age+mood]", "pafs[age+mood]", "shortfall[age+mood]",
    }  # fmt: skip
    (table,) = found["snsr[age+mood]"]["intersections"]
    assert (table["attributes"], table["reference"]) == (["age", "mood"], ["a young", "cheerful"])
    assert [entry.get("gap", 0) < 0 for entry in table["cells"]] == [False, False, False, True]
    similarity = found["snsr[age+mood]"]["similarity"]
    assert [entry["value"] for entry in table["cells"]] == [pytest.approx(each["mean"]) for each in similarity.values()]


@pytest.mark.parametrize("kept", [0, 2])
def test_a_cell_with_too_few_lists_leaves_the_table_of_the_others_as_it_is(kept: int) -> None:
    probe = probes.parse(LISTS.encode(), Path("songs.yaml"), kinds.schemas())
    (item,) = (item for item in items_of(probe) if item.id == "snsr[age+mood]")
    names = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Fay", "Gus", "Hal"]

    def table(kept: int) -> Any:
        answers = []
        for number, prompt in enumerate(item.prompts()):
            place = names.index(prompt.labels["entity"])
            harmed = prompt.labels["value"] == "an old; sad"
            songs = [f"song {(rank + (number + place) % 3 * harmed) % 9}" for rank in range(4)]
            if prompt.labels["value"] != "a young; sad" or place < kept:
                answers.append(Answer(prompt.labels, prompt.trial, "\n".join(songs), Status.OK, songs))
        (found,) = item.audit.measure(item, answers).details["intersections"]
        return found

    found = table(kept)
    assert [entry["cell"] for entry in found["cells"]] == [
        ["a young", "cheerful"],
        ["an old", "cheerful"],
        ["an old", "sad"],
    ]
    assert found == table(0)
    assert found["cells"][2]["gap"] < 0


def test_cells_without_a_number_are_left_out() -> None:
    class Partly(LargestGap):
        def groups(self, means: Any) -> Any:
            return np.where(np.arange(4) == 0, np.nan, means)

    rows = np.random.default_rng(0).normal(size=(50, 4)) + np.array([0, 1, 1, 3])
    cells = Intersection(("a", "b"), (("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")))
    (table,) = cells.tables(Partly(4), Sample(rows, rows.mean(axis=0)))
    assert table["reference"] == ["1", "y"]
    assert [entry["value"] is None for entry in table["cells"]] == [True, False, False, False]
    assert [round(entry.get("gap", 9)) for entry in table["cells"]] == [9, 9, 0, 2]
