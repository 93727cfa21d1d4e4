"""Registry of targets: the names that users type, and the import paths of the functions that make the targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from pytest_fairness import extensions
from pytest_fairness.errors import FairnessError, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.web import target_options
from pytest_fairness.targets.web.target_options import OPTIONS

if TYPE_CHECKING:
    from pytest_fairness.targets.shared_target import TargetServer


@dataclass(frozen=True)
class TargetKind:
    """One kind of target.

    Attributes:
        forms: forms of the names that users type, such as `openai:MODEL`, for messages.
        factory: import path `module:function` of its `Factory`.
        shared: whether one process of a run loads the target and serves it to the other processes.
        options: names of the options that may follow the name, each as ` NAME=VALUE`.
    """

    forms: tuple[str, ...]
    factory: str
    shared: bool = False
    options: tuple[str, ...] = ()


TARGETS = {
    "local": TargetKind(("local", "local:PATH.gguf"), "pytest_fairness.targets.local.target:open_local", shared=True),
    "openai": TargetKind(("openai:MODEL",), "pytest_fairness.targets.openai.target:open_openai", options=OPTIONS),
    "anthropic": TargetKind(
        ("anthropic:MODEL",), "pytest_fairness.targets.anthropic.target:open_anthropic", options=OPTIONS
    ),
    "azure": TargetKind(("azure:DEPLOYMENT",), "pytest_fairness.targets.openai.target:open_azure", options=OPTIONS),
    "ollama": TargetKind(("ollama:MODEL",), "pytest_fairness.targets.openai.target:open_ollama", options=OPTIONS),
    "openrouter": TargetKind(
        ("openrouter:MODEL",), "pytest_fairness.targets.openai.target:open_openrouter", options=OPTIONS
    ),
    "vllm": TargetKind(("vllm:MODEL",), "pytest_fairness.targets.openai.target:open_vllm", options=OPTIONS),
    "litellm": TargetKind(("litellm:PROVIDER/MODEL",), "pytest_fairness.targets.litellm:open_litellm", options=OPTIONS),
    "transformers": TargetKind(
        ("transformers:ID_OR_PATH",), "pytest_fairness.targets.transformers.target:open_transformers", shared=True
    ),
    "python": TargetKind(("python:package.module:callable",), "pytest_fairness.targets.python_callable:open_python"),
    "http": TargetKind(("http://HOST/PATH",), "pytest_fairness.targets.http.target:open_http"),
    "https": TargetKind(("https://HOST/PATH",), "pytest_fairness.targets.http.target:open_https"),
}


class Factory(Protocol):
    """Function that makes a target."""

    def __call__(self, rest: str | None, settings: RunSettings, /) -> Target:
        """Return the target without opening it.

        Args:
            rest: the part of the name after the prefix and its colon; `None` without a colon.
            settings: settings of the run.

        Raises:
            TargetError: the name or a setting is not valid.
        """


def open_target(spec: str, settings: RunSettings, address: str | None = None) -> Target:
    """Return the target with this name; send nothing, load nothing and need no key yet.

    Args:
        spec: name of the target, such as `openai:gpt-5`.
        settings: settings of the run.
        address: address of the process that serves the target, if `serve` was called for the target.

    Raises:
        TargetError: there is no such target, or an option or setting of the target is not valid.
    """
    target = _make(spec, settings)
    if address is None:
        return target
    from pytest_fairness.targets.shared_target import SharedTarget

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
        value, options = target_options.parse(prefix, value or "") if entry.options else (value, {})
        settings = replace(settings, target_options=options)
    return factory(value, settings)


def check_spec(spec: str, settings: RunSettings) -> None:
    """Raise `TargetError` if there is no such target, or if it can answer no request; send nothing, load no model."""
    open_target(spec, settings).check()


def _unknown_message(spec: str, prefix: str, rest: str) -> str:
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


def serve(spec: str, settings: RunSettings) -> TargetServer | None:
    """Return a server through which all processes of a run use one loaded model.

    The result is `None` for a target that each process opens itself (see `TargetKind.shared`).

    The model is loaded (and downloaded if necessary) when the first process connects. Pass the server's `address` to
    `open_target`; close the server at the end of the run.

    Raises:
        TargetError: a setting of the target is not valid, such as the path of its file.
    """
    entry = TARGETS.get(spec.strip().partition(":")[0])
    if entry is None or not entry.shared:
        return None
    from pytest_fairness.targets.shared_target import TargetServer

    return TargetServer(open_target(spec, settings))
