"""Client of OpenAI's Batch API: requests are uploaded as a file, and results are downloaded as files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Json, Request
from pytest_fairness.targets.batch_client import BatchIntent, BatchResult, BatchStatus, json_line
from pytest_fairness.targets.openai.chat import JSON_FORMATS, NEW_LIMIT_NAME, Chat
from pytest_fairness.targets.web.api_batches import CLOCK_SKEW, ApiBatches, id_of
from pytest_fairness.targets.web.api_client import StatusError
from pytest_fairness.targets.web.endpoint import Endpoint
from pytest_fairness.targets.web.http_errors import blocked_response, is_blocked

PATH = "/v1/chat/completions"
TOKEN = "pytest_fairness"  # noqa: S105 - a name, not a secret
"""Name of our token in the metadata of a batch."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class ChatBatches(Chat, ApiBatches):
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
        body = self._body(request, request.sampling.to_json())
        if "max_tokens" in body:
            body[self._limit_name] = body.pop("max_tokens")
        if request.answer_format in JSON_FORMATS and "json" in f"{request.system} {request.prompt}".casefold():
            body.setdefault("response_format", {"type": "json_object"})
        return json_line({"custom_id": key, "method": "POST", "url": PATH, "body": body})

    async def upload(self, token: str, lines: Sequence[bytes]) -> str:
        """Upload the requests, and return the provider's id of the file; see `BatchClient`."""
        file = f"{token}.jsonl", b"".join(lines)
        return await self._read_json(
            "a file with an id",
            lambda answer: id_of(answer["id"]),
            "POST",
            "/files",
            files={"file": file},
            data={"purpose": "batch"},
        )

    async def find(self, intent: BatchIntent) -> str | None:
        """Return the provider's id of the batch with the token in its metadata; see `BatchClient`."""
        async with aclosing(self._all_batches("/batches", "after", _listed)) as batches:
            async for remote, created, token in batches:
                if token == intent.token:
                    return remote
                if created < intent.created - CLOCK_SKEW:
                    break  # the list begins with the newest batch
        return None

    async def create(self, intent: BatchIntent, lines: Sequence[bytes]) -> str:
        """Create a batch, and return the id that the provider gives it; see `BatchClient`."""
        body = {
            "completion_window": "24h",
            "endpoint": PATH,
            "input_file_id": intent.file,
            "metadata": {TOKEN: intent.token},
        }
        return await self._read_json(
            "a batch with an id", lambda batch: id_of(batch["id"]), "POST", "/batches", body=body
        )

    async def status(self, remote: str) -> BatchStatus:
        """Return the status of a batch; see `BatchClient`."""
        return await self._read_json("a batch", self._status, "GET", f"/batches/{remote}")

    def _status(self, batch: Json) -> BatchStatus:
        files = [id_of(batch[name]) for name in ("output_file_id", "error_file_id") if batch.get(name)]
        counts = batch.get("request_counts") or {}
        settled = int(counts.get("completed") or 0) + int(counts.get("failed") or 0)
        errors = [str(error["message"]) for error in (batch.get("errors") or {}).get("data") or []]
        name = str(batch["status"])
        said = self._errors.quoted("; ".join(errors[:3])) if errors else None
        return BatchStatus(self._errors.quoted(name, 40), name in ENDED, settled, tuple(files), said)

    async def results(self, remote: str, status: BatchStatus) -> AsyncIterator[BatchResult]:
        """Yield the results of a batch that has ended; see `BatchClient`."""
        for file in status.files:
            async for result in self._read_lines(f"/files/{file}/content", self._result):
                yield result

    def _result(self, line: Json) -> BatchResult:
        key = str(line["custom_id"])
        response, error = line.get("response"), line.get("error")
        if error and is_blocked(error):
            return BatchResult(key, blocked_response())
        if error or not response:
            said = error["message"] if error else "no response"
            failed = RequestFailed(f"{self._name}: {self._errors.quoted(str(said))}")
            return BatchResult(key, self._rejected(str(said)) or failed)
        body, status = response["body"], response["status_code"]
        if status != 200 and is_blocked(body, status):
            return BatchResult(key, blocked_response())
        if status != 200:
            said = body["error"]["message"] if isinstance(body, dict) and "error" in body else body
            rejected = self._rejected(str(said)) if status in (400, 422) else None
            return BatchResult(key, rejected or self._errors.for_status(int(status), {}, str(said)))
        return BatchResult(key, self._outcome(self._read_completion, body, "a chat completion"))

    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        return self._no_batches_error(error.said) if error.status == 404 else super()._status_error(error)


def _listed(batch: Json) -> tuple[str, float, Json]:
    """Return a batch's id, its date, and our token in its metadata."""
    return id_of(batch["id"]), float(batch["created_at"]), (batch.get("metadata") or {}).get(TOKEN)
