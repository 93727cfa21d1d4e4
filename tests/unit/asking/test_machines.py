"""Several machines with one PostgreSQL store: each process knows the others by their claims only."""

from __future__ import annotations

import math
import platform
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from pytest_fairness.asking.claims import RunId
from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.limits import Timing
from pytest_fairness.asking.store import Store
from pytest_fairness.option_types import DatabaseUrl
from pytest_fairness.records import Response
from pytest_fairness.targets import open_target
from tests.support.asking import questions, settings_in, wait_until
from tests.support.processes import start
from tests.support.servers import ChatServer


def machine(name: str, url: DatabaseUrl, server: ChatServer, count: int, budget: int = 0) -> BaseProcess:
    """Start a machine that asks all questions and writes how many were answered and how many it sent."""
    return start(ask, name, url, server.url, count, budget)


def ask(name: str, url: DatabaseUrl, server: str, count: int, budget: int) -> None:
    setattr(platform, "node", lambda: name)  # noqa: B010 - the process is another machine
    limits = {"concurrency": 16, "max_requests": budget or None}
    settings = settings_in(Path(name), server, store=url, **limits)
    with Store(settings.store) as store:
        timing = Timing(claim_lease=2.0, claim_renewal=0.5)
        target, run = open_target("openai:model", settings), RunId.new("night")
        engine = Engine(store, target, settings, oldest=-math.inf, owner=name, run=run, timing=timing)
        answers = engine.answers(questions(count))
        answered, sent = sum(isinstance(answer, Response) for answer in answers), engine.progress()["sent"]
        Path(f"{name}.txt").write_text(f"{answered} {sent}", "utf-8")
        engine.stop()


def numbers(process: BaseProcess, name: str) -> tuple[int, int]:
    process.join(100)
    answered, sent = Path(f"{name}.txt").read_text("utf-8").split()
    return int(answered), int(sent)


@pytest.mark.timeout(200)
def test_machines_send_each_request_once_although_one_is_killed(
    database_url: DatabaseUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ChatServer(delay=0.05) as server:
        machines = [machine(f"machine{number}", database_url, server, 400) for number in range(4)]
        wait_until(lambda: server.count >= 100, 60)
        machines[0].kill()
        in_flight = 16
        found = [numbers(each, f"machine{number}") for number, each in enumerate(machines) if number > 0]
        assert [answered for answered, _ in found] == [400] * 3
        assert len(server.questions) == 400
        assert server.count <= 400 + in_flight, "only what the killed machine had in flight was sent again"
        assert server.most_in_flight <= in_flight
    machines[0].join()
    with Store(database_url) as store:
        assert len(list(store.all_recorded())) == 400
        assert {each.request.prompt for each in store.all_recorded()} == {each.prompt for each in questions(400)}


def test_machines_of_a_named_run_share_its_budget(
    database_url: DatabaseUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ChatServer(delay=0.02) as server:
        machines = [machine(f"machine{number}", database_url, server, 100, budget=60) for number in range(3)]
        found = [numbers(each, f"machine{number}") for number, each in enumerate(machines)]
        assert sum(sent for _, sent in found) == server.count == 60
        assert [answered for answered, _ in found] == [60] * 3
