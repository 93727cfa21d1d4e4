"""Scores of answers by a classifier, for audits that measure scores."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256

from pytest_fairness.asking.store.store import Store
from pytest_fairness.records import Answer, Json
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.scorers.registry import Scorer


def scored(item: ProbeItem, answers: Sequence[Answer], store: Store | None) -> Sequence[Answer]:
    """Return the answers with their scores as `content`; unchanged if the item's audit has no classifier.

    Args:
        item: the item.
        answers: answers as they were parsed from the responses.
        store: store in which scores are kept, so that no text is scored twice; `None` to keep no scores.

    Raises:
        ModelError: the model cannot be loaded.
    """
    model = item.models.classifier
    if model is None:
        return answers
    texts = item.models.texts(answers)
    scores = _scores(model, {text for text in texts if text is not None}, store)
    return [
        replace(answer, content=None if text is None else {"model": model.identity, "scores": scores[text]})
        for answer, text in zip(answers, texts, strict=True)
    ]


def _numbers(kept: Json) -> dict[str, float]:
    return {str(label): float(number) for label, number in kept.items()}


def _scores(model: Scorer, texts: Collection[str], store: Store | None) -> dict[str, Json]:
    """Return the scores of each text; compute the scores that are not in the store, and add them to the store."""
    keys = {text: sha256(json.dumps(["scores", model.identity, text]).encode()).hexdigest() for text in texts}
    scores = {text: store.cache.get(key, _numbers) if store else None for text, key in keys.items()}
    new = sorted(text for text, kept in scores.items() if kept is None)
    for text, computed in zip(new, model.scores(new), strict=True) if new else ():
        if store:
            store.cache.put(keys[text], computed)
        scores[text] = computed
    return scores
