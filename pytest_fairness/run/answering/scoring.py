"""Answers with the scores that a classifier gives them, for the audits that measure these."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256

from pytest_fairness.asking.store.store import Store
from pytest_fairness.records import Answer, Json
from pytest_fairness.run.probe_items import ProbeItem
from pytest_fairness.scorers.registry import Scorer


def scored(item: ProbeItem, answers: Sequence[Answer], store: Store | None) -> Sequence[Answer]:
    """The answers as the item's audit measures them: where it has a classifier, with the scores for content.

    Args:
        item: the item.
        answers: as they were read.
        store: keeps the scores, so that no text is scored twice; `None` where there is none.

    Raises:
        ModelError: the model cannot be loaded.
    """
    model = item.classifier
    if model is None or item.preparation is None:
        return answers
    texts = item.preparation.texts(answers)
    scores = _scores(model, {text for text in texts if text is not None}, store)
    return [
        replace(answer, content=None if text is None else {"model": model.identity, "scores": scores[text]})
        for answer, text in zip(answers, texts, strict=True)
    ]


def _numbers(kept: Json) -> dict[str, float]:
    return {str(label): float(number) for label, number in kept.items()}


def _scores(model: Scorer, texts: Collection[str], store: Store | None) -> dict[str, Json]:
    """Each text's scores; those that the store has not kept are computed, and kept."""
    keys = {text: sha256(json.dumps(["scores", model.identity, text]).encode()).hexdigest() for text in texts}
    scores = {text: store.cache.get(key, _numbers) if store else None for text, key in keys.items()}
    new = sorted(text for text, kept in scores.items() if kept is None)
    for text, computed in zip(new, model.scores(new), strict=True) if new else ():
        if store:
            store.cache.put(keys[text], computed)
        scores[text] = computed
    return scores
