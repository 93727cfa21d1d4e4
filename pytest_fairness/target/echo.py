"""Likelihoods out of completions that echo their prompt with log-probabilities, as OpenAI's older interface does."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

from pytest_fairness.records import Request, Response
from pytest_fairness.target import likelihoods


def body(request: Request) -> dict[str, Any]:
    """What is sent beside the model: the text, and one token more, as not every server takes none."""
    text = request.prompt + (request.continuation or "")
    return {"prompt": text, "echo": True, "max_tokens": 1, "logprobs": 1, "temperature": 0}


def is_refused(said: str) -> bool:
    """Whether a refused request was refused for asking for an echo."""
    return any(word in said.casefold() for word in ("echo", "logprobs", "completions"))


def read(content: bytes, request: Request) -> Response:
    """The likelihood of the continuation. A server gives none for the first token of all that it reads.

    Raises:
        ValueError: the answer is no completion that echoes this text with its tokens.
    """
    try:
        completion = json.loads(content)
        logprobs = completion["choices"][0]["logprobs"]
        tokens, logs = list(map(str, logprobs["tokens"])), list(logprobs["token_logprobs"])
        offsets = logprobs.get("text_offset")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("the answer has no log-probabilities of its tokens") from None
    text = request.prompt + (request.continuation or "")
    spans = _spans(tokens, offsets, text)
    if len(spans) != len(logs) or not all(log is None or isinstance(log, int | float) for log in logs):
        raise ValueError("the answer's tokens and log-probabilities are not one to one")
    own = [place for place, (begin, end) in enumerate(spans) if end > len(request.prompt) and begin < len(text)]
    pieces = [text[max(0, spans[place][0]) : spans[place][1]] for place in own]
    usage = completion.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return likelihoods.response(
        pieces, [logs[place] for place in own], count if isinstance(count, int) else len(tokens)
    )


def _spans(tokens: list[str], offsets: Any, text: str) -> list[tuple[int, int]]:
    """Where each token begins and ends in the text; before 0 what a server puts in front, after it what it adds."""
    ends = list(accumulate(map(len, tokens)))
    joined = "".join(tokens)
    # Some servers begin with a token of their own, which is not part of the text.
    front = len(tokens[0]) if tokens and joined.startswith(tokens[0] + text) else 0
    if joined[front:].startswith(text):
        begins = [0, *ends[:-1]]
        return [(begin - front, end - front) for begin, end in zip(begins, ends, strict=True)]
    # Characters that are split between tokens are not shown whole: then the server's own word has to do.
    if not isinstance(offsets, list) or len(offsets) != len(tokens) or not all(isinstance(at, int) for at in offsets):
        raise ValueError("its tokens are not those of the text")
    front = 0 if text.startswith(tokens[0]) else len(tokens[0])
    begins = [offset - offsets[0] - front for offset in offsets]
    return list(zip(begins, [*begins[1:], max(len(text), begins[-1]) + 1], strict=True))
