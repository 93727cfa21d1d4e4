"""Protocol of targets, the systems under test."""

from __future__ import annotations

from typing import Protocol

from pytest_fairness.records import Request, Response


def versioned(identity: str, version: str | None) -> str:
    """Return a target's identity with the version that the settings name, if any."""
    return identity if version is None else f"{identity} version {version}"


class Target(Protocol):
    """System under test that answers many requests at the same time.

    Making a target sends nothing, loads nothing and needs no key, so that recorded answers can be found without these.
    The engine calls `open` once, before the first request; then `ask` for every request, always on the same event
    loop; and `close` at the end.

    Attributes:
        name: name of the target for reports and baselines (`openai:gpt-5`).
        identity: everything about the target that can change an answer (kind, model, endpoint, version); a part of the
            key of every recorded response. It contains no secret.
        reusable: whether recorded answers are reused. False for code that may change under the same name.
        concurrency: most requests in flight that the target benefits from, or `None`.

    Optional attributes:
        address: address of the server without user, password and query, if the name does not show it.
        likelihoods: true if the target answers requests with the answer format `likelihood`. Other targets get none.
        lasting: true if answers depend on the request alone, as embeddings do. Their recorded answers are reused
            whatever their age, except under `--fairness-fresh`.

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
            TargetError: no request can be answered (no key, no such file or package, code that cannot be imported).
        """

    async def open(self) -> None:
        """Get ready to answer: find the key, load the model, import the code. No time limit applies.

        Raises:
            TargetError: no request can be answered.
        """

    async def ask(self, request: Request) -> Response:
        """Send one request once; the engine applies the time limit and retries.

        Raises:
            RequestFailed: this request failed; its `retry` says whether and why another attempt may succeed.
            TargetError: no request can be answered (wrong key, unknown model); the engine sends nothing more.
        """

    async def close(self) -> None:
        """Close connections and processes. Called once, on the same event loop, even if `open` failed."""
