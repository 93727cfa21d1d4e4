"""Protocols of targets (systems under test), their batches, embeddings and likelihoods, and threads for them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import sys
import threading
from array import array
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError, identifier
from pytest_fairness.records import Json, Request, Response

# Protocol of targets, the systems under test.


def versioned(identity: str, version: str | None) -> str:
    """Return a target's identity with the target's version appended; unchanged if `version` is `None`."""
    return identity if version is None else f"{identity} version {version}"


def refuse_tools(name: str, request: Request) -> None:
    """Raise `TargetError` if a request asks for tool calls, which the target `name` cannot make."""
    if request.answer_format == "calls":
        raise TargetError(
            f"{name}: a model that this plugin runs cannot use tools. Run a model with tools in a server such as vLLM, "
            "and name it as the target openai:MODEL base_url=http://localhost:8000/v1."
        )


def refuse_stream(name: str, request: Request) -> None:
    """Raise `TargetError` if a request asks for a stream of events, which the target `name` cannot read."""
    if "stream" in request.sampling.extra_fields:
        raise TargetError(
            f"{name}: an answer cannot be read from a stream. Remove `stream` from `sampling.extra` in the probe."
        )


class Target(Protocol):
    """System under test, which answers many requests at the same time.

    The constructor of a target sends nothing, loads nothing and needs no key, because a run may use only recorded
    answers. The engine calls `open` once, before the first request; then `ask` for every request, always on the same
    event loop; and `close` at the end.

    Attributes:
        name: name of the target for reports and baselines (`openai:gpt-5`).
        identity: text that names all properties of the target that can change an answer (kind, model, endpoint,
            version). The identity is part of the key of every recorded response, and contains no secret.
        reusable: whether other runs may reuse the recorded answers; `False` for code that may change under the same
            name.
        concurrency: maximum number of requests in flight that is useful for the target, or `None` for no limit.

    Optional attributes:
        address: address of the server without user, password and query; needed if the name does not contain it.
        likelihoods: `True` if the target can answer requests with the answer format `likelihood`; other targets get no
            such requests.
        preflight: `False` if no server can reject a key or model name; the first request of a run is then not sent
            alone.
        lasting: `True` if answers depend only on the request, as embeddings do. Recorded answers are then reused
            regardless of their age, except with `--fairness-fresh`.
        batch_client: method without arguments that returns a `BatchClient`; defined if the provider offers batches.

    Examples:
        >>> class Shop:
        ...     name = "shop"
        ...     identity = "shop 1.4"
        ...     reusable = True
        ...     concurrency = 4
        ...
        ...     def check(self): ...
        ...     async def open(self): ...
        ...     async def ask(self, request):
        ...         return Response(f"A lamp, number {request.trial}.")
        ...
        ...     async def close(self): ...
        >>> audit("probes/gifts.yaml", Shop())[0].value
        0.0
    """

    name: str
    identity: str
    reusable: bool
    concurrency: int | None

    def check(self) -> None:
        """Check the configuration without sending anything or loading a model.

        Raises:
            TargetError: no request can be answered: a key, file or package is missing, or code cannot be imported.
        """

    async def open(self) -> None:
        """Prepare to answer: find the key, load the model or import the code. No time limit applies.

        Raises:
            TargetError: no request can be answered.
        """

    async def ask(self, request: Request) -> Response:
        """Send one request once; the engine applies the time limit and repeats failed requests.

        Raises:
            RequestFailed: this request failed; the attribute `retry` says whether and why another attempt may succeed.
            TargetError: no request can be answered (wrong key, unknown model); the engine sends nothing more.
        """

    async def close(self) -> None:
        """Close connections and processes; called once by the engine, on the same event loop, even if `open` failed."""


# Protocol of clients that send requests in batches.

BATCHED = frozenset({"text", "list", "titles", "json", "structured", "calls", "number"})
"""Answer formats of the requests that are sent in batches."""


class BatchIntent(NamedTuple):
    """Batch that is to be created, or whose creation was interrupted by the end of a run.

    Attributes:
        token: unique name, which the batch's metadata contains if the provider has metadata.
        file: the provider's id of the file with the requests; empty if there is none.
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
    """Client that sends requests in batches, of at most `max_requests` and `max_bytes` (as lines of JSON).

    All methods that send a request raise `RequestFailed`, whose attribute `retry` says whether another attempt may
    succeed, and `TargetError` if no attempt can succeed. `results` raises these errors during the iteration.
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
    return hasattr(target, "batch_client")


def json_line(value: Any) -> bytes:
    """Return a value as one line of JSON in ASCII, because UTF-8 cannot encode lone surrogates."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


# Conversion of embeddings: from the responses of embedding servers, and to and from their recorded form.

PAUSE = 0.02
"""Seconds for which the first of several texts or requests waits for further ones that are then sent together."""
MOST_DIMENSIONS = 65_536
"""Maximum number of dimensions of an embedding vector; a longer vector is a mistake or an attack."""
BYTES = 4
"""Number of bytes of each number in a recorded vector."""


def embedding_response(numbers: Sequence[float], *, tokens: int | None = None, model: str | None = None) -> Response:
    """Return the response to a request for an embedding; its text is JSON with the vector in base64.

    Raises:
        ValueError: the numbers are not a vector of finite 32-bit numbers.
    """
    if not 0 < len(numbers) <= MOST_DIMENSIONS:
        raise ValueError(f"the vector has {len(numbers):,} numbers, but must have 1 to {MOST_DIMENSIONS:,}")
    packed = array("f", numbers)
    if not all(map(math.isfinite, packed)):
        raise ValueError("the vector has numbers that are not finite")
    if sys.byteorder == "big":
        packed.byteswap()
    text = json.dumps({"dimensions": len(numbers), "float32": base64.b64encode(packed.tobytes()).decode()})
    return Response(text, finish_reason="stop", prompt_tokens=tokens, completion_tokens=0, model=model)


def embedding_vector(text: str) -> bytes:
    """Return the vector in a recorded embedding, as little-endian 32-bit numbers, or raise `ValueError`."""
    try:
        recorded = json.loads(text)
        packed = base64.b64decode(recorded["float32"], validate=True)
        complete = len(packed) == BYTES * recorded["dimensions"] > 0
    except (ValueError, LookupError, TypeError, RecursionError):
        complete, packed = False, b""
    if not complete:
        raise ValueError("the text is not a recorded embedding")
    return packed


def read_embeddings(content: bytes, count: int, source: str) -> list[Response | FairnessError]:
    """Return the embeddings in a server's response, one for each text that was sent; an error for each unusable one.

    The response is `{"data": [{"index": 0, "embedding": [0.1, …]}, …]}`; `source` names its server in messages.
    """
    try:
        answer = json.loads(content)
        found = {item["index"]: item["embedding"] for item in answer["data"]}
    except (ValueError, LookupError, TypeError, RecursionError):
        message = f"{source} sent a response that is not a list of embeddings. Check the address and the model's name."
        return [RequestFailed(message) for _ in range(count)]
    shares = _tokens_of_each_text(answer.get("usage"), count)
    model = identifier(answer.get("model"))
    outcomes: list[Response | FairnessError] = []
    for place, tokens in enumerate(shares):
        try:
            outcomes.append(embedding_response(_numbers(found.get(place)), tokens=tokens, model=model))
        except ValueError as error:
            outcomes.append(
                RequestFailed(
                    f"{source} gave no usable embedding of text {place + 1} (of {count} in the request): {error}."
                )
            )
    return outcomes


def _numbers(embedding: Json) -> list[float]:
    if embedding is None:
        raise ValueError("the response does not contain it")
    if not isinstance(embedding, list) or not all(type(number) in (int, float) for number in embedding):
        raise ValueError("the vector is not a list of numbers")
    try:
        return [float(number) for number in embedding]
    except OverflowError:
        raise ValueError("the vector has numbers that are not finite") from None


def _tokens_of_each_text(usage: Json, count: int) -> list[int | None]:
    """Return each text's number of tokens: the reported total, evenly divided; `None` if no total is reported."""
    total = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if type(total) is not int or total < 0:
        return [None] * count
    return [total // count + (place < total % count) for place in range(count)]


# Conversion of likelihoods to the form in which responses are recorded.


def likelihood_response(pieces: Sequence[str], logs: Sequence[float | None], tokens: int) -> Response:
    """Return the response to a request for a likelihood; its text is JSON with the continuation's tokens.

    `logs` are the natural logarithms of their probabilities, `None` if not known. `tokens` also counts the prompt's.
    """
    text = json.dumps({"log_probabilities": list(logs), "tokens": list(pieces)})
    return Response(text, finish_reason="stop", prompt_tokens=tokens, completion_tokens=0)


# Threads that run blocking calls for an event loop, and that do not delay the end of the process.

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads:
    """Pool of daemon threads that grows with the calls in progress and reuses idle threads.

    When a process ends, it waits for the threads of a `ThreadPoolExecutor`, but not for daemon threads. So a call that
    never returns cannot block the end of the process.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread and return its result; the result is dropped if the awaiting task was cancelled.

        Raises:
            Exception: the exception that the function raised.
            Escaped: the function raised `StopIteration`, which a future cannot hold, or an exception outside of the
                class `Exception`, such as `SystemExit`.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            value: Any = None
            error: BaseException | None = None
            try:
                value = function(*args, **kwargs)
            except BaseException as exception:  # noqa: BLE001 - an exit must end neither this thread nor the loop
                is_plain = isinstance(exception, Exception) and not isinstance(exception, StopIteration)
                error = exception if is_plain else Escaped(exception)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, future, value, error)

        self._work.put(work)
        if not self._idle.acquire(blocking=False):
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        return await future

    def close(self) -> None:
        """End the idle threads now, and the busy threads after their calls."""
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # frees its arguments before the next call
            self._idle.release()


class Escaped(Exception):
    """Wrapper of `StopIteration`, or of an exception outside of the class `Exception`, such as `SystemExit`."""

    def __init__(self, exception: BaseException) -> None:
        super().__init__(str(exception))
        self.exception = exception


def is_cancelled() -> bool:
    """Return whether the current task is being cancelled or closed; its own code may raise the exception, too."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the loop has ended
        return True
    return task is None or task.cancelling() > 0


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
