"""What is asked: probe files, read with all their faults at once, and the prompts that they stand for.

Names are imported when they are used, so that an audit's settings cost no YAML reader.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_fairness.probe.asking import follow_ups, prompts, shape
    from pytest_fairness.probe.coreference import CoreferenceProbe
    from pytest_fairness.probe.counterfactual import CounterfactualProbe
    from pytest_fairness.probe.generation import GenerationProbe
    from pytest_fairness.probe.loader import load, parse
    from pytest_fairness.probe.models import Probe
    from pytest_fairness.probe.recommendation import RecommendationProbe
    from pytest_fairness.probe.schema import json_schema, schema_text
    from pytest_fairness.probe.stereotype import StereotypeProbe
    from pytest_fairness.response.rows import rows

__all__ = [
    "CoreferenceProbe",
    "CounterfactualProbe",
    "GenerationProbe",
    "Probe",
    "RecommendationProbe",
    "StereotypeProbe",
    "follow_ups",
    "json_schema",
    "load",
    "parse",
    "prompts",
    "rows",
    "schema_text",
    "shape",
]

_HOMES = {
    "CoreferenceProbe": "pytest_fairness.probe.coreference",
    "CounterfactualProbe": "pytest_fairness.probe.counterfactual",
    "GenerationProbe": "pytest_fairness.probe.generation",
    "Probe": "pytest_fairness.probe.models",
    "RecommendationProbe": "pytest_fairness.probe.recommendation",
    "StereotypeProbe": "pytest_fairness.probe.stereotype",
    "follow_ups": "pytest_fairness.probe.asking",
    "json_schema": "pytest_fairness.probe.schema",
    "load": "pytest_fairness.probe.loader",
    "parse": "pytest_fairness.probe.loader",
    "prompts": "pytest_fairness.probe.asking",
    # What came back belongs to the next layer; it is named here for those who have a probe in hand.
    "rows": "pytest_fairness.response.rows",
    "schema_text": "pytest_fairness.probe.schema",
    "shape": "pytest_fairness.probe.asking",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
