"""A store in a PostgreSQL database: several machines, lost connections, and errors that say what to do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pytest_fairness.asking import claims, database
from pytest_fairness.asking.claims import ANY_ANSWER, ClaimResult, RunId, StopReason
from pytest_fairness.asking.store import Store
from pytest_fairness.errors import StoreError
from pytest_fairness.option_types import DatabaseUrl
from pytest_fairness.records import Request, Response
from tests.support.postgres import Postgres

QUESTION, ANSWER = Request("Who?"), Response("Me.", "stop", created=1000.0)


class Proxy:
    """Stands between client and server; passes on everything until it cuts the connection.

    `cut_after` is text of the client; the server still receives it, but its reply is lost.
    """

    def __init__(self, server: str, folder: Path) -> None:
        self.cut_after = b""
        self.cuts = 0
        self._server = server
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                threading.Thread(target=self._to_server, args=(client, server), daemon=True).start()
                threading.Thread(target=self._copy, args=(server, client), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                if self.cut_after and self.cut_after in data:
                    self.cut_after = b""
                    self.cuts += 1
                    client.shutdown(socket.SHUT_RDWR)
                    server.sendall(data)
                    time.sleep(0.2)  # the server executes the statement
                    break
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # wakes the other thread
        server.close()
        client.close()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)


@pytest.fixture
def proxy(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Proxy, Path]]:
    if sys.platform == "win32":
        pytest.skip("Python has no Unix sockets on Windows")
    folder = tmp_path_factory.mktemp("p")
    server = str(postgres.socket)
    with closing(Proxy(server, folder)) as found:
        yield found, folder


def through(proxy: Path, url: DatabaseUrl) -> DatabaseUrl:
    """The address of a database behind a proxy."""
    return DatabaseUrl(f"{url.address.partition('?')[0]}?host={proxy}")


def claim(store: Store, keys: list[str], owner: str, run: RunId | None = None, **more: Any) -> ClaimResult:
    given: dict[str, Any] = {"limit": 10, "capacity": 10, "preflight": False, **more}
    return store.claims.claim(keys, owner, lease_seconds=30.0, fresh=ANY_ANSWER, run=run, **given)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all processes look like processes of another machine: whether they run is unknown."""
    for module in (claims, claims):
        monkeypatch.setattr(module, "is_gone", lambda _process: False)


# Machines


def test_machines_share_claims_budget_and_answers(database_url: DatabaseUrl, elsewhere: None) -> None:
    run_one, run_two = RunId("night", "one/1", shared=True), RunId("night", "two/1", shared=True)
    with Store(database_url) as one, Store(database_url) as two:
        assert claim(one, ["a", "b", "c"], "one", run_one, max_requests=4).claimed == ["a", "b", "c"]
        assert claim(two, ["a", "b", "d", "e"], "two", run_two, max_requests=4).claimed == ["d"]
        assert claim(two, ["e"], "two", run_two, max_requests=4).stop_reason is StopReason.OVER_BUDGET
        assert claim(two, ["e"], "two", RunId("other", "two/1"), capacity=4).claimed == [], "four in flight"
        one.record("a", QUESTION, "target", ANSWER)
        assert two.database.has_changed()
        assert two.get(["a"], ANY_ANSWER) == {"a": ANSWER}
        assert not two.database.has_changed()


def test_a_stop_ends_the_run_of_its_machine_only(database_url: DatabaseUrl, elsewhere: None) -> None:
    run_one, run_two = RunId("night", "one/1", shared=True), RunId("night", "two/1", shared=True)
    with Store(database_url) as store:
        store.runs.stop(run_one)
        assert claim(store, ["a"], "one", run_one).stop_reason is StopReason.STOPPED
        assert claim(store, ["a"], "two", run_two).claimed == ["a"]


def test_claims_of_a_machine_that_is_gone_expire(database_url: DatabaseUrl, elsewhere: None) -> None:
    with Store(database_url) as store:
        store.claims.claim(["a"], "gone", limit=1, capacity=9, lease_seconds=0.3, fresh=ANY_ANSWER, preflight=False)
        assert claim(store, ["a"], "here").claimed == []
        time.sleep(0.4)
        assert claim(store, ["a"], "here").claimed == ["a"]


def test_leases_follow_the_clock_of_the_server(
    database_url: DatabaseUrl, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(database_url) as store:
        claim(store, ["a"], "one")
        true_time = time.time
        monkeypatch.setattr(time, "time", lambda: true_time() + 3600)  # a machine whose clock is an hour ahead
        with Store(database_url) as late:
            assert claim(late, ["a"], "late").claimed == []


# Lost connections


def test_a_restart_of_the_server_loses_nothing(postgres: Postgres, database_url: DatabaseUrl) -> None:
    with Store(database_url) as store:
        store.record("a", QUESTION, "target", ANSWER)
        postgres.restart()
        store.record("b", QUESTION, "target", ANSWER)
        assert store.recorded(["a", "b"], ANY_ANSWER) == {"a", "b"}


def test_a_transaction_without_its_connection_is_repeated(postgres: Postgres, database_url: DatabaseUrl) -> None:
    cuts: list[int] = []

    def record() -> None:
        store.record("a", QUESTION, "target", ANSWER)
        if not cuts:
            cuts.append(postgres.cut_connections(database_url))
        store.record("b", QUESTION, "target", ANSWER)

    with Store(database_url) as store:
        store.database.write(record)
        assert cuts == [1]
        assert store.recorded(["a", "b"], ANY_ANSWER) == {"a", "b"}
        assert len(list(store.all_recorded())) == 2


@pytest.mark.parametrize("lost", [b"COMMIT", b"INSERT INTO claims"])
def test_claims_are_made_once_although_the_reply_is_lost(
    proxy: tuple[Proxy, Path], database_url: DatabaseUrl, lost: bytes
) -> None:
    """A claim that the owner does not know of would never be sent."""
    run = RunId.new("night")
    with Store(through(proxy[1], database_url)) as store:
        proxy[0].cut_after = lost
        assert claim(store, ["a", "b"], "owner", run).claimed == ["a", "b"]
        assert proxy[0].cuts == 1
        assert store.runs.state(run) == (2, False), "counted once in the budget"
        assert claim(store, ["a", "b"], "other", run).claimed == []


def test_a_server_that_stays_away_ends_the_run(
    postgres: Postgres, database_url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_fairness.asking.postgres.RECONNECT_TIMEOUT", 0.5)
    with Store(database_url) as store:
        postgres.stop()
        try:
            with pytest.raises(StoreError, match=r"Check the server, or name another store with the ini fairness_sto"):
                store.record("a", QUESTION, "target", ANSWER)
            started = time.monotonic()
            for _ in range(10):
                with pytest.raises(StoreError, match="Check the server"):
                    store.record("a", QUESTION, "target", ANSWER)
            assert time.monotonic() - started < 10 * 0.5, "only the first call waits for the server"
        finally:
            postgres.start()
        store.record("a", QUESTION, "target", ANSWER)
        assert store.get(["a"], ANY_ANSWER) == {"a": ANSWER}


# Errors


def test_errors_say_what_to_do(postgres: Postgres, database_url: DatabaseUrl, tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"nowhere.* failed: No such file or directory\. Is the server.*[Cc]heck the server"
    ):
        Store(DatabaseUrl(f"postgresql://postgres@/x?host={tmp_path}/nowhere"))
    with pytest.raises(StoreError, match=r'database "none" does not exist. Check the server'):
        Store(postgres.url("none"))
    with psycopg.connect(database_url.address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
    reader = DatabaseUrl(database_url.address.replace("postgres@", "reader@"))
    with pytest.raises(StoreError, match=r"permission denied.*`GRANT CREATE ON DATABASE"):
        Store(reader)
    Store(database_url).close()
    with psycopg.connect(database_url.address, autocommit=True) as connection:
        connection.execute("UPDATE pytest_fairness.store SET version = version + 1")
    with pytest.raises(StoreError, match=f"newer pytest-fairness .store version {database.SCHEMA_VERSION + 1}"):
        Store(database_url)


def test_a_closed_store_is_not_opened_again(database_url: DatabaseUrl) -> None:
    store = Store(database_url)
    store.close()
    with pytest.raises(StoreError, match="the store was closed; run again"):
        store.recorded(["a"], ANY_ANSWER)


# The server of the tests


def test_servers_start_at_the_same_time_and_leave_nothing_behind() -> None:
    """Each worker of pytest-xdist starts a server of its own, also as root on a machine that never ran the tests."""
    program = "from tests.support.postgres import running_server\nwith running_server() as one: one.new_database()"
    users = Path("/etc/passwd")
    before = users.read_bytes() if users.exists() else b""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        Path(folder).chmod(0o755)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program],
                cwd=Path(__file__).parents[3],
                env={**os.environ, "TMPDIR": folder},
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        errors = [process.communicate(timeout=60)[1] for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0], errors
        assert not list(Path(folder).iterdir())
    assert (users.read_bytes() if users.exists() else b"") == before
