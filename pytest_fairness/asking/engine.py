"""Questions in, answers out: asks one target in the background, and nothing twice."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from pytest_fairness.asking.claims import RunId
from pytest_fairness.asking.freshness import Freshness
from pytest_fairness.asking.request_tracker import Ledger
from pytest_fairness.asking.sender import GRACE, Sender
from pytest_fairness.asking.store import Store, response_key
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.one_line import one_line

AT_ONCE = 4_000
"""Requests that are planned together: their questions are in memory only until it is known which are recorded."""

DESCRIPTORS = 8
"""Files that must be free to be opened: the event loop takes 3, a connection to the store 3, the first request one."""


class Engine:
    """Asks one target, from a background thread with one event loop, and records every answer the moment it arrives.

    The thread starts with the first question that has no recorded answer; without one, nothing is opened. All methods
    may be called from any thread.

    Args:
        store: the recorded responses.
        target: who is asked. Opened and closed by the engine.
        settings: the run's; `concurrency`, `timeout`, `give_up`, `max_requests`, `prices` and `replay` matter.
        oldest: when other runs' answers must have come to be accepted; see `Freshness`.
        owner: who asks, for whoever looks into the store.
        run: the run that this is a part of; one of its own where not given.
    """

    def __init__(
        self,
        store: Store,
        target: Target,
        settings: RunSettings,
        *,
        oldest: float,
        owner: str,
        run: RunId | None = None,
    ) -> None:
        run = run or RunId.new()
        self._store, self._target, self._replay = store, target, settings.replay
        self._fresh = Freshness(run.name, oldest)
        self._ledger = Ledger()
        self._sender = Sender(
            store,
            target,
            self._ledger,
            settings,
            fresh=self._fresh,
            owner=f"{owner}/{uuid.uuid4().hex[:8]}",
            run=run,
        )
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def plan(self, requests: Iterable[Request]) -> None:
        """Have these requests asked, in their order, where no answer is recorded; returns at once.

        Equal requests are asked once, and what was planned before is not planned again.

        Raises:
            StoreError: the store cannot be read.
        """
        rest = iter(requests)
        while part := {response_key(self._target.identity, request): request for request in islice(rest, AT_ONCE)}:
            self._plan(part)

    def answers(self, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Wait until each of these requests is answered or has failed; plans those that are not planned yet.

        Signals are handled while waiting: what their handlers raise comes out of here, and asking goes on.

        Returns:
            For each request, in order, its response, or the error for which there is none.

        Raises:
            StoreError: the store cannot be read.
        """
        keys = [response_key(self._target.identity, request) for request in requests]
        # Looked up first: mostly all are recorded, and need no second look.
        recorded = self._store.get(keys, self._fresh)
        self._plan(dict(zip(keys, requests, strict=True)), recorded)
        failed = self._ledger.wait(keys)
        late = {key for key in keys if key not in recorded and key not in failed}
        settled: dict[str, Response | FairnessError] = {**recorded, **failed}
        settled |= self._store.get(late, self._fresh) if late else {}
        gone = AnswersMissing("an answer was removed from the store while the run went on; run again")
        return [settled.get(key, gone) for key in keys]

    def newly_planned(self) -> dict[str, bool]:
        """The keys of requests planned since this was called last, and whether each was recorded already."""
        return self._ledger.newly_planned()

    def progress(self) -> dict[str, float]:
        """How far things are; every count but `retried` is of distinct requests.

        Returns:
            planned: all.
            settled: of these, answered or failed, by whomever.
            reused: had a recorded answer when they were planned.
            sent: asked by this process.
            retried: further tries of these.
            in_flight: of these, not settled yet.
            answered: of these, got an answer.
            failed: of these, got none.
            prompt_tokens, completion_tokens: of the answers that this process got, as far as the target says.
            uncounted: of these answers, those that have a price, but of which the target does not say the tokens.
            asked_again: of these answers, those that no other run takes.
            cost: of these tokens, if the target has a price.
        """
        return self._sender.counts()

    def stop(self, grace: float = GRACE) -> None:
        """Send nothing more, wait for what is in flight and close the target; planning afterwards asks nothing.

        Args:
            grace: seconds to wait; what arrives in this time is recorded.
        """
        self._ledger.close_open(AnswersMissing("the run was stopped before this was asked; run again to go on"))
        self._sender.stop(grace)
        with self._starting:
            thread = self._thread
        if thread is not None:
            # Closing a target may take a moment more; if it hangs, the thread does not keep the process alive.
            thread.join(grace + GRACE)

    def _plan(self, questions: dict[str, Request], recorded: Collection[str] | None = None) -> None:
        new = self._ledger.unknown(questions)
        if not new:
            return
        if recorded is None:
            recorded = self._store.recorded(new, self._fresh)
        left = self._ledger.add(new, recorded)
        if self._replay:
            self._ledger.settle_elsewhere([], {key: _not_recorded(new[key]) for key in new if key not in recorded})
        elif left:
            with self._starting:
                if self._thread is None:
                    self._start()
            self._sender.wake()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="fairness-engine", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._ledger.close(self._not_started(error))
        else:
            self._thread = thread

    def _run(self) -> None:
        """Send until the end; whatever keeps the event loop from starting fails all requests, so that nobody waits."""
        try:
            _require_descriptors()
            runner = asyncio.Runner()
            runner.get_loop()
        except Exception as error:  # noqa: BLE001 - told by the ledger to whoever waits
            self._ledger.close(self._not_started(error))
            return
        with runner:
            runner.run(self._sender.run())

    def _not_started(self, error: Exception) -> FairnessError:
        reason = one_line(getattr(error, "strerror", None) or error)
        cure = "Close other programs or raise the limits of this user (`ulimit -n`, `ulimit -u`)"
        return FairnessError(f"{self._target.name} cannot be asked: {reason}. {cure}, and run again.")


def _require_descriptors() -> None:
    """Raise `OSError` where too few files can be opened: an event loop that finds out itself leaves a traceback."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(DESCRIPTORS))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _not_recorded(request: Request) -> AnswersMissing:
    question = one_line(request.prompt, 60)
    return AnswersMissing(f"not recorded: {question!r}, trial {request.trial}; run without --fairness-replay")
