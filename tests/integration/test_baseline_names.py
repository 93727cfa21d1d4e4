"""Baselines of the same name: no probe and no test overwrites the baseline of another."""

from __future__ import annotations

import json

import pytest

from tests.support.projects import KIM, PROBE, Project, says, shows

UNLIMITED = PROBE.replace("{limit: 0.5, gate: point}", "{gate: point}")
TEST = """
import pytest

@pytest.mark.fairness
def test_letters(corpus_generator, fairness_check):
    corpus = corpus_generator("Hello {name}", axes={"name": {"unmarked": "Alex", "marked": ["Kim"]}}, trials=10)
    fairness_check("NAME", corpus.refusals("name", "Kim"), gate="point")
"""


def state(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (project.path / "baselines").iterdir()}


@pytest.mark.parametrize("option", ["--fairness", "--fairness-rebaseline"])
def test_a_probe_of_the_same_name_in_another_folder_is_refused(project: Project, option: str) -> None:
    project.probe("a/gifts.yaml", UNLIMITED)
    project.probe("b/gifts.yaml", UNLIMITED)
    project.run("--fairness-rebaseline", "a/gifts.yaml").assert_outcomes(passed=2)
    before = state(project)
    result = project.run(option, "b/gifts.yaml")
    result.assert_outcomes(errors=2)
    assert says(result, "b/gifts.yaml: ")
    assert says(
        result, "baselines/gifts.json is already the baseline of 'a/gifts.yaml'. Rename the probe or test in one"
    )
    assert not says(result, "that belong to no item of the probe")
    assert state(project) == before
    project.run("--fairness", "a/gifts.yaml").assert_outcomes(passed=2)


def test_a_moved_probe_keeps_its_baseline(project: Project) -> None:
    file = project.probe("a/gifts.yaml", UNLIMITED)
    project.run("--fairness-rebaseline", "a/gifts.yaml")
    (project.path / "b").mkdir()
    file.rename(project.path / "b/gifts.yaml")
    project.run("--fairness", "b/gifts.yaml").assert_outcomes(passed=2)
    project.run("--fairness-rebaseline", "b/gifts.yaml").assert_outcomes(passed=2)
    assert {entry["file"] for entry in project.read("baselines/gifts.json")["items"].values()} == {"b/gifts.yaml"}


def test_baselines_without_a_file_are_read_as_before(project: Project) -> None:
    project.probe("a/gifts.yaml", UNLIMITED)
    project.run("--fairness-rebaseline", "a/gifts.yaml")
    path = project.path / "baselines/gifts.json"
    new = ("file", "labels", "tolerance", "contributions")
    path.write_text(_without(path.read_text("utf-8"), new), "utf-8")
    assert not set(project.read("baselines/gifts.json")["items"][KIM]) & set(new)
    project.probe("b/gifts.yaml", UNLIMITED)
    project.run("--fairness", "b/gifts.yaml").assert_outcomes(passed=2)


def _without(text: str, names: tuple[str, ...]) -> str:
    data = json.loads(text)
    for entry in data["items"].values():
        for name in names:
            entry.pop(name)
    return json.dumps(data)


def test_a_test_does_not_overwrite_the_baseline_of_a_probe_or_of_another_test(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.run("--fairness-rebaseline", "probes")
    project.write("test_one.py", TEST.replace("NAME", "gifts"))
    result = project.run("--fairness-rebaseline", "test_one.py")
    result.assert_outcomes(failed=1)
    assert says(result, "baselines/gifts.json is already the baseline of 'probes/gifts.yaml'")
    project.write("test_one.py", TEST.replace("NAME", "letters"))
    project.run("--fairness-rebaseline", "test_one.py").assert_outcomes(passed=1)
    assert project.read("baselines/letters.json")["items"][KIM]["file"] == "test_one.py"
    project.write("test_two.py", TEST.replace("NAME", "letters").replace("Kim", "Lou"))
    project.run("--fairness-rebaseline", "test_two.py").assert_outcomes(passed=1)
    assert len(project.read("baselines/letters.json")["items"]) == 2
    project.write("test_three.py", TEST.replace("NAME", "letters"))
    result = project.run("--fairness-rebaseline", "test_three.py")
    result.assert_outcomes(failed=1)
    assert says(result, "test_three.py: ")
    assert says(result, "baselines/letters.json is already the baseline of 'test_one.py'")


def test_names_that_differ_by_case_only_are_refused(project: Project) -> None:
    project.probe("probes/gifts.yaml", UNLIMITED)
    project.probe("other/Gifts.yaml", UNLIMITED)
    result = project.run("--fairness", "probes", "other/Gifts.yaml")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert says(result, "has the name 'gifts', which differs from 'Gifts' only in letter case")
    project.run("--fairness-rebaseline", "probes").assert_outcomes(passed=2)
    before = state(project)
    result = project.run("--fairness-rebaseline", "other/Gifts.yaml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert says(
        result, "baselines/gifts.json: holds the baseline of 'gifts'. This name differs from 'Gifts' only by case"
    )
    assert state(project) == before


@pytest.mark.parametrize("name", ["CON", "nul", "com1.prices", "ends."])
def test_names_that_windows_does_not_keep_are_refused_at_their_place(project: Project, name: str) -> None:
    project.probe(text=f"name: {name}\n{UNLIMITED}")
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert shows(result, f"probes/gifts.yaml:1:7: `name`: '{name}' cannot be the name of baseline files: Windows ")


def test_a_file_with_a_reserved_name_needs_another_name(project: Project) -> None:
    project.probe("probes/aux.yaml", UNLIMITED)
    result = project.run("--fairness")
    assert says(
        result, "probes/aux.yaml:2:1: the probe's file name 'aux' cannot be the name of baseline files (Windows "
    )
    project.write("test_one.py", TEST.replace("NAME", "trailing "))
    result = project.run("--fairness", "test_one.py")
    assert says(result, "A baseline cannot be named 'trailing ': Windows drops a dot or a blank at the end of a name")


PARAMETRIZED = """
import pytest

@pytest.mark.parametrize("city", ["Rome", "Oslo"])
def test_letters(corpus_generator, fairness_check, city):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim"]}}
    corpus = corpus_generator(f"Hello {{name}} in {city}", axes=axes, trials=10)
    fairness_check(NAME, corpus.refusals("name", "Kim"), gate="point", limit=0.9)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.parametrize("option", ["--fairness", "--fairness-rebaseline"])
def test_sets_of_parameters_need_names_of_their_own(project: Project, workers: tuple[str, ...], option: str) -> None:
    project.write("test_own.py", PARAMETRIZED.replace("NAME", '"letters"'))
    arguments = (option, "--junitxml=junit.xml", "--fairness-report", "report.json", *workers)
    result = project.run(*arguments)
    result.assert_outcomes(passed=1, failed=1)
    assert says(result, "refusals[name=Kim] of 'letters' is checked by test_own.py::test_letters[")
    assert says(result, 'with the parameter in it: fairness_check(f"letters_{parameter}", …)')
    assert not (project.path / "baselines").exists()
    assert sorted(item["verdict"] for item in project.read("report.json")["items"]) == ["error", "pass"]
    assert ' failures="1"' in (project.path / "junit.xml").read_text("utf-8")
    project.write("test_own.py", PARAMETRIZED.replace("NAME", 'f"letters_{city}"'))
    project.run(*arguments).assert_outcomes(passed=2)


def test_two_checks_of_one_test_need_two_names(project: Project) -> None:
    project.write("test_own.py", TEST.replace("NAME", "letters") + TEST.splitlines()[-1].replace("NAME", "letters"))
    result = project.run("--fairness-rebaseline")
    result.assert_outcomes(failed=1)
    assert says(result, "refusals[name=Kim] of 'letters' is checked by this test twice")
    assert not (project.path / "baselines").exists()
