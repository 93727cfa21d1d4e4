"""A chat-completions server on the loopback interface, for tests and benchmarks: real HTTP with keep-alive.

In a test::

    with ChatServer(lambda messages, body: "hello") as server:
        ...  # server.url, server.bodies, server.most_in_flight

As a separate process, for benchmarks and for tests that kill a server: `python -m tests.support.servers --delay 0.5`
prints its URL as its first line and answers until it is killed; `GET /stats` returns its counts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import importlib
import itertools
import json
import re
import signal
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, Self

Messages = list[dict[str, Any]]
Body = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One response of the server.

    Attributes:
        text: the message's content; `None` leaves it null.
        status: HTTP status; anything but 200 sends an OpenAI-like error with `text` as its message.
        headers: further headers of the response.
        raw: body of the response, in place of a chat completion.
        delay: seconds before answering, in place of the server's own delay.
        broken: `reset` closes the connection without an answer, `half` closes it in the middle of the body.
        finish_reason, refusal: fields of the chat completion.
        calls: name and arguments (as JSON text) of each tool call.
        model, fingerprint: reported model (by default the requested model) and fingerprint (by default none).
    """

    text: Any = "hello"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delay: float | None = None
    broken: Literal["reset", "half"] | None = None
    finish_reason: str = "stop"
    refusal: str | None = None
    model: str | None = None
    fingerprint: str | None = None
    calls: tuple[tuple[str, str], ...] = ()


Answer = Callable[[Messages, Body], str | Reply]
Echo = list[tuple[str, float | None]]
"""Tokens of a text with their log-probabilities."""


def echo_by_words(body: Body) -> Echo:
    """Return each word with its space as a token; short words are likelier, and the first has no log-probability."""
    words = re.findall(r"\s*\S+|\s+$", body["prompt"])
    return [(word, None if place == 0 else -float(len(word))) for place, word in enumerate(words)]


def embed_by_words(body: Body) -> list[Any]:
    """Return the mean of the vectors of the longer words, so that texts with the same words are similar."""
    words = [[word for word in text.split() if len(word) > 3] or [""] for text in body["input"]]
    digests = [[hashlib.sha256(word.encode()).digest()[:16] for word in own] for own in words]
    return [
        [sum(byte - 127.5 for byte in place) / 128 / len(own) for place in zip(*own, strict=True)] for own in digests
    ]


PIECE = 2**20
"""Number of bytes of an answer that are handed to its connection at once."""
_UNSEEDED = itertools.count()


def fair_answer(messages: Messages, body: Body) -> str:
    """Return ten words of a small vocabulary, the same for the same prompt and seed, or random without a seed.

    The words are capitalised: such answers count as English without the language model, which takes time to load.
    """
    drawn = body.get("seed", next(_UNSEEDED))
    digest = hashlib.sha256(f"{messages[-1]['content']} {drawn}".encode("utf-8", "surrogatepass")).digest()
    words = ["Lamp", "Chair", "Soap", "Tea", "Coat", "Pen", "Book", "Bag", "Rug", "Mug", "Kite", "Jar"]
    return " ".join(words[byte % len(words)] for byte in digest[:10])


class ChatServer:
    """Server of `POST …/chat/completions` in a background thread, on a free port of 127.0.0.1.

    Attributes:
        answer: function from messages and body to a text or a `Reply`; called for requests in their order of arrival.
        delay: seconds before each answer.
        script: replies to the first requests, in this order; `answer` replies to all further requests.
        bodies: the JSON body of every request, in the order of arrival.
        keys: the `Authorization` header of every request.
        heads: all headers of every request, by lower-case name, and its path with the query as `:path`.
        echo: function from the body to tokens, for `POST …/completions`; without it, the status is 404.
        host: loopback address on which the server listens.
        tls: TLS settings of an `https` server, or `None`.
        embed: function from the body to vectors, for `POST …/embeddings`; without it, the status is 404.
        most_in_flight: the largest number of requests that were being answered at one time.
        connections: number of connections that were opened.
        sent: number of bytes that were handed to the connections of answers.
    """

    path, key_header = "/chat/completions", "authorization"

    def __init__(
        self,
        answer: Answer = fair_answer,
        *,
        delay: float = 0.0,
        script: Iterable[Reply] = (),
        port: int = 0,
        echo: Callable[[Body], Echo | Reply] | None = None,
        embed: Callable[[Body], list[Any] | Reply] | None = None,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.tls = tls
        self.host = host
        self.answer = answer
        self.embed = embed
        self.echo = echo
        self.delay = delay
        self.script = list(script)
        self.bodies: list[Body] = []
        self.keys: list[str | None] = []
        self.heads: list[dict[str, str]] = []
        self.most_in_flight = 0
        self.in_flight = 0
        self.connections = 0
        self.sent = 0
        self.port = port
        self._open: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="chat-server", daemon=True)

    def answered(self, reply: Reply, body: Body) -> bytes:
        """Return the body of a successful response."""
        return _completion(reply, body)

    def refused(self, status: int, text: str) -> bytes:
        """Return the body of an error."""
        return _error(status, text)

    @property
    def url(self) -> str:
        """Return the base URL for an OpenAI client."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'' if self.tls is None else 's'}://{host}:{self.port}/v1"

    @property
    def count(self) -> int:
        """Return the number of requests that have arrived."""
        return len(self.bodies)

    @property
    def questions(self) -> Counter[str]:
        """Return the number of times that each distinct body arrived."""
        return Counter(json.dumps(body, sort_keys=True) for body in self.bodies)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the server did not start"
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        server = await asyncio.start_server(self._connected, self.host, self.port, backlog=512, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        try:
            while await self._one_request(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has disconnected, or the server stops
        finally:
            self._open.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        start, *lines = head.split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        method, target, _ = start.split(" ", 2)
        headers[":path"] = target
        path = target.partition("?")[0]
        if method == "GET" and path == "/stats":
            stats = {"count": self.count, "distinct": len(self.questions), "most_in_flight": self.most_in_flight}
            writer.write(_http(200, json.dumps(stats).encode()))
            return True
        chat = path.endswith(self.path)
        embeds = self.embed is not None and path.endswith("/embeddings")
        if method != "POST" or not (chat or embeds or (self.echo is not None and path.endswith("/completions"))):
            writer.write(_http(404, _error(404, f"no such page: {path}")))
            return True
        body = json.loads(content)
        self.bodies.append(body)
        self.keys.append(headers.get(self.key_header))
        self.heads.append(headers)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._reply(body, writer, chat=chat, embeds=embeds)
        finally:
            self.in_flight -= 1

    async def _reply(self, body: Body, writer: asyncio.StreamWriter, *, chat: bool, embeds: bool) -> bool:
        given: str | Reply
        if self.script:
            given = self.script.pop(0)
        elif embeds and self.embed is not None:
            vectors = self.embed(body)
            given = vectors if isinstance(vectors, Reply) else Reply(raw=_embedded(vectors, body))
        elif chat or self.echo is None:
            given = self.answer(body["messages"], body)
        else:
            echoed = self.echo(body)
            given = echoed if isinstance(echoed, Reply) else Reply(raw=_echoed(echoed, body))
        reply = Reply(given) if isinstance(given, str) else given
        delay = self.delay if reply.delay is None else reply.delay
        if delay:
            await asyncio.sleep(delay)
        if reply.broken == "reset":
            writer.transport.abort()
            return False
        if reply.raw is not None:
            content = reply.raw
        elif reply.status == 200:
            content = self.answered(reply, body)
        else:
            content = self.refused(reply.status, str(reply.text))
        message = _http(reply.status, content, reply.headers)
        if reply.broken == "half":
            writer.write(message[: -len(content) // 2])
            await writer.drain()
            return False
        for start in range(0, len(message), PIECE):
            piece = message[start : start + PIECE]
            writer.write(piece)
            self.sent += len(piece)
            await writer.drain()
        return True


def _completion(reply: Reply, body: Body) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for place, (name, arguments) in enumerate(reply.calls)
        ]
    if reply.refusal is not None:
        message["refusal"] = reply.refusal
    prompt_tokens = sum(len(str(message["content"]).split()) for message in body["messages"])
    completion_tokens = len(str(reply.text or "").split())
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": reply.model or body["model"],
            **({"system_fingerprint": reply.fingerprint} if reply.fingerprint else {}),
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }
    ).encode()


def _echoed(echo: Echo, body: Body) -> bytes:
    """Return a completion of OpenAI's older API, with one generated token at the end."""
    tokens = [*echo, ("!", -0.5)]
    offsets = [0, *accumulate(len(token) for token, _ in tokens[:-1])]
    logprobs = {
        "tokens": [token for token, _ in tokens],
        "token_logprobs": [log for _, log in tokens],
        "text_offset": offsets,
        "top_logprobs": None,
    }
    choice = {"index": 0, "text": f"{body['prompt']}!", "logprobs": logprobs, "finish_reason": "length"}
    usage = {"prompt_tokens": len(echo), "completion_tokens": 1, "total_tokens": len(tokens)}
    return json.dumps({"id": "cmpl-1", "object": "text_completion", "choices": [choice], "usage": usage}).encode()


def _embedded(vectors: list[Any], body: Body) -> bytes:
    data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(vectors)]
    tokens = sum(len(text.split()) for text in body["input"])
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    # In reverse order, because clients must sort by `index`.
    return json.dumps({"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}).encode()


def _error(status: int, text: str) -> bytes:
    return json.dumps({"error": {"message": text, "type": "error", "code": status}}).encode()


def _http(status: int, content: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    every = {"Content-Type": "application/json", "Content-Length": str(len(content)), **(headers or {})}
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in every.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; default: a free one")
    parser.add_argument("--answer", default="tests.support.servers:fair_answer", help="module:function(messages, body)")
    arguments = parser.parse_args()
    module, _, name = arguments.answer.partition(":")
    with ChatServer(
        getattr(importlib.import_module(module), name), delay=arguments.delay, port=arguments.port
    ) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
