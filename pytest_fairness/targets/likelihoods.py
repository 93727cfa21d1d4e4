"""Conversion of likelihoods to the form in which responses are recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_fairness.records import Response


def response(pieces: Sequence[str], logs: Sequence[float | None], tokens: int) -> Response:
    """Return the response to a request for a likelihood; its text is JSON with the tokens and log-probabilities.

    Args:
        pieces: tokens of the continuation.
        logs: natural logarithm of each token's probability; `None` for a token whose probability is not known.
        tokens: number of tokens of the prompt and the continuation.
    """
    text = json.dumps({"log_probabilities": list(logs), "tokens": list(pieces)})
    return Response(text, finish_reason="stop", prompt_tokens=tokens, completion_tokens=0)
