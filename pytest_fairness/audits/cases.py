"""Scores of answers about cases: estimates, change between two runs, and the base class of the audits."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from pytest_fairness.audits import answer_checks
from pytest_fairness.audits.base import Audit, AuditItem, SettingsT
from pytest_fairness.audits.rules import SignificantChange
from pytest_fairness.audits.unit_audit import (
    INCOMPLETE_SHARE,
    clusters_of,
    comparison,
    group_reversal,
    shortened_list,
)
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes.stereotype import Case, StereotypeProbe
from pytest_fairness.records import Answer, Answers, Comparison, Concern, Evidence, Json, Measurement, Reversal
from pytest_fairness.stats import gaps, intervals, resampling
from pytest_fairness.stats.resampling import Floats, Ints, RunCells, numbered
from pytest_fairness.stats.unit_tables import TAIL

# Scores of answers by case and group, with their means and gaps.

Column = tuple[str, str]
"""Case and group; the group is empty if the answers of a case are not split by group."""


class Score(NamedTuple):
    """The score of one answer, 0..1, or without bounds if the audit's class attribute `added` is `None`.

    Tests permute groups, or runs, only within a stratum. If `repeated`, answers with the same text count as
    repetitions.
    """

    column: Column
    stratum: str
    text: str
    value: float
    repeated: bool


@dataclass(frozen=True)
class Scores:
    """The scores of one run; (n,) arrays have one entry for each score.

    Attributes:
        columns: sorted pairs of case and group; each case has every group. Without a comparison, the group is empty.
        column: (n,) column number.
        values: (n,) scores.
        strata: (n,) stratum.
    """

    columns: tuple[Column, ...]
    column: Ints
    values: Floats
    strata: tuple[str, ...]

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Scores:
        """Sort the scores; a cell (a column in one stratum) whose answers all repeat one answer has one score."""
        cells: dict[tuple[Column, str], list[Score]] = {}
        for score in sorted(scores):
            cells.setdefault((score.column, score.stratum), []).append(score)
        kept: list[Score] = []
        for own in cells.values():
            repeats = all(score.repeated for score in own) and len({score.text for score in own}) == 1
            kept += own[:1] if repeats else own
        values = np.array([score.value for score in kept])
        return cls(*numbered([score.column for score in kept]), values, tuple(score.stratum for score in kept))

    def of_cases(self, cases: Sequence[str]) -> Scores:
        kept = [place for place, number in enumerate(self.column) if self.columns[number][0] in cases]
        columns = numbered([self.columns[number] for number in self.column[kept]])
        return Scores(*columns, self.values[kept], tuple(self.strata[place] for place in kept))

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(case for case, _ in self.columns))

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups; one empty name if no groups are compared."""
        return tuple(sorted({group for _, group in self.columns}))

    def by_column(self) -> list[Floats]:
        return [self.values[self.column == number] for number in range(len(self.columns))]

    def means(self) -> Floats:
        """Return the mean score of each column."""
        return np.array([own.mean() for own in self.by_column()])

    def group_means(self, column_means: Floats | None = None) -> Floats:
        """Return the groups' means over cases, (..., groups), from (..., columns) means; by default, of all scores."""
        means = self.means() if column_means is None else column_means
        return np.asarray(means.reshape(*means.shape[:-1], len(self.cases), len(self.groups)).mean(axis=-2))

    def group_errors(self, added: float | None) -> Floats:
        """Return the standard error of each group's mean over cases, for this fixed set of cases.

        `added` zeros, and equally many ones, are added to a column's scores; see `gaps.bounded_error`. Nothing is added
        to scores without bounds (`None`).
        """
        own = self.by_column()
        errors = gaps.sample_errors(own) if added is None else np.array([gaps.bounded_error(one, added) for one in own])
        by_case = errors.reshape(len(self.cases), len(self.groups))
        return np.asarray(np.sqrt((by_case**2).sum(axis=0)) / len(self.cases))

    def value(self) -> float:
        """Return the largest minus the smallest group mean; without groups, the mean over cases."""
        means = self.group_means()
        return float(np.ptp(means) if self.groups != ("",) else means[0])

    def error(self, added: float | None) -> float:
        """Return the standard error of the value: of the mean, or of the difference between the extreme groups."""
        errors, means = self.group_errors(added), self.group_means()
        return float(errors[0]) if len(errors) == 1 else math.hypot(errors[means.argmax()], errors[means.argmin()])


def sorted_answers(answers: Answers) -> list[Answer]:
    return sorted(answers, key=lambda answer: (sorted(answer.labels.items()), answer.trial, answer.text or ""))


def stratum_of(answer: Answer, column: Column) -> str:
    """Return the stratum: all labels of the answer but case, category and, if groups are compared, group."""
    of_column = {"case", "category", "group"} if column[1] else {"case", "category"}
    return "; ".join(f"{name}={label}" for name, label in sorted(answer.labels.items()) if name not in of_column)


# Interval and test of a value, with the details and the evidence that decisions read: of the mean, and of the gap.


class Estimate(NamedTuple):
    interval: tuple[float, float]
    p_value: float | None
    details: dict[str, Json]
    evidence: Evidence


def mean_estimate(scores: Scores, added: float, neutral: float | None) -> Estimate:
    """Test the mean of the cases' mean scores against `neutral`, the mean of a model without preference.

    For the standard error, `added` zeros and ones are added to a case's scores; see `gaps.bounded_error`.
    """
    value, error = scores.value(), scores.error(added)
    shrunken = float(np.mean([gaps.shrunken_mean_and_error(own, added)[0] for own in scores.by_column()]))
    size = gaps.effective_size(shrunken, error)
    interval = intervals.wilson(value * size, size, intervals.quantile(1 - TAIL))
    p_value = None if neutral is None else intervals.upper_tail((value - neutral) / error)
    return Estimate(interval, p_value, {"effective_size": size}, Evidence(effective_size=size))


def gap_estimate(scores: Scores, added: float | None, alpha: float, beta: float, seed: str) -> Estimate:
    """Test the largest gap between groups by permutation within case and stratum.

    For `added`, see `Scores.group_errors`. The lower bound at `alpha`, and the upper one at `beta`, are details.
    """
    blocks: dict[tuple[str, str], list[int]] = {}
    for place, (number, stratum) in enumerate(zip(scores.column, scores.strata, strict=True)):
        blocks.setdefault((scores.columns[number][0], stratum), []).append(place)
    random = resampling.generator(f"{seed}/measure")
    dealt = np.empty((resampling.PERMUTATIONS, len(scores.values)), dtype=np.int64)
    for places in blocks.values():
        dealt[:, places] = random.permuted(np.tile(scores.column[places], (resampling.PERMUTATIONS, 1)), axis=1)
    sums = np.stack([np.where(dealt == number, scores.values, 0).sum(axis=1) for number in range(len(scores.columns))])
    null = np.ptp(scores.group_means((sums / np.bincount(scores.column)[:, None]).T), axis=-1)

    means, by_group = scores.group_means(), scores.group_errors(added)
    pairs = list(combinations(range(len(means)), 2))
    differences = np.array([means[first] - means[second] for first, second in pairs])
    errors = np.array([math.hypot(by_group[first], by_group[second]) for first, second in pairs])
    lower, upper = gaps.largest_bounds(differences, errors, alpha, beta)
    low, high = gaps.largest_bounds(differences, errors, TAIL, TAIL)
    return Estimate(
        (low, high if added is None else min(1.0, high)),
        resampling.p_value(null, scores.value(), exact=False),
        {
            "groups": dict(zip(scores.groups, means.tolist(), strict=True)),
            "bounds": {"lower": lower, "upper": upper},
        },
        Evidence(bounds=(lower, upper)),
    )


# Change between two runs of a mean score, or of the largest gap between groups' mean scores.

SUBSAMPLES = 20
"""Number of random cuts to equal size that are averaged if two runs have different numbers of scores."""


class TwoRuns(NamedTuple):
    """Means of the groups in two runs that have the same columns.

    Attributes:
        current, baseline: (cuts, groups) means of random cuts to equal size; of all scores for at most two groups, as a
            mean and a difference of two means do not depend on the number of scores.
        swapped: the same after random exchange of scores between the runs, within column and stratum.
        weight: weight of the current run in the means of both runs together, 0..1.
        error_of: function that returns the standard error of Σ weight × change of the group's mean, for the weights of
            the groups, and its degrees of freedom.
    """

    current: Floats
    baseline: Floats
    swapped: tuple[Floats, Floats]
    weight: float
    error_of: Callable[[Floats], tuple[float, float | None]]

    @classmethod
    def of(cls, current: Scores, baseline: Scores, random: np.random.Generator) -> TwoRuns:
        columns, is_linear = len(current.columns), len(current.groups) <= 2
        column = np.concatenate([current.column, baseline.column])
        values = np.concatenate([current.values, baseline.values])
        is_current = np.repeat([True, False], [len(current.values), len(baseline.values)])
        _, cells = numbered(list(zip(column.tolist(), (*current.strata, *baseline.strata), strict=True)))
        exchange = RunCells.of(is_current, cells, equal_size=not is_linear)
        # A row for each score: a 1 in the place of its column, and behind all these, the score in the place of its
        # column.
        belongs = np.eye(columns)[column]
        table = np.hstack([belongs, belongs * values[:, None]])

        def means(sums: Floats) -> Floats:
            with np.errstate(invalid="ignore"):
                return current.group_means(sums[:, columns:] / sums[:, :columns])

        def error_of(weights: Floats) -> tuple[float, float | None]:
            runs, by_column = column * 2 + is_current, np.tile(weights, len(current.cases)) / len(current.cases)
            shares = by_column[column] / np.bincount(runs, minlength=2 * columns)[runs]
            return gaps.change_error(values, is_current, cells, np.where(is_current, shares, -shares))

        if is_linear:
            first, second = (means(total[None]) for total in exchange.sums(table))
        else:
            cuts = exchange.cuts(SUBSAMPLES, random)
            first, second = (means(np.stack([cut.astype(np.float64) @ table for cut in run])) for run in cuts)
        one, other = exchange.sums_after_swaps(table, resampling.PERMUTATIONS, random)
        # The weights of the runs make the direction of the gap independent of its change.
        weight = float(is_current.mean()) if is_linear else 0.5
        return cls(first, second, (means(one), means(other)), weight, error_of)


def score_change(current: Scores, baseline: Scores, added: float | None, seed: str) -> Comparison:
    """Return the growth of the mean or, if groups are compared, of the largest gap between the groups' means.

    The scores have the same columns in both runs; see `TwoRuns` for the test. `added` zeros and ones are added to each
    column if the standard error is 0 without them, as with equal scores; nothing is added to scores without bounds
    (`None`).
    """
    runs, groups = TwoRuns.of(current, baseline, resampling.generator(f"{seed}/compare")), current.groups
    now, then = runs.current.mean(axis=0), runs.baseline.mean(axis=0)
    compares_groups = groups != ("",)
    measure = gaps.largest_difference(tuple(combinations(range(len(groups)), 2))) if compares_groups else None
    pattern = runs.weight * now + (1 - runs.weight) * then
    size, gradient = (np.ravel, np.ones(1)) if measure is None else (measure.signed(pattern), measure.gradient(pattern))
    signed_error, degrees = runs.error_of(gradient)
    error = signed_error
    if len(groups) > 2:
        variances = [runs.error_of(own)[0] ** 2 for own in np.eye(len(groups))]
        error = gaps.growth_error(size, now, then, np.diag(variances), resampling.generator(f"{seed}/error"))
    error = error or math.hypot(current.error(added), baseline.error(added))
    value = float(np.nanmean(size(runs.current) - size(runs.baseline)))
    null = size(runs.swapped[0]) - size(runs.swapped[1])

    means = [(run.group_means() if compares_groups else run.means()).tolist() for run in (current, baseline)]
    moved = list(zip(groups if compares_groups else current.cases, *means, strict=True))
    moved.sort(key=lambda part: -round(abs(part[1] - part[2]), 12))
    worse = [part for part in moved if part[1] > part[2]] or moved
    details: dict[str, Json] = {"moved": [dict(zip(("name", "now", "then"), part, strict=True)) for part in moved]}
    evidence = reversal = None
    if measure is not None:
        along = float((now - then) @ gradient), signed_error or error
        either_side = gaps.direction_unknown(2 * float(measure.size(pattern)), along[1])
        details |= {"along_pattern": list(along), "either_side": either_side}
        evidence = Evidence(other_change=along, either_side=either_side)
        reversal = _reversal(groups, now, then, runs.swapped[0] - runs.swapped[1])
    return comparison(
        value,
        standard_error=error,
        p_value=resampling.p_value(null[~np.isnan(null)], value, exact=False),
        degrees_of_freedom=degrees,
        details=details,
        evidence=evidence,
        reversal=reversal,
        contributors=[f"{name} {old:.2f} to {new:.2f}" for name, new, old in worse[:3]],
    )


def _reversal(groups: Sequence[str], current: Floats, baseline: Floats, swapped: Floats) -> Reversal | None:
    """Return the reversal of the largest gap: the higher of the two groups that differ most now was lower before."""
    high, low = gaps.most_different(current, tuple(combinations(range(len(current)), 2)))
    present, earlier = float(current[high] - current[low]), float(baseline[high] - baseline[low])
    if not (present > 0 > earlier):
        return None
    null = np.ptp(swapped, axis=-1)
    p_value = resampling.p_value(null[~np.isnan(null)], float(np.ptp(current - baseline)), exact=False)
    return group_reversal(groups[high], groups[low], present, earlier, p_value)


# Base class of audits that score each answer about a case.
#
# The cases are fixed; standard errors are taken over answers. Two cases that name each other as `opposite` are
# measured together.

CaseItem = AuditItem[StereotypeProbe, SettingsT]
"""An item of an audit of cases."""

MINIMUM_RESPONSES = 8
"""Smallest number of scored answers of a group, case or category."""
MINIMUM_OF_A_CASE = 2
"""A case counts in its category only if it has at least this number of scored answers of each group."""


@dataclass(frozen=True)
class ScoredAnswers:
    """The scored answers of an item.

    Attributes:
        scores: scores of the answers that have a score.
        scored: number of scored answers by column (case and group), including repeated answers.
        n, missing: number of usable and of missing answers, by group if groups are compared, otherwise by case.
        groups: groups that are compared; empty if the item compares no groups.
        left_out: names of incomplete cases, whose scores are left out.
    """

    scores: Scores
    scored: Counter[Column]
    n: Mapping[str, int]
    missing: Mapping[str, int]
    groups: tuple[str, ...]
    left_out: Sequence[str] = ()


class CaseAudit(Audit[StereotypeProbe, SettingsT]):
    """Base class of audits that score texts about cases.

    There is one item for each case or pair of opposite cases, and one for each category.

    Class attributes:
        added: how many zeros, and equally many ones, are added to a case's scores for the standard error of their
            mean; see `gaps.shrunken_mean_and_error`. `None` for scores without bounds: nothing is added.
        neutral: mean score of a model without preference; `None` if there is no such score.
        scored: phrase for the answers that have a score, for messages.
    """

    kind = "stereotype"
    rule = SignificantChange()
    compares_sides = True
    added: ClassVar[float | None] = 1.0
    neutral: ClassVar[float | None] = None
    scored: ClassVar[str] = "usable answers"

    def can_measure(self, case: Case) -> bool:
        """Return whether the audit can measure a case."""
        return bool(case.open)

    @abstractmethod
    def score_of(self, item: CaseItem[SettingsT], answer: Answer) -> float | None:
        """Return an answer's score; NaN if a usable answer has no score, `None` if the answer is missing."""

    @abstractmethod
    def details(self, item: CaseItem[SettingsT], answers: Answers, scores: Scores) -> dict[str, Json]:
        """Return details for reports; the answers are sorted by labels, trial and text."""

    def compared_groups(self, item: CaseItem[SettingsT]) -> tuple[str, ...]:
        """Return the groups whose scores are compared; empty if all answers about a case are one sample.

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
                repeated = not sampled or len(text.split()) > answer_checks.SHORT_ANSWER
                scores.append(Score(column, stratum_of(answer, column), text, value, repeated))
        return ScoredAnswers(Scores.of(scores), Counter(score.column for score in scores), n, missing, groups)

    def _complete_cases(self, item: CaseItem[SettingsT], answers: Answers) -> ScoredAnswers:
        """Return the scores of the cases that, with their opposites, have enough scored answers of each group.

        Without the opposite, a model that gives the same answers for both cases would not have the value 0.5.

        Raises:
            NotMeasurable: a group has fewer than `MINIMUM_RESPONSES` scored answers. If the item does not compare
                groups, each of its cases is counted or, in an item for a category, all cases together.
        """
        found = self._scored_answers(item, answers)
        opposites = {case.name: case.opposite for case in self.cases(item)}
        numbers = {name: [found.scored[name, group] for group in found.groups or ("",)] for name in opposites}
        enough = {name for name, own in numbers.items() if min(own) >= MINIMUM_OF_A_CASE}
        complete = [name for name in enough if opposites[name] not in opposites or opposites[name] in enough]
        if found.groups:
            counts = {group: sum(found.scored[name, group] for name in complete) for group in found.groups}
        elif "case" in item.labels:
            counts = {name: found.scored[name, ""] for name in opposites}
        else:
            counts = {item.labels["category"]: sum(found.scored[name, ""] for name in complete)}
        if few := {name: count for name, count in counts.items() if count < MINIMUM_RESPONSES}:
            have = ", ".join(f"{count} for {name}" for name, count in few.items())
            raise NotMeasurable(
                f"too few {self.scored}: {have}; at least {MINIMUM_RESPONSES} are needed"
                f"{' for each' if len(few) > 1 else ''}; {self.remedy(item, answers)}"
            )
        left_out = [name for name in opposites if name not in complete]
        return replace(found, scores=found.scores.of_cases(complete), left_out=left_out)

    def score(self, item: CaseItem[SettingsT], answers: Answers) -> float:
        found = self._scored_answers(item, answers)
        scores = found.scores
        if not scores.columns or (found.groups and len(scores.columns) < len(scores.cases) * len(found.groups)):
            raise NotMeasurable(f"a case or group has no {self.scored}")
        return scores.value()

    def measure(self, item: CaseItem[SettingsT], answers: Answers) -> Measurement:
        """Return the mean of the cases' mean scores or, if groups are compared, the largest gap."""
        answers = sorted_answers(answers)
        found = self._complete_cases(item, answers)
        scores, details = found.scores, self.details(item, answers, found.scores)
        estimate = (
            gap_estimate(scores, self.added, item.alpha, item.beta, item.seed)
            if found.groups or self.added is None
            else mean_estimate(scores, self.added, self.neutral)
        )
        return Measurement(
            value=scores.value(),
            interval=estimate.interval,
            standard_error=scores.error(self.added),
            p_value=estimate.p_value,
            n=dict(found.n),
            missing=dict(found.missing),
            details={**estimate.details, "cases": list(scores.cases), "left_out": found.left_out, **details},
            evidence=replace(estimate.evidence, effect_basis=self.effect_basis(details, found.n)),
        )

    def effect_basis(self, details: Mapping[str, Json], n: Mapping[str, int]) -> Sequence[float]:
        """Return the numbers from which the effect size follows with the value; see `Evidence`.

        `n` is the number of scored answers by group or case.
        """
        return ()

    def concerns(self, item: CaseItem[SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
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
        if len(cells) < answer_checks.MINIMUM_OBSERVATIONS and answer_checks.repeats(
            cells.values(), item.probe.sampling.temperature
        ):
            concerns.append(answer_checks.repeats_concern(len(cells), sum(map(len, cells.values())), enough=False))
        left_out, cases = measurement.details["left_out"], measurement.details["cases"]
        if "groups" in measurement.details and len(left_out) > INCOMPLETE_SHARE * (len(left_out) + len(cases)):
            message = (
                f"{len(left_out)} of {len(left_out) + len(cases)} cases were left out, because they have too few "
                f"answers for one of the groups: {shortened_list(left_out)}. Raise `trials`, or add rows"
            )
            concerns.append(Concern("incomplete_units", message))
        return concerns

    def compare(self, item: CaseItem[SettingsT], current: Answers, baseline: Answers) -> Comparison:
        """Return the change over the cases that are complete in both runs, tested by random exchange of scores."""
        if clusters_of(lambda answer: answer.labels["case"], item.probe, [baseline]):
            raise BaselineStale(["answers to equal prompts, which several cases of the baseline share"])
        runs = [self._complete_cases(item, sorted_answers(run)).scores for run in (current, baseline)]
        shared = [case for case in runs[0].cases if case in runs[1].cases]
        if not shared:
            raise NotMeasurable(
                "no case has enough scored answers both in this run and in the baseline. Raise `trials`, or rebaseline"
            )
        change = score_change(runs[0].of_cases(shared), runs[1].of_cases(shared), self.added, item.seed)
        return replace(change, details={"compared_cases": shared, **change.details})
