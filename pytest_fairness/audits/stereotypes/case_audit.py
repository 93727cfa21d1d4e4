"""Audits of open cases: every answer gets a score, cases are fixed, and pairs of opposites are looked at together."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from pytest_fairness.audits import repeats
from pytest_fairness.audits.base import Audit, AuditItem, SettingsT
from pytest_fairness.audits.decision_rules import SignificantChange
from pytest_fairness.audits.stereotypes.scores import Column, Floats, GapChange, Score, Scores, TwoScores
from pytest_fairness.audits.unit_audit import INCOMPLETE_SHARE, SHOWN_UNITS
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.stereotype.model import StereotypeProbe
from pytest_fairness.records import Answer, Comparison, Concern, Json, Measurement, Reversal
from pytest_fairness.stats import means, normal, resampling, spreads
from pytest_fairness.stats.unit_statistics import TAIL

MINIMUM_RESPONSES = 8
"""Scored answers a side below which nothing is measured: of each case of an item, of a category altogether."""
MINIMUM_OF_A_CASE = 2
"""Scored answers below which a case is left out of its category."""
PERMUTATIONS = 1999


@dataclass(frozen=True)
class Reading:
    """The answers of an item, read.

    Attributes:
        scores: of the answers that have one.
        scored: how many have one, by column, repeats among them.
        n, missing: answers, and those that cannot be measured, by case, or by group where groups are compared.
        groups: the groups that are compared; empty where they are not.
    """

    scores: Scores
    scored: Counter[Column]
    n: Mapping[str, int]
    missing: Mapping[str, int]
    groups: tuple[str, ...]


class CaseAudit(Audit[StereotypeProbe, SettingsT]):
    """An audit of open cases, one item a case or pair of opposites, and one a category.

    Class attributes:
        added: how many zeros and ones are added to a case's scores for the error of their mean; see `means.shrunken`.
        neutral: the mean score of a model without preference, where there is such a thing.
        scored: what an answer with a score is, for messages.
    """

    kind: ClassVar[str] = "stereotype"
    rule = SignificantChange()
    added: ClassVar[float] = 1.0
    neutral: ClassVar[float | None] = None
    scored: ClassVar[str] = "usable answers"

    @abstractmethod
    def fits(self, case: Any) -> bool:
        """Whether a case holds what is measured."""

    @abstractmethod
    def score_of(self, probe: StereotypeProbe, item: AuditItem[SettingsT], answer: Answer) -> float | None:
        """The score of a usable answer, 0..1; `None` where it has none."""

    @abstractmethod
    def counts(self, answer: Answer) -> bool:
        """Whether an answer can be measured, with a score or without; else it is missing."""

    def compared_groups(self, probe: StereotypeProbe, item: AuditItem[SettingsT]) -> tuple[str, ...]:
        """The groups whose scores are set against each other; empty where all answers of a case are one sample."""
        return ()

    @abstractmethod
    def details(
        self, probe: StereotypeProbe, item: AuditItem[SettingsT], answers: Sequence[Answer], scores: Scores
    ) -> dict[str, Json]:
        """What the report shows besides the numbers; `answers` are sorted."""

    def lacking(self, probe: StereotypeProbe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> str:
        """What would help where too few answers have a score."""
        return "raise `trials` or add rows"

    def cases(self, probe: StereotypeProbe, item: AuditItem[SettingsT]) -> list[Any]:
        """The cases of an item."""
        return [case for case in probe.cases_of(item.labels) if self.fits(case)]

    def items(self, probe: StereotypeProbe, settings: SettingsT) -> list[AuditItem[SettingsT]]:
        """Cases and pairs in the probe's order, then categories."""
        fitting = {case.name: case for case in probe.cases if self.fits(case)}
        subjects: dict[str, dict[str, str]] = {}
        for case in fitting.values():
            names = sorted({case.name, case.opposite} & fitting.keys() if case.opposite else {case.name})
            categories = {fitting[name].category for name in names}
            category = next(iter(categories)) if len(categories) == 1 else None
            subject = "/".join(names)
            subjects[subject] = {"case": subject} | ({} if category is None else {"category": category})
        for name in dict.fromkeys(case.category for case in fitting.values() if case.category is not None):
            subjects[f"category={name}"] = {"category": name}
        return [AuditItem(self.info.name, subject, labels, settings) for subject, labels in subjects.items()]

    def uses(self, probe: StereotypeProbe, item: AuditItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Answers to the item's cases, and of groups that are still asked for."""
        case = probe.by_name.get(labels.get("case", ""))
        if case is None or not self.fits(case) or case.name not in _names(probe, item):
            return False
        return labels["group"] in case.groups if case.groups else "group" not in labels

    def read(self, probe: StereotypeProbe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Reading:
        """The item's answers with their scores."""
        groups = self.compared_groups(probe, item)
        sampled = bool(probe.sampling.temperature)
        scores = []
        names = groups or [case.name for case in self.cases(probe, item)]
        n, missing = Counter(dict.fromkeys(names, 0)), Counter(dict.fromkeys(names, 0))
        for answer in answers:
            case, group = answer.labels["case"], answer.labels.get("group", "")
            by = group if groups else case
            if not self.counts(answer):
                missing[by] += 1
                continue
            n[by] += 1
            value = self.score_of(probe, item, answer)
            if value is not None:
                text = answer.text or ""
                column: Column = (case, group if groups else "")
                # What is not drawn at random, or is long, does not come again by chance.
                repeated = not sampled or len(text.split()) > repeats.SHORT_ANSWER
                scores.append(Score(column, _stratum(answer, column), value, text, repeated))
        scored = Counter(score.column for score in scores)
        return Reading(Scores.of(scores), scored, dict(n), dict(missing), groups)

    def kept(
        self, probe: StereotypeProbe, item: AuditItem[SettingsT], answers: Sequence[Answer]
    ) -> tuple[Reading, Scores, list[str]]:
        """The item's answers read, the scores of its cases that can be measured, and the names of the others.

        A case is measured together with its opposite or not at all, or a model that always says the same would not
        be at 0.5.

        Raises:
            NotMeasurable: too few answers have a score.
        """
        reading = self.read(probe, item, answers)
        cases = self.cases(probe, item)
        groups = reading.groups or ("",)
        enough = {
            case.name
            for case in cases
            if all(reading.scored[case.name, group] >= MINIMUM_OF_A_CASE for group in groups)
        }
        partners = {case.name: case.opposite for case in cases}
        whole = {name for name in enough if partners[name] not in partners or partners[name] in enough}
        if reading.groups:
            sides = {group: sum(reading.scored[name, group] for name in whole) for group in groups}
        elif "case" in item.labels:
            sides = {name: reading.scored[name, ""] for name in partners}
        else:
            sides = {item.labels["category"]: sum(reading.scored[name, ""] for name in whole)}
        short = {side: count for side, count in sides.items() if count < MINIMUM_RESPONSES}
        if short:
            have = ", ".join(f"{count} for {side}" for side, count in short.items())
            raise NotMeasurable(
                f"too few {self.scored}: {have}, {MINIMUM_RESPONSES} are needed; {self.lacking(probe, item, answers)}"
            )
        return reading, reading.scores.of_cases(sorted(whole)), [name for name in partners if name not in whole]

    def score(self, probe: StereotypeProbe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> float:
        """The mean or the gap of however few answers; see `Audit.score`."""
        reading = self.read(probe, item, answers)
        scores = reading.scores
        if not scores.columns or (reading.groups and len(scores.columns) < len(scores.cases) * len(reading.groups)):
            raise NotMeasurable(f"no {self.scored}")
        return float(scores.gap(scores.means()) if reading.groups else scores.means().mean())

    def measure(self, probe: StereotypeProbe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Measurement:
        """The mean of the cases' mean scores, or the gap between groups; see `Audit.measure`."""
        answers = in_order(answers)
        reading, scores, left_out = self.kept(probe, item, answers)
        column_means = scores.means()
        common: dict[str, Json] = {
            "cases": list(scores.cases),
            "left_out": left_out,
            **self.details(probe, item, answers, scores),
        }
        if reading.groups:
            value, error = float(scores.gap(column_means)), scores.gap_error(self.added)
            random = resampling.generator(f"{item.seed}/measure")
            null = scores.gaps_by_chance(PERMUTATIONS, random)
            bounds = scores.gap_bounds(self.added, item.alpha, item.beta)
            low, high = scores.gap_bounds(self.added, TAIL, TAIL)
            return Measurement(
                value=value,
                interval=(low, min(1.0, high)),
                standard_error=error,
                p_value=resampling.p_value(null, value, exact=False),
                n=reading.n,
                missing=reading.missing,
                details={
                    "groups": dict(zip(scores.groups, scores.group_means(column_means).tolist(), strict=True)),
                    "bounds": dict(zip(("lower", "upper"), bounds, strict=True)),
                    **common,
                },
            )
        value, error = float(column_means.mean()), scores.mean_error(self.added)
        size = means.effective_size(float(scores.shrunken_means(self.added).mean()), error)
        return Measurement(
            value=value,
            interval=means.interval(value, size, normal.quantile(0.975)),
            standard_error=error,
            p_value=None if self.neutral is None else normal.upper_tail((value - self.neutral) / error),
            n=reading.n,
            missing=reading.missing,
            details={"effective_size": size, **common},
        )

    def concerns(
        self, probe: StereotypeProbe, item: AuditItem[SettingsT], answers: Sequence[Answer], measurement: Measurement
    ) -> list[Concern]:
        """Return the concerns that answers repeat, or that cases lack answers for one group; see `Audit.concerns`."""
        cells: dict[str, list[str]] = {}
        for answer in answers:
            if answer.usable:
                cells.setdefault(repr(sorted(answer.labels.items())), []).append(answer.text or "")
        found = []
        if len(cells) < repeats.MINIMUM_OBSERVATIONS and repeats.repeats(cells.values(), probe.sampling.temperature):
            found.append(repeats.too_few_observations(len(cells), sum(map(len, cells.values()))))
        left_out, cases = measurement.details["left_out"], measurement.details["cases"]
        if "groups" not in measurement.details or len(left_out) <= INCOMPLETE_SHARE * (len(left_out) + len(cases)):
            return found
        names = ", ".join(left_out[:SHOWN_UNITS]) + ", …" * (len(left_out) > SHOWN_UNITS)
        return [
            *found,
            Concern(
                "incomplete_units",
                f"{len(left_out)} of {len(left_out) + len(cases)} cases were left out, as they have too few answers "
                f"for one of the groups: {names}",
            ),
        ]

    def compare(
        self, probe: StereotypeProbe, item: AuditItem[SettingsT], now: Sequence[Answer], then: Sequence[Answer]
    ) -> Comparison:
        """Change over the cases that can be measured in both runs, run by run swapped within case and group."""
        present, earlier = (self.kept(probe, item, in_order(run)) for run in (now, then))
        shared = [case for case in present[1].cases if case in earlier[1].cases]
        if not shared:
            raise NotMeasurable("no case can be measured in both runs")
        first, second = (run[1].of_cases(shared) for run in (present, earlier))
        runs = TwoScores.of(first, second)
        random = resampling.generator(f"{item.seed}/compare")
        observed, swapped = runs.as_observed(random), runs.swapped(PERMUTATIONS, random)
        moved: dict[str, Json] = {"compared_cases": shared}
        if not present[0].groups:
            value, null = float(np.nanmean(runs.mean_change(*observed))), runs.mean_change(*swapped)
            error, degrees = runs.mean_error()
            # No answer differs from any other of its cell, which does not prove that none ever will.
            error = error or math.hypot(*(run.mean_error(self.added) for run in (first, second)))
            return Comparison(
                value=value,
                interval=normal.interval(value, error, degrees_of_freedom=degrees),
                standard_error=error,
                p_value=resampling.p_value(null[~np.isnan(null)], value, exact=False),
                degrees_of_freedom=degrees,
                details={**moved, "moved": _moved(first, second, gaps=False)},
            )
        change = GapChange.of(runs, observed, swapped, resampling.generator(f"{item.seed}/error"))
        error = change.error or math.hypot(*(run.gap_error(self.added) for run in (first, second)))
        return Comparison(
            value=change.value,
            interval=normal.interval(change.value, error, degrees_of_freedom=change.degrees_of_freedom),
            standard_error=error,
            p_value=change.p_value,
            degrees_of_freedom=change.degrees_of_freedom,
            reversal=_reversal(first.groups, *change.groups, *(first.group_means(run) for run in swapped)),
            details={
                **moved,
                "moved": _moved(first, second, gaps=True),
                "along_pattern": [change.along, change.along_error or error],
                "either_side": spreads.either_side(2 * change.pattern, change.along_error or error),
            },
        )

    def distance_bounds(
        self, item: AuditItem[SettingsT], measurement: Measurement, limit: float
    ) -> tuple[float, float] | None:
        """See `Audit.distance_bounds`: those of a gap are in the details, those of a mean are Wilson's."""
        size, bounds = measurement.details.get("effective_size"), measurement.details.get("bounds")
        if bounds is not None:
            return bounds["lower"] - limit, bounds["upper"] - limit
        if size is None:
            return None
        low, _ = means.interval(measurement.value, size, normal.quantile(1 - item.alpha))
        _, high = means.interval(measurement.value, size, normal.quantile(1 - item.beta))
        return low - limit, high - limit

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """What moved for the worse; without a baseline the groups furthest apart, or the worst cases."""
        if comparison is not None and comparison.value > 0 and (moved := comparison.details.get("moved")):
            worse = [part for part in moved if part["now"] > part["then"]] or moved
            return [f"{part['name']} {part['then']:.2f} to {part['now']:.2f}" for part in worse[:3]]
        groups = measurement.details.get("groups")
        if groups:
            order = sorted(groups, key=lambda name: (-groups[name], name))
            return [f"{name} {groups[name]:.2f}" for name in (order[0], order[-1])]
        return self.worst(measurement)

    @abstractmethod
    def worst(self, measurement: Measurement) -> list[str]:
        """What the value comes from, the worst case first."""


def in_order(answers: Sequence[Answer]) -> list[Answer]:
    """The answers in an order that does not depend on the one they came in."""
    return sorted(answers, key=lambda answer: (sorted(answer.labels.items()), answer.trial, answer.text or ""))


def _names(probe: StereotypeProbe, item: AuditItem[Any]) -> set[str]:
    if "case" in item.labels:
        return set(item.labels["case"].split("/"))
    return {case.name for case in probe.cases_of(item.labels)}


def _stratum(answer: Answer, column: Column) -> str:
    """The strata that a file of answers names, and the group where it is no column of its own."""
    told_apart = {"case", "category", "group"} if column[1] else {"case", "category"}
    return "; ".join(f"{name}={label}" for name, label in sorted(answer.labels.items()) if name not in told_apart)


def _reversal(groups: Sequence[str], now: Floats, then: Floats, *swapped: Floats) -> Reversal | None:
    """Return the gap of the two groups that are furthest apart now, if it was on the other side in the baseline.

    Args:
        groups: their names.
        now, then: (groups,) means of either run.
        swapped: (draws, groups) means of two runs that differ by chance only.
    """
    high, low = spreads.furthest(now, tuple(combinations(range(len(now)), 2)))
    present, earlier = float(now[high] - now[low]), float(then[high] - then[low])
    if not (present > 0 > earlier):
        return None
    null = np.ptp(swapped[0] - swapped[1], axis=-1)
    return Reversal.tested(
        value=present,
        p_value=resampling.p_value(null[~np.isnan(null)], float(np.ptp(now - then)), exact=False),
        description=f"{groups[high]} was {-earlier:.3g} below {groups[low]} and is {present:.3g} above",
    )


def _moved(now: Scores, then: Scores, *, gaps: bool) -> list[dict[str, Json]]:
    """The groups, or cases, by how far their means moved."""
    names = now.groups if gaps else now.cases
    first, second = (run.group_means(run.means()) if gaps else run.means() for run in (now, then))
    order = sorted(range(len(names)), key=lambda place: (-round(abs(float(first[place] - second[place])), 12), place))
    return [{"name": names[place], "now": float(first[place]), "then": float(second[place])} for place in order]
