"""Store: keys, recorded answers, claims and damaged files; with real SQLite files and real processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.asking.claims import ANY_ANSWER, ClaimResult, Freshness, RunId, StopReason
from pytest_fairness.asking.database import APPLICATION, SCHEMA_VERSION, this_process
from pytest_fairness.asking.limits import RateLimit
from pytest_fairness.asking.store import Store, response_key
from pytest_fairness.errors import StoreError
from pytest_fairness.option_types import StoreAddress
from pytest_fairness.records import Measurement, Request, Response, Sampling

ANSWERS = """
CREATE TABLE responses (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, target TEXT NOT NULL, request TEXT NOT NULL,
    response TEXT NOT NULL, created REAL NOT NULL
);
CREATE TABLE failures (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, key TEXT NOT NULL, message TEXT NOT NULL,
    created REAL NOT NULL
);
"""
COORDINATION = """
CREATE TABLE claims (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, process TEXT NOT NULL, target TEXT NOT NULL, expires REAL NOT NULL,
    flying INTEGER NOT NULL
);
CREATE TABLE runs (
    run TEXT PRIMARY KEY, sent INTEGER NOT NULL, stopped INTEGER NOT NULL, created REAL NOT NULL
);
CREATE TABLE refusals (run TEXT NOT NULL, target TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (run, target));
CREATE TABLE tallies (run TEXT NOT NULL, owner TEXT NOT NULL, counts TEXT NOT NULL, PRIMARY KEY (run, owner));
CREATE TABLE paces (
    target TEXT PRIMARY KEY, allowed REAL NOT NULL, strikes INTEGER NOT NULL, resume_at REAL NOT NULL,
    reduced_at REAL NOT NULL, touched REAL NOT NULL
);
"""
OLD_TABLES = {
    1: f"{ANSWERS} CREATE TABLE claims (key TEXT PRIMARY KEY, owner TEXT, process TEXT, expires REAL);",
    2: ANSWERS + COORDINATION,
}
"""Tables of older versions that differ from the current ones."""
SHARED_STATE = ("claims", "runs", "target_errors", "request_counts", "rate_limits", "preflights")
QUESTION = Request("Who?", "Be brief.", Sampling(temperature=0.5, seed=4), 1, "json")
ANSWER = Response("Me.", "stop", 3, 1, created=1000.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".fairness" / "responses.sqlite"


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def address(request: pytest.FixtureRequest, path: Path) -> StoreAddress:
    """The address of a store that does not exist yet, in a file or in a database."""
    if request.param == "SQLite":
        return path
    found: StoreAddress = request.getfixturevalue("database_url")
    return found


def claim(store: Store, keys: list[str], owner: str = "a", **more: Any) -> ClaimResult:
    given = {"limit": 10, "capacity": 10, "lease_seconds": 30.0, "fresh": ANY_ANSWER, **more}
    return store.claims.claim(keys, owner, **given)


# Keys


def test_key_depends_on_everything_that_can_change_the_answer() -> None:
    others = [
        replace(QUESTION, prompt="who?"),
        replace(QUESTION, system=None),
        replace(QUESTION, trial=2),
        replace(QUESTION, answer_format="text"),
        replace(QUESTION, sampling=Sampling(temperature=0.5, seed=5)),
        replace(QUESTION, sampling=Sampling(temperature=0.5)),
    ]
    keys = [response_key("target", request) for request in [QUESTION, *others]] + [response_key("other", QUESTION)]
    assert len(set(keys)) == len(keys)


def test_key_is_the_same_in_every_version() -> None:
    # Another key would make all recorded answers, which cost money, useless.
    canonical = '["target","Be brief.","Who?",{"seed":4,"temperature":0.5},1,"json"]'
    assert response_key("target", QUESTION) == sha256(canonical.encode()).hexdigest()


# Answers


@pytest.mark.parametrize(
    "text", ["", "plain", "nul \0 inside", "lone \ud800 surrogate", "smile \U0001f600", "a\r\nb\n"]
)
def test_any_text_is_stored_unchanged(address: StoreAddress, text: str) -> None:
    request, answer = replace(QUESTION, prompt=text, system=text), replace(ANSWER, text=text)
    with Store(address) as store:
        store.record("k", request, "target", answer)
    with Store(address) as store:
        assert store.get(["k"], ANY_ANSWER) == {"k": answer}
        (kept,) = store.all_recorded()
        assert (kept.key, kept.target, kept.request, kept.response) == ("k", "target", request, answer)


def test_newest_answer_counts_unless_it_is_too_old(address: StoreAddress) -> None:
    with Store(address) as store:
        store.record("k", QUESTION, "target", ANSWER)
        newer = replace(ANSWER, text="You.", created=2000.0)
        store.record("k", QUESTION, "target", newer)
        assert store.get(["k"], Freshness("other", 2000.0)) == {"k": newer}
        assert store.get(["k"], Freshness("other", 2000.1)) == {}
        assert store.recorded(["k", "l"], Freshness("other", 2000.0)) == {"k"}
        assert store.recorded(["k", "l"], Freshness("other", 2000.1)) == set()


def test_an_answer_belongs_to_the_run_that_asked_for_it(address: StoreAddress) -> None:
    one, two, any_run = Freshness("one", inf), Freshness("two", inf), Freshness("three", 0.0)
    answers = {run: replace(ANSWER, text=run.run) for run in (one, two)}
    with Store(address) as store:
        for run in (one, two):
            found = claim(store, ["k"], run.run, fresh=run, run=RunId(run.run, ""))
            assert found.claimed == ["k"], "each run claims it"
        assert claim(store, ["k"], "one again", fresh=one) == ClaimResult([], []), "a run claims it once"
        position = store.position()
        store.record("k", QUESTION, "target", answers[one], one)
        assert store.changes(position, "target", two).answered == []
        store.record_failure("k", "target", "no luck", two)
        assert store.changes(position, "target", one)[1:] == (["k"], {})
        assert store.changes(position, "target", any_run).failed == {}
        store.record("k", QUESTION, "target", answers[two], two)
        assert [store.get(["k"], run)["k"] for run in (one, two)] == list(answers.values())
        assert store.get(["k"], any_run)["k"].text == "two", "newest answer"
        assert store.get(["k"], ANY_ANSWER)["k"].text == "two"
        # A new answer replaces those of runs that are over.
        for run in (one, two):
            store.runs.stop(RunId(run.run, ""))
        store.record("k", QUESTION, "target", ANSWER)
        assert [kept.response for kept in store.all_recorded()] == [ANSWER]


def test_an_answer_dated_in_the_future_is_not_reused(address: StoreAddress) -> None:
    with Store(address) as store:
        store.record("k", QUESTION, "target", replace(ANSWER, created=time.time() + 3600), Freshness("one", 0.0))
        assert store.recorded(["k"], Freshness("two", 0.0)) == set()
        assert store.recorded(["k"], Freshness("one", 0.0)) == {"k"}, "a run reuses its own answers"
        assert store.recorded(["k"], ANY_ANSWER) == {"k"}, "a replay reuses all answers"
        store.record("k", QUESTION, "target", replace(ANSWER, created=time.time() + 5), Freshness("one", 0.0))
        assert store.recorded(["k"], Freshness("two", 0.0)) == {"k"}, "clocks may differ a little"


def test_thousands_of_keys_are_read_at_once(path: Path) -> None:
    keys = [f"{number:064x}" for number in range(32_000)]
    with Store(path) as store:
        store.database.write(lambda: [store.record(key, QUESTION, "target", ANSWER) for key in keys[::2]])
        assert store.recorded(keys, ANY_ANSWER) == set(keys[::2])
        assert store.get(keys, ANY_ANSWER).keys() == set(keys[::2])


def test_a_failed_transaction_writes_nothing(address: StoreAddress) -> None:
    with Store(address) as store:

        def fail() -> None:
            store.record("k", QUESTION, "target", ANSWER)
            raise ZeroDivisionError

        with contextlib.suppress(ZeroDivisionError):
            store.database.write(fail)
        assert store.recorded(["k"], ANY_ANSWER) == set()


# Cache


def test_cached_results_are_read_by_other_processes(address: StoreAddress) -> None:
    with Store(address) as store:
        assert store.cache.get("m", dict) is None
        store.cache.put("m", {"value": 1.5, "words": ["é", "\ud800"]})
        rows = [[{"race": "Black"}, 0, "text"]]
        digest = store.cache.put_answers(rows)
        assert store.cache.put_answers(rows) == digest
    with Store(address) as store:
        assert store.cache.get("m", dict) == {"value": 1.5, "words": ["é", "\ud800"]}
        assert [*store.cache.get_answers(digest)] == rows
        assert list(store.cache.get_answers("other")) == []


# Claims


def test_answered_and_claimed_requests_are_not_claimed_again(address: StoreAddress) -> None:
    with Store(address) as store:
        store.record("b", QUESTION, "target", ANSWER)
        assert claim(store, ["a", "b", "c"], "one", limit=1) == ClaimResult(["a"], ["b"])
        assert claim(store, ["a", "b", "c"], "two") == ClaimResult(["c"], ["b"])
        assert claim(store, ["a", "b", "c"], "one") == ClaimResult([], ["b"])
        assert claim(store, ["b"], "one", fresh=Freshness("other", ANSWER.created + 1)) == ClaimResult(["b"], [])


def test_an_answer_a_release_or_a_failure_frees_a_slot(address: StoreAddress) -> None:
    with Store(address) as store:
        assert claim(store, ["a", "b", "c", "d"], capacity=3).claimed == ["a", "b", "c"]
        assert claim(store, ["d"], capacity=3).claimed == []
        store.record("a", QUESTION, "target", ANSWER)
        assert claim(store, ["d"], capacity=3).claimed == ["d"]
        store.claims.release("b", "somebody else")
        assert claim(store, ["e"], capacity=3).claimed == []
        store.claims.release("b", "a")
        assert claim(store, ["e"], capacity=3).claimed == ["e"]
        store.record_failure("c", "target", "no luck")
        assert claim(store, ["f"], capacity=3).claimed == ["f"]
        store.claims.release_all("a")
        assert claim(store, list("efg"), capacity=3).claimed == list("efg")


def test_a_claim_expires_unless_renewed(address: StoreAddress) -> None:
    with Store(address) as store:
        claim(store, ["a"], "one", lease_seconds=-1.0)
        claim(store, ["b"], "two", lease_seconds=-1.0)
        store.claims.renew("two", 30.0)
        assert claim(store, ["a", "b"], "three").claimed == ["a"]


def test_claims_of_an_ended_process_expire_at_once(path: Path) -> None:
    program = f"""
import os
from pathlib import Path
from pytest_fairness.asking.claims import ANY_ANSWER
from pytest_fairness.asking.store import Store
with Store(Path({str(path)!r})) as store:
    claim = store.claims.claim(["a"], "dead", limit=1, capacity=1, lease_seconds=3600, fresh=ANY_ANSWER)
    os._exit(7 if claim.claimed == ["a"] else 1)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7
    with Store(path) as store:
        assert claim(store, ["a"], capacity=1).claimed == ["a"]


def _claim_all(path: str, owner: str, keys: list[str], capacity: int, log: str) -> None:
    """ClaimResult and record until all keys are recorded; log each claim with the number of claims at that time."""
    with Store(Path(path)) as store:
        done = False
        while not done:
            got = store.claims.claim(keys, owner, limit=3, capacity=capacity, lease_seconds=30.0, fresh=ANY_ANSWER)
            with sqlite3.connect(path, timeout=30) as look:
                (live,) = look.execute("SELECT count(*) FROM claims").fetchone()
            look.close()
            with open(log, "a", encoding="utf-8") as file:  # noqa: PTH123 - appended whole
                file.write("".join(f"{key} {live}\n" for key in got.claimed))
            for key in got.claimed:
                store.record(key, QUESTION, "target", ANSWER)
            done = len(store.recorded(keys, ANY_ANSWER)) == len(keys)


def test_processes_claim_each_key_once_and_keep_to_the_capacity(path: Path, tmp_path: Path) -> None:
    keys = [f"key{number}" for number in range(300)]
    context = multiprocessing.get_context("spawn")
    logs = [str(tmp_path / f"log{number}") for number in range(4)]
    arguments = [(str(path), f"owner{number}", keys, 7, log) for number, log in enumerate(logs)]
    workers = [context.Process(target=_claim_all, args=each) for each in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
        assert worker.exitcode == 0
    lines = [line.split() for log in logs for line in Path(log).read_text("utf-8").splitlines()]
    assert sorted(key for key, _ in lines) == sorted(keys)
    assert max(int(live) for _, live in lines) <= 7


# Changes by other processes


def test_changes_since_a_position_concern_one_target(address: StoreAddress) -> None:
    with Store(address) as store, Store(address) as other:
        position = store.position()
        assert store.database.has_changed()
        assert not store.database.has_changed()
        other.record("a", QUESTION, "target", ANSWER)
        other.record_failure("b", "target", "no luck")
        other.record_failure("c", "another target", "other target")
        assert store.database.has_changed()
        changes = store.changes(position, "target", ANY_ANSWER)
        assert (changes.answered, changes.failed) == (["a"], {"b": "no luck"})
        assert store.changes(changes.position, "target", ANY_ANSWER)[1:] == ([], {})
        other.record("a", QUESTION, "target", ANSWER)
        assert store.changes(changes.position, "target", ANY_ANSWER).answered == ["a"]


# Files


def test_new_folder_is_ignored_by_git(path: Path, tmp_path: Path) -> None:
    Store(path).close()
    assert (path.parent / ".gitignore").read_text("utf-8") == "*\n"
    Store(tmp_path / "store.sqlite").close()
    assert not (tmp_path / ".gitignore").exists()


def test_a_store_of_a_newer_version_is_not_changed(path: Path) -> None:
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=f"newer pytest-fairness .store version {SCHEMA_VERSION + 1}, this one reads {SCHEMA_VERSION}"
    ):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_that_is_not_a_store_is_rejected(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("no database at all, but long enough to look like one" * 10, "utf-8")
    with pytest.raises(StoreError, match=r"not a store of responses. Move it away"):
        Store(path)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StoreError, match=r"database of another program. Name another file with the ini fairness_store"):
        Store(path)


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(StoreError, match=r"the folder cannot be created or written .*fairness_store"):
        Store(tmp_path / "file" / "responses.sqlite")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match=r"is a folder\. Name a file in this folder"):
        Store(tmp_path / "folder")


def test_a_full_disk_keeps_recorded_answers(path: Path) -> None:
    with Store(path) as store:
        store.record("a", QUESTION, "target", ANSWER)
        # SQLite raises the same error for its own limit as for a full disk.
        ((pages,),) = store.database.execute("PRAGMA page_count")
        store.database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match=r"the disk is full. Free some space and run again"):
            store.record("b", QUESTION, "target", replace(ANSWER, text="long " * 100_000))
        assert store.recorded(["a", "b"], ANY_ANSWER) == {"a"}
    with Store(path) as store:
        store.record("b", QUESTION, "target", ANSWER)


def test_several_processes_create_the_store_at_once(path: Path) -> None:
    program = "from pathlib import Path; from pytest_fairness.asking.store import Store"
    program += f"; Store(Path({str(path)!r})).close()"
    started = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(6)]
    said = [process.communicate(timeout=50)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 6, said
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    connection.close()


def test_a_killed_process_loses_no_recorded_answer(path: Path) -> None:
    program = f"""
from pathlib import Path
from pytest_fairness.records import Request, Response
from pytest_fairness.asking.store import Store
store = Store(Path({str(path)!r}))
for number in range(1_000_000):
    store.record(str(number), Request("?"), "target", Response("x" * 1000))
    print(number, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(300)]
    process.kill()
    said += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    keys = [line.strip() for line in said if line.endswith("\n")]
    with Store(path) as store:
        assert store.recorded(keys, ANY_ANSWER) == set(keys)
    assert len(keys) >= 300


def written_by(version: int, path: Path) -> None:
    """Create a store with one answer, as an older version wrote it."""
    with Store(path) as store:
        store.record("a", QUESTION, "target", ANSWER)
        ((request, response),) = store.database.execute("SELECT request, response FROM responses")
    with sqlite3.connect(path) as connection:
        for table in (*SHARED_STATE, "history", "failures", "responses"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("ALTER TABLE measurements DROP COLUMN created")
        connection.executescript(OLD_TABLES[version])
        row = (7, "a", "target", request, response, ANSWER.created)
        connection.execute("INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def test_migration_from_version_2_keeps_the_answers(path: Path) -> None:
    written_by(2, path)
    with Store(path) as store:
        assert store.get(["a"], Freshness("run", 0.0)) == {"a": ANSWER}
        assert store.get(["a"], Freshness("run", inf)) == {}, "the run that asked is unknown"
        store.record("b", QUESTION, "target", ANSWER)
        assert store.changes((7, 0), "target", ANY_ANSWER).answered == ["b"]
        assert claim(store, ["c"], run=RunId("run", "")).claimed == ["c"]


def test_migration_from_version_5_keeps_the_answers_and_renames_tables(path: Path) -> None:
    with Store(path) as store:
        store.record("a", QUESTION, "target", ANSWER)
    with sqlite3.connect(path) as connection:
        for table in SHARED_STATE:
            connection.execute(f"DROP TABLE {table}")
        connection.executescript(COORDINATION)
        connection.execute("PRAGMA user_version = 5")
    connection.close()
    run = RunId("run", "")
    with Store(path) as store:
        assert store.get(["a"], ANY_ANSWER) == {"a": ANSWER}
        store.runs.put_target_error(run, "target", "no key")
        assert store.runs.target_error(run, "target") == "no key"
        assert claim(store, ["b"], run=run).claimed == ["b"]
        names = {name for (name,) in store.database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert not names & {"refusals", "tallies", "paces"}


def test_migration_from_version_1_keeps_the_answers(path: Path) -> None:
    written_by(1, path)
    with Store(path) as store:
        assert store.get(["a"], ANY_ANSWER) == {"a": ANSWER}
        assert claim(store, ["b"]).claimed == ["b"]
    with Store(path) as store:
        assert store.get(["a"], ANY_ANSWER) == {"a": ANSWER}


def test_a_claim_that_backs_off_uses_no_slot_and_keeps_its_owner(address: StoreAddress) -> None:
    with Store(address) as store:
        assert claim(store, ["a"], "one", capacity=1).claimed == ["a"]
        store.claims.back_off("a", "one")
        assert claim(store, ["a", "b"], "two", capacity=1).claimed == ["b"]
        assert claim(store, [], "one", capacity=1, retries=["a"]).claimed == []
        store.claims.release("b", "two")
        assert claim(store, ["c"], "one", capacity=1, retries=["a"]).claimed == ["a"], "retries go first"


def test_all_owners_share_the_budget_of_a_run(address: StoreAddress) -> None:
    run, other = RunId("run", ""), RunId("other", "")
    with Store(address) as store:
        store.runs.put_preflight(run, "", None)
        assert claim(store, ["a", "b"], "one", run=run, max_requests=3).claimed == ["a", "b"]
        store.claims.back_off("a", "one")
        assert claim(store, [], "one", run=run, max_requests=3, retries=["a"]).claimed == ["a"], "every attempt counts"
        assert claim(store, ["c"], "two", run=run, max_requests=3) == ClaimResult([], [], StopReason.OVER_BUDGET)
        assert store.claims.unclaimed(["a", "b", "c"], ANY_ANSWER) == ["c"]
        assert claim(store, ["c"], "three", run=other, max_requests=3).claimed == ["c"]
        store.runs.stop(other)
        assert claim(store, ["d"], "three", run=other) == ClaimResult([], [], StopReason.STOPPED)


def test_the_first_request_of_a_run_to_a_target_is_claimed_alone(address: StoreAddress) -> None:
    run = RunId("run", "")
    with Store(address) as store:
        first = claim(store, ["a", "b"], "one", run=run, target="t")
        assert (first.claimed, first.preflight) == (["a"], True)
        assert claim(store, ["b"], "two", run=run, target="t").claimed == [], "a worker waits for the others"
        assert claim(store, ["b"], "two", run=run, target="another").claimed == ["b"]
        assert claim(store, ["c"], "two", run=RunId("other", ""), target="t").claimed == ["c"]
        store.claims.back_off("a", "one")
        assert claim(store, ["d"], "one", run=run, target="t").claimed == []
        assert claim(store, ["d"], "one", run=run, target="t", retries=["a"]).claimed == ["a"]
        store.claims.release("a", "one")
        second = claim(store, ["d"], "two", run=run, target="t")
        assert (second.claimed, second.rejected) == (["d"], True), "the first one is not sent again"
        store.claims.release("d", "two")
        store.runs.put_target_error(run, "t", "rejected")
        assert claim(store, ["e"], "one", run=run, target="t").claimed == [], "no third one"
        store.runs.put_preflight(run, "t", None)
        open_to_all = claim(store, ["e", "f"], "one", run=run, target="t")
        assert (open_to_all.claimed, open_to_all.preflight) == (["e", "f"], False)


def test_a_run_ends_with_the_process_that_the_user_started(address: StoreAddress) -> None:
    # A zombie until `wait` is called.
    process = subprocess.Popen([sys.executable, "-c", "print(1)"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()
    gone = this_process().rpartition("/")[0] + f"/{process.pid}"
    with Store(address) as store:
        until = time.monotonic() + 5
        while claim(store, ["a"], run=RunId("run", gone)).stop_reason is not StopReason.STOPPED:
            assert time.monotonic() < until
            time.sleep(0.02)
    process.stdout.close()
    process.wait()


@pytest.mark.parametrize("version", [0, -1, -(2**31)])
def test_an_impossible_version_is_rejected(path: Path, version: int) -> None:
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(
        StoreError, match=f"has the store version {version}, which no version of pytest-fairness writes"
    ):
        Store(path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE responses SET response = 'no JSON'",
        "UPDATE responses SET response = '[1]'",
        """UPDATE responses SET response = '{"text": 5}'""",
        """UPDATE responses SET response = '{"text": "a", "more": 1}'""",
        """UPDATE responses SET response = '{"text": "a", "prompt_tokens": "b"}'""",
        "UPDATE responses SET response = printf('%.*c', 100000, '[')",
        "UPDATE responses SET response = x'00'",
        "UPDATE responses SET created = 'yesterday'",
    ],
)
def test_an_unreadable_answer_names_the_file(path: Path, change: str) -> None:
    request = Request("hello")
    with Store(path) as store:
        store.record(response_key("t", request), request, "t", Response("a", created=1.0))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    with Store(path) as store, pytest.raises(StoreError, match=r"a row cannot be read .*Move the store away"):
        store.get([response_key("t", request)], Freshness())
    with Store(path) as store, pytest.raises(StoreError, match="a row cannot be read"):
        list(store.all_recorded())


@pytest.mark.parametrize("written", ["'no JSON'", "'[1]'", """'{"value": "much"}'""", "printf('%.*c', 9999, '[')"])
def test_other_unreadable_rows_name_the_file(path: Path, written: str) -> None:
    run = RunId.new()
    with Store(path) as store:
        store.cache.put("m", {})
        store.runs.put_request_counts(run, "a/b", {})
        digest = store.cache.put_answers([1])
        store.rate_limits.put("t", RateLimit())
    with closing(sqlite3.connect(path)) as connection:
        for table, column in (
            ("measurements", "measurement"),
            ("request_counts", "counts"),
            ("rate_limits", "allowed"),
        ):
            connection.execute(f"UPDATE {table} SET {column} = {written}")  # noqa: S608 - constants of this test
        connection.execute("UPDATE answer_sets SET answers = '[[['")
        connection.commit()
    with Store(path) as store:
        for reading in (
            lambda: store.cache.get("m", Measurement.from_json),
            lambda: store.runs.request_counts(run),
            lambda: store.rate_limits.get("t"),
            lambda: list(store.cache.get_answers(digest)),
        ):
            with pytest.raises(StoreError, match="a row cannot be read"):
                reading()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX's")
def test_only_the_owner_may_read_the_store(tmp_path: Path) -> None:
    path = tmp_path / ".fairness" / "responses.sqlite"
    files = [path, *(path.with_name(f"{path.name}-{end}") for end in ("wal", "shm"))]
    before = os.umask(0)
    try:
        with Store(path) as store:
            store.cache.put("m", {})
            assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        path.parent.chmod(0o777)
        path.chmod(0o666)
        with Store(path) as store, Store(path):
            store.cache.put("m", {})
            for file in files:
                file.chmod(0o644)
            with Store(path):
                assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        (tmp_path / "shared").mkdir(mode=0o777)
        Store(tmp_path / "shared" / "responses.sqlite").close()
        assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o777, "permissions of another folder stay"
    finally:
        os.umask(before)
