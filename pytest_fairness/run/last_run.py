"""Report document of the last run that had items, kept in the store for the command `export`."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.asking.store.result_cache import LAST_RUN
from pytest_fairness.asking.store.store import Store
from pytest_fairness.records import Json

LEFT_OUT = ("examples", "suggestions")
"""Details of items that are not stored, because no exported table needs them."""


def store_last_run(
    store: Store, document: Mapping[str, Json], targets: Mapping[tuple[str, str], str], trials: int | None
) -> None:
    """Store the report document of a run, in place of the previous run's document.

    Args:
        document: the report document.
        targets: target of each item that sent requests, by probe name and item id.
        trials: number of trials that overrode the probes' own numbers, or `None`.

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
    store.cache.put(LAST_RUN, {**document, "items": items, "trials": trials})


def last_run(store: Store) -> dict[str, Json] | None:
    """Return the report document of the last run; `None` if no run is stored.

    The document has the additional key `trials`, and each of its items the additional key `target`; see
    `store_last_run`.

    Raises:
        StoreError: the store cannot be read.
    """
    return store.cache.get(LAST_RUN, dict)
