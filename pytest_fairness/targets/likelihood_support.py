"""Check whether a target can give the likelihood of a text."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.errors import TargetError
from pytest_fairness.records import Request
from pytest_fairness.targets.base import Target


def can_be_asked(target: Target, request: Request) -> bool:
    """Return whether the target can answer the request, which may need a likelihood."""
    return request.answer_format != "likelihood" or bool(getattr(target, "likelihoods", False))


def require(target: Target, requests: Sequence[Request]) -> None:
    """Raise `TargetError` if a request needs a likelihood, which the target cannot give."""
    if all(can_be_asked(target, request) for request in requests):
        return
    other = ""
    if target.name == "local":
        from pytest_fairness.targets.local.model_file import model_path

        other = f"; the same model does as transformers:{model_path()}"
    elif target.name.startswith("local:"):
        other = "; the same file does as transformers:PATH.gguf"
    raise TargetError(
        f"{target.name} gives no likelihoods of given texts, which `likelihood` needs: use a transformers: target, "
        f"or an openai: endpoint whose completions echo log-probabilities, as vLLM's do{other}."
    )
