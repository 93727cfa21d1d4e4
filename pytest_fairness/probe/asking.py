"""The prompts of a probe, and everything that shapes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_fairness.probe.models import Probe
    from pytest_fairness.records import Prompt


def prompts(probe: Probe, trials: int | None = None) -> list[Prompt]:
    """Every prompt that a probe asks; none where it brings its answers along.

    Args:
        probe: the probe.
        trials: overrides the probe's own number.

    Returns:
        Prompts in the order in which they are asked; identical questions of one cell differ only by their trial.
    """
    return probe.questions(trials)


def shape(probe: Probe, labels: Mapping[str, str]) -> dict[str, str]:
    """Everything that shapes an item's prompts and the reading of their answers.

    Args:
        probe: the probe.
        labels: what the item is about (`{"race": "Black"}`).

    Returns:
        Readable name of a part ("prompt", "axis race") to its canonical text.
    """
    return probe.shape(labels)
