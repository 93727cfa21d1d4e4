"""The last run with audit items, kept in the store: its report document, for tables to take away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_fairness.asking.store.store import Store
from pytest_fairness.records import Json

KEY = "last run"
LEFT_OUT = ("examples", "suggestions")
"""Details that no table needs: texts of answers, which the store holds already."""


def keep(
    store: Store, document: Mapping[str, Json], targets: Mapping[tuple[str, str], str], trials: int | None
) -> None:
    """Keep a run in place of the one before.

    Args:
        store: the store.
        document: the report document.
        targets: target of each item that asked one, by probe and id.
        trials: number of trials that overrides the probes' own.

    Raises:
        StoreError: the store cannot be written.
    """
    items = [
        {
            **item,
            "details": {name: detail for name, detail in item["details"].items() if name not in LEFT_OUT},
            "target": targets.get((item["probe"], item["id"])),
        }
        for item in document["items"]
    ]
    store.cache.put(KEY, {**document, "items": items, "trials": trials})


def last_run(store: Store) -> dict[str, Json] | None:
    """Return the report document of the last run, with `trials`, and `target` of each item; `None` without a run.

    Raises:
        StoreError: the store cannot be read.
    """

    def read(document: Any) -> dict[str, Json]:
        return dict(document)

    return store.cache.get(KEY, read)
