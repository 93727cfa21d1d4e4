"""Retries, rate limits, give-up times and budgets, with servers that fail."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.asking.claims import ANY_ANSWER
from pytest_fairness.asking.limits import Timing
from pytest_fairness.asking.store import Store
from pytest_fairness.errors import AnswersMissing, RequestFailed, TargetError, short_message
from tests.support.asking import engine_for, questions, settings_in, texts, wait_until
from tests.support.servers import Body, ChatServer, Messages, Reply

SHORT_PAUSES = Timing(
    first_rate_limit_pause=0.02, longest_rate_limit_pause=0.3, first_retry_pause=0.02, longest_retry_pause=0.3
)
FAILURES = {
    "429": Reply("slow down", status=429, headers={"Retry-After": "0.05"}),
    "429 without Retry-After": Reply("slow down", status=429),
    "500": Reply("oops", status=500),
    "503": Reply("overloaded", status=503),
    "reset": Reply(broken="reset"),
    "stall": Reply(delay=60),
    "half": Reply("half of a long enough body", broken="half"),
    "no JSON": Reply(raw=b"<html>busy</html>"),
    "no completion": Reply(raw=b'{"error": "busy"}'),
}


class FailingServer:
    """Answer function that fails a share of the attempts, in one of several ways; the same in every run."""

    def __init__(self, share: float = 0.2) -> None:
        self.share = share
        self.tries: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.given: Counter[str] = Counter()

    def __call__(self, messages: Messages, body: Body) -> Reply:
        question = messages[-1]["content"]
        draw = hashlib.sha256(f"{question} {self.tries[question]}".encode()).digest()
        self.tries[question] += 1
        if draw[0] >= 256 * self.share:
            self.answered[question] += 1
            return Reply(f"answer to {question}")
        name = list(FAILURES)[draw[1] % len(FAILURES)]
        self.given[name] += 1
        return FAILURES[name]


def test_every_request_is_answered_once_by_a_server_that_fails_every_fifth_attempt(tmp_path: Path) -> None:
    failing = FailingServer()
    with ChatServer(failing, delay=0.005) as server:
        settings = settings_in(tmp_path, server.url, concurrency=16, timeout=1.0)
        with engine_for(settings, timing=SHORT_PAUSES) as engine:
            asked = questions(150)
            assert texts(engine.answers(asked)) == [f"answer to {request.prompt}" for request in asked]
            counts = engine.progress()
        assert server.most_in_flight <= 16
    assert set(failing.answered.values()) == {1}
    assert set(failing.given) == set(FAILURES)
    assert counts["sent"] == counts["answered"] == 150
    assert counts["retried"] == sum(failing.given.values()) == server.count - 150


def test_requests_in_flight_adapt_to_what_the_server_takes(tmp_path: Path) -> None:
    capacity, in_flight = 3, []

    def answer(messages: Messages, body: Body) -> Reply:
        in_flight.append(server.in_flight)
        return Reply("full", status=429) if server.in_flight > capacity else Reply("fine")

    with ChatServer(answer, delay=0.02) as server:
        settings = settings_in(tmp_path, server.url, concurrency=16)
        with engine_for(settings, timing=SHORT_PAUSES) as engine:
            texts(engine.answers(questions(200)))
            rejected = engine.progress()["retried"]
    assert max(in_flight[:20]) > 8
    assert max(in_flight[-100:]) <= 2 * capacity
    assert rejected < 100


def test_no_process_sends_before_the_time_in_retry_after(tmp_path: Path) -> None:
    times: list[float] = []

    def answer(messages: Messages, body: Body) -> Reply:
        times.append(time.monotonic())
        return Reply("wait", status=429, headers={"Retry-After": "1"}) if len(times) == 1 else Reply("fine", delay=0)

    with ChatServer(answer) as server:
        settings = settings_in(tmp_path, server.url, concurrency=1)
        # The second engine belongs to another run.
        with engine_for(settings, timing=SHORT_PAUSES) as one, engine_for(settings, timing=SHORT_PAUSES) as two:
            one.plan(questions(3))
            with Store(settings.store) as store:
                wait_until(lambda: store.database.execute("SELECT 1 FROM rate_limits WHERE resume_at > 0", ()))
            two.plan(questions(6))
            texts(one.answers(questions(3)))
            texts(two.answers(questions(6)))
    assert len(times) == 7
    assert times[1] - times[0] >= 0.99


def test_a_request_that_always_fails_does_not_affect_others(tmp_path: Path) -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        return Reply("oops", status=500) if messages[-1]["content"] == "question 3" else Reply("fine")

    with ChatServer(answer) as server, engine_for(settings_in(tmp_path, server.url), timing=SHORT_PAUSES) as engine:
        answers = engine.answers(questions(6))
        error = answers.pop(3)
        assert isinstance(error, RequestFailed)
        assert "HTTP 500" in str(error)
        assert str(error).endswith("The request was sent 7 times.")
        assert "7 times" not in short_message(str(error))
        texts(answers)
        assert server.count == 5 + 7


def test_a_server_that_is_always_busy_is_given_up(tmp_path: Path) -> None:
    with ChatServer(lambda *_: Reply("no room", status=503)) as server:
        settings = settings_in(tmp_path, server.url, give_up=0.7)
        with engine_for(settings, timing=SHORT_PAUSES) as engine:
            answers = engine.answers(questions(50))
    assert all(isinstance(answer, AnswersMissing | RequestFailed) for answer in answers)
    assert "given up: openai:model gave no answer for 0.7 seconds" in str(answers[-1])
    assert "no room" in str(answers[-1])


def test_a_target_that_demands_a_longer_pause_than_give_up_is_given_up_at_once(tmp_path: Path) -> None:
    reply = Reply("tomorrow", status=429, headers={"Retry-After": "86400"})
    with (
        ChatServer(lambda *_: reply) as server,
        engine_for(settings_in(tmp_path, server.url), timing=SHORT_PAUSES) as engine,
    ):
        started = time.monotonic()
        answers = engine.answers(questions(50))
        assert time.monotonic() - started < 5
    assert all("demands a pause of 86" in str(answer) for answer in answers)
    assert not any("gave no answer" in str(answer) for answer in answers)
    assert server.count <= 8


def test_a_server_that_was_never_reached_is_given_up_soon(tmp_path: Path) -> None:
    with ChatServer() as server:
        url = server.url
    started = time.monotonic()
    with engine_for(settings_in(tmp_path, url), timing=replace(SHORT_PAUSES, give_up_unreachable=0.5)) as engine:
        answers = engine.answers(questions(100))
        assert 0.4 < time.monotonic() - started < 9
    assert all(isinstance(answer, AnswersMissing) for answer in answers)
    assert "no connection to openai:model within 0.5 seconds; no request arrived." in str(answers[0])
    assert "Check that the server is running, and --fairness-base-url" in str(answers[0])


def test_requests_continue_when_a_server_comes_back(tmp_path: Path) -> None:
    timing = replace(SHORT_PAUSES, give_up_unreachable=0.3)
    server = ChatServer(delay=0.01).__enter__()
    with engine_for(settings_in(tmp_path, server.url, concurrency=4), timing=timing) as engine:
        engine.plan(questions(200))
        wait_until(lambda: server.count > 20)
        server.__exit__()
        time.sleep(0.5)  # longer than `give_up_unreachable`
        with ChatServer(port=server.port) as back:
            texts(engine.answers(questions(200)))
            assert server.count + back.count < 200 + 2 * 4


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_error_of_the_target_stops_the_other_processes_of_the_run(tmp_path: Path, status: int) -> None:
    with ChatServer(lambda *_: Reply("no", status=status), delay=0.05) as server:
        settings = settings_in(tmp_path, server.url, concurrency=2)
        one_run: Any = {"run": ("one", ""), "timing": SHORT_PAUSES}
        with engine_for(settings, **one_run) as one, engine_for(settings, **one_run) as two:
            one.plan(questions(50))
            two.plan(questions(50))
            for engine in (one, two):
                assert all(isinstance(answer, TargetError) for answer in engine.answers(questions(50)))
        assert server.count <= 4


def test_all_engines_of_a_run_share_its_budget(tmp_path: Path) -> None:
    with ChatServer(FailingServer(0.4), delay=0.01) as server:
        settings = settings_in(tmp_path, server.url, concurrency=8, timeout=0.3, max_requests=40)
        one_run: Any = {"run": ("one", ""), "timing": SHORT_PAUSES}
        with engine_for(settings, **one_run) as one, engine_for(settings, **one_run) as two:
            one.plan(questions(100))
            two.plan(questions(100))
            answers = one.answers(questions(100)) + two.answers(questions(100))
            sent = [engine.progress()["sent"] + engine.progress()["retried"] for engine in (one, two)]
        assert server.count == sum(sent) == 40
        missing = [answer for answer in answers if isinstance(answer, AnswersMissing)]
        assert 60 <= len(missing) / 2 < 100
        assert all(
            ": this run's budget of 40 requests is spent (--fairness-max-requests)" in str(each) for each in missing
        )
        with Store(settings.store) as store:
            recorded = len(list(store.all_recorded()))
            claim = store.claims.claim(["x"], "other", limit=1, capacity=1, lease_seconds=1, fresh=ANY_ANSWER)
            assert claim.claimed == ["x"], "all claims are released"
        server.answer = lambda *_: "fine"
        asked = server.count
        # A long timeout, as every attempt counts and a busy machine may be late.
        with engine_for(replace(settings, timeout=30), timing=SHORT_PAUSES) as engine:
            again = engine.answers(questions(100))
        assert sum(isinstance(answer, AnswersMissing) for answer in again) == max(0, 100 - recorded - 40)
        assert server.count == asked + 40
