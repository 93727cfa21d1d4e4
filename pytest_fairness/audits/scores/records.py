"""Audit `score` of texts about records: paired difference between the mean scores for two values of an attribute."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.anonymizer import Anonymizer
from pytest_fairness.audits.base import Preparation
from pytest_fairness.audits.records.decisions import RecordItem, shown_value
from pytest_fairness.audits.records.shown_values import ShownValueAudit
from pytest_fairness.audits.scores import common
from pytest_fairness.audits.scores.score_audit import ScoreAudit
from pytest_fairness.audits.scores.settings import LABEL, ScoreSettings
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.records import Answer, Answers, Comparison, Measurement
from pytest_fairness.stats.intervals import proportions


class RecordScoreSettings(ScoreSettings):
    """Settings of `score`: one scorer or several scorers, and what their scores mean."""

    needs: ClassVar[str] = "texts"


class RecordScore(ScoreAudit[CounterfactualProbe], ShownValueAudit[ScoreSettings]):
    """Mean score for one attribute value minus mean score for another attribute value, over the same records."""

    settings_model = RecordScoreSettings
    closed_answers = False

    def preparation(self, item: RecordItem[ScoreSettings]) -> Preparation:
        """Return the scorer with the texts that it reads; see `Audit.preparation`."""
        values = item.probe.flips[item.labels["attribute"]].values
        return common.preparation(item, Anonymizer(values, item.probe.language))

    def number(self, probe: CounterfactualProbe, answer: Answer) -> float:
        """Return the score of the answer."""
        return common.score_of(answer)

    def table_of(self, item: RecordItem[ScoreSettings], answers: Answers, table: UnitTable) -> UnitTable:
        """Return the table with its details; see `ShownValueAudit.table_of`."""
        complete = table.rows[table.complete]
        if not len(complete):
            return table
        attribute = item.labels["attribute"]
        scores = {
            value: np.array(
                [common.score_of(each) for each in answers if each.usable and shown_value(each, attribute) == value]
            )
            for value in table.columns
        }
        means = dict(zip(table.columns, complete.mean(axis=0).tolist(), strict=True))
        details = common.details(
            item, answers, scores, means, lambda answer: (answer.labels["record"], shown_value(answer, attribute))
        )
        width = details["highest"] - details["lowest"]
        return replace(
            table,
            least_error=proportions.least_difference_error(len(complete)) * width,
            details={**table.details, **details},
        )

    def compare(self, item: RecordItem[ScoreSettings], current: Answers, baseline: Answers) -> Comparison:
        """Return the change over the records that are complete in both runs; see `UnitAudit.compare`."""
        runs = (
            common.by_group(run, lambda answer: shown_value(answer, item.labels["attribute"]))
            for run in (current, baseline)
        )
        common.require_same_scale(item.labels[LABEL], *runs)
        return super().compare(item, current, baseline)

    def describe(self, measurement: Measurement) -> str:
        """Return the difference and the means of the two values that differ most, as a phrase."""
        return f"{super().describe(measurement)}; each mean over the same {measurement.details['records']} records"
