"""Frame of the audits whose value is a difference between two groups that may be to either side of 0.

The change is taken towards the side that both runs together show, which does not depend on the run labels. The
difference of the gaps' sizes would be bounded by the gaps' sum, which swaps of run labels do not change.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pytest_fairness.audits.base import AuditItem, SettingsT
from pytest_fairness.audits.text.groups import Groups
from pytest_fairness.audits.text.text_audit import TextAudit
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Comparison, Json, Reversal
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.spreads import either_side
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.resampling import randomness, significance

SWAPS = 1999
"""Swaps of run labels."""


@dataclass(frozen=True)
class GapChange:
    """Change of a gap between two runs, and what its tests need.

    Attributes:
        gaps: the gap of the current run and that of the baseline, marked minus unmarked.
        value: the change, towards the side that both runs together show.
        error: its standard error, and the degrees of freedom.
        null: (swaps,) the change of runs that differ by chance only.
        moved: absolute difference of the gaps.
        null_moved: (swaps,) the same of runs that differ by chance only.
        description: both gaps as a phrase, for a gap that changed sides.
        details: details of the comparison.
    """

    gaps: tuple[float, float]
    value: float
    error: tuple[float, float | None]
    null: Floats
    moved: float
    null_moved: Floats
    description: str
    details: Mapping[str, Json] = field(default_factory=dict)

    def comparison(self) -> Comparison:
        """Return the change with its interval and test, and the reversal of a gap that changed sides."""
        current, baseline = self.gaps
        error, degrees = self.error
        return Comparison(
            value=self.value,
            interval=normal.interval(self.value, error, degrees_of_freedom=degrees),
            standard_error=error,
            p_value=significance.p_value(self.null, self.value, exact=False),
            degrees_of_freedom=degrees,
            reversal=Reversal.tested(
                value=abs(current),
                p_value=significance.p_value(self.null_moved, self.moved, exact=False),
                description=self.description,
            )
            if current * baseline < 0
            else None,
            details={**self.details, "either_side": either_side(current + baseline, error)},
        )


class GapAudit(TextAudit[SettingsT]):
    """An audit of a difference between two groups that may be to either side of 0."""

    @abstractmethod
    def change(
        self, item: AuditItem[SettingsT], current: Groups, baseline: Groups, random: np.random.Generator
    ) -> GapChange:
        """Return the change of the gap from the baseline."""

    def compare(
        self,
        probe: GenerationProbe,
        item: AuditItem[SettingsT],
        current: Sequence[Answer],
        baseline: Sequence[Answer],
    ) -> Comparison:
        """Return the change of the gap, tested by swapped run labels; see `Audit.compare`."""
        runs = [Groups.of(probe, item, run) for run in (current, baseline)]
        return self.change(item, runs[0], runs[1], randomness.generator(f"{item.seed}/compare")).comparison()
