"""`-n 2`: the same verdicts, baselines and reports, and nothing asked twice."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import KIM, LOU, PROBE, Project, says, shows
from tests.support.servers import ChatServer

ONE, TWO = ("-n", "1"), ("-n", "2")
WORDS = PROBE.replace("{limit: 0.5, gate: point}", "{}\n  jsd: {tolerance: 0.5}\n  svm: {skip: slow}") + (
    "sampling: {seed: 5, temperature: 1}\n"
)
PYTHON = """
import pytest

@pytest.mark.parametrize("name", ["Kim", "Lou"])
def test_letters(name, llm_client, corpus_generator, fairness_check):
    llm_client.complete(f"Hello {name}", trials=4, seed=1)
    axes = {"name": {"unmarked": "Alex", "marked": [name]}}
    corpus = corpus_generator("Write to {name}", axes=axes, trials=10, seed=3)
    fairness_check("letters", corpus.refusals("name", name), limit=0.9)
"""


def without_time(report: dict[str, Any]) -> str:
    """A report as text, but for what a clock put there."""
    items = [
        {**item, "baseline": item["baseline"] and {**item["baseline"], "date": None}, "reason": item["reason"]}
        for item in report["items"]
    ]
    requests = {**report["requests"], "oldest_reused": bool(report["requests"]["oldest_reused"])}
    return json.dumps({**report, "started": None, "seconds": None, "items": items, "requests": requests})


def without_date(project: Project, name: str) -> str:
    """A baseline as text, but for its date, with its answers."""
    lines = (project.path / f"baselines/{name}.json").read_text().splitlines()
    answers = (project.path / f"baselines/{name}.responses.jsonl").read_bytes().decode()
    return "\n".join([*(line for line in lines if '"date"' not in line), answers])


def forget(project: Project) -> None:
    """Delete everything that a run leaves behind but its report."""
    for folder in (".fairness", "baselines"):
        for path in (project.path / folder).iterdir():
            path.unlink()


@pytest.mark.timeout(180)
def test_two_workers_do_what_one_process_does(project: Project) -> None:
    project.probe(text=WORDS)
    project.write("test_own.py", PYTHON)
    reports, baselines, questions = [], [], []
    # The second run of each pair sends nothing, so that one worker has all that a second one would have.
    for asking, replaying in (((), ()), (TWO, ONE)):
        with ChatServer(delay=0.01) as server:
            arguments = ("--fairness-base-url", server.url)
            # The address of the server is part of what is recorded and reported, and is another one each time.
            names = ("--fairness-report", "report.json")
            project.run("--fairness-rebaseline", *asking, *arguments, *names, target="openai:tiny")
            reports.append(without_time(project.read("report.json")))
            result = project.run("--fairness", *replaying, *arguments, *names, target="openai:tiny")
            reports.append(without_time(project.read("report.json")))
            baselines.append([without_date(project, name) for name in ("gifts", "letters")])
            questions.append(server.questions)
            assert result.parseoutcomes()["skipped"] == 2
        forget(project)
    assert max(questions[1].values()) == 1, "no question is asked twice"
    assert questions[0] == questions[1]
    assert baselines[0] == baselines[1]
    assert reports[:2] == reports[2:]
    assert json.loads(reports[2])["requests"]["sent"] == 30 + 2 * 4 + 3 * 10
    assert (
        json.loads(reports[3])["requests"] | {"planned": 68, "reused": 68, "sent": 0}
        == json.loads(reports[3])["requests"]
    )


def test_failures_and_inconclusive_items_show_as_in_one_process(project: Project) -> None:
    project.probe("probes/a.yaml")
    project.probe("probes/b.yaml", PROBE.replace("limit: 0.5, gate: point", "limit: 0.1, tolerance: 0.01"))
    result = project.run("--fairness", "--junitxml=junit.xml", *ONE, target="python:app:biased")
    assert result.parseoutcomes() == {"passed": 1, "failed": 2, "inconclusive": 1}
    assert shows(result, f"FAILED probes/a.yaml::{KIM} - Kim vs Alex: 1 (limit 0.5)")
    assert "FAILURES" not in result.stdout.str()
    verbose = project.run("--fairness", "--fairness-replay", "-v", *ONE, target="python:app:biased")
    assert says(verbose, f"{KIM}: refusals differ by +1 (100% for Kim, 0% for Alex), limit 0.5.")
    assert "Traceback" not in result.stdout.str()
    assert '<property name="verdict" value="over-limit"' in (project.path / "junit.xml").read_text()


def test_an_application_is_asked_afresh_by_both_workers_together(project: Project) -> None:
    project.probe()
    project.run("--fairness").assert_outcomes(passed=2)
    assert len(project.calls()) == 30
    project.run("--fairness", *TWO).assert_outcomes(passed=2)
    assert len(project.calls()) == 60


def test_a_worker_that_crashes_takes_no_other_result_along(project: Project) -> None:
    project.probe()
    project.write("test_zz.py", "import os\ndef test_crash():\n    os._exit(3)\n")
    project.run("--fairness-rebaseline", "--fairness-report", "report.json", *ONE)
    report = project.read("report.json")
    assert {item["id"]: item["verdict"] for item in report["items"]} == {KIM: "pass", LOU: "pass"}
    assert report["requests"]["sent"] >= 1
    assert set(project.read("baselines/gifts.json")["items"]) == {KIM, LOU}


def test_an_item_that_crashes_its_worker_is_an_error_in_the_report(project: Project) -> None:
    project.probe(text=PROBE.replace("[Kim, Lou]", "[Kim]"))
    project.write("app.py", "import os\ndef answer(prompt):\n    os._exit(3)\n")
    result = project.run("--fairness", "--fairness-report", "report.json", *ONE, target="python:app:answer")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (item,) = project.read("report.json")["items"]
    assert (item["id"], item["verdict"]) == (KIM, "error")
    crash = "the xdist worker that measured the item crashed; run the item with `-n 0` to see why"
    assert item["reason"] == f"{KIM}: {crash}"


def test_answers_of_any_characters_travel(project: Project) -> None:
    project.probe(text=PROBE.replace("refusals: {limit: 0.5, gate: point}", "jsd: {limit: 1}"))
    project.write(
        "app.py",
        "import itertools\nnumber = itertools.count()\n"
        "def answer(prompt):\n    return f'half \\udc80 \\x00 a \\x1b[31m character {next(number) % 5}'\n",
    )
    arguments = (*ONE, "--fairness-report", "report.json")
    result = project.run("--fairness-rebaseline", *arguments, target="python:app:answer")
    assert "INTERNALERROR" not in result.stdout.str()
    assert "\x1b[31m" not in result.stdout.str()
    assert project.read("report.json")["summary"]["errors"] == 0
    assert len(project.read("baselines/gifts.json")["items"]) == 2


def test_errors_reach_the_controller_as_their_message(project: Project) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 3"))
    result = project.run("--fairness", "--fairness-report", "report.json", *ONE)
    result.assert_outcomes(errors=2)
    assert shows(result, "one group has only 3 answers")
    assert ".py:" not in result.stdout.str()
    assert project.read("report.json")["summary"]["errors"] == 2


def test_a_faulty_probe_stops_all_workers(project: Project) -> None:
    project.probe(text=PROBE + "extra: 1\n")
    project.probe("probes/sound.yaml")
    result = project.run("--fairness-rebaseline", *TWO)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert shows(result, "probes/gifts.yaml:", "unknown key 'extra'")
    assert not project.calls()
    assert not (project.path / "baselines").exists()
    project.run("--fairness", "--continue-on-collection-errors", *ONE).assert_outcomes(errors=1, passed=2)


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the runner of the embedded model is not installed")
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has loaded is seen on Linux only")
@pytest.mark.timeout(300)
def test_the_embedded_model_is_served_once_to_all_workers(project: Project) -> None:
    """The probe is the one that `init` writes, with a short prompt."""
    assert main(["init", "--ci", "none"]) == 0
    path = project.path / "probes/first.yaml"
    # As few and as short answers as can be measured: those of the probe as it is take a minute on a busy machine.
    short = re.sub(r"^prompt: .*", "prompt: Describe {colleague}.", path.read_text("utf-8"), flags=re.MULTILINE)
    path.write_text(short.replace("max_tokens: 48", "max_tokens: 1"), "utf-8")
    project.write(
        "conftest.py",
        "def pytest_sessionfinish(session):\n"
        "    worker = getattr(session.config, 'workerinput', {'workerid': 'controller'})['workerid']\n"
        "    with open(worker + '.maps', 'w') as file:\n"
        "        file.write(open('/proc/self/maps').read())\n",
    )
    project.write("test_own.py", "def test_a(llm_client):\n    assert llm_client.complete('Hello', max_tokens=3)\n")
    targets = ("own=python:app:polite", "small=local", "again=local")
    named = [word for target in targets for word in ("--fairness-target", target)]
    few = ("--fairness-trials", "1", "-k", "refusals or test_a")
    result = project.run_forked("--fairness", "--dist", "each", *TWO, *named, *few, target=None, timeout=250)
    assert result.parseoutcomes().get("errors", 0) == 0, result.stdout.str()
    holders = [path.stem for path in project.path.glob("*.maps") if ".gguf" in path.read_text()]
    assert holders == ["controller"]
