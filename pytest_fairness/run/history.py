"""History of runs in the store: value, interval and verdict of each item of each run.

The store holds a part of each run's report document. Replays are not stored, because they measure old answers again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal

from pytest_fairness.asking.store.database import in_transaction
from pytest_fairness.asking.store.store import Store
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.items.report_items import status

MAX_RUNS = 500
"""Maximum number of runs in a store; older runs are deleted."""
SHOWN = 30
"""Maximum number of runs that a trend shows."""

Key = tuple[str, str]
"""Key of an item: name of its probe, and its id."""

Point = dict[str, Json]
"""Result of one item in one run: `probe`, `id`, `started`, `tool`, `target`, `value`, `interval`, `verdict`; for an
item marked `xfail`, also its `status`."""

_encode = json.JSONEncoder(separators=(",", ":")).encode
_ITEM = ("probe", "id", "value", "interval", "verdict")


class History:
    """Table of earlier runs in a store.

    Args:
        max_runs: maximum number of runs; `add` deletes older runs.

    Raises:
        StoreError: raised by every method if the store cannot be read or written.
    """

    def __init__(self, store: Store, max_runs: int = MAX_RUNS) -> None:
        self.database = store.database
        self._max_runs = max_runs

    def add(
        self, document: Mapping[str, Json], targets: Mapping[Key, str], servers: Mapping[str, str] | None = None
    ) -> None:
        """Add the results in a report document to the history, if any item was measured.

        Args:
            document: the report document.
            targets: target of each item; an item without an entry has the document's target.
            servers: address of each target whose name does not contain the address.
        """
        items = [
            {
                **{name: item[name] for name in _ITEM},
                **({"status": status(item)} if item.get("expected_failure") else {}),
                "target": targets.get(_key(item), document["target"]),
            }
            for item in document["items"]
        ]
        if all(item["value"] is None for item in items):
            return
        run = _encode(
            {
                "started": document["started"],
                "tool": document["tool"],
                "servers": dict(servers or {}),
                **{name: document["requests"][name] for name in ("sent", "reused")},
                "items": items,
            }
        )
        self._put(run)

    def points(self) -> Iterator[Point]:
        """Yield the results of all items in all runs, the oldest run first."""
        for run in self._runs("ASC"):
            with self.database.decoding_errors():
                points = [{"started": run["started"], "tool": run["tool"], **item} for item in run["items"]]
            yield from points

    def always_inconclusive(self, targets: Mapping[Key, str], runs: int) -> set[Key]:
        """Return the items that were inconclusive in each of the last `runs` runs.

        Runs in which an item was not selected, could not be measured or was not judged do not count.

        Args:
            targets: target of each item; runs with another target do not count.
            runs: number of runs; items with fewer runs are not returned. If `runs` is 0, all items are returned.
        """
        open_items = dict.fromkeys(targets, 0) if runs else {}
        found = set(targets) - set(open_items)
        for run in self._runs("DESC") if open_items else ():
            with self.database.decoding_errors():
                judged = [(_key(item), VerdictName(item["verdict"]), item["target"]) for item in run["items"]]
            for key, verdict, target in judged:
                if key not in open_items or target != targets[key] or verdict.outcome in ("error", "measured"):
                    continue
                open_items[key] += 1
                if verdict is not VerdictName.INCONCLUSIVE:
                    del open_items[key]
                elif open_items[key] == runs:
                    del open_items[key]
                    found.add(key)
            if not open_items:
                break
        return found

    def _runs(self, order: Literal["ASC", "DESC"]) -> Iterator[dict[str, Json]]:
        """Yield the stored runs; a run is decoded only when it is needed."""
        for (text,) in self.database.execute(f"SELECT run FROM history ORDER BY sequence {order}"):  # noqa: S608 - one of two constants
            with self.database.decoding_errors():
                run: dict[str, Json] = json.loads(text)
            yield run

    @in_transaction
    def _put(self, run: str) -> None:
        self.database.execute("INSERT INTO history (run) VALUES (?)", (run,))
        oldest = "(SELECT max(sequence) FROM history) - ?"
        self.database.execute(f"DELETE FROM history WHERE sequence <= {oldest}", (self._max_runs,))  # noqa: S608 - a constant

    def trends(self, targets: Mapping[Key, str], servers: Mapping[str, str] | None = None) -> dict[Key, list[Point]]:
        """Return for each item its results in the last runs with new answers, for the trends in reports.

        A run that only reused recorded answers does not count. If a run reused some answers, or read all answers from
        files, an item with the same value and interval as in its previous result gets no new result.

        Args:
            targets: target of each item; runs of another target do not count.
            servers: address of each target whose name does not contain the address; runs with another address do not
                count.
        """
        found: dict[Key, list[Point]] = defaultdict(list)
        for run in self._runs("ASC"):
            with self.database.decoding_errors():
                reused = run.get("reused", 0)
                items = run["items"] if run.get("sent", 0) or not reused else []
                for item in items:
                    own, target = found[_key(item)], item["target"]
                    same_server = run.get("servers", {}).get(target) == (servers or {}).get(target)
                    repeated = reused or not run.get("sent", 0)
                    again = repeated and own and all(own[-1][name] == item[name] for name in ("value", "interval"))
                    if targets.get(_key(item)) == target and same_server and not again:
                        own.append({"started": run["started"], "tool": run["tool"], **item})
        return {key: points[-SHOWN:] for key, points in found.items() if points}


def _key(item: Mapping[str, Json]) -> Key:
    return item["probe"], item["id"]
