"""Targets `python:package.module:callable`."""

from __future__ import annotations

import asyncio
import functools
import json
import operator
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Request, Response
from pytest_fairness.targets import check_spec, open_target
from pytest_fairness.targets.python import CallableTarget
from tests.support.asking import settings_in


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Path]:
    """A module `shop.app` in a rootdir, forgotten afterwards."""
    path = tmp_path / "shop" / "app.py"
    path.parent.mkdir()
    path.write_text(
        "def reply(prompt): return prompt.upper()\n"
        "class Shop:\n    @staticmethod\n    async def reply(prompt): return prompt.lower()\n"
        "number = 5\n",
        "utf-8",
    )
    before = list(sys.path)
    yield path
    sys.path[:] = before
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def ask(target: Any, request: Request | None = None) -> Response:
    async def once() -> Response:
        await target.open()
        try:
            answer: Response = await target.ask(request or Request("Hello"))
            return answer
        finally:
            await target.close()

    return asyncio.run(once())


def test_callables_are_imported_by_their_path(tmp_path: Path, app: Path) -> None:
    assert ask(open_target("python:shop.app:reply", settings_in(tmp_path))).text == "HELLO"
    assert ask(open_target("python:shop.app:Shop.reply", settings_in(tmp_path))).text == "hello"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("python:nowhere.app:reply", "there is no module 'nowhere' in .* or among the installed packages"),
        ("python:shop.other:reply", "there is no module 'shop.other'"),
        ("python:shop.app:answer", "shop.app has no 'answer'. Check"),
        ("python:shop.app:repli", r"shop.app has no 'repli' \(did you mean 'reply'\?\). Check"),
        ("python:shpo.app:reply", r"packages \(did you mean 'shop'\?\). Check"),
        ("python:shop.app:Shop.answer", "shop.app has no 'Shop.answer'"),
        ("python:shop.app:number", "'number' is not callable .int."),
    ],
)
def test_failed_imports_are_explained(tmp_path: Path, app: Path, spec: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        check_spec(spec, settings_in(tmp_path))


def test_an_import_that_raises_names_the_error(tmp_path: Path, app: Path) -> None:
    app.write_text("import not_installed_anywhere", "utf-8")
    with pytest.raises(TargetError, match=r"importing shop.app needs 'not_installed_anywhere', which is not installed"):
        check_spec("python:shop.app:reply", settings_in(tmp_path))
    app.write_text("raise ValueError('no\\nconfiguration')", "utf-8")
    with pytest.raises(
        TargetError, match=r"importing shop.app raised ValueError at .*app\.py:1, in <module>: no configuration"
    ):
        check_spec("python:shop.app:reply", settings_in(tmp_path))
    app.write_text("def broken(", "utf-8")
    with pytest.raises(TargetError, match=r"importing shop.app raised SyntaxError"):
        check_spec("python:shop.app:reply", settings_in(tmp_path))


def test_a_target_imports_nothing_before_it_is_needed(tmp_path: Path, app: Path) -> None:
    app.write_text("raise SystemExit", "utf-8")
    assert open_target("python:shop.app:reply", settings_in(tmp_path)).name == "python:shop.app:reply"


async def polite(prompt: str) -> str:
    await asyncio.sleep(0)
    return f"{prompt}, please"


class Polite:
    async def __call__(self, prompt: str) -> str:
        return await polite(prompt)


@pytest.mark.parametrize(
    "function",
    [polite, Polite(), functools.partial(polite), lambda prompt: polite(prompt), lambda prompt: f"{prompt}, please"],
)
def test_every_kind_of_callable_is_called(function: Any) -> None:
    assert ask(CallableTarget(function, "app")).text == "Hello, please"


def test_async_callables_run_on_the_loop_and_sync_ones_beside_it() -> None:
    where: dict[str, str] = {}

    async def on_loop(prompt: str) -> str:
        where["async"] = threading.current_thread().name
        return prompt

    def beside(prompt: str) -> str:
        where["sync"] = threading.current_thread().name
        return prompt

    ask(CallableTarget(on_loop, "app"))
    ask(CallableTarget(beside, "app"))
    assert where["async"] == threading.current_thread().name
    # Opening the target used the first thread, which may still be busy.
    assert re.fullmatch(r"fairness-target-[12]", where["sync"])


def test_sync_calls_overlap_and_threads_are_reused() -> None:
    names = []

    def slow(prompt: str) -> str:
        names.append(threading.current_thread().name)
        time.sleep(0.1)
        return prompt

    async def twice() -> None:
        target = CallableTarget(slow, "app")
        await target.open()
        for _ in range(2):
            await asyncio.gather(*[target.ask(Request(str(number))) for number in range(5)])
            await asyncio.sleep(0.05)  # a thread delivers its answer before it waits for the next call
        await target.close()

    started = time.monotonic()
    asyncio.run(twice())
    assert time.monotonic() - started < 0.9
    assert len(set(names)) <= 6


class EndOfStock(StopIteration):
    """A subclass of an exception with a meaning of its own in coroutines."""


@pytest.mark.parametrize(
    ("kind", "is_async"),
    [
        *((kind, False) for kind in (StopIteration, EndOfStock)),
        *(
            (kind, is_async)
            for kind in (ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit)
            for is_async in (False, True)
        ),
    ],
)
def test_an_exception_of_the_application_fails_its_request(kind: type[BaseException], is_async: bool) -> None:
    def sync(prompt: str) -> str:
        raise kind("out\nof stock")

    async def asynchronous(prompt: str) -> str:
        raise kind("out\nof stock")

    function = asynchronous if is_async else sync
    line = function.__code__.co_firstlineno + 1
    where = rf"test_python\.py:{line}, in {function.__name__}"
    with pytest.raises(RequestFailed, match=f"app raised {kind.__name__} at .*{where}: out of stock$"):
        ask(CallableTarget(function, "app"))


def test_an_error_inside_a_package_is_located_in_the_code_that_called_it() -> None:
    def parse(prompt: str) -> str:
        return str(json.loads(prompt))

    line = parse.__code__.co_firstlineno + 1
    with pytest.raises(
        RequestFailed, match=rf"raised JSONDecodeError at .*test_python\.py:{line}, in parse: Expecting"
    ):
        ask(CallableTarget(parse, "app"))
    with pytest.raises(
        RequestFailed, match=r"raised JSONDecodeError at .*json.decoder\.py:\d+, in raw_decode: Expecting"
    ):
        ask(CallableTarget(json.loads, "app"))


def two(prompt: str, context: str) -> str:
    return prompt + context


class Bot:
    def reply(self) -> str:
        return ""

    def __call__(self, prompt: str, *, key: str) -> str:
        return prompt + key


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (two, r"test_python\.py:\d+ defines two\(prompt: .*\).*: missing a required argument: 'context'\."),
        (lambda: "", r"test_python\.py:\d+ defines .*<lambda>\(\): too many positional arguments\."),
        (Bot().reply, r"test_python\.py:\d+ defines Bot\.reply\(\).*: too many positional arguments\."),
        (Bot(), r"it is Bot\(prompt: .*: missing a required .*'key'\."),
        (functools.partial(two, prompt="a"), "it is partial.*: too many positional arguments"),
        (operator.add, r"it is add\(a, b, /\): missing a required argument: 'b'\."),
    ],
)
def test_a_callable_that_does_not_take_one_text_is_never_called(function: Any, said: str) -> None:
    with pytest.raises(TargetError, match=f"app must take the prompt as its only required argument.*{said}"):
        CallableTarget(function, "app").check()


@pytest.mark.parametrize("function", [str.upper, str.strip, functools.partial(two, context="a"), lambda *a: a[0]])
def test_a_callable_that_takes_one_text_is_called(function: Any) -> None:
    assert ask(CallableTarget(function, "app")).text.lower().startswith("hello")


def test_a_builtin_that_does_not_take_a_text_cannot_be_called() -> None:
    target = CallableTarget(int.from_bytes, "app")  # type: ignore[arg-type]  # the very mistake
    with pytest.raises(TargetError, match="app cannot be called with one text: cannot convert 'str' object to bytes"):
        ask(target)
    assert target.preflight


def test_an_application_must_return_text() -> None:
    with pytest.raises(TargetError, match=r"app must return a str, not dict: \{'a': 1\}"):
        ask(CallableTarget(lambda _: {"a": 1}, "app"))  # type: ignore[arg-type]  # the very mistake


@pytest.mark.parametrize(("answer", "text"), [(72, "72.0"), (0.5, "0.5"), (np.float32(2), "2.0"), (True, None)])
def test_an_application_may_return_a_number_if_a_number_is_asked_for(answer: Any, text: str | None) -> None:
    target = CallableTarget(lambda _: answer, "app")
    if text is None:
        with pytest.raises(TargetError, match="must return a str, not bool"):
            ask(target, Request("hello", answer_format="number"))
    else:
        assert ask(target, Request("hello", answer_format="number")) == Response(text)


def test_a_value_that_is_not_callable_is_rejected() -> None:
    with pytest.raises(TargetError, match=r"conftest.py::target must be a callable prompt -> str, not int"):
        CallableTarget(5, "conftest.py::target")  # type: ignore[arg-type]  # the very mistake


def test_a_system_prompt_goes_before_the_prompt() -> None:
    assert ask(CallableTarget(lambda prompt: prompt, "app"), Request("Hello", "Be kind.")).text == "Be kind.\n\nHello"


def test_answers_are_reused_only_with_a_version(tmp_path: Path) -> None:
    plain = open_target("python:shop.app:reply", settings_in(tmp_path))
    versioned = open_target("python:shop.app:reply", settings_in(tmp_path, target_version="7"))
    assert (plain.reusable, versioned.reusable) == (False, True)
    assert plain.name == versioned.name
    assert plain.identity != versioned.identity
