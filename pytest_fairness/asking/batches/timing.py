"""Pauses and time limits of batches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """Pauses and time limits of batches, in seconds.

    Attributes:
        first_poll, longest_poll: first and longest pause between two requests for the status of a batch; each pause
            is twice as long as the previous one.
        step: time limit of one exchange with the provider, such as the upload of the requests.
        lease: time for which a process reserves a batch; if the process does not renew the reservation, another
            process may then work on the batch. Longer than `step`.
        listing_delay: time after the creation of a batch during which the provider's list of batches may lack it.
    """

    first_poll: float = 5.0
    longest_poll: float = 300.0
    step: float = 600.0
    lease: float = 900.0
    listing_delay: float = 30.0


DEFAULT_BATCH_TIMING = BatchTiming()
