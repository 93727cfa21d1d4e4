"""Base class of the audits `score` of all kinds of probes: items, measurement without unscored answers, explanation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from pytest_fairness.audits.base import Audit, AuditItem, Example, ProbeT
from pytest_fairness.audits.findings import Finding, details_of, shortened
from pytest_fairness.audits.scores import common
from pytest_fairness.audits.scores.common import furthest, means_of
from pytest_fairness.audits.scores.settings import LABEL, ScoreSettings
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answers, Comparison, Concern, ItemResult, Measurement


class ScoreAudit(Audit[ProbeT, ScoreSettings]):
    """Base class of `score`; a subclass also derives from the base class of its kind's audits, such as `CaseAudit`.

    Phrases, contributors and examples come from the details that `common.details` returns.
    """

    info = common.INFO
    version = 2

    def items(self, probe: ProbeT, settings: ScoreSettings) -> list[AuditItem[ProbeT, ScoreSettings]]:
        """Return the items of the kind's base class, once for each scorer.

        An item's subject begins with the scorer's name, as in `flesch,race=Black`.
        """
        # The next class is the kind's base class, whose method is not abstract.
        of_kind = super().items  # type: ignore[safe-super]
        return [
            replace(item, subject=f"{scorer},{item.subject}", labels={**item.labels, LABEL: scorer})
            for scorer, own in settings.by_scorer().items()
            for item in of_kind(probe, own)
        ]

    def tells_side(self, measurement: Measurement) -> bool | None:
        """Return whether there are only two groups: of more, the sign does not say which two."""
        return len(measurement.n) <= 2

    def fingerprint(self, item: AuditItem[ProbeT, ScoreSettings]) -> dict[str, str]:
        """Return whether identity terms are masked; the run adds the identity of the scorer."""
        return {"mask": str(item.settings.mask)}

    def measure(self, item: AuditItem[ProbeT, ScoreSettings], answers: Answers) -> Measurement:
        """Return the measurement; the message of `NotMeasurable` also states how many answers have no score."""
        try:
            return super().measure(item, answers)  # type: ignore[safe-super]  # see `items`
        except NotMeasurable as error:
            if details := common.unscored(answers):
                error.args = (f"{str(error).rstrip('.')}. {common.unscored_message(details['unscored'])}.",)
            raise

    def concerns(
        self, item: AuditItem[ProbeT, ScoreSettings], answers: Answers, measurement: Measurement
    ) -> list[Concern]:
        """Return the concerns of the kind's audits, and concerns if all scores are equal, or if answers have no score.

        Answers without a score are also missing answers, of which too many prevent a `pass`.
        """
        details, concerns = measurement.details, [*super().concerns(item, answers, measurement)]
        if details["lowest"] == details["highest"]:
            message = (
                f"all {sum(measurement.n.values())} scores are {details['lowest']:.6g}, so that they show no "
                "difference. Check the scorer"
            )
            concerns.append(Concern("constant_scores", message))
        if "unscored" in details:
            message = common.unscored_message(details["unscored"])
            concerns.append(Concern("unscored_answers", message, withholds="nothing"))
        return concerns

    def describe(self, measurement: Measurement) -> str:
        """Return the value and the mean scores of the two groups that differ most, as a phrase."""
        means = means_of(measurement.details)
        first, second = furthest(means)
        return (
            f"mean scores differ by {measurement.value:+.3g} ({means[first]:.3g} for {first}, {means[second]:.3g} for "
            f"{second})"
        )

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the mean score of each group."""
        return means_of(measurement.details)

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the two groups whose mean scores differ most, each with its mean score."""
        means = means_of(measurement.details)
        return [f"{name} {means[name]:.3g}" for name in furthest(means)]

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that states the mean scores of the two groups that differ most."""
        details = details_of(result)
        means, scorer = means_of(details), shortened(details["unit"])
        high, low = sorted(furthest(means), key=lambda name: -means[name])
        worse = {"higher": low, "lower": high}.get(details.get("better") or "")
        disadvantage = "" if worse is None else f" {shortened(worse)} is at a disadvantage."
        return Finding(
            f"Answers for {shortened(high)} have a higher mean score of {scorer} ({means[high]:.3g}) than answers for "
            f"{shortened(low)} ({means[low]:.3g}).{disadvantage}",
            "Answer everybody in the same way: with the same tone, length and quality, whoever asks or is spoken of.",
        )

    def examples(
        self, item: AuditItem[ProbeT, ScoreSettings], measurement: Measurement, answers: Answers
    ) -> list[list[Example]]:
        """Return the pairs of answers of the detail `furthest_answers`, each answer with its group and score."""
        by_key = {(json.dumps(dict(answer.labels), sort_keys=True), answer.trial): answer for answer in answers}
        return [
            [
                (f"{one['group']}: {one['score']:.3g}", by_key[json.dumps(one["labels"], sort_keys=True), one["trial"]])
                for one in pair
            ]
            for pair in measurement.details["furthest_answers"]
        ]
