"""Client of Anthropic's Message Batches API: one HTTP request creates a batch with all its requests."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Json, Request
from pytest_fairness.targets.anthropic.messages import PATH, SAMPLING_VERSION, Messages
from pytest_fairness.targets.batch_client import BatchIntent, BatchResult, BatchStatus, BatchUnclear, json_line
from pytest_fairness.targets.web.api_batches import CLOCK_SKEW, ApiBatches, id_of
from pytest_fairness.targets.web.api_client import NEUTRAL, StatusError
from pytest_fairness.targets.web.http_errors import blocked_response, is_blocked

BATCHES = f"{PATH}/batches"
SETTLED = ("succeeded", "errored", "canceled", "expired")
"""Keys of the provider's `request_counts` for requests that have a result."""
REASONS = {
    "expired": "the batch expired before this request was answered",
    "canceled": "the batch was cancelled before this request was answered",
}
"""Message for each type of result that has neither an answer nor an error message of the provider."""


class MessageBatches(Messages, ApiBatches):
    """Client of the Message Batches API.

    The documented limits of a batch are 100,000 requests and 256 MB. `temperature` and `top_p` are left out if each of
    them is unset or has the default value 1, because some models accept neither parameter.

    Batches have no metadata. A batch that a killed run may have created is found by its date, its number of requests
    and, after it has ended, by the keys in its results.
    """

    max_requests = 100_000
    max_bytes = 256_000_000

    def line(self, key: str, request: Request) -> bytes:
        """Return a request as one line of JSON; see `BatchClient`."""
        params = self._body(request)
        fields = request.sampling.to_json()
        sampling = {name: fields[name] for name in NEUTRAL if name in fields}
        return json_line(
            {"custom_id": key, "params": params if sampling.items() <= NEUTRAL.items() else params | sampling}
        )

    async def upload(self, token: str, lines: Sequence[bytes]) -> str:
        """Return an empty text, because `create` sends the requests."""
        del token, lines
        return ""

    async def find(self, intent: BatchIntent) -> str | None:
        """Return the provider's id of the batch with the requests of `intent`; see `BatchClient`."""
        unclear: str | None = None
        async with aclosing(self._all_batches(BATCHES, "after_id", _listed)) as batches:
            async for remote, created, (size, ended) in batches:
                if created < intent.created - CLOCK_SKEW:
                    break  # the list begins with the newest batch
                if size != len(intent.keys) or remote in intent.known:
                    continue
                if not ended:
                    unclear = remote
                elif await self._holds(remote, intent):
                    return remote
        if unclear is not None:
            raise BatchUnclear(
                f"{self._name}: an earlier run ended while it created a batch. Batch {unclear} may be that batch; "
                "this can be checked after the batch has ended. Run again then."
            )
        return None

    async def _holds(self, remote: str, intent: BatchIntent) -> bool:
        """Return whether the first result of a batch answers one of the requests in `intent`."""
        async with aclosing(self._read_lines(f"{BATCHES}/{remote}/results", self._result)) as results:
            async for result in results:
                return result.key in intent.keys
        return False

    async def create(self, intent: BatchIntent, lines: Sequence[bytes]) -> str:
        """Create a batch, and return the id that the provider gives it; see `BatchClient`."""
        del intent
        return await self._read_json(
            "a batch with an id",
            lambda batch: id_of(batch["id"]),
            "POST",
            BATCHES,
            body={"requests": [json.loads(line) for line in lines]},
            headers={"anthropic-version": SAMPLING_VERSION},
        )

    async def status(self, remote: str) -> BatchStatus:
        """Return the status of a batch; see `BatchClient`."""
        return await self._read_json("a batch", self._status, "GET", f"{BATCHES}/{remote}")

    def _status(self, batch: Json) -> BatchStatus:
        settled = sum(int(batch["request_counts"][name]) for name in SETTLED)
        name = str(batch["processing_status"])
        return BatchStatus(self._errors.quoted(name, 40), name == "ended", settled)

    def results(self, remote: str, status: BatchStatus) -> AsyncGenerator[BatchResult]:
        """Yield the results of a batch that has ended; see `BatchClient`."""
        del status
        return self._read_lines(f"{BATCHES}/{remote}/results", self._result)

    def _result(self, line: Json) -> BatchResult:
        key, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return BatchResult(key, self._outcome(self._read_message, result["message"], "a message"))
        if is_blocked(result.get("error")):
            return BatchResult(key, blocked_response())
        said = REASONS.get(result["type"]) or str(result["error"]["error"]["message"])
        return BatchResult(key, self._rejected(said) or RequestFailed(f"{self._name}: {self._errors.quoted(said)}"))

    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        return self._no_batches_error(error.said) if error.status == 404 else super()._status_error(error)


def _listed(batch: Json) -> tuple[str, float, tuple[int, bool]]:
    """Return a batch's id, its date, its number of requests, and whether it has ended."""
    size = sum(int(batch["request_counts"][name]) for name in ("processing", *SETTLED))
    created = datetime.fromisoformat(batch["created_at"]).timestamp()
    return id_of(batch["id"]), created, (size, batch["processing_status"] == "ended")
