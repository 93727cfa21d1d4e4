"""What a target is: the protocol behind which every system under test stands."""

from __future__ import annotations

from typing import Protocol

from pytest_fairness.records import Request, Response


class Target(Protocol):
    """A system under test, able to answer one request at a time, many at once.

    Attributes:
        name: the target as the user named it, for reports and baselines (`openai:gpt-5`).
        identity: everything about the target that can change an answer (kind, model, endpoint, version); part of every
            recorded response's key. Holds no secret.
        reusable: whether a recorded answer may stand for a new one. False for code that changes under the same name.
        concurrency: most requests it can usefully serve at once, or `None`.
    """

    name: str
    identity: str
    reusable: bool
    concurrency: int | None

    async def ask(self, request: Request) -> Response:
        """Ask once, and once more where the fault is passing (limits, resets, overload), within the time limit.

        Raises:
            RequestFailed: this request got no answer; others may.
            TargetError: no request can get an answer (wrong key, unknown model); nothing more is to be sent.
        """

    async def close(self) -> None:
        """Give back connections and processes."""
