"""Audits of gaps between groups of records: positive answers, errors, accuracy, and the impact ratio."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from pytest_fairness.audits import info
from pytest_fairness.audits.base import Audit
from pytest_fairness.audits.info import COHEN, AuditInfo, Direction, EffectSize
from pytest_fairness.audits.record_decisions import (
    RATES_APART,
    DecisionSettings,
    Draws,
    GroupAudit,
    RecordAnswers,
    RecordItem,
    by_record,
    known_rates,
    shown_value,
)
from pytest_fairness.audits.rules import SignificantChange
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.counterfactual import FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import Answer, Answers, Comparison, Concern, Contributor, Explanation, Json, Measurement
from pytest_fairness.stats import intervals
from pytest_fairness.stats.resampling import Floats, number_or_none
from pytest_fairness.stats.unit_statistics import Cell, ImpactRatio, log_ratio

# Audits of gaps between groups of records: in positive answers, in error rates and in accuracy.

ADULT = "Wang et al. 2023, “DecodingTrust”, and the fairness criteria of "

gap_info = partial(AuditInfo, better=Direction.LOWER, tolerance=0.05, value_range=(0, 1), worst=1, effect=RATES_APART)
"""Function that creates the description of an audit of gaps between groups' rates."""


class DemographicParity(GroupAudit[DecisionSettings]):
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
        return self.rates[not is_truly_positive(probe, answer)] if "truth" in answer.labels else None


class Accuracy(TruthAudit):
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
        return bool((answer.content == probe.positive) == is_truly_positive(probe, answer))

    def rate_of(self, probe: CounterfactualProbe, answer: Answer) -> str | None:
        return self.rates[0] if "truth" in answer.labels else None


def is_truly_positive(probe: CounterfactualProbe, answer: Answer) -> bool:
    """Return whether the record's true answer, which must be known, is positive; `False` without the key `truth`."""
    return probe.truth is not None and answer.labels["truth"] == probe.truth.positive


# Audit `impact_ratio`: lowest selection rate of a group divided by the highest (four-fifths rule, Local Law 144).

SMALL_SHARE = 0.02
"""A group with a smaller share of the records is left out of the impact ratio, as New York's Local Law 144 allows."""
FEW_SELECTED = 5
"""Reports mark the ratio of a group with fewer selected records as imprecise."""


class ImpactSettings(AuditSettings):
    """Settings of `impact_ratio`: which answers are counted, and which numbers count as selected."""

    needs: ClassVar[str] = "decisions"

    wordings: Literal["own", "all"] = Field(
        default="own",
        description="Which answers are counted. own: answers to the unchanged records, so that the groups are "
        "different people. all: answers to the flipped records as well, so that each group consists of all records.",
    )
    selected: Literal["above", "below"] = Field(
        default="above",
        description="For answers that are numbers: whether numbers above or below the median of all numbers count as "
        "selected.",
    )


@dataclass(frozen=True)
class MedianSplit:
    """Selection of the half of all applicants whose numbers are above, or below, the median of all numbers.

    Numbers that equal the median (`ties`) are selected in part: each counts with the `tied_share`, so that half of all
    numbers are selected. A single number that equals the median is not selected, as in Local Law 144. Without such
    shares, the rates would jump when the median of rounded numbers moves by a step.
    """

    numbers: Floats
    above: bool
    median: float
    ties: int
    tied_share: float

    @classmethod
    def of(cls, numbers: Sequence[float], selected: str) -> Self:
        """Return the selection of numbers `above` or `below` the median; nothing is selected if all are equal."""
        known = np.array(numbers or [np.nan])
        median, above = float(np.median(known)), selected == "above"
        ties = int((known == median).sum())
        beyond = int((known > median).sum() if above else (known < median).sum())
        share = (len(known) / 2 - beyond) / ties if 1 < ties < len(known) else 0.0
        return cls(known, above, median, ties, share)

    def share(self, number: float) -> float:
        if number == self.median:
            return self.tied_share
        return float((number > self.median) == self.above)

    def near(self, numbers: Floats) -> float:
        """Return the share of numbers that are near the median: as near as n ** (2/3) of all n numbers are."""
        distances = np.sort(np.abs(self.numbers - self.median))
        farthest = distances[min(len(distances), math.ceil(len(distances) ** (2 / 3))) - 1]
        return float((np.abs(numbers - self.median) <= farthest).mean()) if len(numbers) else 0.0

    def __str__(self) -> str:
        side = "above" if self.above else "below"
        if not self.tied_share:
            return f"{side} the median of {self.median:g}"
        return f"{side} the median of {self.median:g}, {self.tied_share:.0%} of each of the {self.ties} equal to it"


def _cohens_h_of_ratio(value: float, measurement: Measurement) -> float:
    """Return Cohen's h between the highest rate and `value` times the highest rate."""
    (highest,) = measurement.evidence.effect_basis
    return info.cohens_h_of_shares(highest, highest * value)


class ImpactRatioAudit(GroupAudit[ImpactSettings]):
    """Audit that leaves out, and reports, groups with less than 2 % of the records."""

    info = AuditInfo(
        name="impact_ratio",
        title="Impact ratio of selection rates",
        question="Is one group selected at less than four fifths of the rate of another group?",
        formula="lowest P(positive | group) / highest P(positive | group)",
        meaning="1 = equal shares, 0 = nobody of one group is selected. Four-fifths rule: a ratio below 0.8 is "
        "evidence of adverse impact if the difference is significant. The true answers are not taken into account.",
        source="29 CFR § 1607.4 (D); 6 RCNY § 5-300 ff. (New York’s Local Law 144); Katz, Baptista, Azen and Pike 1978",
        better=Direction.HIGHER,
        tolerance=0.1,
        value_range=(0, 1),
        worst=0,
        charts={"rates": "impact_ratios"},
        effect=EffectSize(
            name="Cohen’s h",
            formula="the rates of the most and of the least selected group",
            of=_cohens_h_of_ratio,
            cutoffs=(0.2, 0.5, 0.8),
            source=COHEN,
            no_effect=1.0,
        ),
    )
    rule = SignificantChange(equal=1.0)
    version = 3
    settings_model = ImpactSettings
    forms = (OWN, FLIPPED)
    rates = ("positive answers",)

    def fingerprint(self, item: RecordItem[ImpactSettings]) -> dict[str, str]:
        side = {} if item.probe.reading.number is None else {"selected": item.settings.selected}
        return {"wordings": item.settings.wordings, **side}

    def uses(self, item: RecordItem[ImpactSettings], labels: Mapping[str, str]) -> bool:
        """Return whether the item needs these answers: if answers are numbers, all own ones, for the median of all."""
        if labels["form"] == OWN and item.probe.reading.number is not None:
            return True
        return (labels["form"] == OWN or item.settings.wordings == "all") and super().uses(item, labels)

    def answers_by_group(self, item: RecordItem[ImpactSettings], answered: RecordAnswers) -> Mapping[str, Draws]:
        own = super().answers_by_group(item, answered)
        if item.settings.wordings == "own":
            return own
        return {
            group: own.get(group, answered.flipped.get(group, {}))
            for group in item.probe.flips[item.labels["attribute"]].values
        }

    def left_out(self, cells: Sequence[Cell]) -> list[str]:
        """Return why groups are not compared, also those with under 2 % of the records."""
        total, few = sum(cell.size for cell in cells), f"less than {SMALL_SHARE:.0%} of the records"
        reasons = zip(cells, super().left_out(cells), strict=True)
        return [few if 0 < cell.size < SMALL_SHARE * total else reason for cell, reason in reasons]

    def unread_worsening(
        self,
        item: RecordItem[ImpactSettings],
        measurement: Measurement,
        shares: Mapping[str, float],
        scale: float,
        *,
        other_side: bool = False,
    ) -> float:
        """Return the fall of the ratio if unread answers select all of the most, none of the least selected group."""
        share = max(shares.values())
        lowered = (1 - share) * measurement.evidence.effect_basis[0]
        return measurement.value * share / (lowered + share)

    def unread_improvement(
        self, item: RecordItem[ImpactSettings], measurement: Measurement, baseline: float, share: float, scale: float
    ) -> float:
        """Return the rise of the baseline's ratio, with the highest rate of this run."""
        lowered = (1 - share) * measurement.evidence.effect_basis[0]
        return min(1 - baseline, share / lowered) if lowered else 1 - baseline

    def statistic(self, columns: int) -> ImpactRatio:
        return ImpactRatio(columns // 2)

    def table(self, item: RecordItem[ImpactSettings], answers: Answers) -> UnitTable:
        """Return the table; a number is selected if it is above (or below) the median, as in Local Law 144.

        The details have the groups' ratios to the highest rate, with Katz's 95 % intervals. The explanation gives the
        interval before the ratio: of groups with equal chances, one has the lowest rate, so that the ratio of a fair
        system is below 1 (0.86 on average for 100 records, half of which are selected).
        """
        split = _split(item, answers)
        table, rates = self.rates_table(item, answers if split is None else _decided(answers, split))
        selected = repr(item.probe.positive) if split is None else str(split)
        compared = [rate for rate in rates if not rate.left_out]
        most = max((rate.cell for rate in compared), key=lambda cell: cell.rate, default=None)
        highest = most.rate if most is not None and most.total_hits else 1.0
        parts: list[dict[str, Json]] = []
        for rate in rates:
            ratio, interval = None, None
            if most is not None and most.total_hits and not rate.left_out:
                ratio = rate.cell.rate / most.rate
                if rate.cell is not most:
                    interval = list(intervals.ratio_interval(*log_ratio(rate.cell, most), intervals.quantile(0.975)))
            parts.append({**rate.to_json(), "ratio": ratio, "ratio_interval": interval})
        notes: list[Concern] = [*table.notes]
        details: dict[str, Json] = {"rates": parts, "wordings": item.settings.wordings, "selected": selected}
        if few := [rate.group for rate in compared if rate.cell.total_hits < FEW_SELECTED]:
            message = f"the ratio is imprecise: fewer than {FEW_SELECTED} selected records in these groups: "
            notes.append(Concern("few_selected", message + ", ".join(few), withholds="nothing"))
        if split is not None and split.tied_share:
            strict, _ = self.rates_table(item, _decided(answers, replace(split, tied_share=0.0)))
            ratio = float(self.statistic(len(table.columns)).value(np.nansum(strict.rows, axis=0)))
            shown = "not defined" if math.isnan(ratio) else f"{ratio:.3g}"
            message = f"if numbers that equal the median count as not selected, the ratio is {shown}"
            notes.append(Concern("tied_numbers", message, withholds="nothing"))
            details["strict_ratio"] = number_or_none(ratio)
        shares = ", ".join(f"{rate.cell.rate:.1%} of {rate.group}" for rate in compared)

        def explain(found: Measurement) -> Explanation:
            low, high = found.interval or (0.0, 1.0)
            ends = (choose(compared, key=lambda rate: rate.cell.rate) for choose in (min, max))
            return Explanation.of(
                f"impact ratio {low:.2g} to {high:.2g} (95 %), estimate {found.value:.3g} ({selected}: {shares})",
                [", ".join(f"{rate.group} {rate.cell.rate:.1%}" for rate in ends)],
                known_rates(rates),
            )

        return replace(
            table,
            step=table.step / highest,
            least_error=table.least_error / highest,
            effect_basis=(highest,),
            explain=explain,
            notes=notes,
            details={**table.details, **details},
        )

    def tables(
        self, item: RecordItem[ImpactSettings], current: Answers, baseline: Answers
    ) -> tuple[UnitTable, UnitTable]:
        """Return the tables of both runs; if answers are numbers, hits contain how a record moves the median.

        A record above the median moves it upwards, so that fewer other records are selected: in each group, as many as
        there are numbers near the median. This changes no rate, because half of all numbers are selected, but the
        errors of rates, which would otherwise take the median for known.
        """
        first, second = super().tables(item, current, baseline)
        return _with_moving_median(item, current, first), _with_moving_median(item, baseline, second)

    def check_table(self, table: UnitTable) -> None:
        """Raise `NotMeasurable` if groups or records are too few, or if no record of a compared group is selected."""
        hits, sizes = np.split(np.nansum(table.rows, axis=0), 2)
        if np.count_nonzero(sizes) >= 2 and not hits.any():
            raise NotMeasurable(
                f"no record is selected (selection: {table.details['selected']}), so that the ratio of the groups is "
                "not defined. Check the answers"
            )
        super().check_table(table)

    def contributors(self, measurement: Measurement, comparison: Comparison | None) -> Sequence[Contributor]:
        return Audit.contributors(self, measurement, comparison)


def _split(item: RecordItem[ImpactSettings], answers: Answers) -> MedianSplit | None:
    if item.probe.reading.number is None:
        return None
    own = [answer.content for answer in answers if answer.usable and answer.labels["form"] == OWN]
    return MedianSplit.of(own, item.settings.selected)


def _decided(answers: Answers, split: MedianSplit) -> Answers:
    """Return the answers with the share that is selected in place of each number."""
    return [replace(each, content=split.share(each.content)) if each.usable else each for each in answers]


def _with_moving_median(item: RecordItem[ImpactSettings], answers: Answers, table: UnitTable) -> UnitTable:
    """Add the influence of each record on the median to its hits; see `ImpactRatioAudit.tables`."""
    split = _split(item, answers)
    if split is None:
        return table
    shown: dict[str, list[float]] = {group: [] for group in table.n}
    for answer in answers:
        group = shown_value(answer, item.labels["attribute"])
        if answer.usable and group in shown:
            shown[group].append(answer.content)
    near = np.array([split.near(np.array(numbers)) for numbers in shown.values()]) / split.near(split.numbers)
    pushes = np.zeros(len(table.units))
    for row, answered in enumerate(by_record(answers).values()):
        own = [split.share(answer.content) for answer in answered.own.values() if answer.usable]
        pushes[row] = np.mean(own) - 0.5 if own else 0.0
    sizes = table.means()[len(near) :]
    rows = table.rows.copy()
    rows[:, : len(near)] -= np.outer(pushes - pushes[table.complete].mean(), sizes * near)
    return replace(table, rows=rows)
