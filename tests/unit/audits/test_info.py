"""Descriptions of audits: complete for every registered audit, and one direction for numbers and arrays."""

import math

import numpy as np
import pytest

from pytest_fairness.audits import registry
from pytest_fairness.audits.info import DRAWINGS, AuditInfo, Direction

AUDITS = [(kind, name) for kind, names in registry.AUDITS.items() for name in names]


@pytest.mark.parametrize(("kind", "name"), AUDITS)
def test_an_audit_describes_itself(kind: str, name: str) -> None:
    info = registry.get(kind, name).info
    assert info.name == name
    assert all((info.title, info.question, info.formula, info.meaning, info.source))
    assert info.value_range[0] <= info.limits[0] < info.limits[1] <= info.value_range[1]
    # `score` checks its tolerance itself, which may be that of one of several scorers.
    required = name == "score" or registry.settings_model(kind, name).model_fields["tolerance"].is_required()
    assert math.isnan(info.tolerance) if required else info.tolerance >= 0
    assert set(info.charts.values()) <= set(DRAWINGS)


@pytest.mark.parametrize(
    ("direction", "losses"),
    [
        (Direction.LOWER, [-10.0, 60.0]),
        (Direction.HIGHER, [10.0, -60.0]),
        (Direction.ZERO, [10.0, 60.0]),
        (Direction.FIFTY, [60.0, 10.0]),
    ],
)
def test_a_larger_loss_is_worse_for_numbers_and_arrays(direction: Direction, losses: list[float]) -> None:
    values = [-10.0, 60.0]
    assert [direction.loss(value) for value in values] == losses
    assert direction.loss(np.array(values)).tolist() == losses


def test_values_beyond_the_best_are_no_better() -> None:
    bounded = AuditInfo(name="", title="", better=Direction.LOWER, tolerance=0.1, value_range=(0, 1), best=0.5)
    assert [bounded.loss(value) for value in (0.3, 0.5, 0.8)] == [0.5, 0.5, 0.8]
