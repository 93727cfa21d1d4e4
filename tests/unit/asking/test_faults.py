"""Servers that misbehave: everything is answered all the same, or ends in errors that say so."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness.asking import give_up, rate_limit, retries
from pytest_fairness.asking.store import Store
from pytest_fairness.errors import AnswersMissing, RequestFailed, TargetError
from tests.support.asking import FOREVER, engine_for, questions, settings_in, texts, wait_until
from tests.support.servers import Body, ChatServer, Messages, Reply

FAULTS = {
    "429": Reply("slow down", status=429, headers={"Retry-After": "0.05"}),
    "429 without a time": Reply("slow down", status=429),
    "500": Reply("oops", status=500),
    "503": Reply("overloaded", status=503),
    "reset": Reply(broken="reset"),
    "stall": Reply(delay=60),
    "half": Reply("half of a long enough body", broken="half"),
    "no JSON": Reply(raw=b"<html>busy</html>"),
    "no completion": Reply(raw=b'{"error": "busy"}'),
}


class Faulty:
    """Answers a fifth of the requests with some fault or other, each try drawn anew; the same in every run."""

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
        name = list(FAULTS)[draw[1] % len(FAULTS)]
        self.given[name] += 1
        return FAULTS[name]


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rate_limit, retries):
        monkeypatch.setattr(module, "FIRST_PAUSE", 0.02)
        monkeypatch.setattr(module, "LONGEST_PAUSE", 0.3)


def test_everything_is_answered_once_by_a_server_that_fails_every_fifth_time(tmp_path: Path) -> None:
    faulty = Faulty()
    with ChatServer(faulty, delay=0.005) as server:
        settings = settings_in(tmp_path, server.url, concurrency=16, timeout=2.0)
        with engine_for(settings) as engine:
            asked = questions(300)
            assert texts(engine.answers(asked)) == [f"answer to {request.prompt}" for request in asked]
            counts = engine.progress()
        assert server.most_in_flight <= 16
    assert set(faulty.answered.values()) == {1}
    assert set(faulty.given) == set(FAULTS)
    assert counts["sent"] == counts["answered"] == 300
    assert counts["retried"] == sum(faulty.given.values()) == server.count - 300


def test_a_server_with_less_room_than_is_allowed_is_asked_less(tmp_path: Path) -> None:
    room, most = 3, []

    def answer(messages: Messages, body: Body) -> Reply:
        most.append(server.in_flight)
        return Reply("full", status=429) if server.in_flight > room else Reply("fine")

    with ChatServer(answer, delay=0.02) as server:
        settings = settings_in(tmp_path, server.url, concurrency=16)
        with engine_for(settings) as engine:
            texts(engine.answers(questions(200)))
            turned_away = engine.progress()["retried"]
    assert max(most[:20]) > 8
    assert max(most[-100:]) <= 2 * room
    assert turned_away < 100


def test_nobody_is_asked_before_the_time_that_the_server_names(tmp_path: Path) -> None:
    times: list[float] = []

    def answer(messages: Messages, body: Body) -> Reply:
        times.append(time.monotonic())
        return Reply("wait", status=429, headers={"Retry-After": "1"}) if len(times) == 1 else Reply("fine", delay=0)

    with ChatServer(answer) as server:
        settings = settings_in(tmp_path, server.url, concurrency=1)
        # Another process of the same run, or another run, waits too.
        with engine_for(settings) as one, engine_for(settings) as two:
            one.plan(questions(3))
            wait_until(lambda: len(times) == 1)
            time.sleep(0.1)
            two.plan(questions(6))
            texts(one.answers(questions(3)))
            texts(two.answers(questions(6)))
    assert len(times) == 7
    assert times[1] - times[0] >= 0.99


def test_a_request_that_always_fails_ends_as_an_error_and_the_others_do_not(tmp_path: Path) -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        return Reply("oops", status=500) if messages[-1]["content"] == "question 3" else Reply("fine")

    with ChatServer(answer) as server, engine_for(settings_in(tmp_path, server.url)) as engine:
        answers = engine.answers(questions(6))
        error = answers.pop(3)
        assert isinstance(error, RequestFailed)
        assert "HTTP 500" in str(error)
        assert str(error).endswith("Asked 7 times.")
        texts(answers)
        assert server.count == 5 + 7


def test_a_server_that_is_always_busy_is_given_up(tmp_path: Path) -> None:
    with ChatServer(lambda *_: Reply("no room", status=503)) as server:
        settings = settings_in(tmp_path, server.url, give_up=0.7)
        with engine_for(settings) as engine:
            answers = engine.answers(questions(50))
    assert all(isinstance(answer, AnswersMissing | RequestFailed) for answer in answers)
    assert "given up: openai:model gave no answer for 0.7 seconds" in str(answers[-1])
    assert "no room" in str(answers[-1])


def test_a_pause_longer_than_our_patience_is_not_waited_for(tmp_path: Path) -> None:
    reply = Reply("tomorrow", status=429, headers={"Retry-After": "86400"})
    with ChatServer(lambda *_: reply) as server, engine_for(settings_in(tmp_path, server.url)) as engine:
        started = time.monotonic()
        answers = engine.answers(questions(50))
        assert time.monotonic() - started < 5
    assert all("asks to be left alone for 86" in str(answer) for answer in answers)
    assert server.count <= 8


def test_a_server_that_was_never_reached_is_given_up_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(give_up, "UNREACHED", 0.5)
    with ChatServer() as server:
        url = server.url
    with engine_for(settings_in(tmp_path, url)) as engine:
        started = time.monotonic()
        answers = engine.answers(questions(100))
        assert 0.4 < time.monotonic() - started < 5
    assert all(isinstance(answer, AnswersMissing) for answer in answers)
    assert "openai:model could not be reached once in 0.5 seconds; nothing was asked." in str(answers[0])
    assert "Is the server up, and --fairness-base-url" in str(answers[0])


def test_a_server_that_comes_back_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(give_up, "UNREACHED", 0.3)
    server = ChatServer(delay=0.01).__enter__()
    with engine_for(settings_in(tmp_path, server.url, concurrency=4)) as engine:
        engine.plan(questions(200))
        wait_until(lambda: server.count > 20)
        server.__exit__()
        time.sleep(1.0)
        with ChatServer(port=server.port) as back:
            texts(engine.answers(questions(200)))
            assert server.count + back.count < 200 + 2 * 4


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_concerns_every_request_stops_the_other_processes_of_the_run_too(tmp_path: Path, status: int) -> None:
    with ChatServer(lambda *_: Reply("no", status=status), delay=0.05) as server:
        settings = settings_in(tmp_path, server.url, concurrency=2)
        with engine_for(settings, run=("one", "")) as one, engine_for(settings, run=("one", "")) as two:
            one.plan(questions(50))
            two.plan(questions(50))
            for engine in (one, two):
                assert all(isinstance(answer, TargetError) for answer in engine.answers(questions(50)))
        assert server.count <= 4


def test_no_more_is_sent_than_the_run_may(tmp_path: Path) -> None:
    with ChatServer(Faulty(0.4), delay=0.01) as server:
        settings = settings_in(tmp_path, server.url, concurrency=8, timeout=0.3, max_requests=40)
        with engine_for(settings, run=("one", "")) as one, engine_for(settings, run=("one", "")) as two:
            one.plan(questions(100))
            two.plan(questions(100))
            answers = one.answers(questions(100)) + two.answers(questions(100))
            sent = [engine.progress()["sent"] + engine.progress()["retried"] for engine in (one, two)]
        assert server.count == sum(sent) == 40
        missing = [answer for answer in answers if isinstance(answer, AnswersMissing)]
        assert 60 <= len(missing) / 2 < 100
        assert "not asked: all 40 requests that this run may send are sent (--fairness-max-requests)" in str(missing[0])
        with Store(settings.store) as store:
            recorded = len(list(store.everything()))
            claim = store.claim(["x"], "other", limit=1, capacity=1, lease_seconds=1, fresh=FOREVER)
            assert claim.claimed == ["x"], "nothing is held any more"
        server.answer = lambda *_: "fine"
        asked = server.count
        # A busy machine is late now and then, and a try that is given up counts as well.
        with engine_for(replace(settings, timeout=30)) as engine:
            again = engine.answers(questions(100))
        assert sum(isinstance(answer, AnswersMissing) for answer in again) == max(0, 100 - recorded - 40)
        assert server.count == asked + 40
