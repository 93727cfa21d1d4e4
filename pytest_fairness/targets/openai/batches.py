"""Client of OpenAI's Batch API: requests are uploaded as a file, and results are downloaded as files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Json, Request
from pytest_fairness.targets.batch_client import BatchIntent, BatchResult, BatchStatus, as_line
from pytest_fairness.targets.openai.chat import NEW_LIMIT_NAME, Chat
from pytest_fairness.targets.web.endpoint import Endpoint
from pytest_fairness.targets.web.sdk_batches import CLOCK_SKEW, SdkBatches
from pytest_fairness.targets.web.sdk_client import MALFORMED

PATH = "/v1/chat/completions"
TOKEN = "pytest_fairness"  # noqa: S105 - a name, not a secret
"""Name of our token in the metadata of a batch."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class ChatBatches(Chat, SdkBatches):
    """Client of the Files and Batches API.

    The documented limits of a batch are 50,000 requests and 200 MB. For answers in JSON, the field `response_format` is
    set only if the prompt contains the word JSON, because OpenAI rejects the field for other prompts.

    Args:
        endpoint: the model and its server.
        own_server: whether the server is the user's own; it may know only the name `max_tokens` and not OpenAI's newer
            name of this field.
    """

    max_requests = 50_000
    max_bytes = 200_000_000

    def __init__(self, endpoint: Endpoint, *, own_server: bool) -> None:
        super().__init__(endpoint)
        self._limit_name = self._limit_name if own_server else NEW_LIMIT_NAME

    def line(self, key: str, request: Request) -> bytes:
        """Return a request as one line of JSON; see `BatchClient`."""
        body = self._body(request)
        if "max_tokens" in body:
            body[self._limit_name] = body.pop("max_tokens")
        if request.answer_format == "json" and "json" in f"{request.system} {request.prompt}".casefold():
            body["response_format"] = {"type": "json_object"}
        return as_line({"custom_id": key, "method": "POST", "url": PATH, "body": body})

    async def upload(self, token: str, lines: Sequence[bytes]) -> str:
        """Upload the requests, and return the provider's id of the file; see `BatchClient`."""
        with self._translated_errors():
            file = await self._client.files.create(file=(f"{token}.jsonl", b"".join(lines)), purpose="batch")
        return self._id(file.id)

    async def find(self, intent: BatchIntent) -> str | None:
        """Return the provider's id of the batch with the token in its metadata; see `BatchClient`."""
        with self._translated_errors():
            async for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(TOKEN) == intent.token:
                    return self._id(batch.id)
                if batch.created_at < intent.created - CLOCK_SKEW:
                    break  # the list begins with the newest batch
        return None

    async def create(self, intent: BatchIntent, lines: Sequence[bytes]) -> str:
        """Create a batch, and return the provider's id; see `BatchClient`."""
        with self._translated_errors():
            batch = await self._client.batches.create(
                completion_window="24h",
                endpoint="/v1/chat/completions",
                input_file_id=intent.file,
                metadata={TOKEN: intent.token},
            )
        return self._id(batch.id)

    async def status(self, remote: str) -> BatchStatus:
        """Return the status of a batch; see `BatchClient`."""
        with self._translated_errors():
            raw = await self._client.batches.with_raw_response.retrieve(remote)
        content = raw.http_response.content
        try:
            batch = raw.http_response.json()
            files = [self._id(batch[name]) for name in ("output_file_id", "error_file_id") if batch.get(name)]
            counts = batch.get("request_counts") or {}
            settled = int(counts.get("completed") or 0) + int(counts.get("failed") or 0)
            errors = [str(error["message"]) for error in (batch.get("errors") or {}).get("data") or []]
            name = str(batch["status"])
        except MALFORMED as error:
            raise self._malformed("a batch", content) from error
        said = self._errors.quoted("; ".join(errors[:3])) if errors else None
        return BatchStatus(self._errors.quoted(name, 40), name in ENDED, settled, tuple(files), said)

    async def results(self, remote: str, status: BatchStatus) -> AsyncIterator[BatchResult]:
        """Yield the results of a batch that has ended; see `BatchClient`."""
        downloads = self._client.with_options(http_client=self._streaming_client).files.with_streaming_response
        for file in status.files:
            async for result in self._read_lines(downloads.content(file), self._result):
                yield result

    def _result(self, line: Json) -> BatchResult:
        key = str(line["custom_id"])
        response, error = line.get("response"), line.get("error")
        if error or not response:
            said = error["message"] if error else "no response"
            return BatchResult(key, RequestFailed(f"{self._name}: {self._errors.quoted(str(said))}"))
        body, status = response["body"], response["status_code"]
        if status != 200:
            said = body["error"]["message"] if isinstance(body, dict) and "error" in body else body
            return BatchResult(key, self._errors.for_status(int(status), {}, str(said)))
        return BatchResult(key, self._outcome(self._read_completion, body, "a chat completion"))

    def _status_error(self, status: int, said: str, error: Any) -> RequestFailed | TargetError:
        if status == 404:
            return self._no_batches(said)
        return super()._status_error(status, said, error)
