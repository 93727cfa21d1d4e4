"""Every benchmark runs; what it measures counts only where it is run by hand."""

from __future__ import annotations

import os
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import calibration, trust
from benchmarks.simulated import pairs, recommender, refused, selections, sentences, spoken
from pytest_fairness.records import VerdictName
from tests.support import processes

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("collection", ()),
        # The run that is left out does the same as `compare`, without a baseline.
        ("memory", ("--only", "rebaseline", "compare")),
        ("replay", ()),
        ("sizes", ("--audits", "refusals", "flip_rate", "snsr")),
    ],
)
def test_a_benchmark_runs(tmp_path: Path, name: str, arguments: tuple[str, ...]) -> None:
    output = tmp_path / "output.txt"
    process = processes.start(benchmark, name, arguments, output)
    process.join(120)
    printed = output.read_text("utf-8")
    assert process.exitcode == 0, printed
    assert "at most" in printed


def benchmark(name: str, arguments: tuple[str, ...], output: Path) -> None:
    """Run a benchmark as `python -m benchmarks.NAME` would; write its output to a file."""
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(ROOT)
    sys.argv = [name, "--quick", *arguments]
    import_module(f"benchmarks.{name}").main()
    sys.stdout.flush()


def test_the_page_names_every_benchmark() -> None:
    page = (ROOT / "docs" / "explanation" / "benchmarks.md").read_text("utf-8")
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "timing"}
    assert [name for name in sorted(files) if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("models", "name", "audit"),
    [
        (refused, "refused", "refusals"),
        (recommender, "unsteady lists", "uncertainty"),
        (recommender, "short lists", "shortfall"),
        (recommender, "misspelt", "robustness"),
        (recommender, "worse lists", "quality"),
        (pairs, "pairs", "accuracy_gap"),
        (spoken, "spoken of", "regard"),
        (sentences, "sentences", "likelihood"),
        (selections, "selections", "impact_ratio"),
        (selections, "selections of cells", "impact_ratio"),
        (selections, "shown as both", "impact_ratio"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__.rpartition(".")[2],
)
def test_a_planted_change_moves_the_value_it_is_meant_for(models: ModuleType, name: str, audit: str) -> None:
    scenario = next(each for each in models.scenarios() if each.name == name)
    rows = calibration.repeat(scenario, scenario.changes[-1], [0])
    (planted,) = [row for row in rows if row["planted"] and row["audit"] == audit]
    assert planted["moved"] > 1.5
    assert VerdictName.NOT_MEASURABLE.value not in planted["counts"]
    assert scenario.simulate(1, 0.0) == scenario.simulate(1, 0.0)


def test_counts_of_new_models_leave_the_rows_of_the_others() -> None:
    page = trust.PAGE.read_text("utf-8")
    for name, table in trust.added(page, trust.tables_of({}), set()).items():
        assert f"<!-- {name} -->\n{table}\n<!-- end -->" in page, name
    counts = Counter({"n": 300, "pass": 297, "regression": 3, "rule: value > baseline + tolerance": 300})
    cells = {("a new model", "9 trials", 0.0, audit, False): trust.Cell(counts) for audit in ("jsd", "whole probe")}
    found = trust.added(page, trust.tables_of(cells), {"a new model"})
    assert "| a new model | 9 trials | jsd | 300 | 1.0% [0.3%, 2.9%] | 0% |" in found["alarms"]
    (before,), (after,) = (
        [line for line in text.splitlines() if line.startswith("| jsd |")]
        for text in (
            page.partition("<!-- by audit -->")[2].partition("<!-- end -->")[0],
            found["by audit"],
        )
    )
    assert int(after.split("|")[2]) == int(before.split("|")[2]) + 300
