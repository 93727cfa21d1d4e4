"""Pauses, intervals and time limits of the request engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Pauses, intervals and time limits of the request engine, in seconds.

    Attributes:
        poll: interval at which the store is checked for changes by other processes.
        gather: maximum time for which a result waits for further results, so that one write records them together.
        claim_lease: time after which a claim expires unless its owner renews it. The claims of an ended process on this
            machine expire at once.
        claim_renewal: interval at which claims are renewed.
        claim_retry: interval at which the process tries to claim requests even if the store has not changed, because
            the claims of other processes expire without a write to the store.
        stop_grace: time for which a run that stops waits for the requests in flight, because they are already paid for.
        give_up_unreachable: time after which the run gives up on a target to which no connection was ever made.
        first_rate_limit_pause: pause of a target after its first overload, if it sends no `Retry-After`.
        longest_rate_limit_pause: maximum length of these pauses, which double with every overload.
        first_retry_pause: pause of a request after its first transient failure.
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
