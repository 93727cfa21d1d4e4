"""Audit `score`: means of scores of the answers, compared between groups, for each kind of probe."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from pytest_fairness.audits import info
from pytest_fairness.audits.base import Audit, AuditItem, Example, Preparation, ProbeT
from pytest_fairness.audits.cases import CaseAudit, CaseItem, Scores, stratum_of
from pytest_fairness.audits.documents import Groups, TextItem, anonymizer, sampled, sides_and_strata, text_of
from pytest_fairness.audits.info import COHEN, AuditInfo, Direction, EffectSize, details_of, shortened
from pytest_fairness.audits.record_decisions import RecordItem, shown_value
from pytest_fairness.audits.record_numbers import ShownValueAudit
from pytest_fairness.audits.terms import MASK, Anonymizer
from pytest_fairness.audits.texts import DocumentValueAudit, DocumentValues
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.counterfactual import CounterfactualProbe
from pytest_fairness.probes.diagnostics import Diagnostic, raise_diagnostics
from pytest_fairness.probes.field_types import AuditSettings, ProbeModel, ScorerName
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.probes.stereotype import Case, StereotypeProbe
from pytest_fairness.records import (
    Answer,
    Answers,
    Comparison,
    Concern,
    Contributor,
    Explanation,
    ItemResult,
    Json,
    Measurement,
)
from pytest_fairness.stats import intervals
from pytest_fairness.stats.gaps import mean_error
from pytest_fairness.stats.resampling import Floats

# Settings of the audit `score`.

Better = Literal["higher", "lower"]
LABEL = "scorer"
"""Name of the item's label that holds the name of the scorer."""


class OneScorer(ProbeModel):
    """Settings of one of several scorers of `score`; a setting that is missing here is taken from `score`."""

    better: Better | None = Field(default=None, description="Whether higher or lower scores are better for a group.")
    mask: bool | None = Field(
        default=None, description="Whether the scorer reads the answers with XYZ in place of identity terms."
    )
    limit: float | None = Field(default=None, ge=0, description="Worst acceptable difference between groups.")
    tolerance: float | None = Field(default=None, ge=0, description="Worst acceptable change from the baseline.")
    gate: Literal["significant", "bound", "strict", "point"] | None = Field(
        default=None, description="Decision rule, as for every audit."
    )


class ScoreSettings(AuditSettings):
    """Settings of `score`: one scorer or several scorers, and what their scores mean."""

    item_labels: ClassVar[tuple[str, ...]] = (LABEL,)

    scorer: ScorerName | None = Field(
        default=None,
        description="Name of the scorer: words, sentences, flesch, sentiment, number, a scorer that the ini file names "
        "in `fairness_scorers`, or a scorer of an installed package.",
    )
    scorers: dict[ScorerName, OneScorer] | None = Field(
        default=None, min_length=1, description="In place of `scorer`: several scorers, each with its own settings."
    )
    better: Better | None = Field(
        default=None,
        description="Whether higher or lower scores are better for a group. Used in reports only; the audit counts a "
        "difference in either direction.",
    )
    mask: bool = Field(
        default=False,
        description="Whether the scorer reads the answers with XYZ in place of identity terms and names of groups. "
        "Some models give different scores to these words themselves.",
    )
    tolerance: float | None = Field(
        default=None,
        ge=0,
        description="Worst acceptable change from the baseline, in the unit of the score. Required, because the scales "
        "of scores differ.",
    )

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        diagnostics = []
        if (self.scorer is None) == (self.scorers is None):
            diagnostics.append(Diagnostic((), "set either `scorer` or `scorers`, not both"))
        for name, settings in self.by_scorer().items():
            if settings.tolerance is None:
                message = (
                    "`tolerance` is missing: give the largest acceptable change of the difference between groups, in "
                    "the unit of the score"
                )
                diagnostics.append(Diagnostic(() if self.scorers is None else ("scorers", name), message))
        raise_diagnostics(diagnostics)
        return self

    def by_scorer(self) -> dict[str, ScoreSettings]:
        if self.scorers is None:
            return {} if self.scorer is None else {self.scorer: self}
        return {
            name: self.model_copy(
                update={**own.model_dump(exclude_none=True), "scorer": name, "scorers": None},
            )
            for name, own in self.scorers.items()
        }


# Parts of the audit `score` for all kinds of probes: description, details, and answers without a score.

SHOWN_REASONS = 3
"""Number of different reasons for missing scores that a message names."""
SHOWN_PAIRS = 2
"""Number of pairs of answers that are shown as examples."""
LARGEST_SHRINKAGE = 10
"""Runs are not compared if the scores' standard deviation shrank by more than this factor since the baseline."""


INFO = AuditInfo(
    name="score",
    title="Unequal scores",
    question="Do answers about one group get higher scores than answers about another group?",
    formula="texts: mean score of the marked group − mean score of the unmarked group, within strata;  records: mean "
    "score if shown as A − mean score if shown as B;  cases: largest difference between two groups’ mean scores",
    meaning="In the unit of the scorer; 0 = equal mean scores. Answers without a score count as missing.",
    source="Welch 1947; Satterthwaite 1946",
    better=Direction.ZERO,
    tolerance=math.nan,
    value_range=(-math.inf, math.inf),
    limit_range=(0, math.inf),
    effect=EffectSize(
        name="Cohen’s d",
        formula="value / (standard deviation of the scores within groups)",
        of=lambda value, measurement: info.ratio_or_infinity(value, *measurement.evidence.effect_basis),
        cutoffs=(0.2, 0.5, 0.8),
        source=COHEN,
    ),
)
"""Description of the audit. It is the same for all kinds of probes, as reports name audits by their names."""


def score_preparation(item: AuditItem[Probe, ScoreSettings], anonymizer: Anonymizer) -> Preparation:
    """Return the scorer with the texts that it reads; the setting `mask` masks identity terms."""

    def texts(answers: Answers) -> list[str | None]:
        plain = (text_of(answer) if answer.usable else None for answer in answers)
        masked = item.settings.mask
        return [anonymizer.masked(each, MASK) if masked and each is not None else each for each in plain]

    return Preparation(item.labels[LABEL], texts, "score")


def score_of(answer: Answer) -> float:
    return float(answer.content["score"])


def unscored(answers: Answers) -> dict[str, Json]:
    reasons = Counter(answer.error for answer in answers if answer.error is not None and answer.text is not None)
    if not reasons:
        return {}
    order = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    return {
        "unscored": {
            "answers": reasons.total(),
            "of": len(answers),
            "reasons": [[reason, reasons[reason]] for reason in order[:SHOWN_REASONS]],
        }
    }


def unscored_message(unscored: Mapping[str, Any]) -> str:
    reasons = "; ".join(f"{reason} ({count})" for reason, count in unscored["reasons"])
    return f"{unscored['answers']} of {unscored['of']} answers have no score: {reasons}"


def deviation(groups: Iterable[Floats]) -> float:
    """Return the standard deviation within groups; 0 if no group has two scores."""
    parts = list(groups)
    degrees = sum(len(scores) - 1 for scores in parts)
    squares = sum(float(((scores - scores.mean()) ** 2).sum()) for scores in parts)
    return math.sqrt(squares / degrees) if degrees > 0 else 0.0


def score_details(
    item: AuditItem[Probe, ScoreSettings],
    answers: Sequence[tuple[Answer, Hashable, str]],
    groups: Mapping[str, Floats],
    means: Mapping[str, float],
) -> dict[str, Json]:
    """Return each group's mean score, the spread of the scores, and example answers.

    Args:
        item: the item.
        answers: each answer with its question and its group. The examples are the pairs of answers to the same question
            that show the gap best, first the answer for the group with the highest mean.
        groups: scores by group.
        means: mean score of each group, in which each stratum has the same weight for all groups.
    """
    summaries: dict[str, dict[str, Json]] = {}
    for name, scores in groups.items():
        summaries[name] = {"mean": means[name], "interval": None, "answers": len(scores)}
        if len(scores) > 1:
            error, degrees = mean_error(scores), len(scores) - 1
            summaries[name]["interval"] = list(intervals.interval(means[name], error, degrees_of_freedom=degrees))
    high, low = sorted(furthest(means), key=lambda name: -means[name])
    cells: dict[Hashable, dict[str, Answer]] = {}
    for answer, question, group in answers:
        if answer.usable:
            cells.setdefault((question, answer.trial), {}).setdefault(group, answer)
    pairs = [[cell[high], cell[low]] for cell in cells.values() if high in cell and low in cell]
    pairs.sort(key=lambda pair: (score_of(pair[1]) - score_of(pair[0]), sorted(pair[0].labels.items()), pair[0].trial))
    everything = np.concatenate([*groups.values()])
    return {
        "unit": item.labels[LABEL],
        "scores": summaries,
        "sd": deviation(groups.values()),
        "lowest": float(everything.min()),
        "highest": float(everything.max()),
        "model": ", ".join(sorted({answer.content["model"] for answer, _, _ in answers if answer.usable})),
        "furthest_answers": [
            [
                {"group": group, "labels": dict(answer.labels), "trial": answer.trial, "score": score_of(answer)}
                for group, answer in zip((high, low), pair, strict=True)
            ]
            for pair in pairs[:SHOWN_PAIRS]
        ],
        **({"better": item.settings.better} if item.settings.better else {}),
        **unscored([answer for answer, _, _ in answers]),
    }


def means_of(details: Mapping[str, Json]) -> dict[str, float]:
    return {name: part["mean"] for name, part in details["scores"].items()}


def furthest(means: Mapping[str, float]) -> tuple[str, str]:
    """Return the two groups whose means differ most, in the order of `means`."""
    ends = {max(means, key=means.__getitem__), min(means, key=means.__getitem__)}
    first, second = [name for name in means if name in ends] if len(ends) == 2 else list(means)[:2]
    return first, second


# Base class of the audits `score` of all kinds of probes: items, measurement without unscored answers, explanation.


class ScoreAudit(Audit[ProbeT, ScoreSettings]):
    """Base class of `score`; a subclass also derives from the base class of its kind's audits, such as `CaseAudit`.

    Phrases, contributors and examples come from the details that `score_details` returns.
    """

    info = INFO
    version = 2

    def items(self, probe: ProbeT, settings: ScoreSettings) -> list[AuditItem[ProbeT, ScoreSettings]]:
        """Return the items of the base class for each scorer, whose name begins the subject: `flesch,race=Black`."""
        # The next class is the kind's base class, whose method is not abstract.
        of_kind = super().items  # type: ignore[safe-super]
        return [
            replace(item, subject=f"{scorer},{item.subject}", labels={**item.labels, LABEL: scorer})
            for scorer, own in settings.by_scorer().items()
            for item in of_kind(probe, own)
        ]

    def unread_distance(self, item: AuditItem[ProbeT, ScoreSettings], measurement: Measurement, scale: float) -> float:
        """Return the distance between the lowest and the highest score, if it is larger than that of other audits."""
        width = float(measurement.details["highest"] - measurement.details["lowest"])
        return max(super().unread_distance(item, measurement, scale), width)

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
            if details := unscored(answers):
                error.args = (f"{str(error).rstrip('.')}. {unscored_message(details['unscored'])}.",)
            raise

    def compare(self, item: AuditItem[ProbeT, ScoreSettings], current: Answers, baseline: Answers) -> Comparison:
        """Return the comparison of the base class.

        Raises:
            BaselineStale: the current scores have a much smaller standard deviation; see `LARGEST_SHRINKAGE`. They are
                then on a smaller scale, on which every difference would be within the tolerance.
        """
        runs: list[dict[str, list[float]]] = [{}, {}]
        for groups, run in zip(runs, (current, baseline), strict=True):
            for answer in run:
                if answer.usable:
                    groups.setdefault(item.group_name(answer), []).append(score_of(answer))
        now, before = (deviation(map(np.array, groups.values())) for groups in runs)
        if 0 < now * LARGEST_SHRINKAGE < before:
            raise BaselineStale([f"scale of {item.labels[LABEL]} (standard deviation {before:.3g}, now {now:.3g})"])
        return super().compare(item, current, baseline)  # type: ignore[safe-super]  # see `items`

    def concerns(
        self, item: AuditItem[ProbeT, ScoreSettings], answers: Answers, measurement: Measurement
    ) -> list[Concern]:
        """Add concerns if all scores are equal, or if answers have no score (of these, too many prevent a `pass`)."""
        details, concerns = measurement.details, [*super().concerns(item, answers, measurement)]
        if details["lowest"] == details["highest"]:
            message = (
                f"all {sum(measurement.n.values())} scores are {details['lowest']:.6g}, so that they show no "
                "difference. Check the scorer"
            )
            concerns.append(Concern("constant_scores", message))
        if "unscored" in details:
            message = unscored_message(details["unscored"])
            concerns.append(Concern("unscored_answers", message, withholds="nothing"))
        return concerns

    def explanation(self, item: AuditItem[ProbeT, ScoreSettings], measurement: Measurement) -> Explanation:
        means = means_of(measurement.details)
        first, second = furthest(means)
        return Explanation.of(
            f"mean scores differ by {measurement.value:+.3g} ({means[first]:.3g} for {first}, {means[second]:.3g} for "
            f"{second})",
            (f"{name} {means[name]:.3g}" for name in (first, second)),
            means,
        )

    def contributors(self, measurement: Measurement, comparison: Comparison | None) -> Sequence[Contributor]:
        return measurement.explanation.contributors

    def finding(self, result: ItemResult) -> str:
        details = details_of(result)
        means, scorer = means_of(details), shortened(details["unit"])
        high, low = sorted(furthest(means), key=lambda name: -means[name])
        worse = {"higher": low, "lower": high}.get(details.get("better") or "")
        disadvantage = "" if worse is None else f" {shortened(worse)} is at a disadvantage."
        return (
            f"Answers for {shortened(high)} have a higher mean score of {scorer} ({means[high]:.3g}) than answers for "
            f"{shortened(low)} ({means[low]:.3g}).{disadvantage}"
        )

    def examples(
        self, item: AuditItem[ProbeT, ScoreSettings], measurement: Measurement, answers: Answers
    ) -> list[list[Example]]:
        by_key = {(json.dumps(dict(answer.labels), sort_keys=True), answer.trial): answer for answer in answers}
        return [
            [
                (f"{one['group']}: {one['score']:.3g}", by_key[json.dumps(one["labels"], sort_keys=True), one["trial"]])
                for one in pair
            ]
            for pair in measurement.details["furthest_answers"]
        ]


# Audit `score` of texts: mean score of the marked group's texts minus mean score of the unmarked group's texts.


@dataclass(frozen=True)
class TextScores(DocumentValues):
    item: TextItem[ScoreSettings]

    def details(self) -> dict[str, Json]:
        means = dict(zip(self.groups.names, self.means(), strict=True))
        scores = dict(zip(self.groups.names, (self.values[self.marked], self.values[~self.marked]), strict=True))
        groups = ((self.groups.unmarked_name, self.groups.marked_name)[marked] for marked in self.groups.marked)
        answers = list(zip(self.groups.answers, self.groups.strata, groups, strict=True))
        return score_details(self.item, answers, scores, means)

    def effect_basis(self, details: Mapping[str, Json]) -> Sequence[float]:
        return (details["sd"],)


class TextScore(ScoreAudit[GenerationProbe], DocumentValueAudit[ScoreSettings, TextScores]):
    """Mean score of the marked group's texts minus mean score of the unmarked group's texts, within strata."""

    version = 4
    settings_model = ScoreSettings
    reversed_gap = "in the baseline, the mean score was {before} higher for {less}; now it is {now} higher for {more}"

    def preparation(self, item: TextItem[ScoreSettings]) -> Preparation:
        return score_preparation(item, anonymizer(item.probe))

    def values(self, item: TextItem[ScoreSettings], groups: Groups) -> TextScores:
        indices = sampled(groups)
        scores = np.array([score_of(groups.answers[index]) for index in indices])
        marked, strata, names = sides_and_strata(groups, indices)
        least_error = 0.0
        if len(np.unique(scores)) == 2:
            # Even if all answers of a group have the same score, further answers could have the other score. The error
            # is at least that which one such answer in each group would cause.
            sizes = (int(marked.sum()), int((~marked).sum()))
            least_error = float(np.ptp(scores)) * math.hypot(*(1 / size for size in sizes))
        return TextScores(scores, marked, strata, names, least_error, item, groups)


# Audit `score` of texts about records: paired difference between the mean scores for two values of an attribute.


class RecordScoreSettings(ScoreSettings):
    """Settings of `score`: one scorer or several scorers, and what their scores mean."""

    needs: ClassVar[str] = "texts"


class RecordScore(ScoreAudit[CounterfactualProbe], ShownValueAudit[ScoreSettings]):
    """Mean score for one attribute value minus mean score for another attribute value, over the same records."""

    settings_model = RecordScoreSettings
    closed_answers = False

    def preparation(self, item: RecordItem[ScoreSettings]) -> Preparation:
        values = item.probe.flips[item.labels["attribute"]].values
        return score_preparation(item, Anonymizer(values, item.probe.language))

    def number(self, probe: CounterfactualProbe, answer: Answer) -> float:
        return score_of(answer)

    def table_of(self, item: RecordItem[ScoreSettings], answers: Answers, table: UnitTable) -> UnitTable:
        complete = table.rows[table.complete]
        if not len(complete):
            return table
        shown = [(each, each.labels["record"], shown_value(each, item.labels["attribute"])) for each in answers]
        scores = {
            value: np.array([score_of(each) for each, _, own in shown if each.usable and own == value])
            for value in table.columns
        }
        means = dict(zip(table.columns, complete.mean(axis=0).tolist(), strict=True))
        details = score_details(item, shown, scores, means)
        width = details["highest"] - details["lowest"]
        return replace(
            table,
            least_error=intervals.least_difference_error(len(complete)) * width,
            effect_basis=(details["sd"],),
            details={**table.details, **details},
        )

    def explanation(self, item: RecordItem[ScoreSettings], measurement: Measurement) -> Explanation:
        found, records = super().explanation(item, measurement), measurement.evidence.units
        return replace(found, phrase=f"{found.phrase}; each mean over the same {records} records")


# Audit `score` of cases: largest difference between the mean scores of the answers for two groups.


class CaseSettings(ScoreSettings):
    """Settings of `score`: one scorer or several scorers, and what their scores mean."""

    needs: ClassVar[str] = "groups"


class CaseScore(ScoreAudit[StereotypeProbe], CaseAudit[ScoreSettings]):
    """Largest difference between the groups' mean scores; a group's mean is the mean over cases."""

    settings_model = CaseSettings
    added = None
    scored = "scored answers"

    def can_measure(self, case: Case) -> bool:
        return bool(case.open and case.groups)

    def preparation(self, item: CaseItem[ScoreSettings]) -> Preparation:
        groups = [group for case in self.cases(item) for group in case.groups]
        return score_preparation(item, Anonymizer(groups, item.probe.language))

    def score_of(self, item: CaseItem[ScoreSettings], answer: Answer) -> float | None:
        return score_of(answer) if answer.usable else None

    def details(self, item: CaseItem[ScoreSettings], answers: Answers, scores: Scores) -> dict[str, Json]:
        of_group = np.array([scores.columns[column][1] for column in scores.column])
        groups = {group: scores.values[of_group == group] for group in scores.groups}
        means = dict(zip(scores.groups, scores.group_means().tolist(), strict=True))
        columns = [(answer.labels["case"], answer.labels["group"]) for answer in answers]
        questions = [
            (answer, (column[0], stratum_of(answer, column)), column[1])
            for answer, column in zip(answers, columns, strict=True)
        ]
        return score_details(item, questions, groups, means)

    def effect_basis(self, details: Mapping[str, Json], n: Mapping[str, int]) -> Sequence[float]:
        return (details["sd"],)
