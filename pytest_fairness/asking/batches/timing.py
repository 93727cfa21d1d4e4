"""Pauses and time limits of batches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """Pauses and time limits of batches, in seconds.

    Attributes:
        first_poll, longest_poll: pauses between two looks at the status of a batch; they double.
        step: time limit of one exchange with the provider, such as the upload of the requests.
        lease: time after which another machine takes over a batch that a process works on; longer than `step`.
        settle: time after an attempt to create a batch in which the list of a provider may lack the new batch.
    """

    first_poll: float = 5.0
    longest_poll: float = 300.0
    step: float = 600.0
    lease: float = 900.0
    settle: float = 30.0


DEFAULT_BATCH_TIMING = BatchTiming()
