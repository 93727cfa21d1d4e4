"""What a target is: the protocol behind which every system under test stands."""

from __future__ import annotations

from typing import Protocol

from pytest_fairness.records import Request, Response


def versioned(identity: str, version: str | None) -> str:
    """Return the identity of a target whose version the settings name, or of one without a version."""
    return identity if version is None else f"{identity} version {version}"


class Target(Protocol):
    """A system under test, able to answer many requests at once.

    Making a target sends nothing, loads nothing and needs no key, so that recorded answers can be found without any of
    it. The engine calls `open` once, before the first request is sent, then `ask` for every request, all of them on one
    event loop, and `close` at the end.

    Attributes:
        name: the target as the user named it, for reports and baselines (`openai:gpt-5`).
        identity: everything about the target that can change an answer (kind, model, endpoint, version); part of every
            recorded response's key. Holds no secret.
        reusable: whether a recorded answer may stand for a new one. False for code that changes under the same name.
        concurrency: most requests it can usefully serve at once, or `None`.

    A target behind an address that its name does not show has it as `address`, without user, password and query.
    A target that answers requests for likelihoods too says so by an attribute `likelihoods = True`; others are never
    sent any. A target whose answers are a function of the request, as embeddings are, says so by `lasting = True`:
    recorded answers of any age are reused, unless the run is to ask afresh.
    """

    name: str
    identity: str
    reusable: bool
    concurrency: int | None

    def check(self) -> None:
        """Find what can be found without sending anything or loading a model.

        Raises:
            TargetError: no request can get an answer (no key, no such file or package, code that cannot be imported).
        """

    async def open(self) -> None:
        """Get ready to answer: find the key, load the model, import the code. Outside of any request's time limit.

        Raises:
            TargetError: as in `check`, and whatever only trying shows.
        """

    async def ask(self, request: Request) -> Response:
        """Ask once.

        The caller sets the time limit, writes down when the answer arrived, and asks again where that may help.

        Raises:
            RequestFailed: this request got no answer; others may. Its `fault` says whether another try may help.
            TargetError: no request can get an answer (wrong key, unknown model); nothing more is to be sent.
        """

    async def close(self) -> None:
        """Give back connections and processes. Called once, on the same event loop, even where `open` failed."""
