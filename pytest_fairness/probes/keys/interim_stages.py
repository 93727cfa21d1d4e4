"""Sequential sampling: the numbers of trials and entities at each interim analysis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes.audit_settings import ProbeModel, mapping_or_other

GROWTH = 1.5
"""Maximum factor by which the number of trials or entities grows from one interim analysis to the next.

With a larger factor, an item that narrowly misses a decision would cost too many further requests.
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """Numbers of trials and of entities at one interim analysis.

    Attributes:
        trials, entities: the numbers; `None` stands for the probe's own number.
        left_out: names of the entities that are not asked about yet.
    """

    trials: int | None = None
    entities: int | None = None
    left_out: frozenset[str] = frozenset()

    def includes(self, labels: Mapping[str, str]) -> bool:
        """Return whether the stage includes prompts with these labels; the trial number is not checked."""
        return labels.get("entity") not in self.left_out


class GrowingTrials(ProbeModel):
    """Number of trials that grows while a verdict is inconclusive."""

    start: int = Field(ge=1, le=MAX_TRIALS, description="Number of trials at the first interim analysis.")
    max: int = Field(
        ge=1,
        le=MAX_TRIALS,
        description="Maximum number of trials; the number grows by up to half each time while an item's verdict is "
        "inconclusive.",
    )

    @model_validator(mode="after")
    def _grows(self) -> GrowingTrials:
        if self.start >= self.max:
            raise PydanticCustomError("trials", "`start` must be below `max`; for a fixed number write `trials: 20`")
        return self


Trials = Annotated[
    Annotated[int, Tag("other"), Field(ge=1, le=MAX_TRIALS)] | Annotated[GrowingTrials, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""Type of a number of trials: fixed or growing."""


def max_trials(trials: Trials, override: int | None = None) -> int:
    """Return `override` if it is given; otherwise the fixed number of trials, or the maximum of a growing number."""
    if override is not None:
        return override
    return trials.max if isinstance(trials, GrowingTrials) else trials


def growing(start: int, end: int) -> list[int]:
    """Return the number of trials or entities at each interim analysis, from `start` to `end`.

    Before rounding, each number is the previous number times a constant factor of at most 1.5.
    """
    steps = math.ceil(math.log(end / start) / math.log(GROWTH)) if start < end else 0
    sizes = (round(start * (end / start) ** (step / steps)) for step in range(steps))
    # Small sizes may be equal after rounding.
    return sorted({*sizes, end})


def information_fractions(stages: Sequence[Stage]) -> list[float]:
    """Return each stage's number of answers, divided by the number of answers of the last stage."""
    sizes = [(stage.trials or 1) * (stage.entities or 1) for stage in stages]
    return [size / sizes[-1] for size in sizes]
