"""The recorded form of a text's embedding, and what a server of embeddings answers."""

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
"""Of a vector; what is longer is a mistake or an attack."""
BYTES = 4
"""Of a number, as vectors are recorded."""


def response(numbers: Sequence[float], *, tokens: int | None = None, model: str | None = None) -> Response:
    """Return the answer to a request for an embedding; see `Response`.

    Args:
        numbers: the vector, of whatever length.
        tokens: that were read.
        model: what the server says that it answered with.

    Raises:
        ValueError: it is no vector of finite 32-bit numbers.
    """
    if not 0 < len(numbers) <= MOST_DIMENSIONS:
        raise ValueError(f"its vector has {len(numbers):,} numbers, and 1 to {MOST_DIMENSIONS:,} can be")
    packed = array("f", numbers)
    if not all(map(math.isfinite, packed)):
        raise ValueError("its vector holds numbers that are not finite")
    if sys.byteorder == "big":
        packed.byteswap()
    text = json.dumps({"dimensions": len(numbers), "float32": base64.b64encode(packed.tobytes()).decode()})
    return Response(text, finish_reason="stop", prompt_tokens=tokens, completion_tokens=0, model=model)


def vector(text: str) -> bytes:
    """Return the recorded vector as 32-bit numbers, little-endian.

    Raises:
        ValueError: the text is no recorded embedding.
    """
    try:
        recorded = json.loads(text)
        packed = base64.b64decode(recorded["float32"], validate=True)
        whole = len(packed) == BYTES * recorded["dimensions"] > 0
    except (ValueError, LookupError, TypeError, RecursionError):
        whole, packed = False, b""
    if not whole:
        raise ValueError("it is no recorded embedding")
    return packed


def read(content: bytes, count: int, source: str) -> list[Response | FairnessError]:
    """Return the embeddings of a server's answer in the order of the texts; an error for each text without one.

    Args:
        content: the body: `{"data": [{"index": 0, "embedding": [0.1, …]}, …]}`.
        count: how many texts were sent.
        source: the target and its endpoint, for messages.
    """
    try:
        answer = json.loads(content)
        found = {item["index"]: item["embedding"] for item in answer["data"]}
    except (ValueError, LookupError, TypeError, RecursionError):
        return [RequestFailed(f"{source} answered something that is no list of embeddings.") for _ in range(count)]
    shares = _shares(answer.get("usage"), count)
    model = identifier(answer.get("model"))
    outcomes: list[Response | FairnessError] = []
    for place, tokens in enumerate(shares):
        try:
            outcomes.append(response(_numbers(found.get(place)), tokens=tokens, model=model))
        except ValueError as error:
            outcomes.append(
                RequestFailed(
                    f"{source} gave no usable embedding of text {place + 1} of {count} sent together: {error}."
                )
            )
    return outcomes


def _numbers(given: Json) -> list[float]:
    if given is None:
        raise ValueError("there is none")
    if not isinstance(given, list) or not all(type(number) in (int, float) for number in given):
        raise ValueError("it is no list of numbers")
    try:
        return [float(number) for number in given]
    except OverflowError:
        raise ValueError("its vector holds numbers that are not finite") from None


def _shares(usage: Json, count: int) -> list[int | None]:
    """Return the tokens of each text: those of all texts sent together, as evenly as they can be shared out."""
    total = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if type(total) is not int or total < 0:
        return [None] * count
    return [total // count + (place < total % count) for place in range(count)]
