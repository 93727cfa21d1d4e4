"""What a pretended model is to the calibration: a probe, and answers drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness import kinds, probes
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer
from pytest_fairness.run import ProbeItem

Simulate = Callable[[int, float], list[Answer]]
"""From a seed and the size of the planted change to one run's answers; at 0 nothing is changed."""

Truth = Callable[[ProbeItem, float], float | None]
"""From an item and the size of the planted change to the item's true value; `None` where it depends on the size."""


@dataclass(frozen=True)
class Scenario:
    """One pretended model, asked one probe.

    Attributes:
        name: for tables.
        size: how much is asked, for tables (`15 trials`).
        probe: the probe.
        simulate: one run.
        planted: subjects of the items in which a change is planted; the others stay as they are.
        changes: sizes of the planted change.
        prepared: the answers as the model of an item's audit leaves them, for an audit with a model.
        truth: true values of the items, where they are known.
        harmed: group that a planted change harms; the gap between two other groups stays as it is. Empty if all gaps
            change.
    """

    name: str
    size: str
    probe: Probe
    simulate: Simulate
    planted: tuple[str, ...]
    changes: tuple[float, ...]
    prepared: Callable[[ProbeItem, list[Answer]], list[Answer]] = lambda _, run: run
    truth: Truth = lambda _part, _change: None
    harmed: str = ""


def probe(text: str, name: str) -> Probe:
    """A probe from its text."""
    return probes.parse(text.encode(), Path(__file__).with_name(f"{name}.yaml"), kinds.schemas())
