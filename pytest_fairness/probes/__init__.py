"""Probe files: their reading and checking, and the prompts that a probe sends.

A public name is imported at its first use, so that the settings of an audit can be imported without the YAML reader.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_fairness.probes.base import Probe
    from pytest_fairness.probes.coreference import CoreferenceProbe
    from pytest_fairness.probes.counterfactual import CounterfactualProbe
    from pytest_fairness.probes.generation import GenerationProbe
    from pytest_fairness.probes.loading import KindSchema, json_schema, load, parse, schema_text
    from pytest_fairness.probes.multiple_choice import MultipleChoiceProbe
    from pytest_fairness.probes.recommendation import RecommendationProbe
    from pytest_fairness.probes.stereotype import StereotypeProbe


__all__ = [
    "CoreferenceProbe",
    "CounterfactualProbe",
    "GenerationProbe",
    "KindSchema",
    "MultipleChoiceProbe",
    "Probe",
    "RecommendationProbe",
    "StereotypeProbe",
    "json_schema",
    "load",
    "parse",
    "schema_text",
]

_MODULES = {
    "CoreferenceProbe": "coreference",
    "CounterfactualProbe": "counterfactual",
    "GenerationProbe": "generation",
    "KindSchema": "loading",
    "MultipleChoiceProbe": "multiple_choice",
    "Probe": "base",
    "RecommendationProbe": "recommendation",
    "StereotypeProbe": "stereotype",
    "json_schema": "loading",
    "load": "loading",
    "parse": "loading",
    "schema_text": "loading",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
