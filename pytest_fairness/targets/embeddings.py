"""Conversion of embeddings: from the responses of embedding servers, and to and from their recorded form."""

from __future__ import annotations

import base64
import json
import math
import sys
from array import array
from collections.abc import Sequence

from pytest_fairness.errors import FairnessError, RequestFailed
from pytest_fairness.records import Json, Response
from pytest_fairness.targets.one_line import identifier

MOST_DIMENSIONS = 65_536
"""Maximum number of dimensions of an embedding vector; a longer vector is a mistake or an attack."""
BYTES = 4
"""Number of bytes of each number in a recorded vector."""


def response(numbers: Sequence[float], *, tokens: int | None = None, model: str | None = None) -> Response:
    """Return the response to a request for an embedding; its text is JSON with the vector in base64.

    Args:
        numbers: the embedding vector.
        tokens: number of tokens of the text; `None` if it is not known.
        model: name of the model that the server reports; `None` if it reports none.

    Raises:
        ValueError: the numbers are not a vector of finite 32-bit numbers.
    """
    if not 0 < len(numbers) <= MOST_DIMENSIONS:
        raise ValueError(f"the vector has {len(numbers):,} numbers, but must have 1 to {MOST_DIMENSIONS:,}")
    packed = array("f", numbers)
    if not all(map(math.isfinite, packed)):
        raise ValueError("the vector has numbers that are not finite")
    if sys.byteorder == "big":
        packed.byteswap()
    text = json.dumps({"dimensions": len(numbers), "float32": base64.b64encode(packed.tobytes()).decode()})
    return Response(text, finish_reason="stop", prompt_tokens=tokens, completion_tokens=0, model=model)


def vector(text: str) -> bytes:
    """Return the vector in a recorded embedding, as little-endian 32-bit numbers.

    Raises:
        ValueError: the text is not a recorded embedding.
    """
    try:
        recorded = json.loads(text)
        packed = base64.b64decode(recorded["float32"], validate=True)
        complete = len(packed) == BYTES * recorded["dimensions"] > 0
    except (ValueError, LookupError, TypeError, RecursionError):
        complete, packed = False, b""
    if not complete:
        raise ValueError("the text is not a recorded embedding")
    return packed


def read(content: bytes, count: int, source: str) -> list[Response | FairnessError]:
    """Return the embeddings in a server's response, one for each text that was sent; an error for each unusable one.

    Args:
        content: body of the response: `{"data": [{"index": 0, "embedding": [0.1, …]}, …]}`.
        count: number of texts that were sent.
        source: names of the target and its endpoint, for messages.
    """
    try:
        answer = json.loads(content)
        found = {item["index"]: item["embedding"] for item in answer["data"]}
    except (ValueError, LookupError, TypeError, RecursionError):
        message = f"{source} sent a response that is not a list of embeddings. Check the address and the model's name."
        return [RequestFailed(message) for _ in range(count)]
    shares = _tokens_of_each_text(answer.get("usage"), count)
    model = identifier(answer.get("model"))
    outcomes: list[Response | FairnessError] = []
    for place, tokens in enumerate(shares):
        try:
            outcomes.append(response(_numbers(found.get(place)), tokens=tokens, model=model))
        except ValueError as error:
            outcomes.append(
                RequestFailed(
                    f"{source} gave no usable embedding of text {place + 1} (of {count} in the request): {error}."
                )
            )
    return outcomes


def _numbers(embedding: Json) -> list[float]:
    if embedding is None:
        raise ValueError("the response does not contain it")
    if not isinstance(embedding, list) or not all(type(number) in (int, float) for number in embedding):
        raise ValueError("the vector is not a list of numbers")
    try:
        return [float(number) for number in embedding]
    except OverflowError:
        raise ValueError("the vector has numbers that are not finite") from None


def _tokens_of_each_text(usage: Json, count: int) -> list[int | None]:
    """Return each text's number of tokens: the reported total, evenly divided; `None` if no total is reported."""
    total = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if type(total) is not int or total < 0:
        return [None] * count
    return [total // count + (place < total % count) for place in range(count)]
