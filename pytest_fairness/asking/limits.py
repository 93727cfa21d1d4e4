"""Limits of asking: rate limit, retries, giving up, time limits and costs."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, RetryReason, counted
from pytest_fairness.option_types import Price

# Pauses, intervals and time limits of the request engine.


@dataclass(frozen=True, slots=True)
class Timing:
    """Pauses, intervals and time limits of the request engine, in seconds.

    Attributes:
        poll: interval at which the store is checked for changes by other processes.
        gather: maximum time for which a result waits for further results, so that one write records them together.
        claim_lease: time after which a claim expires unless its owner renews it. The claims of an ended process on this
            machine expire at once.
        claim_retry: interval at which the process tries to claim requests even if the store has not changed, because
            the claims of other processes expire without a write to the store.
        stop_grace: time for which a run that stops waits for the requests in flight, because they are already paid for.
        give_up_unreachable: time after which the run gives up on a target to which no connection was ever made.
        first_rate_limit_pause: pause of a target after its first overload, if it sends no `Retry-After`.
        longest_rate_limit_pause: maximum length of these pauses, which double with every overload.
        longest_retry_pause: maximum length of these pauses, which double with every failure, unless the target demands
            a longer one (`Retry-After`).
    """

    poll: float = 0.05
    gather: float = 0.02
    claim_lease: float = 30.0
    claim_renewal: float = 5.0
    claim_retry: float = 1.0
    stop_grace: float = 5.0
    give_up_unreachable: float = 10.0
    first_rate_limit_pause: float = 0.1
    longest_rate_limit_pause: float = 10.0
    first_retry_pause: float = 0.5
    longest_retry_pause: float = 8.0


DEFAULT_TIMING = Timing()


# Adaptive rate limit of a target: additive increase, multiplicative decrease (Chiu and Jain 1989, as in TCP).
#
# The rate limit only computes; the store keeps one rate limit for each target, which all processes share.


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Current rate limit of a target; times are in seconds since the epoch.

    Attributes:
        allowed: maximum number of requests in flight; infinite before the first overload, and after answers have raised
            it to the run's own maximum again.
        overloads: number of overloads (requests that were rejected or got no answer) since the last answer; overloads
            of requests that were sent together count once.
    """

    allowed: float = math.inf
    overloads: int = 0
    resume_at: float = 0.0
    reduced_at: float = 0.0

    def after_answer(self, capacity: int) -> Self:
        """Return the limit after an answer: `n` answers raise `n` to `n + 1`, and one raises `capacity` to infinity."""
        if self.allowed >= capacity:
            return replace(self, allowed=math.inf, overloads=0)
        return replace(self, allowed=self.allowed + 1 / self.allowed, overloads=0)

    def after_overload(
        self, capacity: int, *, sent_at: float, now: float, retry_after: float | None, timing: Timing = DEFAULT_TIMING
    ) -> Self:
        """Return the limit after a request was rejected or got no answer: half as many requests in flight, and a pause.

        A request that was sent before the last reduction does not reduce the limit again. `retry_after` are the seconds
        that the target asks to wait.
        """
        limit = self
        if sent_at >= self.reduced_at:
            doubled = timing.first_rate_limit_pause * 2.0 ** min(self.overloads, 30)
            pause = 0.0 if retry_after is not None else min(timing.longest_rate_limit_pause, doubled)
            limit = replace(
                self,
                allowed=max(1.0, min(self.allowed, capacity) / 2),
                overloads=self.overloads + 1,
                resume_at=max(self.resume_at, now + pause),
                reduced_at=now,
            )
        return limit if retry_after is None else replace(limit, resume_at=max(limit.resume_at, now + retry_after))


# Rule that decides whether and when a failed request is sent again.

MAX_FAILURES = {
    RetryReason.TRANSIENT: 7,
    RetryReason.TIMEOUT: 3,
    RetryReason.OVERLOADED: 20,
    RetryReason.REPHRASED: 3,
}
"""Number of failures, by reason, after which a request is not sent again. Attempts that never reached the target are
limited by `GiveUpTimer` only."""


class Attempts:
    """Failed attempts of one request."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._failures: Counter[RetryReason | None] = Counter()

    def pause_after(self, error: RequestFailed) -> float | None:
        """Count a failure; return the seconds until the next attempt, or `None` if there is no further attempt.

        Only the pause after a transient failure is longer than 0 seconds. After an overload, a timeout or a refused
        connection, all requests to the target pause instead (see `RateLimit`).
        """
        reason = error.retry
        self._failures[reason] += 1
        if reason is None or self._failures[reason] >= MAX_FAILURES.get(reason, float("inf")):
            return None
        if reason is not RetryReason.TRANSIENT:
            return 0.0
        doubled = self._timing.first_retry_pause * 2.0 ** (self._failures[reason] - 1)
        pause = min(self._timing.longest_retry_pause, doubled)
        # Jitter, so that requests that failed together are not sent again together.
        return max(error.retry_after or 0.0, pause * random.uniform(0.75, 1.0))  # noqa: S311 - not a secret

    @property
    def count(self) -> int:
        return self._failures.total()


# Timer that says when the run gives up on a target that gives no answers.


class GiveUpTimer:
    """Timer that ends when a target has given no answer for `limit` seconds.

    `unreachable_limit` is shorter, for a target to which no connection was ever made.
    """

    def __init__(self, name: str, limit: float, unreachable_limit: float) -> None:
        self._name, self._limit, self._unreachable_limit = name, limit, unreachable_limit
        self._started = 0.0
        self._unreachable_since: float | None = None
        self._reached = False
        self._last_error = ""

    def restart(self) -> None:
        """Restart the timer after a time in which the target had no request to answer."""
        self._started = time.monotonic()

    def record_answer(self) -> None:
        self._started, self._reached = time.monotonic(), True

    def record_failure(self, error: FairnessError) -> None:
        """Record a failed attempt; an error that the target itself returned shows that it is reachable."""
        self._last_error = str(error)
        if isinstance(error, RequestFailed) and error.retry is RetryReason.UNREACHABLE:
            self._unreachable_since = self._unreachable_since or time.monotonic()
        elif not isinstance(error, RequestFailed) or error.retry is not RetryReason.TIMEOUT:
            self._reached = True

    def deadline(self, sent_at: Collection[float], resume_at: float) -> float:
        """Return the deadline after which the run gives up on the target; all times are monotonic seconds.

        `sent_at` are the times of the requests in flight; `resume_at` is when the rate limit allows the next one.

        Raises:
            AnswersMissing: the deadline has passed; or no request is in flight and none is allowed before the deadline.
        """
        now = time.monotonic()
        deadline, never_reached = self._started + self._limit, False
        if self._unreachable_since is not None and not self._reached:
            # A request sent before the first refused connection may have arrived and still be answered.
            never_reached = not any(sent <= self._unreachable_since for sent in sent_at)
            deadline = min(deadline, self._unreachable_since + self._unreachable_limit) if never_reached else deadline
        if now < deadline and (resume_at <= deadline or sent_at):
            return deadline
        if never_reached:
            seconds = min(self._unreachable_limit, self._limit)
            raise AnswersMissing(unreachable(self._name, seconds, self._last_error))
        raise AnswersMissing(given_up(self._name, self._limit, resume_at - now, self._last_error))


# Messages about missing answers; each says what the user can do.

NAMED_PAUSE = 10.0
"""Messages mention a pause of more than this number of seconds. Only a target demands such a pause (`Retry-After`); the
engine's own pauses are not longer than this."""


def given_up(name: str, seconds: float, pause: float, last_error: str) -> str:
    """Return the message for a target that gave no answer within `seconds`, or demands a pause beyond this time."""
    last = f"Last error: {last_error}" if last_error else "Check that the target is running, and its address."
    limit = f"{seconds:g} seconds (ini fairness_give_up)"
    what = (
        f"demands a pause of {pause:.0f} seconds, which ends after the time limit of {limit}"
        if pause > NAMED_PAUSE
        else f"gave no answer for {limit}"
    )
    return f"given up: {name} {what}; earlier answers are recorded. {last}"


def unreachable(name: str, seconds: float, last_error: str) -> str:
    return f"given up: no connection to {name} within {seconds:g} seconds; no request arrived. {last_error}"


def over_budget(max_requests: int, reusable: bool, last_error: str = "", *, shared: bool = False) -> AnswersMissing:
    """Return the error for a request that was not sent, or not sent again, because the run's budget is spent.

    `reusable` says whether a later run reuses the recorded answers; `shared`, whether all runs with the same
    `--fairness-run-name` share the budget.
    """
    cure = (
        "all runs with this --fairness-run-name share the budget, so raise it to continue"
        if shared
        else "the answers are recorded, so run again to continue (without --fairness-fresh)"
        if reusable
        else "raise the limit, or set the target's version with the ini fairness_target_version, so that the next run "
        "reuses the answers"
    )
    last = f" Last error: {last_error}" if last_error else ""
    budget = counted(max_requests, "request")
    what = "not sent again" if last_error else "not sent"
    return AnswersMissing(f"{what}: this run's budget of {budget} is spent (--fairness-max-requests); {cure}.{last}")


# Cost of answers, computed from token counts and the target's price.

BATCH_PRICE = 0.5
"""Price of an answer in a batch, as a share of the ordinary price: "50% cost discount compared to synchronous APIs"
(OpenAI, guide to the Batch API), "50% of the standard API prices" (Anthropic, guide to batch processing)."""


def cost_of(price: Price, prompt_tokens: float, completion_tokens: float) -> float:
    """Return the cost, in the currency of the price."""
    return (prompt_tokens * price.prompt + completion_tokens * price.completion) / 1_000_000


def with_cost(counts: Mapping[str, int], price: Price | None) -> dict[str, float]:
    """Return the request counts of an engine with `cost`; without a price, no `cost`, and an `uncounted` of 0."""
    if price is None:
        return {**counts, "uncounted": 0}
    return {**counts, "cost": cost_of(price, counts["prompt_tokens"], counts["completion_tokens"])}
