"""Protocol of targets, the systems under test."""

from __future__ import annotations

from typing import Protocol

from pytest_fairness.errors import TargetError
from pytest_fairness.records import Request, Response


def versioned(identity: str, version: str | None) -> str:
    """Return a target's identity with the target's version appended; unchanged if `version` is `None`."""
    return identity if version is None else f"{identity} version {version}"


def refuse_tools(name: str, request: Request) -> None:
    """Raise `TargetError` if a request asks for tool calls, which the target `name` cannot make."""
    if request.answer_format == "calls":
        raise TargetError(
            f"{name}: a model that this plugin runs cannot use tools. Run a model with tools in a server such as vLLM, "
            f"and name it as the target vllm:MODEL."
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
