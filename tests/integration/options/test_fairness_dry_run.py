"""`--fairness-dry-run`: what would be sent, and nothing sent."""

from __future__ import annotations

import pytest

from tests.support.projects import KIM, PROBE, Project, ini, says, shows
from tests.support.servers import ChatServer

LIMITED = PROBE + "sampling: {max_tokens: 50}\n"
DRY = ("--fairness-dry-run",)
OPENAI = "openai:tiny"


def test_it_counts_sends_nothing_and_needs_no_key(project: Project) -> None:
    project.probe(text=LIMITED)
    result = project.run(*DRY, "--fairness-report", "report.json", target=OPENAI)
    assert result.ret == pytest.ExitCode.OK
    assert shows(result, "no report is written")
    assert not (project.path / "report.json").exists()
    assert shows(result, "gifts (probes/gifts.yaml): 30 requests, 0 recorded, 30 to send")
    # 10 prompts of 33 characters, and 20 of 32.
    assert shows(
        result, "  about 242 prompt tokens (4 characters each) and at most 1,500 completion tokens (max_tokens)"
    )
    assert shows(result, "total: 30 requests to openai:tiny; nothing was sent")
    assert not (project.path / ".fairness").exists()
    assert result.parseoutcomes().get("passed", 0) == 0


def test_without_a_limit_answers_may_be_of_any_length(project: Project) -> None:
    project.probe()
    assert says(project.run(*DRY, target=OPENAI), "and an unlimited number of completion tokens (no max_tokens)")


def test_what_is_recorded_is_not_sent_and_says_how_long_answers_are(project: Project) -> None:
    project.probe(text=PROBE.replace("[Kim, Lou]", "[Kim]"))
    with ChatServer(lambda *_: "one two three") as server:
        url = ("--fairness-base-url", server.url)
        project.run("--fairness", *url, target=OPENAI)
        assert server.count == 20
        project.probe()
        result = project.run(*DRY, *url, target=OPENAI)
        assert shows(result, "30 requests, 20 recorded, 10 to send")
        assert shows(result, "  about 59 prompt and 30 completion tokens (estimated from 20 recorded answers)")
        assert shows(project.run(*DRY, "--fairness-fresh", *url, target=OPENAI), "30 requests, 0 recorded, 30 to send")
        project.run("--fairness", *url, target=OPENAI)
        result = project.run(*DRY, *url, target=OPENAI)
        assert shows(result, "30 requests, 30 recorded, 0 to send")
        assert shows(result, "total: 0 requests to openai:tiny; nothing was sent")
        assert server.count == 30


def test_a_price_gives_a_cost(project: Project) -> None:
    project.probe(text=LIMITED)
    project.write("pytest.ini", ini(fairness_prices="\n  other 1 1\n  tiny 2.0 10.0"))
    result = project.run(*DRY, target=OPENAI)
    assert shows(result, "  cost: at most about 0.015 (fairness_prices)")
    assert shows(result, "total: 30 requests to openai:tiny, cost at most about 0.015; nothing was sent")


def test_selection_and_workers(project: Project) -> None:
    project.probe(text=LIMITED)
    project.probe("probes/same.yaml", LIMITED.replace("[Kim, Lou]", "[Kim]"))
    result = project.run(*DRY, target=OPENAI)
    assert shows(result, "same (probes/same.yaml): 20 requests, 0 recorded, 20 shared with the probes above, 0 to send")
    assert shows(result, "total: 30 requests")
    for arguments in ([f"probes/gifts.yaml::{KIM}"], ["-k", "Kim and gifts"], ["-k", "Kim and gifts", "-n", "1"]):
        result = project.run(*DRY, *arguments, target=OPENAI)
        assert result.ret == pytest.ExitCode.OK
        assert shows(result, "gifts (probes/gifts.yaml): 20 requests, 0 recorded, 20 to send")
    result = project.run(*DRY, "-k", "nobody", target=OPENAI)
    assert result.ret == pytest.ExitCode.OK
    assert shows(result, "total: 0 requests, because no probe is selected")


def test_python_tests_do_not_run_and_are_counted(project: Project) -> None:
    project.write(
        "test_own.py",
        "def test_a(llm_client):\n    llm_client.complete('x')\ndef test_b():\n    open('ran.txt', 'w').close()\n",
    )
    result = project.run(*DRY)
    assert says(result, "not counted: requests of 1 Python test")
    assert not project.calls()
    assert not (project.path / "ran.txt").exists()


def test_a_target_of_the_users_own_is_not_set_up(project: Project) -> None:
    project.probe()
    project.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef fairness_target():\n    open('up.txt', 'w').close()\n",
    )
    result = project.run(*DRY)
    assert shows(result, "the fixture fairness_target sets the target, so the recorded answers are not known")
    assert not (project.path / "up.txt").exists()


def test_questions_that_depend_on_recorded_answers_are_counted(project: Project) -> None:
    project.probe(
        "probes/songs.yaml",
        "kind: recommendation\nprompt: Name {k} songs for {value} fan of {entity}.\n"
        "neutral: Name {k} songs for a fan of {entity}.\nentities: [Adele, Muse]\n"
        "attributes: {age: [a young, an old]}\n"
        "k: 3\nrequery: 1\naudits: {shortfall: {}}\n",
    )
    with ChatServer(lambda *_: "1. One\n2. Two") as server:
        url = ("--fairness-base-url", server.url)
        project.run("--fairness", "--fairness-max-requests", "8", *url, target=OPENAI)
        assert server.count == 8
        result = project.run(*DRY, *url, target=OPENAI)
        assert shows(result, "songs (probes/songs.yaml): 16 requests, 8 recorded, 8 to send")
        assert says(result, "not counted: retries, follow-up requests that depend on answers")
        assert server.count == 8


def test_trials_that_grow_are_counted_apart(project: Project) -> None:
    growing = LIMITED.replace("trials: 10", "trials: {start: 10, max: 40}").replace(", gate: point", "")
    project.probe(text=growing)
    result = project.run(*DRY, target=OPENAI)
    assert shows(result, "gifts (probes/gifts.yaml): 30 requests, 0 recorded, 30 to send")
    assert shows(result, "  up to 90 further requests while verdicts are inconclusive")
    result = project.run(*DRY, "--fairness-rebaseline", target=OPENAI)
    assert shows(result, "gifts (probes/gifts.yaml): 120 requests, 0 recorded, 120 to send")


def test_a_probe_that_brings_its_answers_asks_nothing(project: Project) -> None:
    project.write("probes/rows.csv", "name,text\n" + "Alex,a lamp\nKim,a chair\nLou,a pen\n" * 10)
    project.probe(text=PROBE.replace("trials: 10", "responses: {file: rows.csv}").replace("prompt:", "description:"))
    assert says(project.run(*DRY), "gifts (probes/gifts.yaml): no requests, because its answers are in a file")


def test_faulty_probes_are_errors_all_the_same(project: Project) -> None:
    project.probe(text=PROBE + "extra: 1\n")
    assert project.run(*DRY).ret == pytest.ExitCode.INTERRUPTED


def test_limits_are_compared(project: Project) -> None:
    project.probe()
    result = project.run(*DRY, "--fairness-max-requests", "12")
    assert says(result, "--fairness-max-requests allows only 12 of these requests: some items would lack answers")
    result = project.run(*DRY, "--fairness-replay")
    assert says(result, "--fairness-replay sends none of these requests: items that need them would end in an error")


def test_a_judge_is_counted_besides(project: Project) -> None:
    project.write("pytest.ini", ini(fairness_judge="openai:wise"))
    project.probe(
        text="""
kind: counterfactual
prompt: "Person {id} is {sex}. Rich? Say why."
records: [{id: a, sex: Male}, {id: b, sex: Female}, {id: c, sex: Male}, {id: d, sex: Female}]
flip: {sex: {Male: Female}}
answer: {judge: true, votes: 5}
audits: {flip_rate: {}}
"""
    )
    result = project.run(*DRY, target=OPENAI)
    # Each of four records as it is and flipped, each of them twice; five votes on each answer.
    assert shows(result, "16 requests, 0 recorded, 16 to send")
    assert shows(result, "  up to 80 requests to the judge model")
