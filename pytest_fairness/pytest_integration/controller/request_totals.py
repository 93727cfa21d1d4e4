"""Request counts of all processes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from pytest_fairness.asking.request_counts import RequestCounts, total_counts
from pytest_fairness.errors import FairnessError
from pytest_fairness.run import Run


class RequestTotals:
    """Request counts of a run, summed over its processes.

    Each process plans the requests of all items, but sends only a part of them.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._planned: dict[str, bool] = {}

    def add_planned(self, planned: Mapping[str, bool]) -> None:
        """Add planned requests.

        Args:
            planned: for each planned request, by its key, whether a response was already recorded.
        """
        for key, recorded in planned.items():
            # A response that one worker records during the run looks recorded to workers that plan later. It was
            # recorded before the run only if all workers found it.
            self._planned[key] = recorded and self._planned.get(key, True)

    def by_owner(self) -> dict[str, RequestCounts]:
        """Return the current counts of each owner (engine of one process); empty without a store that can be read."""
        if self._run.settings.store.exists():
            with suppress(FairnessError):  # the items that need the store have reported the error
                return self._run.store.runs.request_counts(self._run.id)
        return {}

    def so_far(self) -> dict[str, float]:
        """Return the current counts, summed over all processes, for the progress line."""
        return total_counts(self.by_owner())

    def at_the_end(self) -> dict[str, float | None]:
        """Return the final counts, summed over all processes, in the form of the report document."""
        # Workers send their planned requests on test reports; without workers, this process has planned all requests.
        self.add_planned(self._run.engines.newly_planned())
        total = self.so_far()
        planned, reused = len(self._planned), sum(self._planned.values())
        if total["planned"] > planned:
            # The run was interrupted before most of these reports arrived.
            planned, reused = int(total["planned"]), int(total["reused"])
        # The answers of batches are recorded before the requests are planned, but were sent by this run.
        reused = min(reused, max(0, planned - int(total["sent"])))
        cost = total["cost"] if "cost" in total and not total["uncounted"] else None
        return {**total, "planned": planned, "reused": reused, "cost": cost}

    def oldest_reused(self) -> float | None:
        """Return the date of the oldest reused response, in seconds since the epoch; `None` without reuse.

        The result is also `None` if the store cannot be read.
        """
        if not self.at_the_end()["reused"]:
            return None
        with suppress(FairnessError):
            return self._run.engines.reuse.oldest_of(key for key, recorded in self._planned.items() if recorded)
        return None
