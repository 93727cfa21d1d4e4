"""Results of earlier runs, which a run uses only if all that determines them is unchanged."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_fairness.run import Run
from pytest_fairness.run.run import code_digest
from tests.support.projects import INCONCLUSIVE, KIM, LOU, PROBE, Project, ini, shows

PROMPTS = PROBE.replace("prompt: What would you recommend to {name}?", "prompts: {file: prompts.csv, column: prompt}")
VERSION = {"fairness_target_version": "1"}
"""Setting with which the responses of a Python function are used by later runs."""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    found = Project(pytester)
    found.write("pytest.ini", ini(**VERSION))
    return found


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the items that were measured, in order; the fixture's user may clear the list."""
    found: list[str] = []
    measure = Run.measure_and_compare

    def recording(run: Run, item: object, *arguments: object, **options: object) -> object:
        found.append(item.id)  # type: ignore[attr-defined] # a probe item
        return measure(run, item, *arguments, **options)  # type: ignore[arg-type] # as called

    monkeypatch.setattr(Run, "measure_and_compare", recording)
    return found


def run_thrice(project: Project, measured: list[str], target: str = "python:app:polite") -> None:
    """Ask, store the results, and use them once."""
    for _ in range(2):
        project.run("--fairness", target=target)
    measured.clear()
    project.run("--fairness", target=target)


def test_a_result_is_used_again_with_the_same_report(project: Project, measured: list[str]) -> None:
    project.probe(text=INCONCLUSIVE)
    project.run("--fairness", "--fairness-rebaseline")
    project.write("conftest.py", "def pytest_fairness_measured(measurement):\n    print(f'{measurement.value=}')\n")
    first = project.report()
    assert measured[-2:] == [KIM, LOU]
    measured.clear()
    second = project.report()
    assert measured == []
    differing = {"started", "seconds"}
    assert {name: first[name] for name in first.keys() - differing} == {
        name: second[name] for name in second.keys() - differing
    }
    result = project.run("--fairness", "-s", "-v")
    assert shows(result, "measurement.value=")
    assert measured == []


def edit_description(project: Project) -> None:
    project.probe(text=PROBE + "description: Gifts.\n")


def edit_limit(project: Project) -> None:
    project.probe(text=PROBE.replace("limit: 0.5", "limit: 0.6"))


def edit_response(project: Project) -> None:
    with sqlite3.connect(project.path / ".fairness/responses.sqlite") as database:
        [(key, text)] = database.execute("SELECT key, response FROM responses WHERE request LIKE '%Lou%' LIMIT 1")
        response = json.dumps(json.loads(text) | {"text": "A lamp."})
        database.execute("UPDATE responses SET response = ? WHERE key = ?", (response, key))


def edit_baseline(project: Project) -> None:
    path = project.path / "baselines/gifts.json"
    path.write_text(path.read_text("utf-8").replace("}", "} ", 1), "utf-8")


def edit_baseline_answers(project: Project) -> None:
    (project.path / "baselines/gifts.responses.jsonl").unlink()


@pytest.mark.parametrize("change", [edit_description, edit_limit, edit_response, edit_baseline, edit_baseline_answers])
def test_an_item_is_measured_again_after_a_change(
    project: Project, measured: list[str], change: Callable[[Project], None]
) -> None:
    project.probe()
    project.run("--fairness", "--fairness-rebaseline")
    run_thrice(project, measured)
    assert measured == []
    change(project)
    project.run("--fairness")
    assert measured == [KIM, LOU]


def test_an_item_is_measured_again_after_a_change_of_a_file_that_its_probe_names(
    project: Project, measured: list[str]
) -> None:
    project.write("probes/prompts.csv", "prompt,note\nWhat would you recommend to {name}?,first\n")
    project.probe(text=PROMPTS)
    run_thrice(project, measured)
    assert measured == []
    project.write("probes/prompts.csv", "prompt,note\nWhat would you recommend to {name}?,second\n")
    project.run("--fairness")
    assert measured == [KIM, LOU]


def test_an_item_is_measured_again_with_other_options(project: Project, measured: list[str]) -> None:
    project.probe()
    run_thrice(project, measured)
    assert measured == []
    project.run("--fairness", "--fairness-trials", "9")
    assert measured == [KIM, LOU]
    measured.clear()
    project.write("pytest.ini", ini(**VERSION, fairness_baselines="elsewhere"))
    project.run("--fairness")
    assert measured == [KIM, LOU]


def test_an_item_without_baseline_is_measured_again_with_an_empty_baseline(
    project: Project, measured: list[str]
) -> None:
    project.probe()
    run_thrice(project, measured)
    assert measured == []
    project.write("baselines/gifts.json", "")
    project.run("--fairness").assert_outcomes(errors=2)


def test_an_expected_failure_is_no_part_of_a_stored_result(project: Project, measured: list[str]) -> None:
    project.probe(text=PROBE.replace("gate: point", "gate: point, xfail: known"))
    run_thrice(project, measured)
    assert measured == []
    project.probe()
    items = project.report()["items"]
    assert measured == []
    assert [item["expected_failure"] for item in items] == [None, None]


def test_failures_baselines_and_variants_are_always_measured(project: Project, measured: list[str]) -> None:
    project.probe()
    run_thrice(project, measured, "python:app:biased")
    assert measured == [KIM], "the item that fails"
    measured.clear()
    project.run("--fairness", "--fairness-rebaseline")
    assert measured == [KIM, LOU]
    project.probe(text=PROBE + "variants: {kind: {system: Be kind.}}\n")
    run_thrice(project, measured)
    assert measured == [KIM, LOU]


def test_a_baseline_of_another_file_is_always_checked(project: Project, measured: list[str]) -> None:
    project.probe("probes/old.yaml", PROBE + "name: gifts\n")
    project.run("--fairness", "--fairness-rebaseline")
    (project.path / "probes/old.yaml").unlink()
    project.probe()
    run_thrice(project, measured)
    assert measured == [KIM, LOU]
    project.probe("probes/old.yaml", PROBE + "name: gifts\n")
    result = project.run("--fairness", "probes/gifts.yaml")
    result.assert_outcomes(errors=2)


def test_a_result_is_not_stored_if_a_response_changed_during_the_run(project: Project, measured: list[str]) -> None:
    project.probe()
    project.run("--fairness")
    project.write(
        "conftest.py",
        "import sqlite3\n\ndef pytest_fairness_measured(item):\n"
        "    with sqlite3.connect('.fairness/responses.sqlite') as database:\n"
        "        database.execute('UPDATE responses SET response = response || ?', (' ',))\n",
    )
    project.run("--fairness")
    (project.path / "conftest.py").unlink()
    with sqlite3.connect(project.path / ".fairness/responses.sqlite") as database:
        database.execute("UPDATE responses SET response = trim(response)")
    measured.clear()
    project.run("--fairness")
    assert measured == [KIM, LOU]


def test_the_digest_of_the_code_depends_on_the_name_and_content_of_each_file(tmp_path: Path) -> None:
    def digest_with(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        code_digest.cache_clear()
        return code_digest(tmp_path)

    digests = [digest_with("a.py", "1"), digest_with("a.py", "2"), digest_with("data/a.toml", "2")]
    assert len({*digests}) == 3
    assert digest_with("__pycache__/a.pyc", "2") == digests[-1]


SENDABLE = """
from execnet.gateway_base import dumps

def pytest_runtest_logreport(report):
    dumps(report._to_json())
"""
"""A conftest in which each report, with all that the plugin has put there, must be as a worker can send it."""


@pytest.mark.parametrize("arguments", [(), ("--fairness-rebaseline",), ("--fairness-measure",)])
@pytest.mark.parametrize("text", [PROBE, INCONCLUSIVE, PROBE.replace("trials: 10", "trials: 3")])
def test_each_record_can_be_sent_between_processes(project: Project, text: str, arguments: tuple[str, ...]) -> None:
    project.write("conftest.py", SENDABLE)
    project.probe(text=text)
    project.write(
        "test_own.py",
        "def test_own(fairness_check, corpus_generator):\n    corpus = corpus_generator("
        "'Write to {name}', axes={'name': {'unmarked': 'Alex', 'marked': ['Kim']}}, trials=10)\n"
        "    fairness_check('own', corpus.refusals('name', 'Kim'), limit=0.9)\n",
    )
    for target in ("polite", "polite", "polite", "biased", "biased"):
        result = project.run("--fairness", "--junitxml=junit.xml", *arguments, target=f"python:app:{target}")
        assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_a_stored_result_is_used_by_workers(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(**VERSION))
    for workers in ((), (), ("-n", "1"), ("-n", "2"), (), ("-n", "2", "--dist", "loadfile")):
        project.run("--fairness", *workers).assert_outcomes(passed=2)
