"""Models that read the answers of one item before the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness.audits.base import Preparation
from pytest_fairness.errors import ModelError
from pytest_fairness.probes import Probe
from pytest_fairness.probes.field_types import ProbeSource
from pytest_fairness.records import Answers
from pytest_fairness.scorers import registry as scorers
from pytest_fairness.scorers.scoring import Scorer


def refusal_scorer(probe: Probe) -> tuple[Scorer, str]:
    """Return the scorer that recognises refusals in a probe's answers, and the label whose score is used.

    The scorer's model is not loaded yet.

    Raises:
        ModelError: the scorer cannot be used.
    """
    return _declared(probe.reading.refusals.scorer or "", probe.source)


def _declared(name: str, source: ProbeSource) -> tuple[Scorer, str]:
    """Return the scorer that the ini file or an installed package declares under this name, and the label to use.

    Raises:
        ModelError: no scorer has this name, or the scorer cannot be used.
    """
    definition = (source.scorers or {}).get(name)
    if definition is None:
        raise ModelError(f"there is no scorer {name!r}. Declare it with fairness_scorers in the ini file.")
    return scorers.open_scorer(definition, source.root or Path.cwd())


@dataclass(frozen=True)
class ItemModels:
    """The scorer or the embedding model that an item's audit needs, and the scorer that recognises refusals.

    Attributes:
        preparation: the model and the texts that the model reads; `None` if the audit needs no model. An audit has at
            most one model.
        probe: the probe, to whose folder paths of models are relative.
    """

    preparation: Preparation | None
    probe: Probe

    @property
    def scorer(self) -> tuple[Scorer, str] | None:
        """Return the scorer of the item's answers, and the label whose score is used; `None` without a scorer.

        The scorer's model is not loaded yet.

        Raises:
            ModelError: a declared scorer cannot be used.
        """
        found = self.preparation
        if found is None or found.gives == "embeddings":
            return None
        if found.gives == "labels":
            return scorers.open_model(found.model, self.probe.source.path.parent), found.label
        return _declared(found.model, self.probe.source)

    @property
    def embedder(self) -> str | None:
        """Return the name, as in the probe, of the model that embeds the item's answers; `None` without a model."""
        found = self.preparation
        return found.model if found is not None and found.gives == "embeddings" else None

    def texts(self, answers: Answers) -> Sequence[str | None]:
        """Return, for each answer, the text that the scorer or embedding model reads; `None` without a text."""
        return [None] * len(answers) if self.preparation is None else self.preparation.texts(answers)

    @property
    def fingerprint(self) -> dict[str, str]:
        """Return the entries of the item's fingerprint for scorers and for the model that recognises refusals."""
        parts, settings = {}, self.probe.reading.refusals
        if settings.by == "scorer":
            scorer, label = refusal_scorer(self.probe)
            parts["refusals"] = f"{scorer.identity}:{label}, at least {settings.threshold:g}"
        elif settings.by == "judge":
            parts["refusals"] = f"judge model, votes: {settings.votes}"
        found, preparation = self.scorer, self.preparation
        if found is None or preparation is None:
            return parts
        scorer, label = found
        if preparation.gives == "labels":
            return {**parts, "model": scorer.identity}
        return {**parts, f"scorer {preparation.model}": f"{scorer.identity}:{label}"}

    def require(self) -> None:
        """Raise `ModelError` if a model that scores answers, or a package that the model needs, is missing."""
        if self.probe.reading.refusals.by == "scorer":
            scorers.require(*refusal_scorer(self.probe))
        if self.scorer is not None:
            scorers.require(*self.scorer)

    @property
    def available(self) -> bool:
        """Return whether the model that the item needs is available; without its model, an item sends no requests."""
        try:
            self.require()
        except ModelError:
            return False
        return True
