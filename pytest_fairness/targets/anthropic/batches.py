"""Client of Anthropic's Message Batches API: one HTTP request creates a batch with all its requests."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Json, Request
from pytest_fairness.targets.anthropic.messages import DEFAULT, MAX_TOKENS, SAMPLING_VERSION, Messages
from pytest_fairness.targets.batch_client import BatchIntent, BatchResult, BatchStatus, BatchUnclear, as_line
from pytest_fairness.targets.web.sdk_batches import CLOCK_SKEW, SdkBatches
from pytest_fairness.targets.web.sdk_client import MALFORMED

REASONS = {
    "expired": "the batch expired before this request was answered",
    "canceled": "the batch was cancelled before this request was answered",
}
"""Message for each type of result that has neither an answer nor an error message of the provider."""


class MessageBatches(Messages, SdkBatches):
    """Client of the Message Batches API.

    The documented limits of a batch are 100,000 requests and 256 MB. `temperature` and `top_p` are left out unless one
    of them differs from the default value 1, because some models accept neither parameter.

    Batches have no metadata. A batch that a killed run may have created is found by its date, its number of requests
    and, after it has ended, by the keys in its results.
    """

    max_requests = 100_000
    max_bytes = 256_000_000

    def line(self, key: str, request: Request) -> bytes:
        """Return a request as one line of JSON; see `BatchClient`."""
        limit = request.sampling.max_tokens
        params: dict[str, Json] = {
            "model": self._model,
            "messages": [{"role": "user", "content": request.prompt}],
            "max_tokens": MAX_TOKENS if limit is None else limit,
        }
        if request.system is not None:
            params["system"] = request.system
        settings = {"temperature": request.sampling.temperature, "top_p": request.sampling.top_p}
        sampling = {name: value for name, value in settings.items() if value is not None}
        return as_line(
            {"custom_id": key, "params": params if set(sampling.values()) <= {DEFAULT} else params | sampling}
        )

    async def upload(self, token: str, lines: Sequence[bytes]) -> str:
        """Return an empty text, because `create` sends the requests."""
        del token, lines
        return ""

    async def find(self, intent: BatchIntent) -> str | None:
        """Return the provider's id of the batch with these requests; see `BatchClient`."""
        unclear: str | None = None
        with self._translated_errors():
            async for batch in self._client.messages.batches.list(limit=100):
                if batch.created_at.timestamp() < intent.created - CLOCK_SKEW:
                    break  # the list begins with the newest batch
                counts, remote = batch.request_counts, self._id(batch.id)
                size = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
                if size != len(intent.keys) or remote in intent.known:
                    continue
                if batch.processing_status != "ended":
                    unclear = remote
                elif await self._holds(remote, intent):
                    return remote
        if unclear is not None:
            raise BatchUnclear(
                f"{self._name}: a run ended while it created a batch, perhaps the batch {unclear}. Only the results of "
                f"{unclear} will show this; run again when {unclear} has ended."
            )
        return None

    async def _holds(self, remote: str, intent: BatchIntent) -> bool:
        """Return whether the first result of a batch answers one of the requests."""
        async with aclosing(self._results(remote)) as results:
            async for result in results:
                return result.key in intent.keys
        return False

    async def create(self, intent: BatchIntent, lines: Sequence[bytes]) -> str:
        """Create a batch, and return the provider's id; see `BatchClient`."""
        del intent
        requests: list[Any] = [json.loads(line) for line in lines]
        with self._translated_errors():
            batch = await self._client.messages.batches.create(
                requests=requests, extra_headers={"anthropic-version": SAMPLING_VERSION}
            )
        return self._id(batch.id)

    async def status(self, remote: str) -> BatchStatus:
        """Return the status of a batch; see `BatchClient`."""
        with self._translated_errors():
            raw = await self._client.messages.batches.with_raw_response.retrieve(remote)
        try:
            batch = raw.http_response.json()
            counts = batch["request_counts"]
            settled = sum(int(counts[name]) for name in ("succeeded", "errored", "canceled", "expired"))
            name = str(batch["processing_status"])
        except MALFORMED as error:
            raise self._malformed("a batch", raw.http_response.content) from error
        return BatchStatus(self._errors.quoted(name, 40), name == "ended", settled)

    def results(self, remote: str, status: BatchStatus) -> AsyncGenerator[BatchResult]:
        """Yield the results of a batch that has ended; see `BatchClient`."""
        del status
        return self._results(remote)

    def _results(self, remote: str) -> AsyncGenerator[BatchResult]:
        batches = self._client.with_options(http_client=self._streaming_client).messages.batches
        return self._read_lines(batches.with_streaming_response.results(remote), self._result)

    def _result(self, line: Json) -> BatchResult:
        key, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return BatchResult(key, self._outcome(self._read_message, result["message"], "a message"))
        said = REASONS.get(result["type"]) or self._errors.quoted(str(result["error"]["error"]["message"]))
        return BatchResult(key, RequestFailed(f"{self._name}: {said}"))

    def _status_error(self, status: int, said: str, error: Any) -> RequestFailed | TargetError:
        if status == 404:
            return self._no_batches(said)
        return super()._status_error(status, said, error)
