"""The ini option `fairness_creep`: accepted changes that add up since the first baseline of an item."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.baselines.creep import creep_of
from pytest_fairness.baselines.entries import Entry
from pytest_fairness.baselines.files import update_baseline
from pytest_fairness.records import Measurement
from tests.support.projects import KIM, LOU, PROBE, Project, ini, says

UNLIMITED = PROBE.replace("{limit: 0.5, gate: point}", "{tolerance: 0.25, gate: point}")


def entry(value: float, error: float | None = 0.05, **changes: Any) -> Entry:
    measured = Measurement(value, None, error, 0.5, {"Alex": 10, "Kim": 10}, {})
    made = Entry.measured(
        measured,
        target="t",
        sampling={},
        fingerprint={"prompt": "1", "axis name": "2"},
        date="2026-01-02T03:04:05Z",
        tolerance=0.2,
    )
    return replace(made, **changes)


def accept(project: Project, value: float, name: str = "gifts", item: str = KIM, **changes: Any) -> Entry:
    made = entry(value, **changes)
    update_baseline(project.path / "baselines", name, {item: made}, ())
    project.commit()
    return made


def found(project: Project, last: Entry, key: tuple[str, str] = ("gifts", KIM)) -> tuple[float, int] | None:
    creep = creep_of(project.path / "baselines", {key: last}).get(key)
    return None if creep is None else (round(creep.value, 6), creep.changes)


def test_accepted_changes_add_up(project: Project) -> None:
    accept(project, 0.1)
    last = accept(project, 0.2)
    assert found(project, last) is None  # a single change
    for value in (0.35, 0.5):
        last = accept(project, value)
    assert found(project, last) == (0.4, 3)
    assert found(project, entry(0.6)) == (0.5, 4)  # not committed yet
    accept(project, 0.5, item=LOU)
    assert found(project, last) == (0.4, 3)


def test_other_groups_and_a_deleted_baseline_begin_anew_but_other_prompts_do_not(project: Project) -> None:
    accept(project, 0)
    accept(project, 0.1)
    last = accept(project, 0.3, fingerprint={"prompt": "9", "axis name": "2"})
    assert found(project, last) == (0.3, 2)
    for value in (0.6, 0.7, 0.8):
        last = accept(project, value, fingerprint={"prompt": "9", "axis name": "3"})
        assert found(project, last) == ((0.2, 2) if value == 0.8 else None)
    (project.path / "baselines/gifts.json").unlink()
    project.commit()
    assert found(project, accept(project, 0.9, fingerprint={"prompt": "9", "axis name": "3"})) is None


def test_a_renamed_baseline_keeps_its_history_and_a_damaged_version_is_left_out(project: Project) -> None:
    accept(project, 0.1)
    accept(project, 0.2)
    project.write("baselines/gifts.json", "{")
    project.commit()
    project.git("checkout", "-q", "HEAD~1", "--", "baselines")
    last = accept(project, 0.3)
    path = project.path / "baselines/gifts.json"
    path.write_text(path.read_text("utf-8").replace('"gifts"', '"presents"'), "utf-8")
    path.rename(project.path / "baselines/presents.json")
    project.commit()
    assert found(project, last, ("presents", KIM)) == (0.2, 2)


@pytest.mark.parametrize("error", [0.2, None])
def test_a_sum_that_chance_explains_is_not_large(project: Project, error: float | None) -> None:
    accept(project, 0.1, error=error)
    accept(project, 0.2, error=error)
    last = accept(project, 0.4, error=error)
    creep = creep_of(project.path / "baselines", {("gifts", KIM): last})["gifts", KIM]
    assert creep.is_large is (error is None)
    assert creep.half_width == (None if error is None else pytest.approx(1.96 * 0.2 * 2**0.5, rel=1e-3))


def test_without_a_repository_nothing_is_known(project: Project, tmp_path: Path) -> None:
    for value in (0.1, 0.2, 0.3):
        last = accept(project, value)
    (project.path / ".git").rename(tmp_path / "git")
    assert found(project, last) is None


def test_reports_name_the_sum_and_the_ini_option_makes_the_run_fail(project: Project, tmp_path: Path) -> None:
    project.write("pytest.ini", ini(fairness_target_version="1"))
    project.write(".gitignore", ".fairness\n__pycache__\n")
    project.probe(text=UNLIMITED)
    project.write(
        "third.py", "from app import polite\n\ndef answer(prompt):\n    return polite(prompt) + ' And a Lamp.'\n"
    )
    for target in ("python:app:polite", "python:third:answer", "python:app:biased"):
        project.run("--fairness-rebaseline", target=target)
        project.commit()
    result = project.run("--fairness", "--fairness-report=r.html", "--fairness-report=r.json", target=target)
    assert result.ret == pytest.ExitCode.OK
    words = "worse by 1 ± 0.31 since 2026-"
    assert says(result, f"creep: accepted changes add up beyond the tolerance: gifts {KIM} {words}")
    assert words in (project.path / "r.html").read_text("utf-8")
    creeps = {item["id"]: item["creep"] for item in project.read("r.json")["items"]}
    assert (creeps[KIM]["value"], creeps[KIM]["changes"], creeps[LOU]["value"]) == (1.0, 2, 0.0)
    fails = ("-o", "fairness_creep=fail")
    assert project.run("--fairness", *fails, target=target).ret == pytest.ExitCode.TESTS_FAILED
    assert project.run("--fairness", "-o", "fairness_creep=no", target=target).ret == pytest.ExitCode.USAGE_ERROR
    project.git("clone", "-q", "--depth", "1", f"file://{project.path}", str(tmp_path / "shallow"))
    (project.path / ".git").rename(tmp_path / "git")
    (tmp_path / "shallow/.git").rename(project.path / ".git")
    assert says(project.run("--fairness", *fails, target=target), "creep is not known: the clone is shallow")
