"""The table of the kinds of probe: a new kind is one model and one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fairness.probes.coreference.model import CoreferenceProbe
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.probes.stereotype.model import StereotypeProbe

if TYPE_CHECKING:
    from pytest_fairness.probes.base import Probe

KINDS: dict[str, type[Probe]] = {
    "generation": GenerationProbe,
    "recommendation": RecommendationProbe,
    "coreference": CoreferenceProbe,
    "counterfactual": CounterfactualProbe,
    "stereotype": StereotypeProbe,
}
