"""Scores of answers by a scorer, for audits that measure scores."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import replace
from hashlib import sha256

from pytest_fairness.asking.store.store import Store
from pytest_fairness.records import Answer, Json, Status
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.scorers.scoring import Scorer, scores_of

BATCH = 512
"""Number of texts that a scorer gets at a time; their scores are stored before the next texts are scored."""


def scored(item: ProbeItem, answers: Sequence[Answer], store: Store | None) -> Sequence[Answer]:
    """Return the answers with their scores as `content`; unchanged if the item's audit has no scorer.

    An answer whose text cannot be scored becomes unreadable, with the reason as its `error`. The content of an answer
    without a text to score is `None`.

    Args:
        answers: answers as they were parsed from the responses.
        store: store in which scores are kept, so that no text is scored twice; `None` to keep no scores.

    Raises:
        ModelError: the scorer cannot be used.
    """
    found, preparation = item.models.scorer, item.models.preparation
    if found is None or preparation is None:
        return answers
    scorer, label = found
    texts = item.models.texts(answers)
    needed = scorer.labels if preparation.gives == "labels" else (label,)
    scores = scores_by_text(
        scorer, {text for text in texts if text is not None}, needed, store if scorer.cached else None
    )

    def with_score(answer: Answer, text: str | None) -> Answer:
        if text is None:
            return replace(answer, content=None)
        own = scores[text]
        if isinstance(own, str):
            return replace(answer, status=Status.UNREADABLE, content=None, error=f"{preparation.model} {own}")
        given = {"scores": own} if preparation.gives == "labels" else {"score": own[label]}
        return replace(answer, content={"model": scorer.identity, **given})

    return [with_score(answer, text) for answer, text in zip(answers, texts, strict=True)]


def _scores_from(kept: Json) -> dict[str, float]:
    return {str(label): float(number) for label, number in kept.items()}


def scores_by_text(
    scorer: Scorer, texts: Set[str], needed: Sequence[str], store: Store | None
) -> dict[str, dict[str, float] | str]:
    """Return the scores of each text by label; for a text that lacks one of the `needed` scores, return a message.

    Scores that are not in the store are computed and added to the store. A failure is not stored, so that the text is
    scored again in the next run.
    """
    keys = {text: sha256(json.dumps(["scores", scorer.identity, text]).encode()).hexdigest() for text in texts}
    kept = {text: store.cache.get(key, _scores_from) if store else None for text, key in keys.items()}
    scores: dict[str, dict[str, float] | str] = {
        text: own for text, own in kept.items() if own and own.keys() >= {*needed}
    }
    new = sorted(texts - scores.keys())
    for start in range(0, len(new), BATCH):
        part = new[start : start + BATCH]
        for text, own in zip(part, scores_of(scorer, part, needed), strict=True):
            scores[text] = own
            if store and not isinstance(own, str):
                store.cache.put(keys[text], own)
    return scores
