"""Base class of audits whose value is a signed difference between two groups.

The change between two runs is measured in the direction of the gap in both runs together, because this direction does
not depend on run labels. The difference between the two absolute gaps would be a poor test statistic: it is at most as
large as the sum of the gaps, and the sum is the same for all permutations of run labels.
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
from pytest_fairness.stats.groups.spreads import direction_unknown
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.resampling import randomness, significance

SWAPS = 1999
"""Number of permutations of run labels."""


@dataclass(frozen=True)
class GapChange:
    """Change of a gap between two runs, and the null distributions of its tests.

    Attributes:
        gaps: gap of the current run and gap of the baseline, marked minus unmarked group.
        value: the change, in the direction of the gap in both runs together.
        error: standard error of the change, and its degrees of freedom.
        null: (swaps,) change after permutation of run labels.
        moved: absolute difference between the two gaps.
        null_moved: (swaps,) absolute difference between the two gaps after permutation of run labels.
        description: phrase that states both gaps, for a gap that changed sides.
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
        """Return the change with its interval and test. If the gap changed sides, the result has a reversal."""
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
            details={**self.details, "either_side": direction_unknown(current + baseline, error)},
        )


class GapAudit(TextAudit[SettingsT]):
    """Base class of audits whose value is a signed difference between two groups."""

    @abstractmethod
    def change(
        self, item: AuditItem[SettingsT], current: Groups, baseline: Groups, random: np.random.Generator
    ) -> GapChange:
        """Return the change of the gap from the baseline to the current run."""

    def compare(
        self,
        probe: GenerationProbe,
        item: AuditItem[SettingsT],
        current: Sequence[Answer],
        baseline: Sequence[Answer],
    ) -> Comparison:
        """Return the change of the gap, tested by permutation of run labels; see `Audit.compare`."""
        runs = [Groups.of(probe, item, run) for run in (current, baseline)]
        return self.change(item, runs[0], runs[1], randomness.generator(f"{item.seed}/compare")).comparison()
