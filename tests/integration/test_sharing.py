"""What is read once for several items, and what is let go of between two of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.baselines import entries as baseline_entries
from pytest_fairness.baselines.entries import read_answers
from pytest_fairness.baselines.files import update_baseline
from pytest_fairness.options import RunSettings
from pytest_fairness.run import ProbeItem, Run, items_of, variants
from pytest_fairness.run.measuring import KEPT_ANSWERS
from pytest_fairness.run.results import Baselines, row_from
from tests.support.projects import PROBE, Project

TWO_AUDITS = PROBE + "  jsd: {}\n"
"""Refusals and divergences of Kim's answers and of Lou's."""

COUNTING = """
import gc

def pytest_runtest_logfinish(nodeid):
    alive = sum(type(each).__name__ == "Answer" for each in gc.get_objects())
    with open("alive.txt", "a") as file:
        file.write(f"{nodeid.partition('::')[2]} {alive}\\n")
"""


async def polite(prompt: str) -> str:
    return f"A lamp, a chair and a sturdy table for {prompt}."


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(RunSettings(tmp_path, store=tmp_path / "responses.sqlite", baselines=tmp_path / "baselines"))


def parts(folder: Path, text: str = TWO_AUDITS) -> dict[str, ProbeItem]:
    path = folder / "gifts.yaml"
    path.write_text(text)
    return {part.id: part for part in items_of(probes.load(path, kinds.schemas(), root=folder))}


def test_items_of_the_same_questions_share_their_answers(run: Run, tmp_path: Path) -> None:
    with run:
        target = run.targets.from_value(polite, "polite")
        kim, lou, divergence = (
            parts(tmp_path)[name] for name in ("refusals[name=Kim]", "refusals[name=Lou]", "jsd[name=Lou]")
        )
        first, second = run.measurer.answers(kim, target), run.measurer.answers(lou, target)
        assert {answer.labels["name"] for answer in second} == {"Alex", "Lou"}
        assert first is not second
        same = parts(tmp_path)
        assert run.measurer.answers(same["refusals[name=Lou]"], target) is run.measurer.answers(
            same["jsd[name=Lou]"], target
        )
        assert len(run.measurer.answers(divergence, target)) == 20
        fewer = replace(same["jsd[name=Lou]"], trials=5)
        assert len(run.measurer.answers(fewer, target)) == 10


def test_a_baseline_is_read_once_for_the_items_of_its_probe(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def read(path: Path) -> object:
        reads.append(path)
        return read_answers(path)

    with run:
        target = run.targets.from_value(polite, "polite")
        measured = [
            run.measurer.measure(part, target) for part in parts(tmp_path).values() if part.audit_name == "refusals"
        ]
        entries = {each.id: run.baselines.new_baseline(each).entry for each in measured}
        rows = [row_from(answer, each.item.probe) for each in measured for answer in each.answers]
        known = {name: entry for name, entry in entries.items() if entry is not None}
        update_baseline(tmp_path / "baselines", "gifts", known, rows)
        monkeypatch.setattr(baseline_entries, "read_answers", read)
        comparisons = [run.baselines.compare(each).comparison for each in measured]
        assert len(reads) == 1
        assert [each is not None and each.from_answers and each.value == 0 for each in comparisons] == [True, True]
        # What was written meanwhile counts.
        update_baseline(tmp_path / "baselines", "gifts", known, [replace(row, text="A lamp.") for row in rows])
        reads.clear()
        assert run.baselines.compare(measured[0]).answers[0].text == "A lamp."
        assert len(reads) == 1
        small_memory = Baselines(run.settings, run.started, run.measurer, most_kept=10)
        again = [small_memory.compare(each).comparison for each in measured]
        assert len(reads) == 3
        assert again[0] == run.baselines.compare(measured[0]).comparison


@pytest.mark.parametrize("asked", ["polite", "biased"])
def test_answers_of_earlier_items_and_probes_are_freed(project: Project, asked: str) -> None:
    project.write("conftest.py", COUNTING)
    project.probe("probes/gifts.yaml", PROBE)
    for number in range(2):
        project.probe(f"probes/more{number}.yaml", PROBE.replace("would you recommend", f"could {number} give"))
    project.run_forked("--fairness", "--fairness-trials", "600", target=f"python:app:{asked}")
    alive = [int(line.split()[-1]) for line in (project.path / "alive.txt").read_text().splitlines()]
    assert len(alive) == 6, "two items of each probe, with 1,200 of its 1,800 answers each"
    # One item's answers, and up to 2,000 others of its probe and of those whose hashes are kept.
    assert max(alive) < 1_800 + KEPT_ANSWERS < 3 * 1_800


def test_a_variant_that_asks_nothing_else_is_left_out(tmp_path: Path) -> None:
    text = PROBE.replace(
        "audits:", "system: Be kind.\nvariants:\n  same: {system: Be kind.}\n  other: {system: Be brief.}\naudits:"
    )
    for part in parts(tmp_path, text).values():
        assert list(variants.variants_of(part)) == ["other"]
