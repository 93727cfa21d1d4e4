"""Registry of targets: the names that users type, and targets that one process serves to other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import cast

from pytest_fairness import extensions
from pytest_fairness.errors import FairnessError, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request
from pytest_fairness.targets import web
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.shared import SharedTarget, TargetServer
from pytest_fairness.targets.web import OPTIONS

# Registry of targets: the names that users type, and the import paths of the functions that make the targets.


@dataclass(frozen=True)
class TargetKind:
    """One kind of target.

    Attributes:
        forms: forms of the names that users type, such as `openai:MODEL`, for messages.
        shared: whether one process of a run loads the target and serves it to the other processes.
    """

    forms: tuple[str, ...]
    factory: str
    shared: bool = False
    options: tuple[str, ...] = ()


TARGETS = {
    "local": TargetKind(("local", "local:PATH.gguf"), "pytest_fairness.targets.local:open_local", shared=True),
    "openai": TargetKind(("openai:MODEL",), "pytest_fairness.targets.openai:open_openai", options=OPTIONS),
    "anthropic": TargetKind(("anthropic:MODEL",), "pytest_fairness.targets.anthropic:open_anthropic", options=OPTIONS),
    "litellm": TargetKind(("litellm:PROVIDER/MODEL",), "pytest_fairness.targets.litellm:open_litellm", options=OPTIONS),
    "transformers": TargetKind(
        ("transformers:ID_OR_PATH",), "pytest_fairness.targets.transformers:open_transformers", shared=True
    ),
    "python": TargetKind(("python:package.module:callable",), "pytest_fairness.targets.python:open_python"),
    "http": TargetKind(("http://HOST/PATH",), "pytest_fairness.targets.http:open_http"),
    "https": TargetKind(("https://HOST/PATH",), "pytest_fairness.targets.http:open_https"),
}


NO_LONGER = {
    "azure": "openai:{0} base_url=https://RESOURCE.openai.azure.com/openai/v1 api_key_env=AZURE_OPENAI_API_KEY, or "
    "litellm:azure/{0}",
    "ollama": "openai:{0} base_url=http://localhost:11434/v1, or litellm:ollama_chat/{0}",
    "openrouter": "openai:{0} base_url=https://openrouter.ai/api/v1 api_key_env=OPENROUTER_API_KEY, or "
    "litellm:openrouter/{0}",
    "vllm": "openai:{0} base_url=http://localhost:8000/v1, or litellm:hosted_vllm/{0}",
}
"""Targets that replace the targets of services that earlier builds had, by prefix; {0} is the model."""


Factory = Callable[[str | None, RunSettings], Target]
"""Function that makes a target without opening it, or raises `TargetError` if the name or a setting is not valid.

Its first argument is the part of the name after the prefix and its colon; `None` without a colon."""


def open_target(spec: str, settings: RunSettings, address: str | None = None) -> Target:
    """Return the target with this name; send nothing, load nothing and need no key yet.

    `address` is that of the process that serves the target, if `serve` was called for it.

    Raises:
        TargetError: there is no such target, or an option or setting of the target is not valid.
    """
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
        value, options = web.parse_target_options(prefix, value or "") if entry.options else (value, {})
        settings = replace(settings, target_options=options)
    target = factory(value, settings)
    return target if address is None else SharedTarget(target, address)


def check_spec(spec: str, settings: RunSettings) -> None:
    """Raise `TargetError` if there is no such target, or if it can answer no request; send nothing, load no model."""
    open_target(spec, settings).check()


def _unknown_message(spec: str, prefix: str, rest: str) -> str:
    if replaced := NO_LONGER.get(prefix):
        return f"there is no target {prefix}: any more (--fairness-target). Write {replaced.format(rest or 'MODEL')}."
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


def open_embedder(spec: str, settings: RunSettings, folder: Path) -> Target:
    """Return the embedding model that a probe names; send nothing, load nothing and need no key yet.

    A path is relative to the probe's folder.

    Raises:
        TargetError: the model's path leads out of the folder or to no model, or an address or header is not valid.
    """
    prefix, _, rest = spec.strip().partition(":")
    # `fairness_target_version` is the version of the audited system, not of the embedding model.
    base_url = settings.embeddings_base_url or settings.base_url
    settings = replace(settings, base_url=base_url, target_version=None, root=folder)
    try:
        if prefix == "openai":
            from pytest_fairness.targets.openai import OpenAIEmbedder

            return OpenAIEmbedder(rest, settings)
        _require_inside(rest, folder)
        from pytest_fairness.targets.transformers import TransformersEmbedder

        return TransformersEmbedder(rest, settings)
    except TargetError as error:
        raise TargetError(str(error).replace("--fairness-target", "`embeddings` in the probe file")) from error


def _require_inside(written: str, folder: Path) -> None:
    """Raise `TargetError` for a model outside of the probe's folder, because probe files may be untrusted."""
    path = Path(written)
    leads_out = path.is_absolute() or written.startswith("~") or ".." in path.parts
    if leads_out or not (folder / path).resolve().is_relative_to(folder.resolve()):
        raise TargetError(
            f"transformers:{written}: the model must be inside of the probe's folder. Move it there, and write its "
            "path relative to this folder (`embeddings` in the probe file)."
        )


def serve(spec: str, settings: RunSettings) -> TargetServer | None:
    """Return a server through which all processes of a run use one loaded model; `None` for targets not shared so.

    The model is loaded (and downloaded if necessary) when the first process connects. Pass the server's `address` to
    `open_target`; close the server at the end of the run.
    """
    entry = TARGETS.get(spec.strip().partition(":")[0])
    return TargetServer(open_target(spec, settings)) if entry is not None and entry.shared else None


# Checks whether a target can give the likelihood of a text.


def can_answer(target: Target, request: Request) -> bool:
    """Return whether the target can answer the request; only some targets can give likelihoods."""
    return request.answer_format != "likelihood" or bool(getattr(target, "likelihoods", False))


def require_support(target: Target, requests: Sequence[Request]) -> None:
    if all(can_answer(target, request) for request in requests):
        return
    other = ""
    if target.name == "local":
        from pytest_fairness.targets.local import model_path

        other = f". The same model gives likelihoods as transformers:{model_path()}"
    elif target.name.startswith("local:"):
        other = ". The same file gives likelihoods as transformers:PATH.gguf"
    raise TargetError(
        f"{target.name} cannot compute the likelihood of a given text, which the audit `likelihood` needs. Use a "
        "transformers: target, or an openai: endpoint that returns the log-probabilities of a prompt, such as "
        f"vLLM{other}."
    )
