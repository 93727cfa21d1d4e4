"""Test vectors: inputs and results that were computed with the original code of the methods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_VECTORS: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def vectors(metric: str) -> list[Any]:
    """Return all test vectors of a metric as pytest parameters, named by their ids."""
    return [pytest.param(vector, id=vector["id"]) for vector in _VECTORS[metric]]


def vector(metric: str, name: str) -> dict[str, Any]:
    """Return the test vector of a metric with this id."""
    return next(vector for vector in _VECTORS[metric] if vector["id"] == name)
