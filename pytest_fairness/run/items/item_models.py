"""Models that read the answers of one item before the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_fairness.audits.base import Preparation
from pytest_fairness.errors import ModelError
from pytest_fairness.records import Answers
from pytest_fairness.scorers import registry as scorers
from pytest_fairness.scorers.registry import Scorer


@dataclass(frozen=True)
class ItemModels:
    """The classifier or the embedding model that an item's audit needs; an item has at most one of the two.

    Attributes:
        preparation: the model and the texts that the model reads; `None` if the audit needs no model.
        folder: folder of the probe file, to which paths of models are relative.
    """

    preparation: Preparation | None
    folder: Path

    @cached_property
    def classifier(self) -> Scorer | None:
        """Return the classifier that scores the item's answers, not loaded yet; `None` without a classifier."""
        found = self.preparation
        return None if found is None or found.label is None else scorers.open_scorer(found.model, self.folder)

    @property
    def embedder(self) -> str | None:
        """Return the name, as in the probe, of the model that embeds the item's answers; `None` without a model."""
        found = self.preparation
        return None if found is None or found.label is not None else found.model

    def texts(self, answers: Answers) -> Sequence[str | None]:
        """Return, for each answer, the text that the model reads; `None` for an answer that no model reads."""
        return [None] * len(answers) if self.preparation is None else self.preparation.texts(answers)

    def require(self) -> None:
        """Raise `ModelError` if the model that scores answers, or a package that the model needs, is missing."""
        if self.classifier is not None and self.preparation is not None and self.preparation.label is not None:
            scorers.require(self.classifier, self.preparation.label)

    @property
    def available(self) -> bool:
        """Return whether the model that the item needs is available; without its model, an item sends no requests."""
        try:
            self.require()
        except ModelError:
            return False
        return True
