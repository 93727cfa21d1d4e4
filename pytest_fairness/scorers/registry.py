"""Registry of scorers: text-classification models, and scorers that other packages declare."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from pytest_fairness import extensions
from pytest_fairness.errors import ModelError
from pytest_fairness.scorers.text_classifier import Classifier


class Scorer(Protocol):
    """Scorer, which gives each text a score for each of its labels."""

    @property
    def identity(self) -> str:
        """Return the name and version of the scorer.

        Scores are cached under this identity. If the identity changes, baselines become stale.
        """

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels for which the scorer gives scores, in lower case.

        Raises:
            ModelError: the scorer cannot be used.
        """

    def scores(self, texts: Sequence[str]) -> Sequence[dict[str, float]]:
        """Return the scores of each text, by label; a score is between 0 and 1.

        Raises:
            ModelError: the scorer cannot be used.
        """


@cache
def open_scorer(name: str, folder: Path) -> Scorer:
    """Return the scorer of this name.

    Repeated calls return the same object. The model is loaded when the scorer first scores a text.

    Args:
        name: name of an entry point in `pytest_fairness.scorers`, an id of the Hugging Face Hub, or a folder inside of
            `folder`.
        folder: folder of the probe.

    Raises:
        FairnessError: an extension cannot be imported.
    """
    if name not in extensions.declared("scorers"):
        return Classifier(name, folder)
    scorer: Scorer = extensions.load(extensions.declared("scorers")[name])()
    return scorer


def require(scorer: Scorer, label: str) -> None:
    """Raise `ModelError` if the scorer cannot be used or lacks the label; download the scorer's model if necessary."""
    if label not in scorer.labels:
        known = ", ".join(scorer.labels)
        raise ModelError(f"{scorer.identity} has no label {label!r}. Name one of its labels: {known}")
