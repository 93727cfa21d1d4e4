"""How often a year of nightly runs fails though nothing changed, and how soon a change is found, with a history.

    python -m benchmarks.nights --workers 2
    python -m benchmarks.nights --show

A year is 250 nights against one baseline. Baselines and nights of pretended models are drawn, measured and compared as
the plugin does; if fewer than 250 nights were measured, a year draws them with replacement, so that its nights depend
on each other more than real ones. Changes of the normal model have an error of .8 tolerances in full runs. All years
are judged by `run.nights.evidence_of` and `audits.rules.judge_runs` with an alpha of .05 / 20, and night by night by
the rule for single runs with the same alpha. A change is added from night 101 on; a drift grows to 4 tolerances in the
year. Counts are appended to `benchmarks/nights.jsonl`; `python -m benchmarks.trust --nights` writes them into the page.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import calibration
from benchmarks.calibration import entry_of
from benchmarks.timing import append_counts
from pytest_fairness.audits.rules import judge_runs, rule_of
from pytest_fairness.baselines.verdicts import tolerance_of
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Comparison
from pytest_fairness.run import ItemMeasurement, ProbeItem, items_of
from pytest_fairness.run.nights import Line, evidence_of, line_of
from pytest_fairness.stats.intervals import upper_tail

COUNTS = Path(__file__).with_suffix(".jsonl")
NIGHTS, BEFORE, ITEMS = 250, 100, 20
"""Nights of a year, nights before a change, and items that share a baseline and its alpha of 5 %."""
DECIDED = (1, 5, 20, 100)
"""Nights after which decisions are counted."""
DESIGNS = (
    ("refused", "48 answers a group", "refusals", 20, 100),
    ("texts", "9 trials", "jsd", 10, 40),
    ("records", "200 records", "demographic_parity", 10, 50),
    ("lists", "50 entities", "shortfall", 10, 40),
)
"""Name and size of pretended models, an audit, and numbers of its baselines and nights that are compared."""
YEARS = 400
NORMAL = "normal model"

Row = dict[str, Any]


def of_audit(name: str, size: str, audit: str, baselines: int, nights: int) -> list[Row]:
    """Return the counts of one audit in a design without a difference between groups or between runs."""
    scenario = calibration.scenarios()[name, size]
    item = next(item for item in items_of(scenario.probe) if item.audit.info.name == audit)
    part = replace(item, alpha=0.05 / ITEMS).analyses[-1]

    def drawn(seed: int) -> list[Answer]:
        return [answer for answer in scenario.prepared(part, scenario.simulate(seed, 0.0)) if part.uses(answer.labels)]

    runs = []
    for night in range(nights):
        answers = drawn(night)
        answers = [replace(answers[0], created=night + 1.0), *answers[1:]]
        with suppress(NotMeasurable):
            runs.append(ItemMeasurement(part, "", answers, part.audit.measure(part, answers)))
    years = []
    for number in range(baselines):
        baseline = drawn(10_000 + number)
        entry = entry_of(part.audit.measure(part, baseline))
        changes = [part.audit.compare(part, run.answers, baseline) for run in runs]
        found = [
            line_of(run, entry, change, run=str(night), started=0.0)
            for night, (run, change) in enumerate(zip(runs, changes, strict=True))
        ]
        lines = [line for line in found if line is not None]
        random = np.random.default_rng(number)
        for _ in range(YEARS // baselines):
            places = random.permutation(len(lines)) if len(lines) >= NIGHTS else random.choice(len(lines), NIGHTS)
            years.append([lines[place] for place in places[:NIGHTS]])
    return [{"design": name, "size": size, "audit": audit, **judged(part, years)}]


def of_normal(share: float, baseline_share: float) -> list[Row]:
    """Return the counts of the normal model whose nights have this share of the answers of a full run."""
    part = next(item for item in items_of(calibration.scenarios()["refused", "48 answers a group"].probe))
    part = replace(part, alpha=0.05 / ITEMS)
    tolerance, random = tolerance_of(part.audit, part), np.random.default_rng(7)
    full = 0.8 * tolerance / 2**0.5
    own, of_baseline = full / share**0.5, full / baseline_share**0.5
    parts = round(1 / baseline_share)
    years = []
    for _ in range(YEARS):
        levels = random.normal(0, of_baseline, parts)
        year = []
        for night in range(NIGHTS):
            change = float(random.normal(0, own) - levels[night % parts]), float(np.hypot(own, of_baseline))
            line = Line(
                run=str(night),
                answers=str(night),
                started=0.0,
                oldest=float(night),
                newest=float(night),
                changes={"": change},
                n=round(1000 * share),
                baseline_n=round(1000 * baseline_share),
                part=night % parts,
                parts=parts,
                served=[],
                probe="",
                item="",
                target="",
                fingerprint="",
                date="",
                prompts="",
                tool="",
            )
            year.append(line)
        years.append(year)
    size = "full runs" if share == 1 else "a quarter of the trials" if parts == 1 else "a quarter of the records"
    return [{"design": NORMAL, "size": size, "audit": "", **judged(part, years, drift=share == 1)}]


def judged(part: ProbeItem, years: Sequence[Sequence[Line]], *, drift: bool = True) -> Row:
    """Return how many years have a red night, by both rules, and when planted changes are found."""
    tolerance, rule, counts = tolerance_of(part.audit, part), rule_of(part.audit, part), Counter[str]()
    delays: dict[str, list[int | None]] = {"2": [], "1": [], "drift": []}

    def first_red(year: Sequence[Line], start: int = 0) -> int | None:
        for night in range(start, len(year)):
            if judge_runs(evidence_of(year[: night + 1], tolerance, part.alpha, shown=1), part, tolerance).outcome == (
                "beyond"
            ):
                return night - start + 1
        return None

    for number, year in enumerate(years):
        counts["years"] += 1
        counts["red"] += first_red(year) is not None
        for night in DECIDED:
            found = evidence_of(year[:night], tolerance, part.alpha, shown=1)
            counts[f"{judge_runs(found, part, tolerance).outcome}, night {night}"] += 1
        single = []
        for line in year:
            value, error = next(iter(line.changes.values()))
            change = Comparison(value, standard_error=error, p_value=upper_tail(value / error) if error else 1.0)
            single.append(rule.judge_change(part.audit, part, change, tolerance, value).outcome)
        counts["red nights of single runs"] += single.count("beyond")
        counts["red of single runs"] += "beyond" in single
        counts["within, single run"] += single.count("within")
        if number % 4 == 0:
            for size in (2, 1):
                changed = [shifted(line, size * tolerance if night >= BEFORE else 0) for night, line in enumerate(year)]
                delays[str(size)].append(first_red(changed, BEFORE))
            if drift:
                changed = [shifted(line, 4 * tolerance * (night + 1) / NIGHTS) for night, line in enumerate(year)]
                delays["drift"].append(first_red(changed))
    errors = [error / tolerance for year in years[:20] for line in year for _, error in line.changes.values()]
    return {
        "error": float(np.median(errors)),
        "counts": dict(counts),
        "delays": {name: [each or NIGHTS for each in found] for name, found in delays.items()},
    }


def shifted(line: Line, by: float) -> Line:
    return replace(line, changes={name: (value + by, error) for name, (value, error) in line.changes.items()})


def table() -> list[list[str]]:
    """Return a row for each design: years of 20 items with a red night by both rules, and nights until a change."""
    rows = []
    for line in COUNTS.read_text("utf-8").splitlines():
        row = json.loads(line)
        counts, years = row["counts"], row["counts"]["years"]
        found = {name: f"{np.median(delays):.0f}" if delays else "" for name, delays in row["delays"].items()}
        by_history, single = (f"{1 - (1 - counts[red] / years) ** ITEMS:.0%}" for red in ("red", "red of single runs"))
        rows.append(
            [
                f"{row['design']}, {row['size']}",
                f"`{row['audit']}`" if row["audit"] else "",
                f"{row['error']:.2g}",
                f"{counts['red']} of {years}",
                by_history,
                single,
                f"{counts['red nights of single runs'] / years * ITEMS:.0f}",
                *(found[name] for name in ("2", "1", "drift")),
            ]
        )
    head = ["model", "audit", "error of a change, in tolerances", "item-years with a red night", "of 20 items"]
    head += ["night by night: of 20 items", "red items a year", "nights until 2 tolerances", "1 tolerance", "drift"]
    return [head, *rows]


def main() -> None:
    """Count, or show what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the counts and add nothing")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    if given.show:
        print("\n".join(map("; ".join, table())))
        return
    with ProcessPoolExecutor(given.workers) as pool, COUNTS.open("a") as file:
        work = [pool.submit(of_normal, *sizes) for sizes in ((1.0, 1.0), (0.25, 1.0), (0.25, 0.25))]
        work += [pool.submit(of_audit, *design) for design in DESIGNS]
        append_counts(work, file)


if __name__ == "__main__":
    main()
