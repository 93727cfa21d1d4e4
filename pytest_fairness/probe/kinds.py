"""The table of the kinds of probe: a new kind is one model and one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fairness.probe.coreference import CoreferenceProbe
from pytest_fairness.probe.counterfactual import CounterfactualProbe
from pytest_fairness.probe.generation import GenerationProbe
from pytest_fairness.probe.recommendation import RecommendationProbe
from pytest_fairness.probe.stereotype import StereotypeProbe

if TYPE_CHECKING:
    from pytest_fairness.probe.models import Probe

KINDS: dict[str, type[Probe]] = {
    "generation": GenerationProbe,
    "recommendation": RecommendationProbe,
    "coreference": CoreferenceProbe,
    "counterfactual": CounterfactualProbe,
    "stereotype": StereotypeProbe,
}
