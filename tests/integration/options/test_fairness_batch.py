"""`fairness_batch`, `--fairness-batch=submit` and `--fairness-batch=collect`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from typing import Any, cast

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.asking import batches
from pytest_fairness.asking.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.pytest_integration.session import run_to_end
from pytest_fairness.targets import open_target
from pytest_fairness.targets.base import BatchTarget
from tests.support import processes
from tests.support.asking import wait_until
from tests.support.batch_server import BatchServer, HeldBatch, HttpError, MessageBatchServer
from tests.support.processes import send
from tests.support.projects import PROBE, Project, ini, says
from tests.support.servers import Reply

REQUESTS = 30
"""Requests of `PROBE`."""
SHORT = batches.BatchTiming(first_poll=0.05, longest_poll=0.1, listing_delay=0.2)
TRIALS = 400
"""Trials of the test with many requests: three times as many requests."""
CONFTEST = """
from pytest_fairness.asking import batches as timing
timing.DEFAULT_BATCH_TIMING = timing.BatchTiming(first_poll=0.05, longest_poll=0.1, listing_delay=0.2)
"""


@pytest.fixture(params=["openai", "anthropic"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setattr(batches, "DEFAULT_BATCH_TIMING", SHORT)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    with BatchServer() if request.param == "openai" else MessageBatchServer() as server:
        if request.param == "openai":
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        else:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        yield server


def target_of(server: BatchServer) -> str:
    return "anthropic:tiny" if isinstance(server, MessageBatchServer) else "openai:tiny"


def run(project: Project, server: BatchServer, *arguments: str) -> pytest.RunResult:
    return project.run("--fairness", *arguments, target=target_of(server))


any_provider = pytest.mark.parametrize("server", ["openai"], indirect=True)
"""Mark of tests of what is the same for all providers, as it is outside of their batch clients."""


def recorded(project: Project) -> list[str]:
    with Store(project.path / ".fairness/responses.sqlite") as store:
        return [each.key for each in store.all_recorded()]


def require_once(project: Project, server: BatchServer, batches: int = 1) -> None:
    """Require that each request was in one batch, that each answer is recorded once, and that nothing is left."""
    assert len(server.batches) == batches
    assert set(server.asked.values()) == {1}
    assert sorted(recorded(project)) == sorted(server.asked)
    assert not server.single
    with Store(project.path / ".fairness/responses.sqlite") as store:
        assert store.database.execute("SELECT * FROM batches") == []
        assert store.database.execute("SELECT * FROM batch_requests") == []


TOOLS = """
kind: counterfactual
prompt: |
  Customer: {name}. The parcel is late by {days} days.
records: {file: customers.csv}
flip: {name: [Anna, Ben]}
tools:
  - name: escalate
    description: Hand the customer over to a person.
answer: {tool: escalate}
audits:
  flip_direction: {limit: 0.1}
"""


def test_tool_calls_of_a_batch_are_measured(project: Project, server: BatchServer) -> None:
    server.answer = lambda body: (
        Reply(None, calls=(("escalate", "{}"),)) if "Anna" in body["messages"][-1]["content"] else "Please wait."
    )
    customers = "".join(f"{'Ben' if number % 2 else 'Anna'},{number}\n" for number in range(20))
    project.write("probes/customers.csv", f"name,days\n{customers}")
    project.probe("probes/tools.yaml", TOOLS)
    (item,) = project.report("-o", "fairness_batch=wait", target=target_of(server))["items"]
    require_once(project, server)
    assert (item["verdict"], item["value"]) == ("over-limit", 1)
    (again,) = project.report("--fairness-replay", target=target_of(server))["items"]
    assert (again["verdict"], again["value"]) == ("over-limit", 1)
    assert len(server.batches) == 1


@any_provider
def test_a_run_inside_an_event_loop_sends_batches(project: Project, server: BatchServer) -> None:
    project.probe()

    async def cell() -> dict[str, Any]:
        return project.report("--fairness-batch=wait", target=target_of(server))

    assert len(asyncio.run(cell())["items"]) == 2
    require_once(project, server)


def test_an_interruption_inside_an_event_loop_ends_the_wait() -> None:
    ended: list[str] = []

    async def wait() -> None:
        me = threading.main_thread().ident
        assert me is not None
        signal.pthread_kill(me, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def cell() -> None:
        run_to_end(wait())

    loop = asyncio.new_event_loop()  # `asyncio.run` would handle the signal
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(cell())
    loop.close()
    assert ended == ["cancelled"]


def test_a_run_in_batches_gives_the_same_verdicts(project: Project, server: BatchServer) -> None:
    project.probe()
    batched = project.report("--fairness-batch=wait", target=target_of(server))
    require_once(project, server)
    assert len(server.asked) == REQUESTS
    alone = project.report("-o", "fairness_store=alone", target=target_of(server))
    assert len(server.single) == REQUESTS
    assert [item["value"] for item in batched["items"]] == [item["value"] for item in alone["items"]]
    counts = ("planned", "reused", "sent", "failed")
    assert [batched["requests"][name] for name in counts] == [REQUESTS, 0, REQUESTS, 0]


def test_submit_and_collect(project: Project, server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    project.probe()
    server.polls = 3
    submitted = run(project, server, "--fairness-batch=submit", "-rs")
    assert submitted.ret == 0
    submitted.assert_outcomes(skipped=2)
    assert says(submitted, "30 requests submitted")
    assert says(submitted, "batches: this run submitted its requests in batches and gave no verdicts.")
    assert says(submitted, "30 requests to send by batch")
    again = run(project, server, "--fairness-batch=submit")
    assert again.ret == 0
    assert len(server.batches) == 1
    for _ in range(2):
        early = run(project, server, "--fairness-batch=collect")
        assert early.ret == pytest.ExitCode.TESTS_FAILED
        early.assert_outcomes(errors=2)
        assert says(early, "not answered yet: ")
        assert says(early, "30 requests to collect by batch")
    collected = run(project, server, "--fairness-batch=collect")
    collected.assert_outcomes(passed=2)
    require_once(project, server)
    assert all(key is not None and key.endswith("-0123456789") for key in server.keys)
    for file in (project.path / ".fairness").iterdir():
        assert b"0123456789" not in file.read_bytes(), file


@any_provider
def test_an_ordinary_run_sends_no_request_of_a_batch(project: Project, server: BatchServer) -> None:
    project.probe()
    server.polls = 1_000
    run(project, server, "--fairness-batch=submit")
    for more in ((), ("--fairness-fresh",)):
        result = run(project, server, *more)
        result.assert_outcomes(errors=2)
        assert says(result, "--fairness-batch=collect")
    assert not server.single


def test_a_batch_that_is_lost_can_be_forgotten(
    project: Project, server: BatchServer, capsys: pytest.CaptureFixture[str]
) -> None:
    project.probe()
    run(project, server, "--fairness-batch=submit")
    server.before = lost
    lost_batch = run(project, server, "--fairness-batch=collect")
    lost_batch.assert_outcomes(errors=2)
    assert says(lost_batch, "or has no such batch (HTTP 404: No such batch)")
    server.before = lambda _: None
    assert main(["store", "--store", str(project.path / ".fairness"), "--forget-batches"]) == 0
    assert "batches forgotten: 1; 30 unanswered requests may be sent again" in capsys.readouterr().out
    run(project, server).assert_outcomes(passed=2)
    assert len(server.single) == REQUESTS


def lost(step: str) -> None:
    """Answer like a provider that does not know a batch."""
    if step == "poll":
        raise HttpError(404, "No such batch")


@any_provider
def test_shards_and_several_targets(project: Project, server: BatchServer) -> None:
    project.probe()
    prefix = target_of(server).partition(":")[0]
    targets = ["--fairness-target", f"one={prefix}:one", "--fairness-target", f"two={prefix}:two"]
    for number in (1, 2):
        shard = project.run(
            "--fairness", "--fairness-batch=wait", f"--fairness-shard={number}/2", *targets, target=None
        )
        shard.assert_outcomes(skipped=4)
    project.run("--fairness", "--fairness-replay", *targets, target=None).assert_outcomes(passed=4)
    require_once(project, server, batches=4)
    assert len(server.asked) == 2 * REQUESTS


@any_provider
def test_collect_names_requests_that_were_not_submitted(project: Project, server: BatchServer) -> None:
    project.probe()
    result = run(project, server, "--fairness-batch=collect")
    result.assert_outcomes(errors=2)
    assert says(result, "30 requests to")
    assert says(result, "without a recorded answer and in no batch. Submit them with --fairness-batch=submit")
    assert not server.batches
    assert not server.single


@any_provider
def test_workers_share_a_batch(project: Project, server: BatchServer) -> None:
    project.write("conftest.py", CONFTEST)
    project.probe()
    result = run(project, server, "--fairness-batch=wait", "-n", "2")
    result.assert_outcomes(passed=2)
    require_once(project, server)


@any_provider
def test_growing_trials_ask_the_maximum(project: Project, server: BatchServer) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: {start: 4, max: 10}"))
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    require_once(project, server)
    assert len(server.asked) == REQUESTS


def test_failed_requests_fail_and_are_sent_again_in_the_next_batch(project: Project, server: BatchServer) -> None:
    project.probe()
    failing = 10
    fair, left = server.answer, iter(range(failing))
    server.answer = lambda body: HttpError(500, "overheated") if next(left, None) is not None else fair(body)
    report = project.report("--fairness-batch=wait", target=target_of(server))
    assert report["requests"]["failed"] == failing
    assert not server.single
    assert "overheated" in report["requests"]["failures"][0]["message"]
    server.answer = fair
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    assert len(server.batches[1].requests) == failing
    assert len(set(recorded(project))) == REQUESTS


@any_provider
def test_a_filtered_request_of_a_batch_is_a_blocked_answer(project: Project, server: BatchServer) -> None:
    project.probe()
    fair, left = server.answer, iter(range(4))
    said = "Output blocked by content filtering policy"
    server.answer = lambda body: HttpError(400, said) if next(left, None) is not None else fair(body)
    report = project.report("--fairness-batch=wait", target=target_of(server))
    assert report["requests"]["failed"] == 0
    assert len(set(recorded(project))) == REQUESTS
    assert any(item["details"].get("blocked") for item in report["items"])


@any_provider
def test_a_parameter_that_a_batch_rejects_is_named_with_the_setting(project: Project, server: BatchServer) -> None:
    project.probe()
    server.answer = lambda _body: HttpError(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    report = project.report("--fairness-batch=wait", target=target_of(server))
    said = report["requests"]["failures"][0]["message"]
    assert "rejects max_completion_tokens, max_tokens in a batch" in said
    assert "Change the probe's" in said


def test_an_expired_batch_keeps_what_it_has(project: Project, server: BatchServer) -> None:
    project.probe()

    def expire(batch: HeldBatch) -> None:
        batch.status, batch.lost = "expired", set(list(batch.requests)[:12])

    server.ending = expire
    run(project, server, "--fairness-batch=wait")
    assert len(recorded(project)) == REQUESTS - 12
    server.ending = lambda _: None
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    assert len(server.batches[1].requests) == 12
    assert sorted(recorded(project)) == sorted(server.asked)


def test_hostile_results(project: Project, server: BatchServer) -> None:
    """Lines that are no JSON, are too long, repeat a key or name an unknown one cost only their own requests."""
    project.probe()

    def rewrite(lines: list[bytes]) -> list[bytes]:
        unknown = lines[4].replace(lines[4].split(b'"custom_id": "')[1][:64], b"f" * 64)
        long = lines[1].replace(b'"model": "', b'"model": "' + b"x" * 5_000_000)
        return [b"\x00\xff{", long, b"[]", b"", lines[3], lines[3], unknown, *lines[5:]]

    server.rewrite = rewrite
    report = project.report("--fairness-batch=wait", target=target_of(server))
    assert len(recorded(project)) == len(set(recorded(project))) == REQUESTS - 4
    assert report["requests"]["failed"] == 4
    assert not server.single


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["upload", "create", "poll", "download"])
def test_a_killed_run_pays_nothing_twice(project: Project, server: BatchServer, step: str, when: str) -> None:
    if step == "upload" and isinstance(server, MessageBatchServer):
        pytest.skip("the request that creates a batch holds its requests")
    project.write("conftest.py", CONFTEST)
    project.probe()
    killed = start(project, server)

    def kill(at: str) -> None:
        if at == step and killed.is_alive():
            processes.kill(killed)

    setattr(server, when, kill)
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    require_once(project, server)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.timeout(120)
@any_provider
def test_a_run_that_is_killed_while_it_records_pays_nothing_twice(project: Project, server: BatchServer) -> None:
    kill = """
import os
from pytest_fairness.asking import batches as sender
sender.RECORDED_AT_ONCE = 7
record = sender.BatchSender._record
def recording(self, *results):
    record(self, *results)
    if len(list(self._store.all_recorded())) == 14:
        os.kill(os.getpid(), 9)
sender.BatchSender._record = recording
"""
    project.write("conftest.py", CONFTEST + kill)
    project.probe()
    killed = start(project, server)
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL
    assert len(recorded(project)) == 14
    project.write("conftest.py", "")
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    require_once(project, server)


@pytest.mark.parametrize("server", ["anthropic"], indirect=True)
def test_a_batch_of_another_program_is_not_taken_for_ours(project: Project, server: BatchServer) -> None:
    """Anthropic's batches have no metadata; the other batch has the same size and date."""
    project.write("conftest.py", CONFTEST)
    project.probe()
    killed = start(project, server)

    def kill(at: str) -> None:
        if at == "create" and killed.is_alive():
            processes.kill(killed)
            raise HttpError(500, "not created")

    server.before = kill
    killed.join(60)
    body = {"model": "tiny", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]}
    server.batches.append(HeldBatch(1, {f"other-{number}": body for number in range(REQUESTS)}))
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    assert server.steps["download"] >= 2
    _, ours = server.batches
    assert sorted(recorded(project)) == sorted(ours.requests)


@pytest.mark.parametrize("server", ["anthropic"], indirect=True)
def test_the_key_is_not_sent_to_another_host(project: Project, server: BatchServer) -> None:
    """The provider names an address of the results, which may be another host's; ours is used."""
    project.probe()
    shown = server.shown
    with MessageBatchServer() as other:

        def elsewhere(batch: HeldBatch) -> dict[str, object]:
            return {**shown(batch), "results_url": f"{other.url}/v1/messages/batches/msgbatch_1/results"}

        server.shown = elsewhere  # type: ignore[method-assign] # this server alone is hostile
        run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
        assert not other.keys
    require_once(project, server)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.timeout(600)
@any_provider
def test_a_thousand_requests_and_a_kill_at_each_step(project: Project, server: BatchServer) -> None:
    project.write("conftest.py", CONFTEST)
    project.probe(text=PROBE.replace("trials: 10", f"trials: {TRIALS}"))
    for step in ("upload", "create", "poll", "download"):
        killed = start(project, server)

        def kill(at: str, step: str = step, killed: BaseProcess = killed) -> None:
            if at == step and killed.is_alive():
                processes.kill(killed)

        server.after = kill
        killed.join(120)
        assert killed.exitcode == -signal.SIGKILL
    server.after = lambda _: None
    while_recording = start(project, server)
    wait_until(lambda: len(recorded(project)) > 200, 60)
    while_recording.kill()
    while_recording.join(60)
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    require_once(project, server)
    assert len(server.asked) == 3 * TRIALS


@any_provider
def test_an_interrupted_wait_says_how_to_go_on(project: Project, server: BatchServer) -> None:
    project.write("conftest.py", CONFTEST)
    project.probe()
    server.polls = 1_000
    waiting = start(project, server)
    wait_until(lambda: server.steps["poll"] >= 2, 60)
    send(waiting, signal.SIGINT)
    waiting.join(60)
    assert waiting.exitcode == pytest.ExitCode.INTERRUPTED
    assert "the provider continues to answer the batches. To wait for the answers, run" in " ".join(
        project.output().split()
    )
    server.polls = server.batches[0].polls + 1
    run(project, server, "--fairness-batch=collect").assert_outcomes(passed=2)
    require_once(project, server)


@any_provider
def test_time_limits_of_tests_do_not_end_the_wait(project: Project, server: BatchServer) -> None:
    project.probe()
    server.polls = 13  # more than a second
    run(project, server, "--fairness-batch=wait", "-p", "timeout", "--timeout=1").assert_outcomes(passed=2)
    require_once(project, server)


def test_requests_are_divided_by_the_limits_of_the_provider(
    project: Project, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.probe()
    client = type(cast("BatchTarget", open_target(target_of(server), RunSettings(project.path))).batch_client())
    monkeypatch.setattr(client, "max_requests", 13)
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    assert [len(batch.requests) for batch in server.batches] == [13, 13, 4]
    require_once(project, server, batches=3)
    monkeypatch.setattr(client, "max_bytes", 2_000)
    run(project, server, "--fairness-batch=wait", "--fairness-fresh").assert_outcomes(passed=2)
    assert all(len(batch.requests) < 13 for batch in server.batches[3:])
    assert sum(len(batch.requests) for batch in server.batches[3:]) == REQUESTS


def test_a_provider_that_fails_for_a_while(project: Project, server: BatchServer) -> None:
    """Each request of the run fails once with an internal error, before or after the server has done the step."""
    project.probe()
    failed: set[str] = set()

    def fail(step: str) -> None:
        if step not in failed:
            failed.add(step)
            raise HttpError(500, "a moment, please")

    server.after = fail
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    assert {"create", "list", "poll", "download"} <= failed
    require_once(project, server)


def test_a_provider_that_rejects_the_key_or_has_no_batches(project: Project, server: BatchServer) -> None:
    project.probe()

    key = os.environ["ANTHROPIC_API_KEY" if isinstance(server, MessageBatchServer) else "OPENAI_API_KEY"]

    def reject(status: int) -> None:
        def rejected(_: str) -> None:
            raise HttpError(status, f"{key} is wrong")

        server.before = rejected

    for status, text in ((401, "rejects the key"), (404, "offers no batches")):
        reject(status)
        result = run(project, server, "--fairness-batch=wait")
        result.assert_outcomes(errors=2)
        assert says(result, text)
        assert "0123456789" not in result.stdout.str()
    server.before = lambda _: None
    run(project, server, "--fairness-batch=wait").assert_outcomes(passed=2)
    require_once(project, server)


@any_provider
def test_the_budget_holds(project: Project, server: BatchServer) -> None:
    project.probe()
    run(project, server, "--fairness-batch=wait", "--fairness-max-requests", "12")
    assert len(server.asked) == 12
    assert not server.single


def test_the_dry_run_shows_both_prices(project: Project, server: BatchServer) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 10\nsampling: {max_tokens: 100}"))
    project.write("pytest.ini", ini(fairness_batch="wait", fairness_prices="tiny 1000 1000"))
    result = project.run("--fairness-dry-run", target=target_of(server))
    assert says(result, "cost: at most about 3.24 (fairness_prices), by batch about 1.62"), result.outlines
    assert not server.batches


def test_the_cost_of_a_batch_is_half(project: Project, server: BatchServer) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_batch="wait", fairness_prices="tiny 1000 1000"))
    report = project.report(target=target_of(server))
    assert report["requests"]["cost"] == pytest.approx(REQUESTS * 110 * 1000 / 1e6 / 2)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--fairness-batch=wait"], "cannot be asked in batches"),
        (["--fairness-batch", "later"], "--fairness-batch must be wait or submit or collect, not 'later'"),
        (["-o", "fairness_batch=submit", "--fairness-measure"], "--fairness-batch=submit only submits"),
        (["--fairness-batch=submit", "--fairness-rebaseline"], "--fairness-batch=submit only submits"),
        (["--fairness-batch=collect", "--fairness-replay"], "--fairness-batch=collect downloads"),
    ],
)
def test_impossible_combinations(project: Project, arguments: list[str], text: str) -> None:
    project.probe()
    result = project.run("--fairness", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert text in result.stderr.str()


def start(project: Project, server: BatchServer, *arguments: str) -> BaseProcess:
    return project.start("--fairness", "--fairness-batch=wait", "--fairness-target", target_of(server), *arguments)
