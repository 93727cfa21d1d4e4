"""Base class of audits that score each answer about a case.

The cases are fixed; standard errors are taken over answers. Two cases that name each other as `opposite` are measured
together.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

from pytest_fairness.audits.answer_checks import repeats
from pytest_fairness.audits.base import Audit, AuditItem, SettingsT
from pytest_fairness.audits.decision_rules import SignificantChange
from pytest_fairness.audits.stereotypes.score_changes import PooledScores, gap_change, mean_change
from pytest_fairness.audits.stereotypes.score_estimates import gap_estimate, mean_estimate
from pytest_fairness.audits.stereotypes.scored_answers import (
    MINIMUM_RESPONSES,
    ScoredAnswers,
    sorted_answers,
    stratum_of,
)
from pytest_fairness.audits.stereotypes.scores import Column, Score, Scores
from pytest_fairness.audits.unit_audit import INCOMPLETE_SHARE, clusters_of, shortened_list
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes.stereotype.cases import Case
from pytest_fairness.probes.stereotype.model import StereotypeProbe
from pytest_fairness.records import Answer, Answers, Comparison, Concern, Json, Measurement

CaseItem = AuditItem[StereotypeProbe, SettingsT]
"""An item of an audit of cases."""


class MeasuredCases(NamedTuple):
    """An item's scored answers, the scores of its complete cases, and the names of its incomplete cases."""

    answers: ScoredAnswers
    scores: Scores
    left_out: list[str]


class CaseAudit(Audit[StereotypeProbe, SettingsT]):
    """Base class of audits that score texts about cases.

    There is one item for each case or pair of opposite cases, and one for each category.

    Class attributes:
        added: how many zeros, and equally many ones, are added to a case's scores for the standard error of their
            mean; see `mean_errors.shrunken_mean_and_error`. `None` for scores without bounds: nothing is added.
        neutral: mean score of a model without preference; `None` if there is no such score.
        scored: phrase for the answers that have a score, for messages.
    """

    kind = "stereotype"
    rule = SignificantChange()
    compares_sides = True
    added: ClassVar[float | None] = 1.0
    neutral: ClassVar[float | None] = None
    scored: ClassVar[str] = "usable answers"

    @abstractmethod
    def can_measure(self, case: Case) -> bool:
        """Return whether the audit can measure a case."""

    @abstractmethod
    def score_of(self, item: CaseItem[SettingsT], answer: Answer) -> float | None:
        """Return an answer's score; NaN if a usable answer has no score, `None` if the answer is missing."""

    @abstractmethod
    def details(self, item: CaseItem[SettingsT], answers: Answers, scores: Scores) -> dict[str, Json]:
        """Return details of the measurement for reports; `answers` are sorted by labels, trial and text."""

    def compared_groups(self, item: CaseItem[SettingsT]) -> tuple[str, ...]:
        """Return the groups whose scores are compared; empty if all answers about a case are one sample."""
        return ()

    def unread_shares(
        self, measurement: Measurement, n: Mapping[str, int], missing: Mapping[str, int]
    ) -> dict[str, float]:
        """Return the share of each group or, if no groups are compared, the mean share of the cases."""
        shares = super().unread_shares(measurement, n, missing)
        if "groups" in measurement.details or not shares:
            return shares
        return {"cases": sum(shares.values()) / len(shares)}

    def remedy(self, item: CaseItem[SettingsT], answers: Answers) -> str:
        """Return advice for too few scored answers, as part of a message."""
        return "raise `trials` or add rows"

    def cases(self, item: CaseItem[SettingsT]) -> list[Case]:
        """Return the item's cases that the audit can measure."""
        return [case for case in item.probe.cases_of(item.labels) if self.can_measure(case)]

    def items(self, probe: StereotypeProbe, settings: SettingsT) -> list[CaseItem[SettingsT]]:
        """Return one item for each case or pair of opposites, in the probe's order, then one for each category."""
        fitting = {case.name: case for case in probe.cases if self.can_measure(case)}
        subjects: dict[str, dict[str, str]] = {}
        for case in fitting.values():
            names = sorted({case.name, case.opposite} & fitting.keys() if case.opposite else {case.name})
            categories = {fitting[name].category for name in names}
            category = next(iter(categories)) if len(categories) == 1 else None
            subject = "/".join(names)
            subjects[subject] = {"case": subject} | ({} if category is None else {"category": category})
        for name in dict.fromkeys(case.category for case in fitting.values() if case.category is not None):
            subjects[f"category={name}"] = {"category": name}
        return [AuditItem(probe, self.info.name, subject, labels, settings) for subject, labels in subjects.items()]

    def uses(self, item: CaseItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to one of the item's cases, and to a group of this case."""
        case = item.probe.by_name.get(labels.get("case", ""))
        if case is None or not self.can_measure(case):
            return False
        if case.name not in {own.name for own in item.probe.cases_of(item.labels)}:
            return False
        return labels["group"] in case.groups if case.groups else "group" not in labels

    def _scored_answers(self, item: CaseItem[SettingsT], answers: Answers) -> ScoredAnswers:
        groups = self.compared_groups(item)
        sampled = bool(item.probe.sampling.temperature)
        scores = []
        names = groups or [case.name for case in self.cases(item)]
        n, missing = Counter(dict.fromkeys(names, 0)), Counter(dict.fromkeys(names, 0))
        for answer in answers:
            case, group = answer.labels["case"], answer.labels.get("group", "")
            value = self.score_of(item, answer)
            (missing if value is None else n)[group if groups else case] += 1
            if value is not None and not math.isnan(value):
                text = answer.text or ""
                column: Column = (case, group if groups else "")
                # Short sampled answers may be equal by chance. Equal answers that are long, or not sampled, are
                # repetitions.
                repeated = not sampled or len(text.split()) > repeats.SHORT_ANSWER
                scores.append(Score(column, stratum_of(answer, column), value, text, repeated))
        scored = Counter(score.column for score in scores)
        return ScoredAnswers(Scores.of(scores), scored, dict(n), dict(missing), groups)

    def _measured_cases(self, item: CaseItem[SettingsT], answers: Answers) -> MeasuredCases:
        """Return the item's scored answers, and the scores of its complete cases.

        Raises:
            NotMeasurable: too few answers have a score.
        """
        scored = self._scored_answers(item, answers)
        cases = self.cases(item)
        complete = scored.complete_cases(cases)
        if few := scored.with_too_few_answers(item.labels, cases, complete):
            have = ", ".join(f"{count} for {name}" for name, count in few.items())
            raise NotMeasurable(
                f"too few {self.scored}: {have}; at least {MINIMUM_RESPONSES} are needed"
                f"{' for each' if len(few) > 1 else ''}; {self.remedy(item, answers)}"
            )
        left_out = [case.name for case in cases if case.name not in complete]
        return MeasuredCases(scored, scored.scores.of_cases(complete), left_out)

    def score(self, item: CaseItem[SettingsT], answers: Answers) -> float:
        """Return the mean of the cases' mean scores or, if groups are compared, the largest gap; see `Audit.score`."""
        scored = self._scored_answers(item, answers)
        scores = scored.scores
        if not scores.columns or (scored.groups and len(scores.columns) < len(scores.cases) * len(scored.groups)):
            raise NotMeasurable(f"a case or group has no {self.scored}")
        return float(scores.gap(scores.means()) if scored.groups else scores.means().mean())

    def measure(self, item: CaseItem[SettingsT], answers: Answers) -> Measurement:
        """Return the mean of the cases' mean scores, or the largest gap if groups are compared; see `Audit.measure`."""
        answers = sorted_answers(answers)
        scored, scores, left_out = self._measured_cases(item, answers)
        estimate = (
            gap_estimate(scores, self.added, item.alpha, item.beta, item.seed)
            if scored.groups or self.added is None
            else mean_estimate(scores, self.added, self.neutral)
        )
        return Measurement(
            value=estimate.value,
            interval=estimate.interval,
            standard_error=estimate.standard_error,
            p_value=estimate.p_value,
            n=scored.n,
            missing=scored.missing,
            details={
                **estimate.details,
                "cases": list(scores.cases),
                "left_out": left_out,
                **self.details(item, answers, scores),
            },
        )

    def concerns(self, item: CaseItem[SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return concerns if answers are repeated, or if many cases have too few answers for a group."""
        cells: dict[str, list[str]] = {}
        for answer in answers:
            if answer.usable:
                cells.setdefault(repr(sorted(answer.labels.items())), []).append(answer.text or "")
        concerns = []
        if clusters_of(lambda answer: answer.labels["case"], item.probe, [answers]):
            message = (
                "cases with equal prompts share their answers, which the test counts as independent. Give each case "
                "its own prompt, or ask at a temperature above 0"
            )
            concerns.append(Concern("shared_answers", message, withholds="test"))
        if len(cells) < repeats.MINIMUM_OBSERVATIONS and repeats.repeats(
            cells.values(), item.probe.sampling.temperature
        ):
            concerns.append(repeats.concern_of(len(cells), sum(map(len, cells.values())), enough=False))
        left_out, cases = measurement.details["left_out"], measurement.details["cases"]
        if "groups" in measurement.details and len(left_out) > INCOMPLETE_SHARE * (len(left_out) + len(cases)):
            message = (
                f"{len(left_out)} of {len(left_out) + len(cases)} cases were left out, because they have too few "
                f"answers for one of the groups: {shortened_list(left_out)}. Raise `trials`, or add rows"
            )
            concerns.append(Concern("incomplete_units", message))
        return concerns

    def compare(self, item: CaseItem[SettingsT], current: Answers, baseline: Answers) -> Comparison:
        """Return the change over the cases that are complete in both runs.

        The p-value comes from a random exchange of scores between the runs.
        """
        if clusters_of(lambda answer: answer.labels["case"], item.probe, [baseline]):
            raise BaselineStale(["answers to equal prompts, which several cases of the baseline share"])
        current_cases, baseline_cases = (self._measured_cases(item, sorted_answers(run)) for run in (current, baseline))
        shared = [case for case in current_cases.scores.cases if case in baseline_cases.scores.cases]
        if not shared:
            raise NotMeasurable(
                "no case has enough scored answers both in this run and in the baseline. Raise `trials`, or rebaseline"
            )
        runs = PooledScores.of(current_cases.scores.of_cases(shared), baseline_cases.scores.of_cases(shared))
        change = (gap_change if current_cases.answers.groups else mean_change)(runs, self.added, item.seed)
        return replace(change, details={"compared_cases": shared, **change.details})

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return at most three groups or cases whose mean scores became worse; empty if the audit's value did not.

        If the value became worse but no mean did, return those whose means changed most.
        """
        if comparison is not None and comparison.value > 0 and (moved := comparison.details.get("moved")):
            worse = [part for part in moved if part["now"] > part["then"]] or moved
            return [f"{part['name']} {part['then']:.2f} to {part['now']:.2f}" for part in worse[:3]]
        return []


class ModelScoredAudit(CaseAudit[SettingsT]):
    """Base class of audits whose scores come from a model or function that reads the answers."""

    def can_measure(self, case: Case) -> bool:
        """Return whether the case asks for free texts."""
        return bool(case.open)

    def compared_groups(self, item: CaseItem[SettingsT]) -> tuple[str, ...]:
        """Return the groups of the item's cases.

        Raises:
            NotMeasurable: the cases have different groups.
        """
        different = {tuple(sorted(case.groups)) for case in self.cases(item)}
        if len(different) > 1:
            raise NotMeasurable(
                "the item's cases have different groups, which cannot be compared: give all its cases the same "
                "`groups`, or no `groups`"
            )
        return next(iter(different), ())
