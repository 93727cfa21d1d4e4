"""Protocol of clients that send requests in batches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.base import Target

BATCHED = frozenset({"text", "list", "titles", "json", "structured", "calls", "number"})
"""Answer formats of the requests that are sent in batches."""


class BatchIntent(NamedTuple):
    """Batch that is to be created, or whose creation was interrupted by the end of a run.

    Attributes:
        token: unique name, which the batch's metadata contains if the provider has metadata.
        file: the provider's id of the file with the requests; empty if there is none.
        keys: keys of the batch's requests.
        created: time at which the requests were chosen, in seconds since the epoch.
        known: the provider's ids of all other batches in the store.
    """

    token: str
    file: str
    keys: Collection[str]
    created: float
    known: Collection[str]


class BatchUnclear(FairnessError):
    """Error: the provider cannot tell yet whether a batch was created."""


class BatchStatus(NamedTuple):
    """Status of a batch at the provider.

    Attributes:
        name: the provider's word for the status.
        ended: whether the batch has ended, so that no further request will be answered.
        settled: number of requests that have been answered or have failed so far.
        files: the provider's ids of the files with results.
        error: the provider's reason why some requests have no result, or `None`.
    """

    name: str
    ended: bool
    settled: int
    files: tuple[str, ...] = ()
    error: str | None = None


class BatchResult(NamedTuple):
    """Result of one request in a batch: the request's key, and its response or error."""

    key: str
    outcome: Response | FairnessError


class BatchClient(Protocol):
    """Client that sends requests in batches.

    All methods that send a request raise `RequestFailed`, whose attribute `retry` says whether another attempt may
    succeed, and `TargetError` if no attempt can succeed. `results` raises these errors during the iteration.

    Attributes:
        max_requests: maximum number of requests in one batch.
        max_bytes: maximum number of bytes of a batch's requests, each written as a line of JSON.
    """

    max_requests: int
    max_bytes: int

    def line(self, key: str, request: Request) -> bytes:
        """Return a request as one line of JSON, with its line end."""

    async def upload(self, token: str, lines: Sequence[bytes]) -> str:
        """Upload the requests, and return the provider's id of the file.

        If `create` sends the requests, upload nothing, and return an empty text.
        """

    async def find(self, intent: BatchIntent) -> str | None:
        """Return the provider's id of a batch that may have been created earlier; `None` if it was not created.

        Raises:
            BatchUnclear: the provider cannot tell yet whether a batch was created.
        """

    async def create(self, intent: BatchIntent, lines: Sequence[bytes]) -> str:
        """Create a batch, and return the id that the provider gives it."""

    async def status(self, remote: str) -> BatchStatus:
        """Return the status of a batch."""

    def results(self, remote: str, status: BatchStatus) -> AsyncIterator[BatchResult]:
        """Yield the results of a batch that has ended, in any order.

        Lines of the provider's results that cannot be read are left out.
        """

    async def close(self) -> None:
        """Close the connections."""


class BatchTarget(Target, Protocol):
    """Target whose provider offers batches."""

    def batch_client(self) -> BatchClient:
        """Return a client that sends requests to the target in batches; nothing is sent yet."""


def has_batches(target: Target) -> bool:
    """Return whether the target's provider offers batches."""
    return hasattr(target, "batch_client")


def json_line(value: Any) -> bytes:
    """Return a value as one line of JSON in ASCII, because UTF-8 cannot encode lone surrogates."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
