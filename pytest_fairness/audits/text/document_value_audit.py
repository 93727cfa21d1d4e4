"""Base class of audits that give each text a number (a rate, a score) and compare the means of two groups."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Generic

import numpy as np

from pytest_fairness.audits.base import SettingsT
from pytest_fairness.audits.text.document_values import ValuesT
from pytest_fairness.audits.text.gap_change import ROUNDING, SWAPS, gap_change
from pytest_fairness.audits.text.groups import Groups, TextItem
from pytest_fairness.audits.text.text_audit import TwoGroupAudit
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answers, Comparison, Measurement
from pytest_fairness.stats.groups.stratified_values import TwoRuns
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.resampling import randomness


class DocumentValueAudit(TwoGroupAudit[SettingsT], Generic[SettingsT, ValuesT]):
    """Base class of audits whose value is a gap: the marked group's mean rate (or score) minus the unmarked group's.

    Class attributes:
        reversed_gap: phrase for a gap that changed sides. {before}: size of the gap in the baseline; {now}: size of the
            current gap; {less}: group with the larger mean in the baseline; {more}: group with the larger mean now.
    """

    reversed_gap: ClassVar[str]

    @abstractmethod
    def values(self, item: TextItem[SettingsT], groups: Groups) -> ValuesT:
        """Return the numbers that the audit gives to the answers.

        Raises:
            NotMeasurable: a group has too few usable answers in strata that hold both groups.
        """

    def measure(self, item: TextItem[SettingsT], answers: Answers) -> Measurement:
        """Return the gap with Welch's standard error within strata and a permutation test; see `Audit.measure`."""
        groups = Groups.of(item, answers)
        values = self.values(item, groups)
        gap, (error, degrees) = values.gap(), values.error()
        return Measurement(
            value=gap,
            interval=normal.interval(gap, error, degrees_of_freedom=degrees),
            standard_error=error,
            p_value=values.p_value(randomness.generator(f"{item.seed}/measure")),
            n=groups.usable,
            missing=groups.missing,
            details=values.details(),
            degrees_of_freedom=degrees,
        )

    def value(self, item: TextItem[SettingsT], answers: Answers) -> float:
        """Return the gap without its test; see `Audit.value`."""
        return self.values(item, Groups.of(item, answers)).gap()

    def change(
        self,
        item: TextItem[SettingsT],
        current: Groups,
        baseline: Groups,
        random: np.random.Generator,
    ) -> Comparison:
        """Return the change of the gap with its permutation test; all answers of both runs are used.

        Raises:
            NotMeasurable: no stratum holds both groups in both runs.
        """
        values, before = self.values(item, current), self.values(item, baseline)
        details = values.change_details(before)
        runs = TwoRuns.of(values, before)
        if not runs.weights.any():
            raise NotMeasurable(
                "no stratum holds both groups in this run and in the baseline, so that the runs cannot be compared. "
                "Request both groups for the baseline's prompts, or rebaseline"
            )
        gaps, joint, swaps = runs.gaps(), runs.joint_gap(), runs.gaps_after_swaps(SWAPS, random)
        # The direction of the gap in both runs together is the same for all permutations of run labels.
        side = float(np.sign(np.round(joint, ROUNDING)))
        more, less = current.names[:: 1 if gaps[0] > 0 else -1]
        sizes = dict(zip(("now", "before"), (f"{abs(gap):.3g}" for gap in gaps), strict=True))
        return gap_change(
            gaps=gaps,
            value=side * (gaps[0] - gaps[1]),
            error=runs.error(),
            null=side * (swaps[0] - swaps[1]),
            absolute_change=abs(gaps[0] - gaps[1]),
            null_absolute_changes=np.abs(swaps[0] - swaps[1]),
            description=self.reversed_gap.format(**sizes, less=less, more=more),
            details=details,
        )
