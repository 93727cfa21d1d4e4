"""Several groups in files of decisions: each pair by itself, small groups, groups of no value, the median of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.support.projects import Project

Counts = Mapping[str, tuple[int, int]]
"""Number of selected people and number of people, by group."""

FOUR = {"White": (174, 360), "Black": (52, 160), "Hispanic": (78, 150), "Asian": (58, 110)}
CELLS = {("Male", "White"): (80, 160), ("Male", "Black"): (70, 150), ("Female", "White"): (78, 160)}
UNLIKELY = {**CELLS, ("Female", "Black"): (20, 150)}


def decisions(project: Project, name: str, groups: Counts, audits: str, listed: str = "") -> None:
    """Write a probe with a file of one decision a person."""
    rows = [
        f"{group},{'yes' if place < hits else 'no'}" for group, (hits, size) in groups.items() for place in range(size)
    ]
    numbered = [f"{number},{row}" for number, row in enumerate(rows)]
    project.write(f"probes/{name}.csv", "\n".join(["id,race,answer", *numbered]))
    values = listed or ", ".join(groups)
    project.probe(
        f"probes/{name}.yaml",
        f"kind: counterfactual\nresponses: {{file: {name}.csv}}\nflip: {{race: [{values}]}}\naudits: {audits}",
    )


def items_of(report: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{item['probe']} {item['audit']}": item for item in report["items"]}


def numbers_of(item: Mapping[str, Any]) -> list[float]:
    return [item["value"], *item["interval"], item["standard_error"], item["p_value"]]


def test_a_small_group_hides_no_adverse_impact(project: Project) -> None:
    decisions(project, "four", FOUR, "{impact_ratio: {limit: 0.8}}")
    decisions(project, "five", {**FOUR, "Two or more": (14, 30)}, "{impact_ratio: {limit: 0.8}}")
    # Of 792 people, 12 are fewer than 2 %: nobody of them is selected, which says nothing about the others.
    decisions(project, "tiny", {**FOUR, "Other": (0, 12)}, "{impact_ratio: {limit: 0.8}}")
    items = items_of(project.report(target=None))
    assert {item["verdict"] for item in items.values()} == {"over-limit"}
    four, five, tiny = (items[f"{name} impact_ratio"] for name in ("four", "five", "tiny"))
    assert five["p_value"] == pytest.approx(four["p_value"] * 10 / 6) == pytest.approx(0.0052, abs=2e-4)
    assert "surest for Black and Hispanic: 0.625, 95 % interval 0.477 to 0.82 (p = 0.0052)" in five["reason"]
    pairs = {tuple(pair["groups"]): pair for pair in five["details"]["pairs"]}
    assert len(pairs) == 10
    assert pairs["Black", "White"]["value"] == pytest.approx((52 / 160) / (174 / 360))
    assert all(
        pairs[tuple(pair["groups"])]["interval"] == pytest.approx(pair["interval"]) for pair in four["details"]["pairs"]
    )
    # A group that the rule leaves out is listed, and changes no number of the others.
    assert numbers_of(tiny) == pytest.approx(numbers_of(four))
    assert [pair["p_value"] for pair in tiny["details"]["pairs"]] == pytest.approx(
        [pair["p_value"] for pair in four["details"]["pairs"]]
    )
    assert "Not compared: Other (0 of 12 records, less than 2% of the records)" in tiny["reason"]


@pytest.mark.parametrize("audit", ["demographic_parity", "impact_ratio"])
def test_a_group_of_three_leaves_the_others_measured(project: Project, audit: str) -> None:
    decisions(project, "two", {"A": (30, 60), "B": (12, 60)}, f"{{{audit}: {{}}}}")
    decisions(project, "more", {"A": (30, 60), "B": (12, 60), "C": (3, 3)}, f"{{{audit}: {{}}}}")
    items = items_of(project.report("--fairness-measure", target=None))
    two, more = items[f"two {audit}"], items[f"more {audit}"]
    assert numbers_of(more) == pytest.approx(numbers_of(two))
    left_out = more["details"]["rates"][2]
    assert (left_out["records"], left_out["rate"], left_out["left_out"]) == (3, 1.0, "fewer than 4 records")
    assert "Not compared: C (3 of 3 records, fewer than 4 records)" in more["reason"]


def test_marks_of_an_intersection_do_not_move_when_a_cell_of_two_people_is_added(project: Project) -> None:
    for name, further in (("cells", {}), ("more", {("Diverse", "White"): (1, 2)})):
        people = [
            (*cell, "yes" if place < hits else "no")
            for cell, (hits, size) in {**UNLIKELY, **further}.items()
            for place in range(size)
        ]
        rows = [",".join([str(number), *row]) for number, row in enumerate(people)]
        project.write(f"probes/{name}.csv", "\n".join(["id,sex,race,answer", *rows]))
        sexes = "Male, Female" + ", Diverse" * bool(further)
        project.probe(
            f"probes/{name}.yaml",
            f"kind: counterfactual\nresponses: {{file: {name}.csv}}\nflip: {{sex+race: {{sex: [{sexes}], race: [White, "
            "Black]}}\naudits: {demographic_parity: {limit: 0.2}, impact_ratio: {limit: 0.8}}",
        )
    items = items_of(project.report(target=None))
    for audit in ("demographic_parity", "impact_ratio"):
        before, after = (items[f"{name} {audit}"] for name in ("cells", "more"))
        tables = [
            {tuple(cell["cell"]): cell for cell in each["details"]["intersections"][0]["cells"]}
            for each in (before, after)
        ]
        for cell in UNLIKELY:
            for name in ("value", "gap", "interval", "p_value"):
                assert tables[1][cell].get(name) == pytest.approx(tables[0][cell].get(name))
        assert tables[0]["Female", "Black"]["p_value"] < 1e-8
        assert "gap" not in tables[1]["Diverse", "White"]
        assert before["verdict"] == after["verdict"] == "over-limit"
        assert before["value"] == after["value"]
        assert before["interval"] == pytest.approx(after["interval"])


def test_a_fall_of_a_large_group_shows_beside_a_small_group_with_a_large_gap(project: Project) -> None:
    listed = "A, B, C, Small"
    then = {"A": (200, 400), "B": (200, 400), "C": (200, 400), "Small": (24, 30)}
    now = {**then, "B": (270, 400)}  # the largest gap, of Small and the others, is as large as before
    decisions(project, "runs", then, "{demographic_parity: {}}", listed)
    project.report("--fairness-rebaseline", target=None)
    decisions(project, "runs", now, "{demographic_parity: {}}", listed)
    (item,) = project.report(target=None)["items"]
    assert item["verdict"] == "regression"
    assert item["change"]["value"] == pytest.approx(0.175)
    assert item["change"]["groups"] == "A and B"
    assert "worse by 0.175 for A and B, tolerance 0.05" in item["reason"]
    assert "the gap between A and B changed by 0.175" in item["reason"]
    assert "positive answers of B 50.0% to 67.5%" in item["reason"]
    changes = {tuple(pair["groups"]): pair for pair in item["details"]["pair_changes"]}
    assert changes["A", "B"]["value"] == pytest.approx(0.175)
    assert changes["A", "B"]["p_value"] < 0.001
    assert changes["A", "C"]["value"] == 0.0


def test_the_change_of_several_groups_is_that_of_the_pair_that_differs_most_in_both_runs(project: Project) -> None:
    listed = "A, B, C"
    decisions(project, "runs", {"A": (90, 200), "B": (110, 200), "C": (100, 200)}, "{demographic_parity: {}}", listed)
    project.report("--fairness-rebaseline", target=None)
    # The largest gap was that of A and B, 0.1, and is that of B and C, 0.125: in both runs together, B and C.
    decisions(project, "runs", {"A": (105, 200), "B": (110, 200), "C": (85, 200)}, "{demographic_parity: {}}", listed)
    printed = project.run("--fairness", target=None)
    (item,) = project.report(target=None)["items"]
    changes = {tuple(pair["groups"]): pair for pair in item["details"]["pair_changes"]}
    assert item["change"]["groups"] == "B and C"
    assert item["change"]["value"] == pytest.approx(0.075) == changes["B", "C"]["value"]
    assert item["change"]["interval"] == pytest.approx(changes["B", "C"]["interval"], abs=1e-3)
    assert item["details"]["growth"][0] == pytest.approx(0.025)
    assert (
        "(positive answers: 52.5% of A, 55.0% of B, 42.5% of C), was 0.1: worse by 0.075 for B and C"
        in (item["reason"])
    )
    text = " ".join(printed.stdout.str().split())
    assert "Of several groups, the change is that of the two that differ most in both runs together" in text


def test_the_median_is_that_of_all_applicants(project: Project) -> None:
    random = np.random.default_rng(3)
    rows, scores = ["id,sex,race,answer"], []
    for number in range(400):
        sex = ("Male", "Female", "Not said")[number % 3]
        race = ("White", "Black", "Unknown")[number // 3 % 3]
        shift = 8 * (sex == "Male") - 25 * (race == "Unknown") + 15 * (sex == "Not said")
        scores.append(int(np.clip(random.normal(50 + shift, 12), 0, 100)))
        rows.append(f"{number},{sex},{race},{scores[-1]}")
    project.write("probes/scores.csv", "\n".join(rows))
    project.probe(
        "probes/scores.yaml",
        "kind: counterfactual\nresponses: {file: scores.csv}\nflip:\n  sex: {Male: Female}\n  race: [White, Black]\n  "
        "sex+race: {sex: [Male, Female], race: [White, Black]}\nanswer: {number: {min: 0, max: 100}}\n"
        "audits: {impact_ratio: {}}",
    )
    report = project.report("--fairness-measure", target=None)
    median = np.median(scores)
    assert {item["details"]["selected"] for item in report["items"]} == {f"above the median of {median:g}"}
    by_attribute = {item["labels"]["attribute"]: item for item in report["items"]}
    above = {
        sex: [score > median for row, score in zip(rows[1:], scores, strict=True) if row.split(",")[1] == sex]
        for sex in ("Male", "Female")
    }
    rates = {sex: np.mean(hits) for sex, hits in above.items()}
    assert by_attribute["sex"]["value"] == pytest.approx(rates["Female"] / rates["Male"])
    # People of other or unknown groups are counted for each item.
    for attribute, column, listed in (("sex", 1, ("Male", "Female")), ("race", 2, ("White", "Black"))):
        others = sum(row.split(",")[column] not in listed for row in rows[1:])
        assert by_attribute[attribute]["details"]["unlisted"]["records"] == others
        assert f"{others} records of other or unknown groups" in by_attribute[attribute]["reason"]


def test_records_that_are_not_asked_for_lack_of_a_value_are_counted(project: Project) -> None:
    records = [
        f"{{id: r{number}, sex: {sex}, years: {number}}}"
        for number, sex in enumerate(["Male", "Female"] * 10 + ["Diverse"] * 3)
    ]
    project.probe(
        "probes/asked.yaml",
        "kind: counterfactual\nprompt: 'A {sex} person with {years} years. Invite? Answer yes or no.'\nrecords:\n  - "
        + "\n  - ".join(records)
        + "\nflip: {sex: {Male: Female}}\naudits: {demographic_parity: {}}",
    )
    project.write("agreeing.py", "def yes(prompt):\n    return 'yes'\n")
    (item,) = project.report("--fairness-measure", target="python:agreeing:yes")["items"]
    assert item["details"]["unlisted"] == {"records": 3, "answers": 0, "hits": 0}
