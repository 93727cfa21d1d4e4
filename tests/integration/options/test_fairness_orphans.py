"""`fairness_orphans`: baselines that belong to no item are named, and fail the run if the ini file says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.projects import KIM, LOU, PROBE, Project, ini, says

BOTH = PROBE.replace("{limit: 0.5, gate: point}", "{limit: 0.5, tolerance: 0.3, gate: point}")
WORKER = ("-n", "1")


def orphans(project: Project, *arguments: str) -> list[str]:
    notes = project.report(*arguments)["notes"]
    return [note["text"] for note in notes if note["kind"] == "orphaned-baselines"]


@pytest.fixture
def gifts(project: Project) -> Project:
    """A project with a baseline of two items."""
    project.probe(text=BOTH)
    project.run("--fairness-rebaseline").assert_outcomes(passed=2)
    return project


def rename_file(project: Project) -> None:
    Path(project.path / "probes/gifts.yaml").rename(project.path / "probes/presents.yaml")


def rename_probe(project: Project) -> None:
    project.probe(text=f"name: presents\n{BOTH}")


def rename_axis(project: Project) -> None:
    project.probe(text=BOTH.replace("name}", "person}").replace("  name:", "  person:"))


def rename_group(project: Project) -> None:
    project.probe(text=BOTH.replace("Lou", "Lu"))


@pytest.mark.parametrize("workers", [(), WORKER], ids=["one process", "a worker"])
@pytest.mark.parametrize(
    ("rename", "found"),
    [
        (rename_file, "gifts"), (rename_probe, "gifts"), (rename_axis, "gifts"), (rename_group, f"gifts: {LOU}"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_a_baseline_without_an_item_is_named(
    gifts: Project, rename: Callable[[Project], None], found: str, workers: tuple[str, ...]
) -> None:
    assert orphans(gifts) == []
    rename(gifts)
    (text,) = orphans(gifts, *workers)
    assert text.startswith(f"1 baseline without an item, so that nothing is compared: {found}. If a probe")
    result = gifts.run("--fairness", *workers)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.OK
    assert says(result, "1 baseline without an item")
    gifts.write("pytest.ini", ini(fairness_fail_on="orphans"))
    assert gifts.run("--fairness", *workers).ret == pytest.ExitCode.TESTS_FAILED


def test_a_selection_of_items_and_a_moved_probe_are_no_orphans(gifts: Project) -> None:
    gifts.probe("probes/others.yaml", BOTH)
    assert orphans(gifts, "-k", "Kim") == []
    assert orphans(gifts, "probes/others.yaml") == []
    Path(gifts.path / "probes/more").mkdir()
    Path(gifts.path / "probes/gifts.yaml").rename(gifts.path / "probes/more/gifts.yaml")
    assert orphans(gifts, "probes/others.yaml") == []
    assert orphans(gifts) == []


def test_a_target_of_another_name_is_named_if_the_ini_file_names_the_targets(project: Project) -> None:
    project.probe(text=BOTH)
    project.write("pytest.ini", "[pytest]\nfairness_target =\n    a=python:app:polite\n    b=python:app:polite\n")
    project.run("--fairness-rebaseline", target=None).assert_outcomes(passed=4)
    project.write("pytest.ini", "[pytest]\nfairness_target =\n    a=python:app:polite\n    c=python:app:polite\n")
    assert says(
        project.run("--fairness", target=None), "1 baseline without an item, so that nothing is compared: gifts@b."
    )
    assert not says(project.run("--fairness", target="a=python:app:polite"), "without an item")
    project.run("--fairness-rebaseline", target=None)
    assert not says(project.run("--fairness", "-m", "fairness(target='c')", target=None), "gifts@a")


def test_the_baseline_of_a_python_test_that_is_gone_is_named(project: Project) -> None:
    test = (
        "def test_own(corpus_generator, fairness_check):\n"
        "    axes = {'name': {'unmarked': 'Alex', 'marked': ['Kim']}}\n"
        "    corpus = corpus_generator('Hello {name}', axes=axes, trials=10)\n"
        "    fairness_check('own', corpus.refusals('name', 'Kim'), gate='point')\n"
    )
    project.write("test_own.py", test)
    project.probe(text=BOTH)
    project.run("--fairness-rebaseline").assert_outcomes(passed=3)
    assert orphans(project) == []
    assert orphans(project, "probes") == []
    (project.path / "test_own.py").unlink()
    assert "nothing is compared: own." in orphans(project)[0]


def test_a_folder_that_does_not_exist_is_named(gifts: Project) -> None:
    gifts.write("pytest.ini", ini(fairness_baselines="baseline"))
    text = "the folder of baselines baseline (ini fairness_baselines) does not exist, so that nothing is compared."
    assert orphans(gifts) == [text]
    gifts.write("pytest.ini", ini(fairness_baselines="baselines"))
    assert orphans(gifts) == []
    assert KIM in gifts.read("baselines/gifts.json")["items"]
