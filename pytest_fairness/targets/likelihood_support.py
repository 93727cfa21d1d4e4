"""Checks whether a target can give the likelihood of a text."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.errors import TargetError
from pytest_fairness.records import Request
from pytest_fairness.targets.base import Target


def can_answer(target: Target, request: Request) -> bool:
    """Return whether the target can answer the request; only some targets can give likelihoods."""
    return request.answer_format != "likelihood" or bool(getattr(target, "likelihoods", False))


def require_support(target: Target, requests: Sequence[Request]) -> None:
    """Raise `TargetError` if a request is for a likelihood and the target gives no likelihoods."""
    if all(can_answer(target, request) for request in requests):
        return
    other = ""
    if target.name == "local":
        from pytest_fairness.targets.local.model_file import model_path

        other = f". The same model gives likelihoods as transformers:{model_path()}"
    elif target.name.startswith("local:"):
        other = ". The same file gives likelihoods as transformers:PATH.gguf"
    raise TargetError(
        f"{target.name} cannot compute the likelihood of a given text, which the audit `likelihood` needs. Use a "
        "transformers: target, or an openai: endpoint that returns the log-probabilities of a prompt, such as "
        f"vLLM{other}."
    )
