"""Tables of provider batches, in a file and in a database."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_fairness.asking import store as batch_table
from pytest_fairness.asking.claims import ANY_ANSWER, RunId
from pytest_fairness.asking.store import Batch, BatchState, BatchTable, Store, response_key
from pytest_fairness.option_types import StoreAddress
from pytest_fairness.records import Request, Response

RUN = RunId.new()
REQUESTS = {response_key("bot", request): request for request in (Request(f"{number}?") for number in range(5))}
KEYS = list(REQUESTS)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> StoreAddress:
    if request.param == "SQLite":
        return tmp_path / "responses.sqlite"
    found: StoreAddress = request.getfixturevalue("database_url")
    return found


@pytest.fixture
def store(address: StoreAddress) -> Iterator[Store]:
    with Store(address) as store:
        yield store


def add(store: Store, token: str, keys: list[str] = KEYS, max_requests: int | None = None) -> int:
    requests = {key: REQUESTS[key] for key in keys}
    return BatchTable(store).add(token, "bot", requests, fresh=ANY_ANSWER, run=RUN, max_requests=max_requests)


def claim(store: Store, keys: list[str], **more: object) -> list[str]:
    claimed = store.claims.claim(
        keys, "owner", limit=9, capacity=9, lease_seconds=60, fresh=ANY_ANSWER, preflight=False
    )
    return claimed.claimed


def test_a_request_is_answered_claimed_or_in_one_batch(store: Store) -> None:
    table = BatchTable(store)
    store.record(KEYS[0], REQUESTS[KEYS[0]], "bot", Response("Yes."))
    assert claim(store, KEYS[:2]) == KEYS[1:2]
    assert add(store, "one") == 3
    assert add(store, "two") == 0
    assert table.requests("one") == {key: REQUESTS[key] for key in KEYS[2:]}
    assert table.pending(KEYS) == dict.fromkeys(KEYS[2:], "one")
    assert claim(store, KEYS) == []
    store.record(KEYS[2], REQUESTS[KEYS[2]], "bot", Response("Yes."))
    store.record_failure(KEYS[3], "bot", "no")
    assert list(table.requests("one")) == [KEYS[4]]
    assert claim(store, KEYS) == [KEYS[3]]
    table.delete("one")
    assert table.batches(["one", "two"]) == []
    assert claim(store, KEYS) == [KEYS[4]]


def test_the_state_survives(address: StoreAddress) -> None:
    with Store(address) as store:
        add(store, "one")
        (batch,) = BatchTable(store).batches(["one"])
        assert batch[1:4] == (BatchState.PLANNED, "", "")
        BatchTable(store).put(batch._replace(state=BatchState.CREATED, file="file-1", remote="batch_1"))
    with Store(address) as store:
        (later,) = BatchTable(store).batches(["one"])
        assert later == batch._replace(state=BatchState.CREATED, file="file-1", remote="batch_1", touched=later.touched)
        assert later.touched >= batch.touched
        assert BatchTable(store).remotes() == {"batch_1"}
        assert isinstance(later, Batch)


def test_a_batch_uses_the_budget_of_its_run(store: Store) -> None:
    assert add(store, "one", KEYS[:2], max_requests=3) == 2
    assert add(store, "two", KEYS, max_requests=3) == 1
    assert add(store, "three", KEYS, max_requests=3) == 0
    assert store.runs.state(RUN)[0] == 3


def reserve(address: StoreAddress) -> None:
    with Store(address) as store:
        assert BatchTable(store).reserve("one", 3600)


def test_one_process_works_on_a_batch_until_it_ends(address: StoreAddress) -> None:
    with Store(address) as store:
        add(store, "one")
        table = BatchTable(store)
        process = multiprocessing.get_context("spawn").Process(target=reserve, args=(address,))
        process.start()
        process.join(60)
        assert process.exitcode == 0
        assert table.reserve("one", 60), "the other process has ended"
        store.database.execute("UPDATE batches SET process = 'elsewhere/1'")
        assert not table.reserve("one", 60)
        store.database.execute("UPDATE batches SET expires = 0")
        assert table.reserve("one", 60)
        table.release("one")
        assert not table.reserve("two", 60)


def test_batches_whose_results_are_gone_are_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, "one", KEYS[:2])
    monkeypatch.setattr(batch_table, "BATCH_KEPT", -1.0)
    assert add(store, "two") == 5
    assert BatchTable(store).batches(["one"]) == []
