"""Engine: gets answers from the store or from one target; it sends requests to the target in the background."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import uuid
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import islice

from pytest_fairness.asking.garbage_collection import rare_collections
from pytest_fairness.asking.give_up import GiveUpTimer
from pytest_fairness.asking.preflight import Preflight
from pytest_fairness.asking.request_tracker import RequestTracker
from pytest_fairness.asking.sender import Sender
from pytest_fairness.asking.store.batch_table import BatchTable
from pytest_fairness.asking.store.freshness import Freshness
from pytest_fairness.asking.store.runs import RunId
from pytest_fairness.asking.store.store import Store, response_key
from pytest_fairness.asking.store_sync import StoreSync
from pytest_fairness.asking.timing import DEFAULT_TIMING, Timing
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.options import MAX_TRIALS, RunSettings
from pytest_fairness.plurals import counted
from pytest_fairness.recent import Recent
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.one_line import one_line

BATCH = 4_000
"""Number of requests that are planned together. Requests with a recorded answer are removed from memory before the next
requests are planned."""

KEPT_KEYS = 20_000
"""Maximum number of request keys that are kept in memory, because they are needed again: when requests are planned, and
by each item that uses the answers."""

DESCRIPTORS = 8
"""Minimum number of free file descriptors to start a run: 3 for the event loop, 3 for a connection to the store, 2 for
requests."""


class Engine:
    """Background thread that sends requests to one target and records every answer as soon as it arrives.

    The thread starts with the first request that has no recorded answer; without such a request, the target is not
    opened. All methods may be called from any thread.

    Args:
        store: recorded responses.
        target: the system under test; opened and closed by the engine.
        settings: settings of the run; `concurrency`, `timeout`, `give_up`, `max_requests`, `max_answer_bytes`,
            `prices`, `fresh` and `replay` are used.
        oldest: date (seconds since the epoch); older answers of other runs are not reused. See `Freshness`.
        owner: name under which the store keeps the engine's claims and request counts.
        run: the run to which the requests belong; default: a new run.
        timing: pauses and time limits.
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
        timing: Timing = DEFAULT_TIMING,
    ) -> None:
        run = run or RunId.new()
        self._store, self._target, self._replay = store, target, settings.replay
        self._key_of = Recent(partial(response_key, target.identity), KEPT_KEYS)
        self._batches = BatchTable(store)
        self._fresh = Freshness(run.name, oldest)
        self._tracker, self._timing = RequestTracker(), timing
        timer = GiveUpTimer(target.name, settings.give_up, timing.give_up_unreachable)
        preflight = Preflight(self._tracker)
        self._sync = StoreSync(
            store,
            target,
            self._tracker,
            settings,
            timer,
            preflight,
            fresh=self._fresh,
            owner=f"{owner}/{uuid.uuid4().hex[:8]}",
            run=run,
            timing=timing,
        )
        self._sender = Sender(target, self._tracker, settings, self._sync, timer, preflight, timing)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def plan(self, requests: Iterable[Request]) -> None:
        """Queue the requests without a recorded answer, in the given order, and return without waiting for answers.

        Equal requests are sent once. A request without a recorded answer fails with the setting `replay`, or if a batch
        will answer it.

        Raises:
            StoreError: the store cannot be read.
        """
        rest = iter(requests)
        while batch := {self._key_of(request): request for request in islice(rest, BATCH)}:
            self._plan(batch)

    def answers(self, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Wait until these requests are answered or failed; return, in their order, the response or error of each.

        Requests that are not planned yet are planned first. Python's signal handlers run during the wait; if a handler
        raises an exception, this method raises it, and the engine continues.

        Raises:
            StoreError: the store cannot be read.
        """
        keys = list(map(self._key_of, requests))
        # Read the store before waiting, because usually all answers are recorded already.
        recorded = self._store.get(keys, self._fresh)
        self._plan(dict(zip(keys, requests, strict=True)), recorded)
        failed = self._tracker.wait(keys)
        late = {key for key in keys if key not in recorded and key not in failed}
        settled: dict[str, Response | FairnessError] = {**recorded, **failed}
        settled |= self._store.get(late, self._fresh) if late else {}
        gone = AnswersMissing("an answer was removed from the store during the run; run again")
        return [settled.get(key, gone) for key in keys]

    def digest(self, requests: Iterable[Request]) -> str | None:
        """Return a hash of the recorded answers to these requests; `None` if one of them has no recorded answer."""
        return self._store.digest(list(map(self._key_of, requests)), self._fresh)

    def newly_planned(self) -> dict[str, bool]:
        """Return the requests planned since the last call: for each key, whether an answer was already recorded."""
        return self._tracker.newly_planned()

    def progress(self) -> dict[str, float]:
        """Return the request counts; a request that is sent several times counts once, except in `retried`.

        Returns:
            planned: all requests that were planned so far.
            settled: requests that have a recorded answer or failed, here or in another process.
            reused: requests that already had a recorded answer when they were planned.
            sent: requests sent by this process.
            retried: attempts to send a request again.
            in_flight: sent requests that wait for their response.
            answered: sent requests that were answered.
            failed: sent requests that failed.
            prompt_tokens, completion_tokens: tokens of the answers that this process received, as far as the target
                reports them.
            uncounted: answers whose cost is unknown, because the target has a price but reports no tokens for them.
            asked_again: answers that no other run may reuse; every other run sends these requests again.
            cost: cost of the tokens; only present if the target has a price.
        """
        return self._sync.counts()

    def stop(self, grace: float | None = None) -> None:
        """Stop sending, wait for the requests in flight and close the target; requests planned after this call fail.

        Args:
            grace: maximum seconds to wait for answers to the requests in flight. Default: `Timing.stop_grace`.
        """
        grace = self._timing.stop_grace if grace is None else grace
        self._tracker.close(AnswersMissing("not sent: the run was stopped; run again to continue"), unsent_only=True)
        self._sender.stop(grace)
        with self._starting:
            thread = self._thread
        if thread is not None:
            # Closing a target may take longer; if it hangs, the daemon thread does not keep the process alive.
            thread.join(grace + self._timing.stop_grace)

    def _plan(self, requests: dict[str, Request], recorded: Collection[str] | None = None) -> None:
        new = self._tracker.unplanned(requests)
        if not new:
            return
        if recorded is None:
            recorded = self._store.recorded(new, self._fresh)
        # The store is read before the requests are planned: if it fails, nobody waits for requests that are never sent.
        missing = [] if self._replay else [key for key in new if key not in recorded]
        batched = self._batches.pending(missing) if missing else {}
        left = self._tracker.add(new, recorded)
        if self._replay:
            self._tracker.settle_elsewhere([], {key: _not_recorded(new[key]) for key in new if key not in recorded})
            return
        if batched:
            self._tracker.settle_elsewhere([], dict.fromkeys(batched, _in_batch_error(self._target.name, len(batched))))
            left = bool(self._tracker.next_unsent(1))
        if left:
            with self._starting:
                if self._thread is None:
                    self._start()
            self._sender.wake()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="fairness-engine", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._tracker.close(self._start_error(error))
        else:
            self._thread = thread

    def _run(self) -> None:
        """Run the sender; if the event loop cannot start, settle all requests as failed."""
        try:
            _require_descriptors()
            # An event loop opens such a socket. This test avoids a half-made event loop if sockets are blocked.
            socket.socket(getattr(socket, "AF_UNIX", socket.AF_INET)).close()
            runner = asyncio.Runner()
            runner.get_loop()
        except Exception as error:  # noqa: BLE001 - raised by the threads that wait for answers
            self._tracker.close(self._start_error(error))
            return
        with runner, rare_collections():
            runner.run(self._sender.run())

    def _start_error(self, error: Exception) -> FairnessError:
        reason = one_line(getattr(error, "strerror", None) or error).rstrip(".")
        cure = "Close other programs, or raise the limits of this user (`ulimit -n`, `ulimit -u`), and run again"
        if type(error).__module__ == "pytest_socket":
            cure = "pytest-socket blocks sockets. Run audits with --force-enable-socket"
        return FairnessError(f"{self._target.name} cannot be asked: {reason}. {cure}.")


def _require_descriptors() -> None:
    """Raise `OSError` if the process cannot open enough files for a run.

    Without this check, an event loop that cannot open a file would print a traceback.
    """
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(DESCRIPTORS))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _in_batch_error(name: str, count: int) -> AnswersMissing:
    """Return the error for `count` requests to the target `name` that are not sent because a batch will answer them."""
    which = counted(count, "request")
    return AnswersMissing(
        f"not answered yet: a batch holds {which} to {name}. Run again later with --fairness-batch-collect, or run "
        "with --fairness-batch to wait for the answers"
    )


def _not_recorded(request: Request) -> AnswersMissing:
    prompt, trial = one_line(request.prompt, 60), request.trial % MAX_TRIALS
    return AnswersMissing(
        f"not recorded: {prompt!r}, trial {trial}; run without --fairness-replay. If --fairness-shard divided "
        "the requests, merge the stores of all shards"
    )
