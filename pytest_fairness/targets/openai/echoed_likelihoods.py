"""Likelihoods from OpenAI's older completions API.

With the field `echo`, a completion repeats the tokens of its prompt with their log-probabilities.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pytest_fairness.records import Request, Response
from pytest_fairness.targets import likelihoods
from pytest_fairness.targets.one_line import identifier


class NoEcho(ValueError):
    """Error for a response without the prompt's tokens; llama.cpp's server, for example, ignores the field `echo`."""


def body(request: Request) -> dict[str, Any]:
    """Return the body of a request for the log-probabilities of prompt and continuation.

    One token is generated after the text, because not every server accepts `max_tokens` 0.
    """
    text = request.prompt + (request.continuation or "")
    return {"prompt": text, "echo": True, "max_tokens": 1, "logprobs": 1, "temperature": 0}


def is_rejected(said: str) -> bool:
    """Return whether a server's error message contains a word that suggests that the server supports no echo."""
    return any(word in said.casefold() for word in ("echo", "logprobs", "completions"))


def read(content: bytes, request: Request) -> Response:
    """Return the response with the log-probability of each token of the continuation; `None` if the server gives none.

    Raises:
        NoEcho: the response has no tokens with log-probabilities.
        ValueError: the tokens do not match the text, or there is not one log-probability (a number or `null`) for each
            token.
    """
    try:
        completion = json.loads(content)
        logprobs = completion["choices"][0]["logprobs"]
        tokens, logs = list(map(str, logprobs["tokens"])), list(logprobs["token_logprobs"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NoEcho("the response has no log-probabilities of its prompt's tokens") from None
    text = request.prompt + (request.continuation or "")
    spans = _spans(tokens, text)
    if len(spans) != len(logs) or not all(log is None or isinstance(log, int | float) for log in logs):
        raise ValueError("the response does not have one log-probability (a number or null) for each token")
    own = [place for place, (begin, end) in enumerate(spans) if end > len(request.prompt) and begin < len(text)]
    pieces = [text[max(0, spans[place][0]) : spans[place][1]] for place in own]
    usage = completion.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    response = likelihoods.response(
        pieces, [logs[place] for place in own], count if isinstance(count, int) else len(tokens)
    )
    model, fingerprint = (identifier(completion.get(name)) for name in ("model", "system_fingerprint"))
    return replace(response, model=model, fingerprint=fingerprint)


def _spans(tokens: list[str], text: str) -> list[tuple[int, int]]:
    """Return the start and end index of each token in the text; tokens added by the server lie outside of the text.

    Tokens that encode parts of the same character all get the position of this character.

    Raises:
        ValueError: the tokens do not match the text, or end before the end of the text.
    """
    front = 1 if tokens and _is_whole(tokens[0]) and not text.startswith(tokens[0]) else 0
    spans = [(-len(token), 0) for token in tokens[:front]]
    at, split = 0, 0
    for place in range(front, len(tokens)):
        token = tokens[place]
        if at == len(text) and not split:
            spans.append((at, at + 1 + len(token)))
        elif not _is_whole(token):
            split += 1
        elif 0 <= (found := text.find(token, at)) - at <= _WIDEST * split:
            spans += [(at, found)] * split
            spans.append((found, found + len(token)))
            at, split = found + len(token), 0
        elif place == len(tokens) - 1 and 0 < len(text) - at <= _WIDEST * split:
            break
        else:
            raise ValueError("the tokens in the response do not match the text")
    spans += [(at, len(text))] * split
    added = len(tokens) - len(spans)
    if at + _WIDEST * split < len(text):
        raise ValueError("the tokens in the response end before the end of the text")
    return spans + [(len(text), len(text) + 1)] * added


_WIDEST = 4
"""Maximum number of characters of the text that a token with incomplete bytes may cover."""


def _is_whole(token: str) -> bool:
    """Return whether a token consists of whole characters; other tokens are some bytes of a character."""
    return bool(token) and "\N{REPLACEMENT CHARACTER}" not in token and not token.startswith("bytes:")
