"""A store that another process holds locked is waited for once."""

from __future__ import annotations

import sqlite3
import time

import pytest

from pytest_fairness.asking import database
from pytest_fairness.asking.store import Store
from pytest_fairness.errors import StoreError
from tests.support.projects import Project, says

PATIENCE = 1.5


def test_a_run_waits_once_for_a_locked_store(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe()
    project.run("--fairness").assert_outcomes(passed=2)
    monkeypatch.setattr(database, "BUSY_TIMEOUT", PATIENCE)
    path = project.path / ".fairness/responses.sqlite"
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    begun = time.monotonic()
    result = project.run("--fairness")
    seconds = time.monotonic() - begun
    result.assert_outcomes(errors=2)
    assert says(result, "another process has been writing for over 1.5 seconds.")
    assert PATIENCE <= seconds < 2 * PATIENCE + 1, "eight uses of the store waited one after another before"
    lock.close()
    project.run("--fairness").assert_outcomes(passed=2)


def test_patience_returns_with_the_first_write(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT", 0.2)
    path = project.path / "responses.sqlite"
    with Store(path) as store:
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"for over 0\.2 seconds"):
            store.cache.put("a", 1)
        lock.close()
        store.cache.put("a", 1)
        store.database.execute("SELECT 1")
        (timeout,) = store.database.execute("PRAGMA busy_timeout")[0]
    assert timeout == 200
