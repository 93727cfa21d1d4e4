"""Pauses, intervals and time limits of the request engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Pauses, intervals and time limits of the request engine, in seconds.

    Attributes:
        poll: interval at which the store is checked for what other processes wrote.
        claim_lease: time after which a claim expires unless its owner renews it. The claims of a process of this
            machine that has ended expire at once.
        claim_renewal: interval at which claims are renewed.
        claim_retry: interval at which claiming is tried again although the store has not changed, as claims expire
            without a write.
        stop_grace: time that requests in flight have to finish when a run stops, as they are paid for already.
        give_up_unreachable: time after which a target that no request has ever reached is given up.
        first_rate_limit_pause: pause of a target after its first overload, if it sends no `Retry-After`.
        longest_rate_limit_pause: limit of these pauses, which double with every overload.
        first_retry_pause: pause of a request after its first transient failure.
        longest_retry_pause: limit of these pauses, which double with every failure.
    """

    poll: float = 0.05
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
