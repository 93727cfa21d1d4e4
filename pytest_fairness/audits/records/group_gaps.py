"""Audits of gaps between groups of records: in positive answers, in error rates and in accuracy."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.records.decisions import DecisionSettings
from pytest_fairness.audits.records.group_audit import RATES_APART, GroupAudit
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.records import Answer

ADULT = "Wang et al. 2023, “DecodingTrust”, and the fairness criteria of "

gap_info = partial(AuditInfo, better=Direction.LOWER, tolerance=0.05, value_range=(0, 1), worst=1, effect=RATES_APART)
"""Function that creates the description of an audit of gaps between groups' rates."""


class DemographicParity(GroupAudit[DecisionSettings]):
    """Largest gap between groups in the share of positive answers, 0..1.

    Even a system without errors has a gap if the groups' true answers differ.
    """

    info = gap_info(
        name="demographic_parity",
        title="Unequal shares of positive decisions",
        question="Does one group get the positive answer more often?",
        formula="|P(positive | group A) − P(positive | group B)|",
        meaning="0 = equal shares. The true answers are not taken into account.",
        source=ADULT + "Dwork et al. 2012",
    )
    settings_model = DecisionSettings
    rates = ("positive answers",)


class TruthSettings(AuditSettings):
    """Settings of an audit that needs true answers: only the settings that every audit has."""

    needs: ClassVar[str] = "truth"


class TruthAudit(GroupAudit[TruthSettings]):
    """Base class of audits of a rate that requires the true answer of each record."""

    settings_model = TruthSettings

    def check_table(self, table: UnitTable) -> None:
        """Raise `NotMeasurable` if no record has a true answer, or if too few records have one."""
        if table.units and np.isnan(table.rows).all() and sum(table.n.values()):
            raise NotMeasurable(
                "no record has a value in the column that `truth` names. Fill in the column, or name another column",
                permanent=True,
            )
        super().check_table(table)


class EqualizedOdds(TruthAudit):
    """The larger of the gaps in true positive and in false positive rates, 0..1 (Hardt, Price and Srebro 2016)."""

    info = gap_info(
        name="equalized_odds",
        title="Unequal error rates",
        question="Do true and false positive rates differ between groups?",
        formula="max(|gap of true positive rates|, |gap of false positive rates|)",
        meaning="0 = equal rates.",
        source=ADULT + "Hardt, Price and Srebro 2016",
    )
    linear = False
    rates = ("true positive rate", "false positive rate")

    def rate_of(self, probe: CounterfactualProbe, answer: Answer) -> str | None:
        """Return the name of the rate (one of `rates`) in which the record counts; `None` without a true answer."""
        return self.rates[not is_truly_positive(probe, answer)] if "truth" in answer.labels else None


class Accuracy(TruthAudit):
    """Largest gap between groups in the share of right answers, 0..1."""

    info = gap_info(
        name="accuracy",
        title="Unequal accuracy",
        question="Are answers about one group wrong more often?",
        formula="|accuracy for group A − accuracy for group B|",
        meaning="0 = equal rates.",
        source=ADULT + "Hardt, Price and Srebro 2016",
    )
    rates = ("right answers",)

    def is_hit(self, probe: CounterfactualProbe, answer: Answer) -> bool:
        """Return whether the answer is right."""
        return bool((answer.content == probe.positive) == is_truly_positive(probe, answer))

    def rate_of(self, probe: CounterfactualProbe, answer: Answer) -> str | None:
        """Return the audit's only rate; `None` if the record's true answer is not known."""
        return self.rates[0] if "truth" in answer.labels else None


def is_truly_positive(probe: CounterfactualProbe, answer: Answer) -> bool:
    """Return whether the record's true answer is the positive answer; `False` if the probe has no `truth`.

    Call this function only for records with a true answer, unless the probe has no `truth`.
    """
    return probe.truth is not None and answer.labels["truth"] == probe.truth.positive
