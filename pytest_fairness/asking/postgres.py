"""Store in a PostgreSQL database, which several machines share.

All writers wait for the lock of one row (table `store`). So the limits of a run hold for all machines together: its
budget, its number of requests in flight, and one attempt at a time for each request. A transaction takes about one
millisecond.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, LiteralString, TypeVar

import psycopg

from pytest_fairness.asking import database
from pytest_fairness.asking.database import Database
from pytest_fairness.errors import StoreError, one_line
from pytest_fairness.option_types import DatabaseUrl

T = TypeVar("T")

SCHEMA = "pytest_fairness"
"""PostgreSQL's schema of the tables."""
PREPARE_LOCK = 0x66616972
"""Key of the advisory lock under which the tables are created; spells "fair"."""
CONNECT_TIMEOUT = 10
"""Maximum seconds to open a connection; if the first connection of a run takes longer, the run fails."""
RECONNECT_TIMEOUT = 60.0
"""Maximum seconds to restore a lost connection; after this time, calls fail until the server answers again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""First and longest pause between attempts to connect again, in seconds; the pauses double."""
SESSION = f"""
SET search_path TO {SCHEMA};
SET client_encoding TO 'UTF8';
SET idle_in_transaction_session_timeout TO '20s';
SET tcp_keepalives_idle TO 10;
SET tcp_keepalives_interval TO 5;
SET tcp_keepalives_count TO 3
"""
"""Settings of each connection. A machine that has lost its connection then keeps the writers' lock for at most 25
seconds."""
_LOCK = """
UPDATE store SET changes = changes + 1
RETURNING changes, extract(epoch FROM clock_timestamp())::float8, pg_current_xact_id()::text
"""
_TYPES = {
    "INTEGER PRIMARY KEY AUTOINCREMENT": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "REAL": "DOUBLE PRECISION",
}
_CURE = "Check the server, or name another store with the ini fairness_store."


class PostgresDatabase(Database):
    """PostgreSQL database of a store; a lost connection is restored.

    The password is taken from the environment variable `PGPASSWORD`, or from the file `~/.pgpass`.

    Raises:
        StoreError: raised here and by every method if the server cannot be reached, refuses the user, or holds tables
            of a newer version; the message says what to do.
    """

    def __init__(self, url: DatabaseUrl) -> None:
        super().__init__(str(url))
        self._url = url
        self._clock = 0.0
        self._closed = False
        self._deadline = 0.0  # monotonic seconds until which all threads try to connect again; 0: connected
        try:
            self._create_or_upgrade_tables(self._connect())
        except psycopg.Error as error:
            self.close()
            raise self._store_error(error) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closed = True
        super().close()

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        if self._in_transaction:
            return _rows(self._connection().execute(_translated(query), parameters))
        return self._with_reconnect(lambda connection: _rows(connection.execute(_translated(query), parameters)))

    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        def execute() -> None:
            self._connection().cursor().executemany(_translated(query), rows)

        self.write(execute)

    def write(self, function: Callable[[], T]) -> T:
        if self._in_transaction:
            return function()
        return self._with_reconnect(lambda connection: self._run_transaction(connection, function))

    def has_changed(self) -> bool:
        changes = self.execute("SELECT changes FROM store")[0][0]
        known = getattr(self._thread, "changes", None)
        self._thread.changes = changes
        return bool(changes != known)

    def now(self) -> float:
        """Return the server's time: this machine's clock, corrected by the difference found in the last transaction."""
        return time.time() + self._clock

    @property
    def _in_transaction(self) -> bool:
        return getattr(self._thread, "in_transaction", False)

    def _run_transaction(self, connection: psycopg.Connection[Any], function: Callable[[], T]) -> T:
        """Call a function in one transaction; raise `psycopg.Error` if the transaction was not committed."""
        transaction, committing = "", False
        try:
            connection.execute("BEGIN")
            changes, clock, transaction = connection.execute(_LOCK).fetchall()[0]
            self._clock = clock - time.time()
            self._thread.in_transaction = True
            try:
                result = function()
            finally:
                self._thread.in_transaction = False
            committing = True
            connection.execute("COMMIT")
        except BaseException as error:
            if not _is_lost(connection):
                connection.execute("ROLLBACK")
            elif committing and isinstance(error, psycopg.Error) and self._was_committed(transaction):
                return result
            raise
        if getattr(self._thread, "changes", None) == changes - 1:
            self._thread.changes = changes  # no other connection has written since the last call of `has_changed`
        return result

    def _was_committed(self, transaction: str) -> bool:
        """Return whether a transaction was committed although its connection was lost during the commit."""
        while True:
            query = "SELECT pg_xact_status(?::xid8)"
            status = self.execute(query, (transaction,))[0][0]
            if status != "in progress":
                return bool(status == "committed")
            time.sleep(FIRST_PAUSE)

    def _with_reconnect(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Return the result of `work(connection)`; repeat the call on a new connection if the connection is lost."""
        pause = FIRST_PAUSE
        while True:
            connection: psycopg.Connection[Any] | None = None
            try:
                connection = self._connection()
                result = work(connection)
            except psycopg.Error as error:
                if connection is not None and not _is_lost(connection):
                    raise self._store_error(error) from error
                self._deadline = self._deadline or time.monotonic() + RECONNECT_TIMEOUT
                if time.monotonic() > self._deadline:
                    raise self._store_error(error) from error
            else:
                self._deadline = 0.0
                return result
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _connection(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] | None = getattr(self._thread, "connection", None)
        return self._connect() if connection is None or connection.closed else connection

    def _connect(self) -> psycopg.Connection[Any]:
        if self._closed:
            raise StoreError(f"{self.name}: the store was closed; run again.")
        connection: psycopg.Connection[Any] = psycopg.connect(
            self._url.address, autocommit=True, connect_timeout=CONNECT_TIMEOUT, application_name="pytest-fairness"
        )
        with self._lock:
            self._connections = [other for other in self._connections if not other.closed] + [connection]
        connection.execute(SESSION)
        self._thread.connection, self._thread.changes = connection, None
        return connection

    def _create_or_upgrade_tables(self, connection: psycopg.Connection[Any]) -> None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (PREPARE_LOCK,))
            if _rows(connection.execute("SELECT to_regclass('store') IS NULL"))[0][0]:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                connection.execute("CREATE TABLE store (version INTEGER NOT NULL, changes BIGINT NOT NULL)")
                connection.execute("INSERT INTO store VALUES (0, 0)")
            found = _rows(connection.execute("SELECT version FROM store"))[0][0]
            self._require_known(found, "store")
            if found < database.SCHEMA_VERSION:
                connection.execute(_translated(database.upgrade_statements(found)))
                connection.execute("UPDATE store SET version = %s", (database.SCHEMA_VERSION,))

    def _store_error(self, error: psycopg.Error) -> StoreError:
        text = one_line(str(error).replace("\n\t", ". "), 300).rstrip(" .?")
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return StoreError(
                f"{self.name}: {text}. Use the user who created the tables, or, in a new database, give the user the "
                "right to create a schema: `GRANT CREATE ON DATABASE ... TO ...`."
            )
        if "no password supplied" in text:
            return StoreError(f"{self.name}: the server asks for a password. Set the environment variable PGPASSWORD.")
        if "authentication failed" in text:
            return StoreError(f"{self.name}: {text}. Check the user's name and the environment variable PGPASSWORD.")
        return StoreError(f"{self.name}: {text}. {_CURE}")


def _is_lost(connection: psycopg.Connection[Any]) -> bool:
    return connection.closed or connection.broken


def _rows(cursor: psycopg.Cursor[Any]) -> list[Any]:
    return cursor.fetchall() if cursor.description else []


@functools.cache
def _translated(statement: str) -> LiteralString:
    statement = statement.replace("json_each(?)", "json_array_elements_text(?::json)").replace("?", "%s")
    for sqlite_type, postgres_type in _TYPES.items():
        statement = statement.replace(sqlite_type, postgres_type)
    return statement
