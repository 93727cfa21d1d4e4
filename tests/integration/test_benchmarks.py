"""Every benchmark runs; what it measures counts only where it is run by hand."""

from __future__ import annotations

import os
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

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
    old = trust.stored()
    for name, table in trust.added(old, trust.tables_of({}), set()).items():
        assert table == old[name], name
    counts = Counter({"n": 300, "pass": 297, "regression": 3, "rule: value > baseline + tolerance": 300})
    cells = {("a new model", "9 trials", 0.0, audit, False): trust.Cell(counts) for audit in ("jsd", "whole probe")}
    found = trust.added(old, trust.tables_of(cells), {"a new model"})
    assert ["a new model", "9 trials", "jsd", "300", "1.0% [0.3%, 2.9%]", "0%"] in [row[:6] for row in found["alarms"]]
    before, after = ({row[0]: row for row in tables["by audit"]}["jsd"] for tables in (old, found))
    assert int(after[1]) == int(before[1]) + 300


def test_pages_show_and_quote_the_stored_tables() -> None:
    tables = trust.stored()
    stale = [path.name for path, text in trust.pages(tables).items() if path.read_text("utf-8") != text]
    assert stale == [], "run `python -m benchmarks.trust --pages`"
    for path in trust.QUOTING:
        assert trust.QUOTED.findall(path.read_text("utf-8")) == [trust.false_alarms(tables)], path


def test_each_table_of_both_errors_has_the_counts_of_its_parts() -> None:
    tables = trust.stored()
    rows = {row[0]: row for row in trust.both_errors(tables)}
    worse = [row for row in tables["found"][1:] if row[2] == "jsd" and 1.65 <= float(row[4]) <= 2.35]
    passed = sum(round(int(row[3]) * float(row[7].rstrip("%")) / 100) for row in worse)
    runs = sum(int(row[3]) for row in worse)
    assert rows["`jsd`"][-1] == f"{passed / runs:.1%} of {runs}"
    assert {row[0].strip("`") for row in rows.values()} >= {row[0] for row in tables["nulls by audit"][1:]}


@pytest.mark.parametrize(("alpha", "share"), [(0.05, "24 %"), (0.01, "13 %"), (0.0025, "8 %")])
def test_the_share_of_false_alarms_that_return_is_that_of_two_runs_with_one_baseline(alpha: float, share: str) -> None:
    # The errors of two changes with a common baseline have the correlation 1/2.
    both = multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]]).cdf(np.full(2, norm.ppf(alpha)))
    assert f"{both / alpha:.0%}".replace("%", " %") == share
    rows = trust.PAGE.read_text("utf-8").partition("## Runs that share a baseline")[2].partition("## ")[0].splitlines()
    (row,) = [row for row in rows if row.startswith(f"| {alpha * 100:g} % |")]
    assert row.split("|")[2].strip() == share


@pytest.mark.parametrize(("alpha", "years", "red", "items"), [(0.01, 1.0, 49, 7), (0.0025, 0.95, 12, 3)])
def test_a_year_of_nightly_runs_with_one_baseline(alpha: float, years: float, red: int, items: int) -> None:
    random, error = np.random.default_rng(2), 0.8
    alarms = []
    for _ in range(300):
        baseline = random.normal(scale=error / np.sqrt(2), size=20)
        changes = random.normal(scale=error / np.sqrt(2), size=(250, 20)) - baseline
        alarms.append((changes > 1) & (changes > norm.isf(alpha) * error))
    found = np.array(alarms)
    assert found.any(axis=(1, 2)).mean() == pytest.approx(years, abs=0.03)
    assert found.sum(axis=(1, 2)).mean() == pytest.approx(red, rel=0.15)
    assert found.any(axis=1).sum(axis=1).mean() == pytest.approx(items, rel=0.15)
