"""Targets that one process has loaded and others ask."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Message, Request, Response, Sampling
from pytest_fairness.targets import serve
from pytest_fairness.targets.python import CallableTarget
from pytest_fairness.targets.shared import SharedTarget, TargetServer
from tests.support.asking import answer_of, settings_in

HELLO = Request("hello")


class Scripted(CallableTarget):
    """Target that counts its openings, repeats prompts, and raises an error if it has one."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(str, "scripted", version="1")
        self.error, self.opened, self.cancelled = error, 0, asyncio.Event()
        self.asked: list[Request] = []

    async def open(self) -> None:
        self.opened += 1

    async def ask(self, request: Request) -> Response:
        self.asked.append(request)
        if request.prompt == "never":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if self.error is not None:
            raise self.error
        return await super().ask(request)


def ask(target: SharedTarget, request: Request = HELLO) -> Response:
    return answer_of(target, request)


def test_the_target_is_opened_once_when_the_first_process_connects() -> None:
    target = Scripted()
    with TargetServer(target) as server:
        assert target.opened == 0
        assert [ask(SharedTarget(target, server.address)).text for _ in range(2)] == ["hello", "hello"]
    assert target.opened == 1


def test_requests_reach_the_target_unchanged() -> None:
    history = (Message("user", "Hello"), Message("assistant", "Good day."))
    requests = [HELLO, Request("hello", "Be brief.", Sampling(seed=4), 2, "json", history=history)]
    target = Scripted(RequestFailed("only recorded"))
    with TargetServer(target) as server:
        for request in requests:
            with pytest.raises(RequestFailed, match="only recorded"):
                ask(SharedTarget(target, server.address), request)
    assert target.asked == requests
    assert [*map(hash, target.asked)] == [*map(hash, requests)]


def test_name_and_identity_are_those_of_the_target() -> None:
    target = Scripted()
    shared = SharedTarget(target, "127.0.0.1:9")
    assert (shared.name, shared.identity, shared.reusable) == (target.name, target.identity, True)


@pytest.mark.parametrize(
    "error",
    [
        RequestFailed("busy", retry=RetryReason.OVERLOADED, retry_after=7.0),
        RequestFailed("too long"),
        TargetError("wrong key"),
    ],
)
def test_errors_reach_the_other_process_unchanged(error: RequestFailed | TargetError) -> None:
    target = Scripted(error)
    with TargetServer(target) as server, pytest.raises(type(error)) as caught:
        ask(SharedTarget(target, server.address))
    assert str(caught.value) == str(error)
    assert vars(caught.value) == vars(error)


def test_a_cancelled_request_is_cancelled_in_the_process_with_the_target() -> None:
    target = Scripted()

    async def cancel() -> None:
        shared = SharedTarget(target, server.address)
        await shared.open()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(shared.ask(Request("never")), 0.1)
        assert (await shared.ask(HELLO)).text == "hello", "answered after the message that cancels"
        await shared.close()

    with TargetServer(target) as server:
        asyncio.run(cancel())
        assert target.cancelled.is_set()


def test_a_process_that_has_ended_is_named() -> None:
    target = Scripted()
    with TargetServer(target) as server:
        pass
    with pytest.raises(TargetError, match=r"the process that serves the model .* has ended"):
        ask(SharedTarget(target, server.address))


def test_only_local_models_are_served(tmp_path: Path) -> None:
    assert serve("openai:model", settings_in(tmp_path)) is None
    server = serve("local", settings_in(tmp_path))
    assert server is not None
    server.close()
