"""The scorer of a name: one that another package declares, or else a text-classification model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from pytest_fairness import extensions
from pytest_fairness.errors import ModelError
from pytest_fairness.scorers.text_classifier import Classifier


class Scorer(Protocol):
    """What scores texts: each text gets a number for each of the labels."""

    @property
    def identity(self) -> str:
        """Name and version; scores are recorded under it, and another one makes a baseline stale."""

    @property
    def labels(self) -> Sequence[str]:
        """Names of the numbers, in lower case."""

    def scores(self, texts: Sequence[str]) -> Sequence[dict[str, float]]:
        """Return for each text the number of each label, 0..1.

        Raises:
            ModelError: the scorer cannot score.
        """


@cache
def open_scorer(name: str, label: str, folder: Path) -> Scorer:
    """Return the scorer of this name; there is one object of each, and a model is loaded when it first scores.

    Args:
        name: of an entry point `pytest_fairness.scorers`, or of a model: its Hub id, or a folder inside of `folder`.
        label: that the scorer must have.
        folder: where the probe is.

    Raises:
        FairnessError: an extension cannot be imported.
    """
    if name not in extensions.declared("scorers"):
        return Classifier(name, label, folder)
    scorer: Scorer = extensions.load(extensions.declared("scorers")[name])()
    return scorer


def require(scorer: Scorer, label: str) -> None:
    """Raise `ModelError` unless the scorer is at hand and has the label; a model is fetched if need be."""
    if isinstance(scorer, Classifier):
        scorer.require()
    elif label not in scorer.labels:
        raise ModelError(f"{scorer.identity} has no label {label!r}; its labels are {', '.join(scorer.labels)}")
