"""Engine: sends each request once and within its limits, and records answers at once; with real servers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from pytest_fairness.asking.claims import ANY_ANSWER
from pytest_fairness.asking.limits import Timing
from pytest_fairness.asking.store import Store, response_key
from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, StoreError, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets import open_target
from pytest_fairness.targets.python import CallableTarget
from tests.support.asking import engine_for, questions, settings_in, texts, wait_until
from tests.support.servers import Body, ChatServer, Messages, Reply


def wrong_key(messages: Messages, body: Body) -> Reply:
    return Reply("wrong key", status=401)


def only_the_first(messages: Messages, body: Body) -> Reply:
    return Reply("first") if messages[-1]["content"] == "question 0" else Reply(delay=30)


def echo(messages: Messages, body: Body) -> str:
    return f"answer to {messages[-1]['content']}"


@pytest.fixture
def target(tmp_path: Path) -> CallableTarget:
    return CallableTarget(lambda prompt: f"answer to {prompt}", "echo", version="1")


def test_answers_have_the_order_of_the_requests(tmp_path: Path) -> None:
    with ChatServer(echo, delay=0.02) as server, engine_for(settings_in(tmp_path, server.url)) as engine:
        asked = questions(30)
        assert texts(engine.answers(asked)) == [f"answer to {request.prompt}" for request in asked]
        assert texts(engine.answers(asked[::-1])) == [f"answer to {request.prompt}" for request in asked[::-1]]
        assert server.count == 30


def test_requests_are_sent_in_order_and_equal_ones_once(tmp_path: Path) -> None:
    asked = questions(20)
    with ChatServer(echo) as server, engine_for(settings_in(tmp_path, server.url, concurrency=1)) as engine:
        engine.plan([*asked, *asked])
        engine.plan(iter(asked[::-1]))
        assert len(texts(engine.answers([asked[3], asked[19], asked[3]]))) == 3
        assert [body["messages"][0]["content"] for body in server.bodies] == [request.prompt for request in asked]


def test_each_trial_is_a_request_of_its_own(tmp_path: Path) -> None:
    with ChatServer(echo) as server, engine_for(settings_in(tmp_path, server.url)) as engine:
        engine.answers([Request("same", trial=trial) for trial in range(5)])
        assert server.count == 5
        assert len(server.questions) == 1


def test_concurrency_limits_the_requests_in_flight(tmp_path: Path) -> None:
    with ChatServer(echo, delay=0.05) as server, engine_for(settings_in(tmp_path, server.url, concurrency=5)) as engine:
        texts(engine.answers(questions(40)))
        assert server.most_in_flight == 5
        assert server.connections <= 5


def test_the_concurrency_of_the_target_limits_the_requests_in_flight(tmp_path: Path, target: CallableTarget) -> None:
    running: list[int] = []
    most = []

    def slow(prompt: str) -> str:
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return prompt

    limited = CallableTarget(slow, "slow")
    limited.concurrency = 3
    with engine_for(settings_in(tmp_path), limited) as engine:
        texts(engine.answers(questions(20)))
    assert max(most) == 3


def test_an_answer_is_recorded_while_others_are_in_flight(tmp_path: Path) -> None:
    with ChatServer(only_the_first) as server:
        settings = settings_in(tmp_path, server.url, concurrency=1)
        with engine_for(settings) as engine, Store(settings.store) as store:
            engine.plan(questions(2))
            wait_until(lambda: [kept.response.text for kept in store.all_recorded()] == ["first"])
            assert engine.progress()["in_flight"] == 1


def test_of_many_requests_in_flight_answers_are_recorded_together(tmp_path: Path) -> None:
    # One alone before the others, one at once, one later, and the others not within this test.
    delays = {"question 0": 0.0, "question 1": 0.0, "question 2": 2.0}

    def answer(messages: Messages, _: Body) -> Reply:
        return Reply(delay=delays.get(messages[-1]["content"], 60.0))

    with ChatServer(answer) as server:
        settings = settings_in(tmp_path, server.url, concurrency=40)
        with engine_for(settings, timing=Timing(gather=60.0)) as engine:
            engine.plan(questions(41))
            wait_until(lambda: server.count == 41 and server.in_flight == 39)
            time.sleep(0.2)
            assert engine.progress()["answered"] == 1
            wait_until(lambda: engine.progress()["answered"] == 3)


def test_recorded_answers_are_reused_until_they_are_too_old(tmp_path: Path) -> None:
    asked = questions(6)
    with ChatServer(echo) as server:
        settings = settings_in(tmp_path, server.url)
        with engine_for(settings) as engine:
            first = engine.answers(asked[:4])
            assert engine.progress() == {
                "planned": 4, "settled": 4, "in_flight": 0, "reused": 0, "sent": 4, "retried": 0, "answered": 4,
                "failed": 0, "prompt_tokens": 8, "completion_tokens": 16, "uncounted": 0, "asked_again": 0,
            }  # fmt: skip
        with engine_for(settings) as engine:
            assert engine.answers(asked)[:4] == first
            counts = engine.progress()
            assert (counts["planned"], counts["reused"], counts["sent"]) == (6, 4, 2)
        assert server.count == 6
        now = time.time()
        with engine_for(settings, oldest=now) as engine:
            again = engine.answers(asked)
            assert all(isinstance(answer, Response) and answer.created >= now for answer in again)
        assert server.count == 12


def test_a_run_reuses_its_own_answers_after_the_clock_is_set_back(tmp_path: Path, target: CallableTarget) -> None:
    future = time.time() + 1000
    with engine_for(settings_in(tmp_path), target, oldest=future) as engine:
        first = engine.answers(questions(1))
        assert texts(first) == ["answer to question 0"]
        assert engine.answers(questions(1)) == first
        assert engine.progress()["sent"] == 1


def test_replay_sends_nothing_and_needs_no_key(tmp_path: Path) -> None:
    asked = questions(3)
    with ChatServer(echo) as server:
        with engine_for(settings_in(tmp_path, server.url)) as engine:
            texts(engine.answers(asked[:2]))
        with engine_for(settings_in(tmp_path, server.url, replay=True)) as engine:
            first, second, third = engine.answers(asked)
            assert texts([first, second]) == ["answer to question 0", "answer to question 1"]
            assert isinstance(third, AnswersMissing)
            assert "not recorded: 'question 2', trial 2; run without --fairness-replay" in str(third)
            assert engine.progress()["sent"] == 0
        assert server.count == 2
    with engine_for(settings_in(tmp_path, replay=True)) as engine:  # OpenAI's own endpoint, and no key
        assert isinstance(engine.answers(asked)[0], AnswersMissing)


def test_recorded_answers_need_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_in(tmp_path)
    with Store(settings.store) as store:
        request = questions(1)[0]
        identity = open_target("openai:model", settings).identity
        store.record(response_key(identity, request), request, identity, Response("kept", created=1.0))
    with engine_for(settings) as engine:
        assert texts(engine.answers([request])) == ["kept"]
        (fault,) = engine.answers(questions(2)[1:])
        assert isinstance(fault, TargetError)
        assert "OPENAI_API_KEY" in str(fault)


def test_a_failed_request_does_not_affect_others(tmp_path: Path) -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        return Reply("too long", status=400) if messages[-1]["content"] == "question 3" else Reply("fine")

    with ChatServer(answer) as server, engine_for(settings_in(tmp_path, server.url)) as engine:
        answers = engine.answers(questions(6))
        assert isinstance(answers.pop(3), RequestFailed)
        assert texts(answers) == ["fine"] * 5
        assert engine.progress()["failed"] == 1
        assert isinstance(engine.answers(questions(6))[3], RequestFailed)
        assert server.count == 6


def test_a_wrong_key_fails_all_requests_at_once(tmp_path: Path) -> None:
    with ChatServer(wrong_key) as server:
        with engine_for(settings_in(tmp_path, server.url, concurrency=2)) as engine:
            answers = engine.answers(questions(50))
            assert all(isinstance(answer, TargetError) for answer in answers)
            assert isinstance(engine.answers([Request("a later one")])[0], TargetError)
        assert server.count <= 2


def test_a_target_that_cannot_be_opened_fails_all_requests(tmp_path: Path) -> None:
    with engine_for(settings_in(tmp_path), "python:no_such_module:function") as engine:
        answers = engine.answers(questions(3))
        assert all(isinstance(answer, TargetError) for answer in answers)
        assert "no module 'no_such_module'" in str(answers[0])


def test_a_request_without_answer_times_out(tmp_path: Path) -> None:
    with ChatServer(echo, delay=30) as server, engine_for(settings_in(tmp_path, server.url, timeout=0.3)) as engine:
        started = time.monotonic()
        (answer,) = engine.answers(questions(1))
        assert isinstance(answer, RequestFailed)
        assert "no answer within 0.3 seconds. If the target is slow, raise the ini fairness_timeout." in str(answer)
        assert time.monotonic() - started < 5


def test_a_server_that_is_down_is_given_up_in_time(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "http://127.0.0.1:9/v1", give_up=0.6, timeout=5)
    with engine_for(settings) as engine:
        # More than a slow machine can try before the time limit.
        answers = engine.answers(questions(1000))
        assert isinstance(answers[-1], AnswersMissing)
        assert "given up: no connection to openai:model within 0.6 seconds; no request arrived." in str(answers[-1])
        assert "no connection to http://127.0.0.1:9/v1" in str(answers[-1])
        assert isinstance(engine.answers([Request("a later one")])[0], AnswersMissing)


def test_answers_and_idle_time_restart_the_give_up_timer(tmp_path: Path) -> None:
    with ChatServer(echo, delay=0.2) as server:
        settings = settings_in(tmp_path, server.url, give_up=0.5, concurrency=1)
        with engine_for(settings) as engine:
            texts(engine.answers(questions(3)))
            time.sleep(0.6)  # idle for longer than `give_up`
            texts(engine.answers([Request("a later one")]))


def test_a_signal_interrupts_waiting_but_not_the_requests(tmp_path: Path) -> None:
    with ChatServer(echo, delay=0.5) as server, engine_for(settings_in(tmp_path, server.url)) as engine:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            engine.answers(questions(2))
        assert time.monotonic() - started < 0.45
        assert len(texts(engine.answers(questions(2)))) == 2
        assert server.count == 2


def test_several_threads_wait_for_the_same_answers(tmp_path: Path) -> None:
    asked = questions(20)
    found: dict[int, list[str]] = {}
    with ChatServer(echo, delay=0.05) as server, engine_for(settings_in(tmp_path, server.url)) as engine:

        def wait(number: int) -> None:
            found[number] = texts(engine.answers(asked[number:]))

        threads = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert [len(found[number]) for number in range(5)] == [20, 19, 18, 17, 16]
        assert server.count == 20


def test_stopping_waits_for_requests_in_flight_and_drops_queued_ones(tmp_path: Path) -> None:
    with ChatServer(echo, delay=0.3) as server:
        settings = settings_in(tmp_path, server.url, concurrency=2)
        with engine_for(settings) as engine:
            engine.plan(questions(10))
            wait_until(lambda: server.in_flight == 2)  # after the first request, which is sent alone
            engine.stop(grace=5.0)
            answers = engine.answers(questions(10))
            assert texts(answers[:3]) == [f"answer to question {number}" for number in range(3)]
            assert all(isinstance(answer, AnswersMissing) for answer in answers[3:])
            assert isinstance(engine.answers([Request("a later one")])[0], AnswersMissing)
        assert server.count == 3


def test_stopping_waits_no_longer_than_the_grace(tmp_path: Path) -> None:
    with ChatServer(echo, delay=30) as server, engine_for(settings_in(tmp_path, server.url)) as engine:
        engine.plan(questions(3))
        wait_until(lambda: server.in_flight == 1)
        started = time.monotonic()
        engine.stop(grace=0.2)
        assert time.monotonic() - started < 3
        assert all(isinstance(answer, AnswersMissing) for answer in engine.answers(questions(3)))
        with Store(tmp_path / ".fairness" / "responses.sqlite") as store:
            claim = store.claims.claim(["x"], "other", limit=1, capacity=1, lease_seconds=1, fresh=ANY_ANSWER)
            assert claim.claimed == ["x"]


def test_stopping_does_not_wait_for_a_target_to_open(tmp_path: Path, target: CallableTarget) -> None:
    opening = threading.Event()

    async def open_slowly() -> None:
        opening.set()
        await asyncio.sleep(30)

    target.open = open_slowly  # type: ignore[method-assign]  # as slow as downloading a model
    with engine_for(settings_in(tmp_path), target) as engine:
        engine.plan(questions(3))
        assert opening.wait(5)
        started = time.monotonic()
        engine.stop()
        assert time.monotonic() - started < 2
        assert all(isinstance(answer, AnswersMissing) for answer in engine.answers(questions(3)))


def test_an_application_that_never_returns_does_not_delay_the_end(tmp_path: Path) -> None:
    never = threading.Event()
    hanging = CallableTarget(lambda _: str(never.wait(60)), "hanging")
    with engine_for(settings_in(tmp_path, timeout=0.2), hanging) as engine:
        started = time.monotonic()
        assert isinstance(engine.answers(questions(1))[0], RequestFailed)
        engine.stop()
        assert time.monotonic() - started < 3
    never.set()


def test_two_engines_share_the_requests_and_the_concurrency(tmp_path: Path) -> None:
    asked = questions(60)
    with ChatServer(echo, delay=0.02) as server:
        settings = settings_in(tmp_path, server.url, concurrency=6)
        with engine_for(settings) as one, engine_for(settings) as two:
            one.plan(asked)
            two.plan(asked)
            assert texts(one.answers(asked)) == texts(two.answers(asked))
            assert one.progress()["sent"] + two.progress()["sent"] == 60
        assert server.count == 60
        assert server.most_in_flight <= 6


def test_a_failed_request_is_not_sent_by_another_process(tmp_path: Path) -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        return Reply("no", status=400) if messages[-1]["content"] == "question 5" else Reply("fine", delay=0.05)

    asked = questions(20)
    with ChatServer(answer) as server:
        settings = settings_in(tmp_path, server.url, concurrency=2)
        with engine_for(settings) as one, engine_for(settings) as two:
            one.plan(asked)
            two.plan(asked)
            assert isinstance(one.answers(asked)[5], RequestFailed)
            fault = two.answers(asked)[5]
            assert isinstance(fault, RequestFailed)
            assert "HTTP 400" in str(fault)
        assert server.count == 20


def test_the_store_does_not_contain_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-verysecret0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)

    def answer(messages: Messages, body: Body) -> Reply:
        return Reply(f"{key} is no good", status=400) if messages[-1]["content"].endswith("3") else Reply("fine")

    with ChatServer(answer) as server:
        settings = settings_in(tmp_path, server.url)
        with engine_for(settings) as engine:
            answers = engine.answers(questions(5))
        assert server.keys == [f"Bearer {key}"] * 5
    assert isinstance(answers[3], FairnessError)
    assert key not in str(answers[3])
    assert isinstance(settings.store, Path)
    files = [path for path in settings.store.parent.iterdir() if path.is_file()]
    assert settings.store in files
    assert all(key.encode() not in path.read_bytes() for path in files)


def test_a_password_in_the_address_is_not_shown(tmp_path: Path) -> None:
    with ChatServer(wrong_key) as server:
        settings = settings_in(tmp_path, server.url.replace("http://", "http://user:secret@"))
        with engine_for(settings) as engine:
            (fault,) = engine.answers(questions(1))
    assert server.keys[0] is not None
    assert server.keys[0].startswith("Basic ")
    assert f"{server.url} rejects the key" in str(fault)
    assert "secret" not in str(fault) + open_target("openai:model", settings).identity


def test_a_damaged_store_fails_the_requests(tmp_path: Path, target: CallableTarget) -> None:
    settings = settings_in(tmp_path)
    with engine_for(settings, target) as engine:
        texts(engine.answers(questions(1)))
        with Store(settings.store) as other:
            other.database.execute("DROP TABLE claims")
        asked = questions(3)[1:]
        answers = engine.answers(asked)
        assert all("fairness_store" in str(answer) for answer in answers)


def test_an_expired_claim_is_taken_over(tmp_path: Path, target: CallableTarget) -> None:
    settings: RunSettings = settings_in(tmp_path)
    (request,) = questions(1)
    with Store(settings.store) as store:
        key = response_key(target.identity, request)
        store.claims.claim([key], "another owner", limit=1, capacity=1, lease_seconds=0.4, fresh=ANY_ANSWER)
        started = time.monotonic()
        with engine_for(settings, target, timing=Timing(claim_retry=0.1)) as engine:
            assert texts(engine.answers([request])) == ["answer to question 0"]
        assert 0.3 < time.monotonic() - started < 3


@pytest.mark.timeout(30)
@pytest.mark.parametrize("table", ["responses", "batch_requests"])
def test_every_item_gets_the_error_of_a_store_that_cannot_be_read(
    table: str, tmp_path: Path, target: CallableTarget
) -> None:
    settings = settings_in(tmp_path)
    with engine_for(settings, target) as engine, Store(settings.store) as store:
        store.database.execute(f"DROP TABLE {table}")
        for _ in range(2):
            with pytest.raises(StoreError, match=f"no such table: {table}"):
                engine.answers(questions(2))
