"""Servers of the batch APIs of OpenAI and Anthropic on the loopback interface.

They implement the endpoints as the providers specify them, and check every request with JSON schemas written from these
specifications (https://platform.openai.com/docs/api-reference/batch and
https://docs.anthropic.com/en/api/creating-message-batches).
"""

from __future__ import annotations

import email
import email.policy
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from jsonschema import Draft202012Validator

from tests.support.servers import Reply, fair_answer

Json = Any

CHAT_BODY = {
    "type": "object",
    "required": ["model", "messages"],
    "additionalProperties": False,
    "properties": {
        "model": {"type": "string"},
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["role", "content"],
                "additionalProperties": False,
                "properties": {"role": {"enum": ["system", "user"]}, "content": {"type": "string"}},
            },
        },
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "max_tokens": {"type": "integer"},
        "max_completion_tokens": {"type": "integer"},
        "seed": {"type": "integer"},
        "response_format": {"const": {"type": "json_object"}},
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "function"],
                "additionalProperties": False,
                "properties": {
                    "type": {"const": "function"},
                    "function": {
                        "type": "object",
                        "required": ["name"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
                            "description": {"type": "string"},
                            "parameters": {"type": "object"},
                        },
                    },
                },
            },
        },
    },
}
INPUT_LINE = Draft202012Validator(
    {
        "type": "object",
        "required": ["custom_id", "method", "url", "body"],
        "additionalProperties": False,
        "properties": {
            "custom_id": {"type": "string", "minLength": 1},
            "method": {"const": "POST"},
            "url": {"const": "/v1/chat/completions"},
            "body": CHAT_BODY,
        },
    }
)
CREATE_BATCH = Draft202012Validator(
    {
        "type": "object",
        "required": ["input_file_id", "endpoint", "completion_window"],
        "additionalProperties": False,
        "properties": {
            "input_file_id": {"type": "string"},
            "endpoint": {"const": "/v1/chat/completions"},
            "completion_window": {"const": "24h"},
            "metadata": {
                "type": "object",
                "maxProperties": 16,
                "propertyNames": {"maxLength": 64},
                "additionalProperties": {"type": "string", "maxLength": 512},
            },
        },
    }
)
MESSAGE_BATCH = Draft202012Validator(
    {
        "type": "object",
        "required": ["requests"],
        "additionalProperties": False,
        "properties": {
            "requests": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100_000,
                "items": {
                    "type": "object",
                    "required": ["custom_id", "params"],
                    "additionalProperties": False,
                    "properties": {
                        "custom_id": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
                        "params": {
                            "type": "object",
                            "required": ["model", "max_tokens", "messages"],
                            "additionalProperties": False,
                            "properties": {
                                "model": {"type": "string"},
                                "max_tokens": {"type": "integer", "minimum": 1},
                                "messages": CHAT_BODY["properties"]["messages"],  # type: ignore[index] # a constant above
                                "system": {"type": "string"},
                                "temperature": {"type": "number", "minimum": 0, "maximum": 1},
                                "top_p": {"type": "number", "minimum": 0, "maximum": 1},
                                "tools": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["name", "input_schema"],
                                        "additionalProperties": False,
                                        "properties": {
                                            "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,128}$"},
                                            "description": {"type": "string"},
                                            "input_schema": {"type": "object", "required": ["type"]},
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            }
        },
    }
)


@dataclass
class HeldBatch:
    """Batch on a server.

    Attributes:
        number: its place among all batches, from 1.
        requests: the body of each request, by custom id.
        created: date of its creation.
        input_file: id of the file with its requests.
        metadata: metadata of the client.
        polls: number of looks at its status so far.
        status: final status; Anthropic's server knows only `completed` (ended).
        results: lines of the output file and of the error file, once they are made.
        lost: custom ids that get no answer, because the batch expired or was cancelled before.
    """

    number: int
    requests: dict[str, Json]
    created: float = field(default_factory=time.time)
    input_file: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    polls: int = 0
    status: str = "completed"
    lost: set[str] = field(default_factory=set)
    results: tuple[list[bytes], list[bytes]] | None = None


class HttpError(Exception):
    """Error that a server returns: HTTP status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # a connection that finds the queue full is tried again after a second


class BatchServer:
    """Server of OpenAI's Files and Batches API, and of chat completions.

    Attributes:
        polls: number of looks after which a batch has ended.
        ending: function that changes a batch before it ends, for example its status.
        answer: function from the body of a request to the text of its answer, to tool calls, or to an HTTP error.
        before, after: functions called with a step (`upload`, `create`, `poll`, `list`, `download`) before the server
            does the step, and before it sends the response.
        rewrite: function that changes the lines of a file with results.
        steps: number of times that each step was done.
        batches: all batches, in the order of creation.
        single: bodies of the requests that were not sent in a batch.
        keys: the API keys that were sent.
    """

    create_schema = CREATE_BATCH

    def __init__(self, *, polls: int = 2) -> None:
        self.polls = polls
        self.ending: Callable[[HeldBatch], None] = lambda _: None
        self.answer: Callable[[Json], str | Reply | HttpError] = lambda body: fair_answer(body["messages"], body)
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None
        self.rewrite: Callable[[list[bytes]], list[bytes]] = lambda lines: lines
        self.steps: Counter[str] = Counter()
        self.files: dict[str, bytes] = {}
        self.batches: list[HeldBatch] = []
        self.single: list[Json] = []
        self.keys: set[str | None] = set()
        self.lock = threading.RLock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(b"")

            def do_POST(self) -> None:
                self.reply(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            def reply(self, content: bytes) -> None:
                try:
                    status, body = 200, server.respond(self, content)
                except HttpError as error:
                    status, body = error.status, json.dumps(server.error(str(error))).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the client was killed

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Return the base URL for the client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def asked(self) -> Counter[str]:
        """Return how often each custom id is in a batch."""
        return Counter(key for batch in self.batches for key in batch.requests)

    def error(self, message: str) -> Json:
        """Return the body of an error."""
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}

    def respond(self, handler: BaseHTTPRequestHandler, content: bytes) -> bytes:
        """Do the step that a request asks for, and return the body of the response."""
        self.keys.add(handler.headers.get("Authorization") or handler.headers.get("X-Api-Key"))
        url = urlsplit(handler.path)
        step, work = self.route(handler.command, url.path, parse_qs(url.query), content, handler.headers)
        self.before(step)
        with self.lock:
            body = work()
            self.steps[step] += 1
        self.after(step)
        return body if isinstance(body, bytes) else json.dumps(body).encode()

    def route(
        self, method: str, path: str, query: dict[str, list[str]], content: bytes, headers: Any
    ) -> tuple[str, Callable[[], Json]]:
        """Return the name of the step, and the function that does it."""
        if (method, path) == ("POST", "/v1/files"):
            return "upload", lambda: self.upload(content, headers["Content-Type"])
        if (method, path) == ("POST", "/v1/batches"):
            return "create", lambda: self.create(json.loads(content))
        if (method, path) == ("GET", "/v1/batches"):
            return "list", lambda: self.listed(query)
        if method == "GET" and (found := re.fullmatch(r"/v1/batches/batch_(\d+)", path)):
            return "poll", lambda: self.status(self.batch(int(found[1])))
        if method == "GET" and (found := re.fullmatch(r"/v1/files/([\w-]+)/content", path)):
            return "download", lambda: self.content(found[1])
        if (method, path) == ("POST", "/v1/chat/completions"):
            return "single", lambda: self.ask(json.loads(content))
        raise HttpError(404, f"no such page: {path}")

    def batch(self, number: int) -> HeldBatch:
        """Return a batch."""
        if not 0 < number <= len(self.batches):
            raise HttpError(404, f"No batch found with id 'batch_{number}'.")
        return self.batches[number - 1]

    def upload(self, content: bytes, content_type: str) -> Json:
        """Keep a file of requests, if it is valid."""
        head = f"Content-Type: {content_type}\r\n\r\n".encode()
        form = email.message_from_bytes(head + content, policy=email.policy.HTTP)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
        assert parts.keys() == {"purpose", "file"}
        assert parts["purpose"].get_content().strip() == "batch"
        data = parts["file"].get_payload(decode=True)
        assert isinstance(data, bytes)
        requests = [json.loads(line) for line in data.splitlines()]
        for request in requests:
            valid(request, INPUT_LINE)
        if len({request["custom_id"] for request in requests}) < len(requests) or len(requests) > 50_000:
            raise HttpError(400, "custom_id must be unique; at most 50,000 requests")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = data
        return {
            "id": name,
            "object": "file",
            "bytes": len(data),
            "created_at": int(time.time()),
            "filename": parts["file"].get_filename(),
            "purpose": "batch",
            "status": "processed",
        }

    def create(self, body: Json) -> Json:
        """Create a batch."""
        valid(body, self.create_schema)
        if body["input_file_id"] not in self.files:
            raise HttpError(400, f"no such file: {body['input_file_id']}")
        lines = map(json.loads, self.files[body["input_file_id"]].splitlines())
        requests = {line["custom_id"]: line["body"] for line in lines}
        number = len(self.batches) + 1
        self.batches.append(
            HeldBatch(number, requests, input_file=body["input_file_id"], metadata=body.get("metadata", {}))
        )
        return self.shown(self.batches[-1])

    def listed(self, query: dict[str, list[str]]) -> Json:
        """Return a page of batches, the newest first."""
        limit = int(query["limit"][0])
        newest = [self.shown(batch) for batch in reversed(self.batches)]
        if "after" in query:
            newest = newest[[each["id"] for each in newest].index(query["after"][0]) + 1 :]
        page = newest[:limit]
        return {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(newest) > limit,
        }

    def status(self, batch: HeldBatch) -> Json:
        """Return a batch; it ends after a number of calls."""
        batch.polls += 1
        if batch.polls == self.polls:
            self.ending(batch)
        return self.shown(batch)

    def shown(self, batch: HeldBatch) -> Json:
        """Return a batch object."""
        ended = batch.polls >= self.polls
        results = self.results(batch) if ended and batch.status != "failed" else ([], [])
        names = [f"file-out-{batch.number}", f"file-err-{batch.number}"]
        for name, lines in zip(names, results, strict=True):
            self.files[name] = b"\n".join(self.rewrite(lines)) + b"\n" if lines else b""
        errors = {"object": "list", "data": [{"code": "invalid", "message": "the file is refused", "line": 1}]}
        return {
            "id": f"batch_{batch.number}",
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "errors": errors if ended and batch.status == "failed" else None,
            "input_file_id": batch.input_file,
            "completion_window": "24h",
            "status": batch.status if ended else "in_progress",
            "output_file_id": names[0] if results[0] else None,
            "error_file_id": names[1] if results[1] else None,
            "created_at": int(batch.created),
            "expires_at": int(batch.created) + 86_400,
            "request_counts": {
                "total": len(batch.requests),
                "completed": len(results[0]),
                "failed": len(results[1]),
            },
            "metadata": batch.metadata,
        }

    def results(self, batch: HeldBatch) -> tuple[list[bytes], list[bytes]]:
        """Return the lines of the output file and of the error file, not in the order of the requests."""
        if batch.results is not None:
            return batch.results
        done: list[bytes] = []
        failed: list[bytes] = []
        for key, body in reversed(batch.requests.items()):
            line: Json = {"id": f"batch_req_{key[:8]}", "custom_id": key, "response": None, "error": None}
            if key in batch.lost:
                message = "This request could not be executed before the completion window expired."
                line["error"] = {"code": "batch_expired", "message": message}
                failed.append(json.dumps(line).encode())
                continue
            answer = self.answer(body)
            if isinstance(answer, HttpError):
                line["response"] = {"status_code": answer.status, "request_id": "r", "body": self.error(str(answer))}
                failed.append(json.dumps(line).encode())
            else:
                line["response"] = {"status_code": 200, "request_id": "r", "body": self.completion(body, answer)}
                done.append(json.dumps(line).encode())
        batch.results = done, failed
        return batch.results

    def content(self, name: str) -> bytes:
        """Return the content of a file."""
        if name not in self.files:
            raise HttpError(404, f"No such File object: {name}")
        return self.files[name]

    def ask(self, body: Json) -> Json:
        """Answer a request that is not in a batch."""
        self.single.append(body)
        answer = self.answer(body)
        if isinstance(answer, HttpError):
            raise answer
        return self.completion(body, answer)

    def completion(self, body: Json, answer: str | Reply) -> Json:
        """Return a chat completion."""
        message: Json = {"role": "assistant", "content": answer if isinstance(answer, str) else answer.text}
        if isinstance(answer, Reply):
            message["tool_calls"] = [
                {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for number, (name, arguments) in enumerate(answer.calls)
            ]
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"},
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }


class MessageBatchServer(BatchServer):
    """Server of Anthropic's Message Batches and Messages API."""

    create_schema = MESSAGE_BATCH

    @property
    def url(self) -> str:
        """Return the base URL for the client."""
        return f"http://127.0.0.1:{self.port}"

    def error(self, message: str) -> Json:
        """Return the body of an error."""
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "r"}

    def route(
        self, method: str, path: str, query: dict[str, list[str]], content: bytes, headers: Any
    ) -> tuple[str, Callable[[], Json]]:
        """Return the name of the step, and the function that does it."""
        assert headers["anthropic-version"]
        if (method, path) == ("POST", "/v1/messages/batches"):
            return "create", lambda: self.create(json.loads(content))
        if (method, path) == ("GET", "/v1/messages/batches"):
            return "list", lambda: self.listed(query)
        if method == "GET" and (found := re.fullmatch(r"/v1/messages/batches/msgbatch_(\d+)", path)):
            return "poll", lambda: self.status(self.batch(int(found[1])))
        if method == "GET" and (found := re.fullmatch(r"/v1/messages/batches/msgbatch_(\d+)/results", path)):
            return "download", lambda: self.lines(self.batch(int(found[1])))
        if (method, path) == ("POST", "/v1/messages"):
            return "single", lambda: self.ask(json.loads(content))
        raise HttpError(404, f"Not found: {path}")

    def create(self, body: Json) -> Json:
        """Create a batch."""
        valid(body, self.create_schema)
        requests = {each["custom_id"]: each["params"] for each in body["requests"]}
        if len(requests) < len(body["requests"]):
            raise HttpError(400, "custom_id must be unique")
        self.batches.append(HeldBatch(len(self.batches) + 1, requests))
        return self.shown(self.batches[-1])

    def listed(self, query: dict[str, list[str]]) -> Json:
        """Return a page of batches, the newest first."""
        for batch in self.batches:
            batch.polls += 1  # time passes
        page = super().listed({name.replace("after_id", "after"): value for name, value in query.items()})
        return {name: value for name, value in page.items() if name != "object"}

    def shown(self, batch: HeldBatch) -> Json:
        """Return a batch object."""
        ended = batch.polls >= self.polls
        done = len(batch.requests) - len(batch.lost)
        counts = {"processing": len(batch.requests), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        if ended:
            counts |= {"processing": 0, "succeeded": done, "expired": len(batch.lost)}
        name = f"msgbatch_{batch.number}"
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "ended_at": rfc3339(time.time()) if ended else None,
            "created_at": rfc3339(batch.created),
            "expires_at": rfc3339(batch.created + 86_400),
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{self.url}/v1/messages/batches/{name}/results" if ended else None,
        }

    def lines(self, batch: HeldBatch) -> bytes:
        """Return the results, not in the order of the requests."""
        lines = []
        for key, body in reversed(batch.requests.items()):
            answer = self.answer(body)
            result: Json = {"type": "succeeded", "message": None}
            if key in batch.lost:
                result = {"type": "expired"}
            elif isinstance(answer, HttpError):
                result = {"type": "errored", "error": self.error(str(answer))}
            else:
                result["message"] = self.completion(body, answer)
            lines.append(json.dumps({"custom_id": key, "result": result}).encode())
        return b"\n".join(self.rewrite(lines)) + b"\n"

    def completion(self, body: Json, answer: str | Reply) -> Json:
        """Return a message."""
        blocks: list[Json] = [{"type": "text", "text": answer}]
        if isinstance(answer, Reply):
            blocks = [
                {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": json.loads(arguments)}
                for number, (name, arguments) in enumerate(answer.calls)
            ]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": "tool_use" if isinstance(answer, Reply) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }


def valid(body: Json, schema: Draft202012Validator) -> None:
    """Raise the error of an invalid request unless a body follows a schema."""
    for error in schema.iter_errors(body):
        raise HttpError(400, f"invalid request: {error.message[:200]}")


def rfc3339(seconds: float) -> str:
    """Return a date in the form of Anthropic's API."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
