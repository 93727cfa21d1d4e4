"""Processes that are killed or run at the same time."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from tests.support.asking import engine_for, questions, settings_in, texts, wait_until
from tests.support.processes import start
from tests.support.servers import ChatServer


def ask(folder: Path, url: str) -> None:
    with engine_for(settings_in(folder, url, concurrency=16)) as engine:
        engine.answers(questions(500))


def has_received(server: ChatServer, count: int) -> bool:
    return server.count >= count


def test_after_a_kill_only_requests_in_flight_are_sent_again(tmp_path: Path) -> None:
    with ChatServer(delay=0.05) as server:
        for kill_at in (120, 300):
            process = start(ask, tmp_path, server.url)
            wait_until(partial(has_received, server, kill_at), 60)
            process.kill()
            process.join()
            wait_until(lambda: server.in_flight == 0)
        started = time.monotonic()
        with engine_for(settings_in(tmp_path, server.url, concurrency=16)) as engine:
            assert len(texts(engine.answers(questions(500)))) == 500
            assert engine.progress()["reused"] >= 300 - 3 * 16
        # The claims of the killed processes expired at once.
        assert time.monotonic() - started < 15
        prompts = [body["messages"][0]["content"] for body in server.bodies]
        assert len(set(prompts)) == 500
        assert len(prompts) - 500 <= 2 * 16


def test_two_processes_send_each_request_once(tmp_path: Path) -> None:
    with ChatServer(delay=0.05) as server:
        processes = [start(ask, tmp_path, server.url) for _ in range(2)]
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0, 0]
        assert server.count == len({body["messages"][0]["content"] for body in server.bodies}) == 500
        assert server.most_in_flight <= 16
