"""Rule that decides which recorded responses a run reuses, and look-ups of these responses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from pytest_fairness.asking.store.freshness import Freshness
from pytest_fairness.asking.store.runs import RunId
from pytest_fairness.asking.store.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.targets.base import Target

KEYS_AT_ONCE = 4_000
"""Maximum number of requests' keys that are looked up in one query."""


class Reuse:
    """Recorded responses that a run reuses.

    Args:
        settings: the run's settings.
        run: identifier of the run; all processes of the run use the same identifier.
        started: start of the run, in seconds since the epoch; all processes of the run use the same number.
        store: function that returns the store of recorded responses, and creates a store that is missing.
    """

    def __init__(self, settings: RunSettings, run: RunId, started: float, store: Callable[[], Store]) -> None:
        self._settings, self._run, self._started, self._store = settings, run, started, store

    def freshness(self, target: Target) -> Freshness:
        """Return the rule that decides which recorded responses of a target are reused; all processes share it."""
        settings = self._settings
        oldest = self._started - settings.max_age_hours * 3600
        if settings.replay or (getattr(target, "lasting", False) and not settings.fresh):
            oldest = -math.inf
        elif settings.fresh or not target.reusable:
            oldest = math.inf
        return Freshness(self._run.name, oldest)

    def recorded(self, target: Target, keys: Sequence[str]) -> set[str]:
        """Return the keys of requests whose recorded response this run reuses; do not create a missing store."""
        return self._store().recorded(keys, self.freshness(target)) if self._settings.store.exists() else set()

    def oldest_of(self, keys: Iterable[str]) -> float | None:
        """Return the date of the oldest recorded response to the requests with these keys, in seconds since the epoch.

        The result is `None` if there is no response.
        """
        rest, found = iter(keys), []
        while self._settings.store.exists() and (some := list(islice(rest, KEYS_AT_ONCE))):
            found.append(self._store().oldest_of(some))
        return min((created for created in found if created is not None), default=None)
