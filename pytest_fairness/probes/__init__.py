"""Probe files: their reading and checking, and the prompts that a probe sends.

A public name is imported at its first use, so that the settings of an audit can be imported without the YAML reader.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_fairness.probes.base import Probe as Probe
    from pytest_fairness.probes.coreference import CoreferenceProbe as CoreferenceProbe
    from pytest_fairness.probes.counterfactual import CounterfactualProbe as CounterfactualProbe
    from pytest_fairness.probes.generation import GenerationProbe as GenerationProbe
    from pytest_fairness.probes.loading import KindSchema as KindSchema
    from pytest_fairness.probes.loading import json_schema as json_schema
    from pytest_fairness.probes.loading import load as load
    from pytest_fairness.probes.loading import parse as parse
    from pytest_fairness.probes.loading import schema_text as schema_text
    from pytest_fairness.probes.multiple_choice import MultipleChoiceProbe as MultipleChoiceProbe
    from pytest_fairness.probes.recommendation import RecommendationProbe as RecommendationProbe
    from pytest_fairness.probes.stereotype import StereotypeProbe as StereotypeProbe

_MODULES = {
    name: module
    for module, names in {
        "base": "Probe",
        "coreference": "CoreferenceProbe",
        "counterfactual": "CounterfactualProbe",
        "generation": "GenerationProbe",
        "loading": "KindSchema json_schema load parse schema_text",
        "multiple_choice": "MultipleChoiceProbe",
        "recommendation": "RecommendationProbe",
        "stereotype": "StereotypeProbe",
    }.items()
    for name in names.split()
}
"""Module of each public name."""
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
