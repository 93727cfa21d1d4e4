"""The targets by the names that users type, as import paths: naming all of them loads none."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO, cast

from pytest_fairness import extensions
from pytest_fairness.errors import FairnessError, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.targets.base import Target

if TYPE_CHECKING:
    from pytest_fairness.targets.local.target import LocalTarget


@dataclass(frozen=True)
class Entry:
    """One kind of target.

    Attributes:
        forms: how users write it.
        factory: `module:function`, called with the part after the prefix (`None` where there is no colon), the run's
            settings and, where another process serves the model, its address.
    """

    forms: tuple[str, ...]
    factory: str


TARGETS = {
    "local": Entry(("local", "local:PATH.gguf"), "pytest_fairness.targets.local.target:open_local"),
    "openai": Entry(("openai:MODEL",), "pytest_fairness.targets.openai.target:open_openai"),
    "anthropic": Entry(("anthropic:MODEL",), "pytest_fairness.targets.anthropic.target:open_anthropic"),
    "transformers": Entry(
        ("transformers:ID_OR_PATH",), "pytest_fairness.targets.transformers.target:open_transformers"
    ),
    "python": Entry(("python:package.module:callable",), "pytest_fairness.targets.python_callable:open_python"),
    "http": Entry(("http://HOST/PATH",), "pytest_fairness.targets.http.target:open_http"),
    "https": Entry(("https://HOST/PATH",), "pytest_fairness.targets.http.target:open_https"),
}


class Served(Protocol):
    """A model that one process of a run has loaded for all; `address` is what `open_target` takes in the others."""

    address: str

    def close(self) -> None:
        """Let nobody in any more, and unload the model."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class Factory(Protocol):
    """What an entry's import path points to."""

    def __call__(self, rest: str | None, settings: RunSettings, address: str | None) -> Target:
        """The target, not yet opened.

        Raises:
            TargetError: what was typed cannot name a target.
        """


def open_target(spec: str, settings: RunSettings, address: str | None = None) -> Target:
    """The target that a user named; nothing is sent, loaded or asked for a key yet.

    Args:
        spec: as typed, such as `openai:gpt-5`.
        settings: the run's.
        address: what `serve_local` gave, where another process has the model loaded; other targets need none.

    Raises:
        TargetError: nothing is known by that name.
    """
    prefix, colon, rest = spec.strip().partition(":")
    value = rest if colon else None
    if (factory := _extension(prefix)) is not None:
        return factory(value, settings, address)
    entry = TARGETS.get(prefix)
    if entry is None or value == "":
        raise TargetError(_unknown(spec, prefix, rest))
    module, _, function = entry.factory.partition(":")
    factory = cast("Factory", getattr(import_module(module), function))
    return factory(value, settings, address)


def _extension(prefix: str) -> Factory | None:
    """Return the factory that another package declares for a prefix, if one does."""
    try:
        entry = extensions.declared("targets").get(prefix)
        if entry is not None and prefix in TARGETS:
            extensions.require_new("targets", prefix)
        return None if entry is None else cast("Factory", extensions.load(entry))
    except FairnessError as error:
        raise TargetError(str(error)) from error


def check_spec(spec: str, settings: RunSettings) -> None:
    """Find what is wrong with a target without sending anything or loading a model.

    Raises:
        TargetError: no request could get an answer; says why and what to do.
    """
    open_target(spec, settings).check()


def _unknown(spec: str, prefix: str, rest: str) -> str:
    near = get_close_matches(prefix.lower(), [*TARGETS, *extensions.declared("targets")], n=1)
    meant = f"{near[0]}:{rest}" if near and rest else near[0] if near else None
    hint = f" Did you mean {meant!r}?" if meant and meant != spec.rstrip(":") else ""
    known = [form for entry in TARGETS.values() for form in entry.forms]
    forms = ", ".join([*known, *(f"{name}:…" for name in extensions.declared("targets"))])
    return f"unknown target {spec!r} (--fairness-target).{hint} Known targets: {forms}."


def serve_local(spec: str, settings: RunSettings, console: TextIO | None = None) -> Served | None:
    """Offer a model of this machine to the other processes of a run, or `None` where the target is none.

    It is loaded, and fetched before if need be, when the first of them has something to ask. Its `address` is what
    `open_target` takes there; `close` it at the end of the run.

    Args:
        spec: as for `open_target`.
        settings: the run's.
        console: where the progress of fetching is drawn, if it is a terminal; default standard error.

    Raises:
        TargetError: as for `open_target`.
    """
    prefix = spec.strip().partition(":")[0]
    if prefix == "transformers":
        from pytest_fairness.targets.shared_target import ServedTarget

        return ServedTarget(open_target(spec, settings))
    if prefix != "local":
        return None
    from pytest_fairness.targets.local.server import ServedModel

    target = cast("LocalTarget", open_target(spec, settings))
    return ServedModel(lambda: target.load(console))
