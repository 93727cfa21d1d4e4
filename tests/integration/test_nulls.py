"""Designs of everyday use: what `benchmarks.nulls` counts, in few runs with fixed seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import nulls, trust
from pytest_fairness.records import VerdictName

QUICK = ("refusals", "impact_ratio", "flip_direction", "mean_gap", "snsr")
"""An audit of each family that takes little time."""


@pytest.mark.parametrize("key", nulls.scenarios(), ids=lambda key: ", ".join(key).replace("×", "x"))
def test_a_design_is_measured_and_judged(key: tuple[str, str]) -> None:
    scenario = nulls.scenarios()[key]
    assert scenario.simulate(3, 0.0) == scenario.simulate(3, 0.0)
    assert scenario.simulate(2, 0.0) != scenario.simulate(4, 0.0)
    rows = nulls.repeat(scenario, [0], QUICK)
    assert {row["state"] for row in rows} == set(nulls.STATES)
    results = [row["results"][0] for row in rows]
    assert VerdictName.ERROR.value not in {each["verdict"] for each in results}
    assert any("value" in each for each in results)


def test_counts_follow_from_the_true_values(tmp_path: Path) -> None:
    file = tmp_path / "counts.jsonl"
    good = {"verdict": "pass", "value": 0.1, "interval": [0.0, 0.2], "change": 0.0, "change_interval": [-0.1, 0.1]}
    bad = {"verdict": "regression", "value": 0.3, "interval": [0.2, 0.4], "change": 0.2, "change_interval": [0.1, 0.3]}
    results = {
        "0": {**good, "change_error": 0.05, "over": None},
        "1": {**bad, "change_error": 0.05, "over": 0.15},
        "2": {"verdict": "not-measurable"},
    }
    row = {"design": "dice", "size": "9", "audit": "mean_gap", "item": "mean_gap[sex]", "better": "lower"}
    lines = [
        {**row, "state": "nothing", "truth": 0.1, "truths": [0.1, 0.1], "results": results},
        {**row, "state": "changed", "truth": None, "truths": [0.1, None], "results": results},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cells = nulls.read(file)
    cell = cells["dice", "9", "mean_gap", "nothing"]
    assert (cell.runs, cell.judged, cell.red, cell.over) == (3, 2, 1, 1)
    assert (cell.covers, cell.intervals, cell.change_covers, cell.change_intervals) == (1, 2, 1, 2)
    # The true change is not known: the mean change, 0.1, takes its place.
    assert cells["dice", "9", "mean_gap", "changed"].change_covers == 2
    table = trust.nulls_tables(cells)["nulls by audit"].splitlines()[-1]
    assert table.startswith("| mean_gap | 3 | 50.0% [9.5%, 90.5%] | – | 50.0%")
