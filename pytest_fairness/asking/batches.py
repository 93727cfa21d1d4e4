"""Batches of a provider: choice of requests, sending, and the record of results."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from pytest_fairness.asking.claims import Freshness, RunId
from pytest_fairness.asking.engine import TargetCaller
from pytest_fairness.asking.limits import BATCH_PRICE, GiveUpTimer, with_cost
from pytest_fairness.asking.store import Batch, BatchState, BatchTable, Store, response_key
from pytest_fairness.asking.tracker import COUNTED, FAILURES
from pytest_fairness.backends import chunks_of
from pytest_fairness.errors import (
    AnswersMissing,
    FairnessError,
    RequestFailed,
    RetryReason,
    TargetError,
    counted,
    short_message,
)
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.targets.base import (
    BATCHED,
    BatchClient,
    BatchIntent,
    BatchResult,
    BatchStatus,
    BatchUnclear,
    Target,
)

# Sender of one target's requests in batches.
#
# Each batch is created and paid for once, and each answer is recorded once. For this, a batch is written to the
# store before the provider knows the batch. If a run is killed at any step, the next run can continue the batch: it
# uploads requests that were not uploaded, asks the provider whether the batch was created, and downloads results
# that were not recorded.

T = TypeVar("T")

AT_ONCE = 4_000
"""Number of requests that are looked up in the store at once."""
RECORDED_AT_ONCE = 100
"""Number of results that are recorded in one transaction."""


class BatchSender:
    """Sender of requests to one target in batches; it does not open the target, but closes the client."""

    def __init__(
        self,
        store: Store,
        target: Target,
        client: BatchClient,
        settings: RunSettings,
        *,
        fresh: Freshness,
        run: RunId,
        owner: str,
        timing: BatchTiming,
        show_line: Callable[[str], None],
    ) -> None:
        self._store, self._table = store, BatchTable(store)
        self._target, self._client, self._settings = target, client, settings
        self._fresh, self._run, self._owner, self._timing, self._show_line = fresh, run, owner, timing, show_line
        timer = GiveUpTimer(target.name, settings.give_up, settings.give_up)
        self._caller = TargetCaller(target, settings, timer)
        self._tokens: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._failing_since: float | None = None
        self._unclear = ""

    async def send(self, requests: Iterable[Request]) -> None:
        """Send all requests that have no recorded answer, as batches; wait for the batches and record their results.

        Requests whose answer format is not in `BATCHED` are left out. With the setting `batch_submit`, return when all
        batches are created. With `batch_collect`, create no new batches, and record only the results of batches that
        have ended.

        Raises:
            TargetError: the target cannot be asked.
            AnswersMissing: the provider cannot be reached; or, with `batch_collect`, a request is in no batch.
            RequestFailed: the provider rejects a batch.
            BatchUnclear: with `batch_submit` or `batch_collect`, the provider cannot tell yet whether a batch of a
                killed run was created.
        """
        try:
            unsubmitted = self._plan_batches(requests)
            await self._work()
        finally:
            await self._client.close()
        if unsubmitted:
            raise AnswersMissing(
                f"not sent: {counted(unsubmitted, 'request')} to {self._target.name}, without a recorded answer and in "
                "no batch. Submit them with --fairness-batch=submit, or run without --fairness-batch=collect to send "
                "them now"
            )

    def _plan_batches(self, requests: Iterable[Request]) -> int:
        """Write new batches to the store, with as many of the open requests as the budget allows.

        A request is open if it has no recorded answer and no claim, and is in no batch. With `batch_collect`, nothing
        is written, and the number of open requests is returned.
        """
        chosen: dict[str, Request] = {}
        size = unsubmitted = 0
        rest = (request for request in requests if request.answer_format in BATCHED)
        while some := {response_key(self._target.identity, each): each for each in islice(rest, AT_ONCE)}:
            self._tokens |= set(self._table.pending(some).values())
            for key in self._store.claims.unclaimed(list(some), self._fresh):
                if key in chosen:
                    continue
                length = len(self._client.line(key, some[key]))
                if not self._settings.batch_collect and (
                    len(chosen) == self._client.max_requests or (chosen and size + length > self._client.max_bytes)
                ):
                    self._add(chosen)
                    chosen, size = {}, 0
                chosen[key] = some[key]
                size += length
        if self._settings.batch_collect:
            unsubmitted = len(chosen)
        elif chosen:
            self._add(chosen)
        return unsubmitted

    def _add(self, requests: dict[str, Request]) -> None:
        token = uuid.uuid4().hex
        self._tokens.add(token)
        self._table.add(
            token,
            self._target.identity,
            requests,
            fresh=self._fresh,
            run=self._run,
            max_requests=self._settings.max_requests,
        )

    async def _work(self) -> None:
        """Create the batches at the provider, wait for their results and record the results."""
        pause = self._timing.first_poll
        waits = not self._settings.batch_submit and not self._settings.batch_collect
        while True:
            progressed, again = False, False
            for batch in self._table.batches(self._tokens):
                if not self._table.reserve(batch.token, self._timing.lease):
                    again = True
                    continue
                try:
                    progressed |= await self._advance(batch)
                except BatchUnclear as error:
                    if not waits:
                        raise
                    if self._unclear != str(error):
                        self._unclear = str(error)
                        self._show_line(self._unclear)
                except RequestFailed as error:
                    self._raise_if_permanent(error)
                    again = True
                finally:
                    self._table.release(batch.token)
            left = self._table.batches(self._tokens)
            submitted = all(batch.state is BatchState.CREATED for batch in left)
            if not left or (submitted and not waits and not again):
                return
            if progressed:
                pause = self._timing.first_poll
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._timing.longest_poll)

    async def _advance(self, batch: Batch) -> bool:
        """Create the batch if necessary, and record its results if it has ended; return whether either was done."""
        created = batch.state is not BatchState.CREATED
        if created:
            batch = await self._ensure_created(batch)
        elif self._settings.batch_submit:
            return False
        if self._settings.batch_submit:
            return True
        status = await self._with_time_limit(self._client.status(batch.remote))
        self._failing_since = None
        if status.ended:
            await self._record_all(batch, status)
        elif not created and self._settings.batch_collect:
            left = len(self._table.requests(batch.token))
            self._show_line(f"batch {batch.remote}: {status.name}, {status.settled:,} of {left:,} requests done")
        return created or status.ended

    async def _ensure_created(self, batch: Batch) -> Batch:
        requests = self._table.requests(batch.token)
        lines = [self._client.line(key, request) for key, request in requests.items()]
        remote = None
        if batch.state is BatchState.CREATING:
            # A provider's list may lack a batch that was created a few seconds ago.
            await asyncio.sleep(max(0.0, batch.touched + self._timing.listing_delay - self._store.database.now()))
            remote = await self._with_time_limit(self._client.find(self._intent(batch, requests)))
        if remote is None:
            try:
                if batch.state is BatchState.PLANNED:
                    batch = batch._replace(file=await self._with_time_limit(self._client.upload(batch.token, lines)))
                # Written before the batch is created, so that a later run looks for the batch at the provider.
                batch = batch._replace(state=BatchState.CREATING)
                self._table.put(batch)
                remote = await self._with_time_limit(self._client.create(self._intent(batch, requests), lines))
            except (RequestFailed, TargetError) as error:
                if isinstance(error, TargetError) or error.retry is None:
                    self._table.delete(batch.token)
                raise
        batch = batch._replace(state=BatchState.CREATED, remote=remote)
        self._table.put(batch)
        self._failing_since = None
        self._show_line(f"batch {remote} of {self._target.name}: {counted(len(lines), 'request')} submitted")
        return batch

    def _intent(self, batch: Batch, keys: Collection[str]) -> BatchIntent:
        return BatchIntent(batch.token, batch.file, keys, batch.created, self._table.remotes())

    async def _record_all(self, batch: Batch, status: BatchStatus) -> None:
        """Record the results of an ended batch, and its requests without a result as failed."""
        async for results in _groups(self._client.results(batch.remote, status)):
            self._record(batch, results)
            self._table.reserve(batch.token, self._timing.lease)
        left = self._table.requests(batch.token)
        reason = status.error or "the batch's results contain no readable line for this request"
        error = RequestFailed(f"{self._target.name}: batch {batch.remote} ({status.name}): {reason}")
        for keys in chunks_of(left, RECORDED_AT_ONCE):
            self._record(batch, [BatchResult(key, error) for key in keys])
        self._table.delete(batch.token)
        failed = f", {counted(len(left), 'request')} without a result" if left else ""
        self._show_line(f"batch {batch.remote} of {self._target.name}: {status.name}, results recorded{failed}")

    def _record(self, batch: Batch, results: list[BatchResult]) -> None:
        """Record results in one transaction; ignore results of requests that the store no longer lists in the batch."""
        outcomes = {result.key: self._recordable(result.outcome) for result in results}
        settled = self._store.database.write(partial(self._write, batch, outcomes))
        for key in settled:
            outcome = outcomes[key]
            self._counts["sent"] += 1
            if isinstance(outcome, Response):
                self._counts["answered"] += 1
                self._counts["prompt_tokens"] += outcome.prompt_tokens or 0
                self._counts["completion_tokens"] += outcome.completion_tokens or 0
                self._counts["uncounted"] += None in (outcome.prompt_tokens, outcome.completion_tokens)
            else:
                self._counts["failed"] += 1
                self._failures[short_message(str(outcome))] += 1
        price = self._settings.price_of(self._target.name)
        counts: dict[str, Json] = dict(with_cost({name: self._counts[name] for name in COUNTED}, price))
        if "cost" in counts:
            counts["cost"] *= BATCH_PRICE
        self._store.runs.put_request_counts(self._run, self._owner, {**counts, FAILURES: dict(self._failures)})

    def _write(self, batch: Batch, outcomes: dict[str, Response | FairnessError]) -> list[str]:
        open_requests = self._table.requests(batch.token, outcomes)
        for key, request in open_requests.items():
            outcome = outcomes[key]
            if isinstance(outcome, Response):
                self._store.record(key, request, self._target.identity, outcome, self._fresh)
            else:
                self._store.record_failure(key, self._target.identity, str(outcome), self._fresh)
        return list(open_requests)

    def _recordable(self, outcome: Response | FairnessError) -> Response | FairnessError:
        if isinstance(outcome, Response):
            return self._caller.recordable(outcome)
        return self._caller.without_secrets(outcome)

    async def _with_time_limit(self, exchange: Awaitable[T]) -> T:
        """Return the result of an exchange with the provider; raise `RequestFailed` after the time limit."""
        try:
            async with asyncio.timeout(self._timing.step):
                return await exchange
        except TimeoutError as error:
            message = f"{self._target.name}: no response to a batch request within {self._timing.step:g} seconds."
            raise RequestFailed(message, retry=RetryReason.TIMEOUT) from error

    def _raise_if_permanent(self, error: RequestFailed) -> None:
        """Raise the error, or `AnswersMissing` after `fairness_give_up` seconds, unless a retry may succeed soon."""
        if error.retry is None:
            raise error
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        if now - self._failing_since > self._settings.give_up:
            last = str(self._caller.without_secrets(error)).removesuffix(".")
            raise AnswersMissing(
                f"{last}. Batches that were created continue at the provider; run again to continue."
            ) from error


async def _groups(results: AsyncIterator[BatchResult]) -> AsyncIterator[list[BatchResult]]:
    group: list[BatchResult] = []
    async for result in results:
        group.append(result)
        if len(group) == RECORDED_AT_ONCE:
            yield group
            group = []
    if group:
        yield group


# Pauses and time limits of batches.


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """Pauses and time limits of batches, in seconds.

    Attributes:
        first_poll, longest_poll: first and longest pause between two requests for the status of a batch; each pause
            is twice as long as the previous one.
        step: time limit of one exchange with the provider, such as the upload of the requests.
        lease: time for which a process reserves a batch; if the process does not renew the reservation, another
            process may then work on the batch. Longer than `step`.
    """

    first_poll: float = 5.0
    longest_poll: float = 300.0
    step: float = 600.0
    lease: float = 900.0
    listing_delay: float = 30.0


DEFAULT_BATCH_TIMING = BatchTiming()
