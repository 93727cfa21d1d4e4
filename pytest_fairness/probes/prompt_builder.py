"""The prompts of a probe, and everything that shapes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_fairness.probes.base import Probe
    from pytest_fairness.records import Answer, Prompt


def prompts(probe: Probe, trials: int | None = None) -> list[Prompt]:
    """Every prompt that a probe asks; none where it brings its answers along.

    Args:
        probe: the probe.
        trials: overrides the probe's own number.

    Returns:
        Prompts in the order in which they are asked; identical questions of one cell differ only by their trial.
    """
    return list(probe.questions(trials))


def follow_ups(probe: Probe, answers: Sequence[Answer]) -> list[Prompt]:
    """What is asked next because of the answers: short lists again, refused questions in other words.

    Args:
        probe: the probe.
        answers: everything that an item's questions, follow-ups included, have been answered so far.

    Returns:
        Further prompts, in the order of the answers; none once nothing is left to ask.
    """
    return probe.follow_ups(answers)


def shape(probe: Probe, labels: Mapping[str, str]) -> dict[str, str]:
    """Everything that shapes an item's prompts and the reading of their answers.

    Args:
        probe: the probe.
        labels: what the item is about (`{"race": "Black"}`).

    Returns:
        Readable name of a part ("prompt", "axis race") to its canonical text.
    """
    return probe.shape(labels)
