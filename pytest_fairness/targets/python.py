"""Targets `python:package.module:callable`: applications that take a prompt and return a text, and their import."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import sys
import sysconfig
import traceback
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property, partial
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError, joined, one_line
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response, reply_of, unknown_keys
from pytest_fairness.targets.base import DaemonThreads, Escaped, is_cancelled, versioned

# Targets `python:package.module:callable`: applications that take a prompt and return a text.

Messages = list[dict[str, str]]
Application = Callable[[str], str | Awaitable[str]] | Callable[[Messages], str | Awaitable[str]]

MESSAGE = '{"content": "…", "tool_calls": [{"name": "…", "arguments": {…}}]}'
"""Example of a message with a tool call."""
_LIST = re.compile(r"(?:[\w.]+\.)?(?:list|List|Sequence|Iterable)\b")
"""Annotation of a parameter that takes a list of messages."""


class ApplicationTarget(ABC):
    """Base class of targets that call an application (a Python callable).

    A synchronous callable runs in threads, one for each request in flight; an asynchronous one runs on the engine's
    event loop. A callable whose first parameter is called `messages`, or is annotated as a list or sequence, gets the
    messages of the conversation, each `{"role": …, "content": …}`. Any other callable gets the system prompt and the
    prompt as one text, separated by a blank line. Sampling parameters are ignored. Without a version of the callable's
    code, other runs do not reuse the recorded answers.
    """

    concurrency: int | None = None
    preflight = False

    def __init__(self, name: str, version: str | None) -> None:
        self.name = name
        self.identity = versioned(name, version)
        self.reusable = version is not None
        self._threads = DaemonThreads("fairness-target")

    @abstractmethod
    def function(self) -> Application:
        """Return the application; raise `TargetError` if it cannot be imported."""

    def check(self) -> None:
        """Check that the application exists and can be called with one text."""
        function = self.function()
        # A signature of a function written in C is often absent or vague: the first call, sent alone, shows if it fits.
        self.preflight = inspect.isbuiltin(function)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            self.preflight = True
            return
        try:
            signature.bind("prompt", **({"tools": []} if "tools" in signature.parameters else {}))
        except TypeError as error:
            raise TargetError(
                f"{self.name} must take the prompt as its only required argument and return a str, like `def "
                f"answer(prompt): ...`; {_defined(function)}{one_line(signature, 100)}: {error}."
            ) from error

    async def open(self) -> None:
        await self._threads.run(self.check)

    async def ask(self, request: Request) -> Response:
        function = self.function()
        prompt: Any = self._argument(request)
        call: Any = function
        if request.tools:
            call = partial(call, tools=self._tools(request))
        try:
            answer: Any = call(prompt) if _is_async(function) else await self._threads.run(call, prompt)
            if inspect.isawaitable(answer):
                answer = await answer
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError | GeneratorExit) and is_cancelled():
                raise
            cause = error.exception if isinstance(error, Escaped) else error
            place = raised_at(cause)
            if not place and isinstance(cause, TypeError):
                raise TargetError(f"{self.name} cannot be called with one text: {one_line(cause)}.") from error
            raise RequestFailed(f"{self.name} raised {type(cause).__name__}{place}: {one_line(cause)}") from error
        if request.answer_format == "number" and not isinstance(answer, bool) and isinstance(answer, Real):
            answer = str(float(answer))
        given = answer
        if hasattr(answer, "model_dump"):
            answer = answer.model_dump()  # a pydantic object, such as a message of a client library
        if request.answer_format == "calls":
            return self._message(answer, given)
        if request.answer_format in ("json", "structured") and isinstance(answer, dict | list):
            answer = json.dumps(answer, ensure_ascii=False, default=str)
        if not isinstance(answer, str):
            raise TargetError(
                f"{self.name} must return a str, not {type(given).__name__}: "
                f"{one_line(repr(given))}{_path_advice(answer)}"
            )
        return Response(answer)

    def _message(self, answer: Any, given: Any) -> Response:
        """Convert an application's answer to a response with tool calls; `given` is the answer before `model_dump`.

        Raises:
            TargetError: the answer is not a message with text or tool calls, or has other keys, whose values would be
                lost.
        """
        try:
            reply = reply_of(answer)
            if unknown := unknown_keys(answer):
                raise ValueError(f"has unknown keys: {joined(unknown)} (keys found: {joined(list(answer))})")  # noqa: TRY301
            return Response(reply.text, tool_calls=reply.calls_as_json)
        except (TypeError, ValueError) as error:
            raise TargetError(
                f"{self.name} returned a {type(given).__name__} that {error}: {one_line(repr(given))}. The probe "
                f"measures tool calls, so the function must return a dict with these keys only: {MESSAGE}"
            ) from error

    def _tools(self, request: Request) -> list[dict[str, Json]] | None:
        """Return the tools' definitions, or raise `TargetError` if the application has no parameter `tools`."""
        if not self._takes_tools:
            raise TargetError(
                f"{self.name}: the probe has tools, but the function has no parameter `tools`. Add the parameter, like "
                "`def answer(messages, tools): ...`, or remove `tools` from the probe if the application has its own."
            )
        return request.tool_definitions

    @cached_property
    def _takes_messages(self) -> bool:
        return takes_messages(self.function())

    @cached_property
    def _takes_tools(self) -> bool:
        return "tools" in _parameters(self.function())

    def _argument(self, request: Request) -> str | Messages:
        """Return messages or one text, as the application takes; raise `TargetError` if a conversation does not fit."""
        if self._takes_messages:
            return [message.to_json() for message in request.messages]
        if request.history:
            raise TargetError(
                f"{self.name} takes one text, but the probe has a conversation. Name the parameter `messages` to get a "
                "list of messages, like `def answer(messages): ...`."
            )
        return request.prompt if request.system is None else f"{request.system}\n\n{request.prompt}"

    async def close(self) -> None:
        self._threads.close()


class CallableTarget(ApplicationTarget):
    """Target for a callable `prompt -> text` that a fixture returns, or that is passed to `audit`."""

    def __init__(self, function: Application, name: str, *, version: str | None = None) -> None:
        super().__init__(name, version)
        if not callable(function):
            raise TargetError(f"{name} must be a callable prompt -> str, not {type(function).__name__}.")
        self._function = function

    def function(self) -> Application:
        return self._function


class ImportedTarget(ApplicationTarget):
    """Target for a callable that is imported when the target is first used; dots separate attributes of its module."""

    def __init__(self, module: str, attribute: str, settings: RunSettings) -> None:
        super().__init__(f"python:{module}:{attribute}", settings.target_version)
        self._module, self._attribute, self._root = module, attribute, str(settings.root)

    def function(self) -> Application:
        return self._application

    @cached_property
    def _application(self) -> Application:
        application: Application = imported(
            self._module,
            self._attribute,
            self._root,
            name=self.name,
            option="--fairness-target",
            error=TargetError,
        )
        if not callable(application):
            raise TargetError(
                f"{self.name}: {self._attribute!r} is not callable ({type(application).__name__}). Name a function."
            )
        return application


def open_python(rest: str | None, settings: RunSettings) -> ImportedTarget:
    """Return the target `python:package.module:callable`."""
    module, _, attribute = (rest or "").partition(":")
    if not is_callable_name(module, attribute):
        raise TargetError(f"'python:{rest or ''}' names no callable; write python:package.module:callable.")
    return ImportedTarget(module, attribute, settings)


def _path_advice(answer: Any) -> str:
    """Return the line of a probe that reads one of a dictionary's values, as advice."""
    names = [key for key in answer if isinstance(key, str) and key.isidentifier()] if isinstance(answer, dict) else []
    if not names:
        return ""
    name = next((name for name in names if isinstance(answer[name], str)), names[0])
    return f". Return a text, or let the probe read one value: `answer: {{path: $.{name}}}`"


def takes_messages(function: Application) -> bool:
    """Return whether the name or annotation of an application's first parameter stands for a list of messages."""
    first = next(iter(_parameters(function).values()), None)
    annotation = "" if first is None or first.annotation is first.empty else first.annotation
    return first is not None and (first.name == "messages" or _LIST.match(_annotation_text(annotation)) is not None)


def _parameters(function: Application) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _annotation_text(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "") or str(annotation)


def _is_async(function: Application) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - whether its call is async


def _defined(function: Application) -> str:
    """Return a callable's place and name: `checks.py:12 defines answer`, or `it is len` if the place is not known."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    original = inspect.unwrap(function)
    code = getattr(getattr(original, "__func__", original), "__code__", None)
    return (
        f"it is {name}" if code is None else f"{relative_path(code.co_filename)}:{code.co_firstlineno} defines {name}"
    )


# Import of the user's Python callables, which options name as `package.module:callable`.

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
"""Folder of this package."""
INSTALLED = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib", "platlib"))
"""Folders of Python's own modules and of installed packages, which are not the user's code."""


def is_callable_name(module: str, attribute: str) -> bool:
    """Return whether both parts of `package.module:callable` consist of identifiers, separated by dots."""
    return all(name.isidentifier() for name in (*module.split("."), *attribute.split(".")))


def imported(module: str, attribute: str, root: str, *, name: str, option: str, error: type[FairnessError]) -> Any:
    """Import a module of pytest's rootdir or an installed module, and return one of its attributes.

    The rootdir is added to `sys.path`. `name` and `option` are those of messages, and `error` is the class of the
    errors.
    """
    if root not in sys.path:
        sys.path.insert(0, root)
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as cause:
        missing = cause.name or str(cause)
        if module == missing or module.startswith(f"{missing}."):
            meant = _hint(missing, (path.stem for path in Path(root).iterdir()))
            raise error(
                f"{name}: there is no module {missing!r} in {root} or among the installed packages{meant}. Check "
                f"{option}."
            ) from cause
        raise error(f"{name}: importing {module} needs {missing!r}, which is not installed. Install it.") from cause
    except Exception as cause:
        raise error(
            f"{name}: importing {module} raised {type(cause).__name__}{raised_at(cause)}: {one_line(cause)}"
        ) from cause
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise error(f"{name}: {module} has no {attribute!r}{_hint(part, dir(found))}. Check {option}.")
        found = getattr(found, part)
    return found


def _hint(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def raised_at(error: BaseException) -> str:
    """Return the place in the user's code at which an exception was raised: ` at checks.py:12, in answer`.

    Without such a place, the last one in an installed package is returned, or an empty text.
    """
    called = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    called = [(code, line) for code, line in called if not code.co_filename.startswith((_PACKAGE, "<frozen"))]
    if not called:
        return ""
    own = [(code, line) for code, line in called if not code.co_filename.startswith(INSTALLED)]
    code, line = (own or called)[-1]
    return f" at {relative_path(code.co_filename)}:{line}, in {code.co_name}"


def relative_path(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
