"""Interface of a store's database; `sqlite.py` and `postgres.py` implement it.

Every statement of a store is written once, in SQL that both databases understand, with `?` as placeholder. A list of
keys is one parameter: `key IN (SELECT value FROM json_each(?))`, with the keys as JSON.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from pytest_fairness.closing import Closing
from pytest_fairness.errors import StoreError
from pytest_fairness.targets.one_line import one_line

T = TypeVar("T")
Parameters = ParamSpec("Parameters")


class Database(Closing):
    """Database of a store, with a connection for each thread; several processes can use it at once.

    Args:
        name: name of the database in messages.

    Raises:
        StoreError: raised by every method if the database cannot be used.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._connections: list[Any] = []

    def close(self) -> None:
        """Close all connections; statements that still run in another thread fail."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        self._thread = threading.local()

    @abstractmethod
    def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Execute a statement, and return its rows."""

    @abstractmethod
    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each row of parameters."""

    @abstractmethod
    def write(self, function: Callable[[], T]) -> T:
        """Call a function in a write transaction, and return its result.

        A call within a transaction starts no new transaction. Only one process writes at a time, so the function must
        be short. A database on a server calls the function again if the connection is lost before the transaction is
        committed.
        """

    @abstractmethod
    def has_changed(self) -> bool:
        """Return whether another connection wrote anything since this thread's last call; true at the first call."""

    @abstractmethod
    def now(self) -> float:
        """Return the current time in seconds since the epoch, by the clock that all processes of the store share."""

    @contextmanager
    def decoding_errors(self) -> Iterator[None]:
        """Convert errors in the `with` block, which decodes rows, to `StoreError`.

        A row that cannot be decoded means that the store is damaged, or that another program wrote the row.
        """
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            reason = one_line(f"{type(error).__name__}: {error}", 100)
            raise StoreError(
                f"{self.name}: a row cannot be read ({reason}). The store is damaged, or another program wrote to it. "
                "Move the store away, or name another store with the ini fairness_store; the old store's answers are "
                "requested again."
            ) from error


class HasDatabase(Protocol):
    """Object with a database, such as a table of a store."""

    database: Database


Self_ = TypeVar("Self_", bound=HasDatabase)


def in_transaction(method: Callable[Concatenate[Self_, Parameters], T]) -> Callable[Concatenate[Self_, Parameters], T]:
    """Decorate a method so that each call runs in one write transaction; see `Database.write`."""

    @wraps(method)
    def wrapped(self: Self_, *args: Parameters.args, **kwargs: Parameters.kwargs) -> T:
        return self.database.write(lambda: method(self, *args, **kwargs))

    return cast("Callable[Concatenate[Self_, Parameters], T]", wrapped)


def upsert(table: str, key: str, *others: str) -> str:
    """Return the statement that inserts a row, or replaces the row with the same key.

    Args:
        table: name of the table.
        key: names of the key's columns, separated by commas.
        others: names of the other columns. The values of a row are in the order: key columns, other columns.
    """
    places = ", ".join("?" * (len(key.split(",")) + len(others)))
    changes = ", ".join(f"{name} = excluded.{name}" for name in others)
    return (
        f"INSERT INTO {table} ({', '.join([key, *others])}) VALUES ({places}) "  # noqa: S608 - constants of the callers
        f"ON CONFLICT ({key}) DO UPDATE SET {changes}"
    )


def storable(text: str) -> str:
    """Return the text with `?` in place of characters that a database cannot store: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")
