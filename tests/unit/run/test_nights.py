"""Lines of a history: which of them count, and the evidence of pairs of groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fairness.run.nights import Line, counted_lines, evidence_of

NOW = 1_000_000.0


def line(night: int, **changes: object) -> Line:
    """Return the line of a night of an hour, which asked for all of its answers."""
    started = 86_400.0 * night
    own = Line(
        run=f"run {night}",
        probe="gifts",
        item="refusals",
        target="openai:m",
        fingerprint="a",
        started=started,
        oldest=started + 10,
        newest=started + 3600,
        date=f"2026-01-{night:02}T00:00:00Z",
        answers=f"answers {night}",
        changes={"": (0.0, 0.1)},
        n=40,
        baseline_n=40,
        prompts="p",
        served=["m-1"],
        tool="0.2.0",
    )
    return replace(own, **changes)  # type: ignore[arg-type] # names of fields


@pytest.mark.parametrize(
    ("further", "why"),
    [
        (line(3, run="run 2"), "counted already"),
        (line(3, answers="answers 2"), "counted already"),
        (line(3, oldest=2.0 * 86_400 + 1000), "with answers of an earlier run"),
        (line(20), "dated in the future"),
        (line(3, started=20.0 * 86_400), "dated in the future"),
    ],
)
def test_each_answer_counts_once(further: Line, why: str) -> None:
    known = [line(1), line(2)]
    counted, others = counted_lines([further, *reversed(known)], NOW)
    assert counted == known
    assert dict(others) == {why: 1}


def test_answers_of_a_run_that_ended_early_count_in_the_next_one() -> None:
    resumed = line(3, oldest=3 * 86_400.0 - 50)
    assert counted_lines([line(1), resumed], NOW)[0] == [line(1), resumed]
    assert counted_lines([resumed], NOW)[0] == []  # perhaps the answers of the baseline


def test_runs_at_the_same_time_count_both() -> None:
    other = line(1, run="other", answers="other", oldest=86_400.0 + 20)
    assert len(counted_lines([line(1), other], NOW)[0]) == 2


def test_pairs_of_groups_share_the_evidence() -> None:
    worse = [line(night, changes={"A, B": (0.0, 0.1), "A, C": (0.4 * (night > 5), 0.1)}) for night in range(1, 11)]
    found = evidence_of(worse, 0.1, 0.01)
    alone = evidence_of([replace(each, changes={"A, C": each.changes["A, C"]}) for each in worse], 0.1, 0.01)
    assert found.e_value == pytest.approx(alone.e_value / 2, rel=0.01)
    assert (found.since, found.runs_since, found.worsening) == (alone.since, alone.runs_since, alone.worsening)
    assert found.since == "2026-01-06T00:00:00Z"


def test_what_else_changed_in_the_run_is_named() -> None:
    lines = [line(night, changes={"": (0.4 * (night > 5), 0.1)}) for night in range(1, 11)]
    moved = [
        replace(each, served=["m-2"], prompts="q", tool="0.3.0") if place >= 5 else each
        for place, each in enumerate(lines)
    ]
    assert evidence_of(moved, 0.1, 0.01).changed == [
        "served model m-1 → m-2",
        "pytest-fairness 0.2.0 → 0.3.0",
        "prompts of the probe",
    ]
    first = [line(night, changes={"": (0.4, 0.05)}) for night in range(1, 11)]
    assert evidence_of(first, 0.1, 0.01, ["m-0"]).changed == ["served model m-0 → m-1"]
