"""Registry of targets: the names that users type, and targets that one process serves to other processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Protocol, cast

from pytest_fairness import extensions
from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason, TargetError, one_line
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Message, Request, Response, Sampling
from pytest_fairness.resources import Closing
from pytest_fairness.targets import web
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.web import OPTIONS

# Registry of targets: the names that users type, and the import paths of the functions that make the targets.


@dataclass(frozen=True)
class TargetKind:
    """One kind of target.

    Attributes:
        forms: forms of the names that users type, such as `openai:MODEL`, for messages.
        shared: whether one process of a run loads the target and serves it to the other processes.
    """

    forms: tuple[str, ...]
    factory: str
    shared: bool = False
    options: tuple[str, ...] = ()


TARGETS = {
    "local": TargetKind(("local", "local:PATH.gguf"), "pytest_fairness.targets.local:open_local", shared=True),
    "openai": TargetKind(("openai:MODEL",), "pytest_fairness.targets.openai:open_openai", options=OPTIONS),
    "anthropic": TargetKind(("anthropic:MODEL",), "pytest_fairness.targets.anthropic:open_anthropic", options=OPTIONS),
    "litellm": TargetKind(("litellm:PROVIDER/MODEL",), "pytest_fairness.targets.litellm:open_litellm", options=OPTIONS),
    "transformers": TargetKind(
        ("transformers:ID_OR_PATH",), "pytest_fairness.targets.transformers:open_transformers", shared=True
    ),
    "python": TargetKind(("python:package.module:callable",), "pytest_fairness.targets.python:open_python"),
    "http": TargetKind(("http://HOST/PATH",), "pytest_fairness.targets.http:open_http"),
    "https": TargetKind(("https://HOST/PATH",), "pytest_fairness.targets.http:open_https"),
}


NO_LONGER = {
    "azure": "openai:{0} base_url=https://RESOURCE.openai.azure.com/openai/v1 api_key_env=AZURE_OPENAI_API_KEY, or "
    "litellm:azure/{0}",
    "ollama": "openai:{0} base_url=http://localhost:11434/v1, or litellm:ollama_chat/{0}",
    "openrouter": "openai:{0} base_url=https://openrouter.ai/api/v1 api_key_env=OPENROUTER_API_KEY, or "
    "litellm:openrouter/{0}",
    "vllm": "openai:{0} base_url=http://localhost:8000/v1, or litellm:hosted_vllm/{0}",
}
"""Targets that replace the targets of services that earlier builds had, by prefix; {0} is the model."""


class Factory(Protocol):
    """Function that makes a target."""

    def __call__(self, rest: str | None, settings: RunSettings, /) -> Target:
        """Return the target without opening it, or raise `TargetError` if the name or a setting is not valid.

        `rest` is the part of the name after the prefix and its colon; `None` without a colon.
        """


def open_target(spec: str, settings: RunSettings, address: str | None = None) -> Target:
    """Return the target with this name; send nothing, load nothing and need no key yet.

    `address` is that of the process that serves the target, if `serve` was called for it.

    Raises:
        TargetError: there is no such target, or an option or setting of the target is not valid.
    """
    target = _make(spec, settings)
    if address is None:
        return target

    return SharedTarget(target, address)


def _make(spec: str, settings: RunSettings) -> Target:
    prefix, colon, rest = spec.strip().partition(":")
    value = rest if colon else None
    entry = TARGETS.get(prefix)
    try:
        extension = extensions.declared("targets", TARGETS).get(prefix)
        factory = None if extension is None else cast("Factory", extensions.load(extension))
    except FairnessError as error:
        raise TargetError(str(error)) from error
    if factory is None:
        if entry is None or value == "":
            raise TargetError(_unknown_message(spec, prefix, rest))
        module, _, function = entry.factory.partition(":")
        factory = cast("Factory", getattr(import_module(module), function))
        value, options = web.parse_target_options(prefix, value or "") if entry.options else (value, {})
        settings = replace(settings, target_options=options)
    return factory(value, settings)


def check_spec(spec: str, settings: RunSettings) -> None:
    """Raise `TargetError` if there is no such target, or if it can answer no request; send nothing, load no model."""
    open_target(spec, settings).check()


def _unknown_message(spec: str, prefix: str, rest: str) -> str:
    if replaced := NO_LONGER.get(prefix):
        return f"there is no target {prefix}: any more (--fairness-target). Write {replaced.format(rest or 'MODEL')}."
    near = get_close_matches(prefix.lower(), [*TARGETS, *extensions.declared("targets")], n=1)
    meant = f"{near[0]}:{rest}" if near and rest else near[0] if near else None
    if rest.partition("/")[0].isdigit():  # a host and its port, such as `localhost:8000`
        meant = f"http://{spec}"
    if meant is None and spec and not rest:  # the name of a model alone
        hint = f" A target begins with its kind, such as 'openai:{spec}'."
    else:
        hint = f" Did you mean {meant!r}?" if meant and meant != spec.rstrip(":") else ""
    known = [form for entry in TARGETS.values() for form in entry.forms]
    forms = ", ".join([*known, *(f"{name}:…" for name in extensions.declared("targets"))])
    return f"unknown target {spec!r} (--fairness-target).{hint} Known targets: {forms}."


def open_embedder(spec: str, settings: RunSettings, folder: Path) -> Target:
    """Return the embedding model that a probe names; send nothing, load nothing and need no key yet.

    A path is relative to the probe's folder.

    Raises:
        TargetError: the model's path leads out of the folder or to no model, or an address or header is not valid.
    """
    prefix, _, rest = spec.strip().partition(":")
    # `fairness_target_version` is the version of the audited system, not of the embedding model.
    base_url = settings.embeddings_base_url or settings.base_url
    settings = replace(settings, base_url=base_url, target_version=None, root=folder)
    try:
        if prefix == "openai":
            from pytest_fairness.targets.openai import OpenAIEmbedder

            return OpenAIEmbedder(rest, settings)
        _require_inside(rest, folder)
        from pytest_fairness.targets.transformers import TransformersEmbedder

        return TransformersEmbedder(rest, settings)
    except TargetError as error:
        raise TargetError(str(error).replace("--fairness-target", "`embeddings` in the probe file")) from error


def _require_inside(written: str, folder: Path) -> None:
    """Raise `TargetError` for a model outside of the probe's folder, because probe files may be untrusted."""
    path = Path(written)
    leads_out = path.is_absolute() or written.startswith("~") or ".." in path.parts
    if leads_out or not (folder / path).resolve().is_relative_to(folder.resolve()):
        raise TargetError(
            f"transformers:{written}: the model must be inside of the probe's folder. Move it there, and write its "
            "path relative to this folder (`embeddings` in the probe file)."
        )


def serve(spec: str, settings: RunSettings) -> TargetServer | None:
    """Return a server through which all processes of a run use one loaded model; `None` for targets not shared so.

    The model is loaded (and downloaded if necessary) when the first process connects. Pass the server's `address` to
    `open_target`; close the server at the end of the run.
    """
    entry = TARGETS.get(spec.strip().partition(":")[0])
    if entry is None or not entry.shared:
        return None

    return TargetServer(open_target(spec, settings))


# Checks whether a target can give the likelihood of a text.


def can_answer(target: Target, request: Request) -> bool:
    """Return whether the target can answer the request; only some targets can give likelihoods."""
    return request.answer_format != "likelihood" or bool(getattr(target, "likelihoods", False))


def require_support(target: Target, requests: Sequence[Request]) -> None:
    if all(can_answer(target, request) for request in requests):
        return
    other = ""
    if target.name == "local":
        from pytest_fairness.targets.local import model_path

        other = f". The same model gives likelihoods as transformers:{model_path()}"
    elif target.name.startswith("local:"):
        other = ". The same file gives likelihoods as transformers:PATH.gguf"
    raise TargetError(
        f"{target.name} cannot compute the likelihood of a given text, which the audit `likelihood` needs. Use a "
        "transformers: target, or an openai: endpoint that returns the log-probabilities of a prompt, such as "
        f"vLLM{other}."
    )


# Targets that one process of a run loads, and that the other processes use over the loopback interface.
#
# The processes exchange lines of JSON: each request has a number, and its answer has the same number.

LONGEST_LINE = 2**28
"""Maximum number of bytes of one message."""


class TargetServer(Closing):
    """Server through which other processes use a target, which it opens at the first connection, and closes.

    `address` is `host:port`, for `SharedTarget`.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._opening: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self.address = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="fairness-shared", daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        if self._loop is not None and self._stopped is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=LONGEST_LINE)
        self.address = "{}:{}".format(*server.sockets[0].getsockname())
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            await self._target.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs has a task
        self._connections.add(task)
        asked: dict[int, asyncio.Task[None]] = {}
        try:
            await self._open(writer)
            while line := await reader.readline():
                message = json.loads(line)
                number = int(message["number"])
                if "request" in message:
                    asked[number] = asyncio.create_task(self._answer(number, message["request"], writer))
                elif number in asked:
                    asked[number].cancel()
                asked = {number: task for number, task in asked.items() if not task.done()}
        except (OSError, ValueError, LookupError, asyncio.CancelledError):
            pass  # the client has ended or sends no valid message, or the server is closed
        finally:
            for answering in asked.values():
                answering.cancel()
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _open(self, writer: asyncio.StreamWriter) -> None:
        if self._opening is None:
            self._opening = asyncio.create_task(self._target.open())
        try:
            await asyncio.shield(self._opening)
        except TargetError as error:
            writer.write(_line({"error": str(error)}))
            raise ConnectionAbortedError from error
        writer.write(_line({"open": True}))

    async def _answer(self, number: int, plain: Json, writer: asyncio.StreamWriter) -> None:
        try:
            response = await self._target.ask(_request_of(plain))
        except TargetError as error:
            answer: dict[str, Json] = {"error": str(error)}
        except RequestFailed as error:
            retry = None if error.retry is None else error.retry.name
            answer = {"failed": str(error), "retry": retry, "retry_after": error.retry_after}
        except Exception as error:  # noqa: BLE001 - sent to the process that asked
            answer = {"failed": f"{type(error).__name__}: {one_line(error)}", "retry": None, "retry_after": None}
        else:
            answer = {"response": asdict(response)}
        writer.write(_line({"number": number, **answer}))
        with contextlib.suppress(OSError):
            await writer.drain()


class SharedTarget:
    """Target that another process has loaded; this process's own object for it is never opened."""

    def __init__(self, target: Target, address: str) -> None:
        self._target, self._server = target, address
        self.name, self.identity = target.name, target.identity
        self.reusable, self.concurrency = target.reusable, target.concurrency
        self.likelihoods: bool = getattr(target, "likelihoods", False)
        self.preflight: bool = getattr(target, "preflight", True)
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None

    def check(self) -> None:
        self._target.check()

    async def open(self) -> None:
        """Connect to the other process, and wait until it has opened the target."""
        host, _, port = self._server.rpartition(":")
        try:
            reader, self._writer = await asyncio.open_connection(host, int(port), limit=LONGEST_LINE)
            message = json.loads(await reader.readline())
        except (OSError, ValueError) as error:
            await self.close()
            raise self._disconnected_error() from error
        if "error" in message:
            await self.close()
            raise TargetError(str(message["error"]))
        self._reading = asyncio.create_task(self._read(reader))

    async def ask(self, request: Request) -> Response:
        if self._writer is None or self._reading is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        if self._reading.done():
            raise self._disconnected_error()
        number = next(self._numbers)
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._writer.write(_line({"number": number, "request": asdict(request)}))
        try:
            return await future
        except asyncio.CancelledError:
            self._writer.write(_line({"number": number}))
            raise
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Close the connection to the other process, which keeps the target open."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                message = json.loads(line)
                future = self._waiting.get(message["number"])
                if future is not None and not future.done():
                    _settle(future, message)
        except (OSError, ValueError):
            pass
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(self._disconnected_error())

    def _disconnected_error(self) -> TargetError:
        return TargetError(
            f"{self.name}: the process that serves the model (pytest-xdist's controller) has ended. Run again."
        )


def _request_of(plain: Json) -> Request:
    history = tuple(Message(*message) for message in plain["history"])
    return Request(**{**plain, "sampling": Sampling(**plain["sampling"]), "history": history})


def _settle(future: asyncio.Future[Response], message: Json) -> None:
    if "response" in message:
        future.set_result(Response(**message["response"]))
    elif "error" in message:
        future.set_exception(TargetError(message["error"]))
    else:
        retry = message["retry"] and RetryReason[message["retry"]]
        future.set_exception(RequestFailed(message["failed"], retry=retry, retry_after=message["retry_after"]))


def _line(message: Json) -> bytes:
    # ASCII, so that lone surrogates survive and no line end is inside.
    return json.dumps(message).encode() + b"\n"
