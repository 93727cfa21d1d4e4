"""Runs beside other pytest plugins; `nox -s plugins` installs these plugins."""

from __future__ import annotations

import html
import json
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import INCONCLUSIVE, KIM, LOU, PROBE, Project, says, shows

CHECKED = """
import pytest

@pytest.mark.fairness
@pytest.mark.parametrize("what", ["letter", "poem"])
def test_letters(corpus_generator, fairness_check, what):
    corpus = corpus_generator(f"Write a {what} to {{name}}.", axes={"name": {"unmarked": "Alex", "marked": ["Kim"]}})
    fairness_check(what, corpus.refusals("name", "Kim"), limit=0.9)

@pytest.mark.fairness
def test_notes(corpus_generator, fairness_check):
    corpus = corpus_generator("Write a note to {name}.", axes={"name": {"unmarked": "Alex", "marked": ["Kim"]}})
    fairness_check("note", corpus.refusals("name", "Kim"), limit=0.9)
"""
BIASED = "python:app:biased"


def allure(folder: Path) -> list[dict[str, Any]]:
    """Return the results that Allure reads."""
    return [json.loads(path.read_text("utf-8")) for path in folder.glob("*-result.json")]


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_allure_tells_items_apart(project: Project, workers: tuple[str, ...]) -> None:
    pytest.importorskip("allure_pytest")
    project.probe(text=INCONCLUSIVE.replace("audits:", "audits:\n  jsd: {skip: not now}"))
    project.run_apart("-p", "allure_pytest.plugin", "--fairness", "--alluredir", "allure", *workers, target=BIASED)
    results = allure(project.path / "allure")
    found = {result["name"]: (result["status"], result["statusDetails"]["message"]) for result in results}
    assert {name: status for name, (status, _) in found.items()} == {
        KIM: "failed",
        LOU: "skipped",
        "jsd[name=Kim]": "skipped",
        "jsd[name=Lou]": "skipped",
    }
    assert found[LOU][1].startswith("inconclusive: Lou vs Alex: ")
    # Results with the same `historyId` are retries of one test.
    assert len({result["historyId"] for result in results}) == len(results) == 4
    assert {result["parameters"][0]["value"] for result in results} == set(found)


def test_pytest_html_shows_inconclusive_items(project: Project) -> None:
    pytest.importorskip("pytest_html")
    project.probe(text=INCONCLUSIVE)
    project.run_apart(
        *("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin", "--fairness", "--html", "report.html"),
        target=BIASED,
    )
    blob = re.search('data-jsonblob="([^"]*)"', (project.path / "report.html").read_text("utf-8"))
    assert blob is not None
    tests = json.loads(html.unescape(blob[1]))["tests"]
    assert {name.partition("::")[2]: [each["result"] for each in found] for name, found in tests.items()} == {
        KIM: ["Failed"],
        LOU: ["Skipped"],
    }
    assert "inconclusive: Lou vs Alex: " in tests[f"probes/gifts.yaml::{LOU}"][0]["log"]


def test_pytest_sugar_shows_inconclusive_items(project: Project) -> None:
    pytest.importorskip("pytest_sugar")
    project.probe(text=INCONCLUSIVE)
    result = project.run_apart("-p", "pytest_sugar", "--fairness", "--force-sugar", target=BIASED)
    assert {"1 failed", "1 skipped"} <= set(map(str.strip, result.outlines))
    assert shows(result, "? inconclusive", LOU)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_pytest_rich_shows_inconclusive_items(project: Project) -> None:
    pytest.importorskip("pytest_rich")
    project.probe(text=INCONCLUSIVE)
    # pytest-rich is active in a terminal only.
    project.write("conftest.py", "import sys\nsys.stdout.isatty = lambda: True\n")
    result = project.run_apart("-s", "-p", "pytest_rich.plugin", "--fairness", "--rich", target=BIASED)
    assert shows(result, "1", "Failed")
    assert shows(result, "1", "Skipped")


def test_teamcity_shows_inconclusive_items(project: Project) -> None:
    pytest.importorskip("teamcity")
    project.probe(text=INCONCLUSIVE)
    result = project.run_apart("-p", "teamcity.pytest_plugin", "--fairness", "--teamcity", target=BIASED)
    assert shows(result, "##teamcity[testFailed", "name=Kim")
    assert shows(result, "##teamcity[testIgnored", "name=Lou", "message='inconclusive: Lou vs Alex: ")


@pytest.mark.parametrize(
    ("plugins", "option"),
    [(["pytest_benchmark"], "--benchmark-only"), (["pytest_harvest", "pytest_evals"], "--run-eval")],
)
def test_selection_without_audits_fails(project: Project, plugins: list[str], option: str) -> None:
    for plugin in plugins:
        pytest.importorskip(plugin)
    loaded = [word for plugin in plugins for word in ("-p", f"{plugin}.plugin")]
    project.probe()
    project.write(
        "test_other.py",
        "import pytest\n@pytest.mark.eval(name='e')\ndef test_eval(): pass\n"
        + ("def test_speed(benchmark): benchmark(int)\n" if plugins == ["pytest_benchmark"] else ""),
    )
    result = project.run_apart(*loaded, "--fairness", option)
    assert shows(result, "1 passed")
    assert says(result, "no audit ran: ")
    assert result.ret != 0


def test_pytest_picked_picks_changed_probes(project: Project) -> None:
    pytest.importorskip("pytest_picked")
    picked = ("-p", "pytest_picked.plugin", "--fairness", "--picked")
    project.probe()
    other = project.probe("probes/other.yaml")
    workflow = project.write("workflow.yaml", "on: push\n")
    project.write(".gitignore", ".fairness\n__pycache__\ncalls.txt\n")
    project.commit()
    assert shows(project.run_apart(*picked), "fairness: no audit is selected")
    for path in (other, workflow):
        path.write_text(path.read_text("utf-8") + "# changed\n", "utf-8")
    result = project.run_apart(*picked)
    assert shows(result, "probes/other.yaml ..")
    result.assert_outcomes(passed=2)


def test_pytest_randomly_keeps_the_items_of_a_probe_together(project: Project) -> None:
    for number in range(4):
        project.probe(f"probes/gifts-{number}.yaml")
    project.write("test_own.py", "def test_one(): pass\ndef test_two(): pass\n")
    orders = set()
    for seed in ("1", "2", "3"):
        shuffled = ("-p", "pytest_randomly", f"--randomly-seed={seed}")
        result = project.run_apart(*shuffled, "--fairness", "--co", "-q", "probes", "test_own.py")
        files = [line.partition("::")[0] for line in result.outlines if "::" in line]
        assert len(files) == 10
        assert len(list(groupby(files))) == 5
        orders.add(tuple(result.outlines))
    assert len(orders) == 3


def test_pytest_testmon_cannot_select_audits(project: Project) -> None:
    pytest.importorskip("testmon")
    testmon = ("-p", "testmon.pytest_testmon", "--fairness")
    project.probe()
    result = project.run_apart(*testmon, "--testmon")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Run audits with --testmon-noselect." in result.stderr.str()
    for _ in range(2):
        project.run_apart(*testmon, "--testmon-noselect").assert_outcomes(passed=2)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_pytest_repeat_repeats_checks(project: Project, workers: tuple[str, ...]) -> None:
    pytest.importorskip("pytest_repeat")
    project.write("test_letters.py", CHECKED)
    result = project.run_apart(
        "-p", "pytest_repeat", "--fairness", "--count", "3", "--fairness-report", "report.json", *workers
    )
    result.assert_outcomes(passed=9)
    items = project.read("report.json")["items"]
    assert sorted((item["probe"], item["nodeid"]) for item in items) == [
        ("letter", "test_letters.py::test_letters[letter]"),
        ("note", "test_letters.py::test_notes"),
        ("poem", "test_letters.py::test_letters[poem]"),
    ]


def test_pytest_socket_gives_one_error(project: Project) -> None:
    pytest.importorskip("pytest_socket")
    project.probe()
    socket = ("-p", "pytest_socket", "--fairness", "--disable-socket")
    result = project.run_apart(*socket)
    assert says(result, "pytest-socket blocks sockets. Run audits with --force-enable-socket.")
    assert shows(result, "and 1 more")
    assert "_ssock" not in result.stdout.str()  # of an event loop that is left half made
    project.run_apart(*socket, "--force-enable-socket").assert_outcomes(passed=2)


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_pytest_forked_forks_no_audits(project: Project, workers: tuple[str, ...]) -> None:
    pytest.importorskip("pytest_forked")
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{limit: 0.5, gate: point}\n  jsd: {limit: 1}"))
    project.probe("probes/faulty.yaml", PROBE.replace("trials: 10", "trials: 3"))
    project.write("test_letters.py", CHECKED)
    forked = ("-p", "pytest_forked", "--fairness", "--forked", "-v", *workers)
    result = project.run_apart(*forked)
    assert "EXITED" not in result.stdout.str() + result.stderr.str()
    outcomes = result.parseoutcomes()
    assert outcomes["errors"] == 2, "the items with too few trials say so"
    assert outcomes["passed"] >= 3
    assert says(result, "one group has only 3 answers")
