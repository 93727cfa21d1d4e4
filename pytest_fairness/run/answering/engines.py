"""Engines of a run, one for each target, and the store that they share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import cast

from pytest_fairness.asking.batches import timing
from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.store.processes import this_process
from pytest_fairness.asking.store.runs import RunId
from pytest_fairness.asking.store.store import Store, response_key
from pytest_fairness.asking.timing import DEFAULT_TIMING
from pytest_fairness.closing import Closing
from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.run.answering.reuse import Reuse
from pytest_fairness.targets import likelihood_support
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.batch_client import BatchTarget


class Engines(Closing):
    """Engines of one process of a run, one for each target.

    Args:
        settings: the run's settings.
        run: identifier of the run; all processes of the run use the same identifier.
        started: start of the run, in seconds since the epoch; all processes of the run use the same number.
    """

    def __init__(self, settings: RunSettings, run: RunId, started: float) -> None:
        self._settings, self._run = settings, run
        self.reuse = Reuse(settings, run, started, lambda: self.store)
        self._owner = uuid.uuid4().hex
        self._engines: dict[int, tuple[Target, Engine]] = {}

    @cached_property
    def store(self) -> Store:
        """Return the store of recorded responses; the first call opens the store."""
        return Store(self._settings.store)

    def engine(self, target: Target) -> Engine:
        """Return the engine of this target; the first call creates the engine."""
        if id(target) not in self._engines:
            oldest = self.reuse.freshness(target).oldest
            engine = Engine(self.store, target, self._settings, oldest=oldest, owner=self._owner, run=self._run)
            self._engines[id(target)] = target, engine
        return self._engines[id(target)][1]

    @property
    def reuse_needs_replay(self) -> bool:
        """Return whether a later run needs `--fairness-replay` to reuse the answers of this process."""
        targets = [target for target, _ in self._engines.values() if not getattr(target, "lasting", False)]
        # `addopts` may contain --fairness-fresh, so that it holds for the later run too.
        return self._settings.replay or self._settings.fresh or not all(target.reusable for target in targets)

    def plan(self, target: Target, requests: Iterable[Request]) -> None:
        """Send the requests in the background, in this order; see `Engine.plan`.

        Requests of other shards, and requests that the target cannot answer, are left out.
        """
        answerable = (request for request in requests if likelihood_support.can_answer(target, request))
        self.engine(target).plan(self.own_part(target, answerable))

    def own_part(self, target: Target, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield the requests that this run sends: all requests, or only the requests of the run's shard."""
        shard = self._settings.shard
        return (each for each in requests if shard is None or shard.holds(response_key(target.identity, each)))

    def ask(self, target: Target, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Send these requests and wait for the responses; see `Engine.answers`.

        Raises:
            TargetError: a request asks for a likelihood, but the target cannot compute likelihoods.
        """
        likelihood_support.require_support(target, requests)
        return self.engine(target).answers(requests)

    async def send_in_batches(
        self, target: Target, requests: Iterable[Request], show_line: Callable[[str], None]
    ) -> None:
        """Send the requests without a recorded response in batches of the provider; see `BatchSender.send`.

        Args:
            target: a target with the method `batch_client`.
            requests: all requests to this target.
            show_line: function that shows a line to the user.
        """
        # Deferred, as most runs send no batches.
        from pytest_fairness.asking.batches.sender import BatchSender

        target.check()
        self.engine(target)  # an engine finds only failures that are recorded after its creation
        sender = BatchSender(
            self.store,
            target,
            cast("BatchTarget", target).batch_client(),
            self._settings,
            fresh=self.reuse.freshness(target),
            run=self._run,
            owner=f"{self._owner}/batches of {target.identity}",
            timing=timing.DEFAULT_BATCH_TIMING,
            show_line=show_line,
        )
        await sender.send(self.own_part(target, requests))

    def newly_planned(self) -> dict[str, bool]:
        """Return the requests planned since the last call: for each key, whether an answer was already recorded."""
        found: dict[str, bool] = {}
        for _, engine in self._engines.values():
            for key, recorded in engine.newly_planned().items():
                found[key] = recorded and found.get(key, True)
        return found

    def stop(self, grace: float = DEFAULT_TIMING.stop_grace) -> None:
        """Stop sending requests from this process.

        Args:
            grace: seconds to wait for the requests in flight.
        """
        for _, engine in self._engines.values():
            engine.stop(grace)

    def stop_all(self) -> None:
        """Stop sending requests from all processes of the run."""
        if self._settings.store.exists():
            self.store.runs.stop(self._run)
        self.stop()

    def close(self) -> None:
        """Stop sending and close the store. If this process started the run, all processes of the run stop sending."""
        self.stop()
        if self._engines and self._run.process == this_process():
            with suppress(StoreError):  # the items that need the store have reported the error
                self.store.runs.stop(self._run)
        if "store" in self.__dict__:
            self.store.close()
