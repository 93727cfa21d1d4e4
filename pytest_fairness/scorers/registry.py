"""Registry of scorers: those that other packages declare, and text-classification models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from pytest_fairness import extensions
from pytest_fairness.errors import ModelError
from pytest_fairness.scorers.text_classifier import Classifier


class Scorer(Protocol):
    """Scorer of texts, which gives each text a score for each label."""

    @property
    def identity(self) -> str:
        """Return name and version; scores are cached under it, and a change makes baselines stale."""

    @property
    def labels(self) -> Sequence[str]:
        """Return the names of the scores, in lower case.

        Raises:
            ModelError: the scorer cannot be used.
        """

    def scores(self, texts: Sequence[str]) -> Sequence[dict[str, float]]:
        """Return the scores of each text by label, 0..1.

        Raises:
            ModelError: the scorer cannot be used.
        """


@cache
def open_scorer(name: str, folder: Path) -> Scorer:
    """Return the scorer of this name, the same object each time; a model is loaded when it first scores.

    Args:
        name: an entry point `pytest_fairness.scorers`, a Hub id, or a folder inside of `folder`.
        folder: folder of the probe.

    Raises:
        FairnessError: an extension cannot be imported.
    """
    if name not in extensions.declared("scorers"):
        return Classifier(name, folder)
    scorer: Scorer = extensions.load(extensions.declared("scorers")[name])()
    return scorer


def require(scorer: Scorer, label: str) -> None:
    """Raise `ModelError` unless the scorer is available and has the label; download a model if necessary."""
    if label not in scorer.labels:
        raise ModelError(f"{scorer.identity} has no label {label!r}; its labels are {', '.join(scorer.labels)}")
