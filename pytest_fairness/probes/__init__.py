"""What is asked: probe files, read with all their faults at once, and the prompts that they stand for.

Names are imported when they are used, so that an audit's settings cost no YAML reader.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_fairness.answers.recorded.rows import rows
    from pytest_fairness.probes.base import Probe
    from pytest_fairness.probes.coreference.model import CoreferenceProbe
    from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
    from pytest_fairness.probes.generation.model import GenerationProbe
    from pytest_fairness.probes.loading.json_schema import json_schema, schema_text
    from pytest_fairness.probes.loading.loader import load, parse
    from pytest_fairness.probes.prompt_builder import follow_ups, prompts, shape
    from pytest_fairness.probes.recommendation.model import RecommendationProbe
    from pytest_fairness.probes.stereotype.model import StereotypeProbe

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
    "CoreferenceProbe": "pytest_fairness.probes.coreference.model",
    "CounterfactualProbe": "pytest_fairness.probes.counterfactual.model",
    "GenerationProbe": "pytest_fairness.probes.generation.model",
    "Probe": "pytest_fairness.probes.base",
    "RecommendationProbe": "pytest_fairness.probes.recommendation.model",
    "StereotypeProbe": "pytest_fairness.probes.stereotype.model",
    "follow_ups": "pytest_fairness.probes.prompt_builder",
    "json_schema": "pytest_fairness.probes.loading.json_schema",
    "load": "pytest_fairness.probes.loading.loader",
    "parse": "pytest_fairness.probes.loading.loader",
    "prompts": "pytest_fairness.probes.prompt_builder",
    # What came back belongs to the next layer; it is named here for those who have a probe in hand.
    "rows": "pytest_fairness.answers.recorded.rows",
    "schema_text": "pytest_fairness.probes.loading.json_schema",
    "shape": "pytest_fairness.probes.prompt_builder",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
