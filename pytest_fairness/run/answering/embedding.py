"""Embeddings of the texts of answers, for audits that compare embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.records import Answer, Request
from pytest_fairness.run.answering.engines import Engines
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.targets import embeddings
from pytest_fairness.targets.base import Target

TEXTS_AT_ONCE = 1_000
"""Maximum number of responses with embeddings that are in memory at a time; a response is larger than its vector."""


def embedded(item: ProbeItem, answers: Sequence[Answer], embedder: Target, engines: Engines) -> list[Answer]:
    """Return the answers with embeddings for the item's audit; request missing embeddings and wait for them.

    Equal texts are embedded once, and recorded embeddings are not requested again.

    Args:
        answers: answers as they were parsed from the responses.
        embedder: the embedding model.
        engines: the run's engines, which send requests to the embedding model.

    Raises:
        AnswersMissing: the embedding model gave no embedding for a text.
    """
    texts = item.models.texts(answers)
    different = list(dict.fromkeys(text for text in texts if text is not None))
    vectors: dict[str, bytes] = {}
    errors: list[str] = []
    for start in range(0, len(different), TEXTS_AT_ONCE):
        batch = different[start : start + TEXTS_AT_ONCE]
        responses = engines.ask(embedder, [Request(text, answer_format="embedding") for text in batch])
        for text, response in zip(batch, responses, strict=True):
            if isinstance(response, FairnessError):
                errors.append(str(response))
                continue
            try:
                vectors[text] = embeddings.vector(response.text)
            except ValueError as error:
                errors.append(f"{embedder.name}: {error}.")
    if errors:
        raise AnswersMissing(
            f"{len(errors)} of {len(different)} texts have no embedding by {embedder.name} (`embeddings` of "
            f"{item.id}); the first error: {errors[0].removesuffix('.')}. The other embeddings are recorded, and are "
            "not requested again."
        )
    return [
        answer if text is None else replace(answer, embedding=vectors[text])
        for answer, text in zip(answers, texts, strict=True)
    ]
