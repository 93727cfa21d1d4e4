"""Base classes of audits of decisions about records: answers by record, and gaps between groups of records."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.base import AuditItem, Example, SettingsT
from pytest_fairness.audits.info import axis_of, cohens_h, shortened
from pytest_fairness.audits.unit_audit import (
    MINIMUM_UNITS,
    Intersection,
    UnitAudit,
    UnitTable,
    complete_rows,
    merged_rows,
)
from pytest_fairness.errors import NotMeasurable, counted
from pytest_fairness.probes import prompts
from pytest_fairness.probes.counterfactual import AGAIN, FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.probes.field_types import AuditSettings
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
from pytest_fairness.stats import gaps, intervals
from pytest_fairness.stats.resampling import Floats, number_or_none
from pytest_fairness.stats.unit_statistics import Cell, ShareGap

# Base class of audits of decisions about records, and the answers grouped by record.

RecordItem = AuditItem[CounterfactualProbe, SettingsT]
"""An item of an audit of decisions about records."""

Draws = dict[tuple[bool, int], Answer]
"""Answers to one prompt, by whether the prompt is a repetition, and by trial number."""

SHOWN_DISPUTES = 10
"""Maximum number of answers with different votes of the judge model in the details."""
SHOWN_MOVED = 20
"""Largest number of records with changed answers in the details."""
SHOWN_CONTRIBUTORS = 3
"""Number of records that a verdict names."""
SHOWN_TEXT = 200
"""Number of characters to which the details shorten an answer."""


@dataclass
class RecordAnswers:
    """Answers about one record, with the labels of the first; flipped ones are by the value after the flip."""

    labels: Mapping[str, str]
    own: Draws = field(default_factory=dict)
    flipped: dict[str, Draws] = field(default_factory=dict)


def by_record(answers: Iterable[Answer]) -> dict[str, RecordAnswers]:
    records: dict[str, RecordAnswers] = {}
    for answer in answers:
        labels = answer.labels
        answered = records.setdefault(labels["record"], RecordAnswers(labels))
        draws = answered.flipped.setdefault(labels["to"], {}) if "to" in labels else answered.own
        draws[_draw(answer)] = answer
    return {record: records[record] for record in sorted(records)}


def _draw(answer: Answer) -> tuple[bool, int]:
    return answer.labels["form"] == AGAIN, answer.trial


class DecisionSettings(AuditSettings):
    """Settings of an audit of answers that are choices: only the settings that every audit has."""

    needs: ClassVar[str] = "choices"


class RecordAudit(UnitAudit[CounterfactualProbe, SettingsT]):
    """Base class of audits of decisions about records, with one item for each attribute that is flipped.

    Class attributes:
        forms: kinds of answers that are measured: `OWN` (unchanged record), `AGAIN` (repeated prompts), `FLIPPED`.
        linear: whether the value for two groups is a difference between, or a ratio of, two means over answers, so that
            a baseline with more trials is used as a whole.
        paired: whether a record is measured only if it has answers for all values of the attribute.
    """

    kind = "counterfactual"
    counted = "records"
    closed_answers = True
    usable = "have all their answers"
    forms: ClassVar[tuple[str, ...]] = (OWN,)
    linear: ClassVar[bool] = True
    paired: ClassVar[bool] = False

    def items(self, probe: CounterfactualProbe, settings: SettingsT) -> list[RecordItem[SettingsT]]:
        return [AuditItem(probe, self.info.name, name, {"attribute": name}, settings) for name in probe.flips]

    def uses(self, item: RecordItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the answer has one of the `forms`, and its record (or its flip) the item's attribute."""
        attribute = item.labels["attribute"]
        return (
            labels["form"] in self.forms
            and labels.get(attribute) in item.probe.flips[attribute].values
            and labels.get("attribute", attribute) == attribute
        )

    def unread_shares(
        self, measurement: Measurement, n: Mapping[str, int], missing: Mapping[str, int]
    ) -> dict[str, float]:
        """Return the share of each group or, if records are paired, the largest share of incomplete records."""
        shares = super().unread_shares(measurement, n, missing)
        return {"records": min(1.0, sum(shares.values()))} if self.paired else shares

    def intersection(self, item: RecordItem[SettingsT], table: UnitTable) -> Intersection | None:
        flip = item.probe.flips[item.labels["attribute"]]
        return Intersection(tuple(part.attribute for part in flip.parts), flip.cells) if flip.parts else None

    def contributors(self, measurement: Measurement, comparison: Comparison | None) -> Sequence[Contributor]:
        moved = comparison.explanation.contributors if comparison is not None and comparison.value > 0 else ()
        return (*measurement.explanation.contributors, *moved)

    def finding(self, result: ItemResult) -> str:
        return f"Decisions depend on {axis_of(result)}."

    def comparable(self, item: RecordItem[SettingsT], current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
        """Return the answers, cut to the same number of trials unless the change is linear.

        The difference between two means has the same expected value for each number of trials. The largest of several
        differences becomes smaller with more trials.
        """
        if self.linear and len(item.probe.flips[item.labels["attribute"]].values) == 2:
            return current, baseline
        return at_equal_draws(current, baseline)


def at_equal_draws(current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
    """Cut both runs to the same number of answers to each own and to each flipped prompt."""
    kept: list[set[tuple[bool, tuple[bool, int]]]] = [set(), set()]
    for flipped in (False, True):
        draws = [
            sorted({_draw(answer) for answer in run if ("to" in answer.labels) == flipped})
            for run in (current, baseline)
        ]
        for own, found in zip(kept, draws, strict=True):
            own.update((flipped, draw) for draw in found[: min(map(len, draws))])
    first, second = (
        [answer for answer in run if ("to" in answer.labels, _draw(answer)) in own]
        for run, own in zip((current, baseline), kept, strict=True)
    )
    return first, second


def changed_columns_and_records(
    table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats, change: Floats
) -> tuple[dict[str, Json], Sequence[str]]:
    """Return, for `UnitAudit.change_details`, the column means of both runs, and the records that became worse.

    The shares are (records, columns), of records that are complete in both runs. A `change` above 0 is worse; the
    largest one comes first.
    """
    more = change.tolist()
    order = sorted((row for row, size in enumerate(more) if size > 0), key=lambda row: (-more[row], units[row]))
    shares = [
        {"value": name, "now": float(current[:, column].mean()), "then": float(baseline[:, column].mean())}
        for column, name in enumerate(table.columns)
    ]
    moved = [units[row] for row in order[:SHOWN_MOVED]]
    return {"moved": shares, "moved_records": moved}, [f"record {record}" for record in moved[:SHOWN_CONTRIBUTORS]]


def judge_details(probe: CounterfactualProbe, answers: Answers) -> dict[str, Json]:
    """Return the judge model's name, prompt and votes; empty without a judge model."""
    judged = [answer for answer in answers if answer.judged]
    if probe.reading.judging is None or not judged:
        return {}
    disputed = sorted(
        ((answer.text or "")[:SHOWN_TEXT], list(answer.judged.votes))
        for answer in judged
        if answer.judged and len({*answer.judged.votes}) > 1
    )
    return {
        "judge": {
            "model": ", ".join(sorted({answer.judged.by for answer in judged if answer.judged})),
            "prompt": prompts.filled_judge_prompt(probe.reading.judging, "ANSWER"),
            "votes": probe.reading.judging.votes,
            "answers": len(judged),
            "disagreements": len(disputed),
            "disputed": [{"text": text, "votes": votes} for text, votes in disputed[:SHOWN_DISPUTES]],
        }
    }


def explained_flips(
    phrase: str, positive: str, values: Sequence[str], in_favour: Sequence[int], axis: str, test: str = ""
) -> Explanation:
    """Return the explanation of decisions about records with two values: how many records favour each of them."""
    (first, second), (more, fewer) = values, in_favour
    told = (
        f"the answer {positive!r} more often as {first} ({counted(more, 'record')}) than as {second} "
        f"({counted(fewer, 'record')}{test})"
    )
    finding = (
        f"Decisions depend on {axis}. {more} records get the positive answer more often as {shortened(first)} than as "
        f"{shortened(second)}; {fewer} records get it more often as {shortened(second)}."
    )
    names = {f"records in favour of {value}": number for value, number in zip(values, in_favour, strict=True)}
    return Explanation.of(phrase, [told] if more or fewer else (), names, finding)


def counts(groups: Sequence[str], pairs: Iterable[tuple[str, Answer]]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of usable and of missing answers, each by group."""
    usable, missing = Counter[str](), Counter[str]()
    for group, answer in pairs:
        (usable if answer.usable else missing)[group] += 1
    return {group: usable[group] for group in groups}, {group: missing[group] for group in groups}


def shown_value(answer: Answer, attribute: str) -> str:
    return answer.labels["to"] if "to" in answer.labels else answer.labels[attribute]


def side_by_side(records: Iterable[str], attribute: str, answers: Answers) -> list[list[Example]]:
    """Return one pair of different answers of each record: about the unchanged and about the flipped record."""
    of_record: dict[str, dict[tuple[str, int], list[Answer]]] = {}
    for answer in answers:
        if answer.usable:
            draws = of_record.setdefault(answer.labels["record"], {})
            draws.setdefault((answer.labels["form"], answer.trial), []).append(answer)
    examples: list[list[Example]] = []
    for record in records:
        draws = of_record.get(record, {})
        pairs = (
            (own, flipped)
            for (form, trial), owns in sorted(draws.items())
            if form == OWN
            for own in owns
            for flipped in sorted(draws.get((FLIPPED, trial), ()), key=lambda each: each.labels["to"])
            if own.content != flipped.content
        )
        if first := next(pairs, None):
            examples.append([(shown_value(answer, attribute), answer) for answer in first])
    return examples


# Base class of audits of gaps between groups of records; by default, only answers about unchanged records are used.
#
# The groups are the values of an attribute, and the unit is the record. Each two groups are compared by themselves.
# A rate with too few records is not compared: a group without truly positive records has no true positive rate.
# Reports list it with its numbers and the reason; it changes nothing for the other groups.


@dataclass(frozen=True)
class Rate:
    """A rate of a group, and why it is not compared (empty if it is); without records of the group it is undefined."""

    name: str
    group: str
    cell: Cell
    left_out: str

    def to_json(self) -> dict[str, Json]:
        """Return the rate with Wilson's interval."""
        cell, z = self.cell, intervals.quantile(0.975)
        return {
            "name": self.name,
            "group": self.group,
            "records": int(cell.size),
            "hits": cell.total_hits,
            "rate": cell.rate if cell.size else None,
            "interval": list(intervals.wilson(cell.effective_hits, cell.effective_size, z)) if cell.size else None,
            "left_out": self.left_out,
        }


def known_rates(rates: Sequence[Rate]) -> dict[str, float]:
    return {f"{rate.name} of {rate.group}": rate.cell.rate for rate in rates if rate.cell.size}


def cells_of(rows: Floats) -> list[Cell]:
    """Return the cells of complete rows of hits and sizes."""
    return [Cell.of(rows, place) for place in range(rows.shape[1] // 2)]


class GroupAudit(RecordAudit[SettingsT]):
    """Base class of audits whose value is the largest gap between two groups in a rate, or in one of several, 0..1.

    The class attribute `rates` has the names of the rates.
    """

    version = 4
    compares_sides = True
    rates: ClassVar[tuple[str, ...]]

    def is_hit(self, probe: CounterfactualProbe, answer: Answer) -> float:
        """Return how much the answer adds to the numerator of its rate, 0..1; by default, positive answers add 1."""
        return _positive_share(probe, answer)

    def rate_of(self, probe: CounterfactualProbe, answer: Answer) -> str | None:
        """Return the rate that includes the answer; `None` if it depends on a true answer that is unknown."""
        return self.rates[0]

    def uses(self, item: RecordItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the item needs these answers; recorded ones about own records of no group are only counted."""
        recorded = item.probe.responses is not None and labels["form"] == OWN
        return super().uses(item, labels) or (recorded and not self._is_listed(item, labels))

    def counted_answers(self, item: RecordItem[SettingsT], answers: Answers) -> Answers:
        return [answer for answer in answers if self._is_listed(item, answer.labels)]

    def _is_listed(self, item: RecordItem[SettingsT], labels: Mapping[str, str]) -> bool:
        attribute = item.labels["attribute"]
        return labels.get(attribute) in item.probe.flips[attribute].values

    def intersection(self, item: RecordItem[SettingsT], table: UnitTable) -> Intersection | None:
        combined = super().intersection(item, table)
        return replace(combined, quantities=self.rates) if combined and len(self.rates) > 1 else combined

    def statistic(self, columns: int) -> ShareGap:
        return ShareGap(len(self.rates), columns // 2 // len(self.rates))

    def answers_by_group(self, item: RecordItem[SettingsT], answered: RecordAnswers) -> Mapping[str, Draws]:
        """Return a record's measured answers by the stated group; by default, those about the unchanged record."""
        return {answered.labels[item.labels["attribute"]]: answered.own}

    def left_out(self, cells: Sequence[Cell]) -> list[str]:
        """Return, for each cell (a rate of a group), why it is not compared; an empty text for a compared cell."""
        few = f"fewer than {MINIMUM_UNITS} records"
        return ["" if cell.units >= MINIMUM_UNITS else few if cell.size else "no records" for cell in cells]

    def table(self, item: RecordItem[SettingsT], answers: Answers) -> UnitTable:
        table, rates = self.rates_table(item, answers)
        shown, by_name = {name: list[str]() for name in self.rates}, {name: list[float]() for name in self.rates}
        for rate in rates:
            if not rate.left_out:
                shown[rate.name].append(f"{rate.cell.rate:.1%} of {rate.group}")
                by_name[rate.name].append(rate.cell.rate)
        told = "; ".join(f"{name}: {', '.join(shares) or 'none defined'}" for name, shares in shown.items())
        apart = max(by_name.values(), key=lambda shares: max(shares, default=0) - min(shares, default=0))
        return replace(
            table,
            effect_basis=apart,
            explain=lambda found: Explanation.of(f"gap {found.value:.3g} ({told})", contributions=known_rates(rates)),
        )

    def rates_table(self, item: RecordItem[SettingsT], answers: Answers) -> tuple[UnitTable, list[Rate]]:
        """Return the table with a row for each record, and the rates.

        Each pair (rate, group) has two columns, hits and size; all columns of hits come first. A record has its share
        of hits and the size 1 in the columns of its own pair, and 0 in all other columns. A group's rate is mean hits /
        mean size. The columns of a pair that is not compared are 0 for all records; see `left_out`.
        """
        attribute = item.labels["attribute"]
        groups: tuple[str, ...] = item.probe.flips[attribute].values
        pairs = [(rate, group) for rate in self.rates for group in groups]
        known = self.counted_answers(item, answers)
        by_name = by_record(known)
        rows = np.full((len(by_name), 2 * len(pairs)), np.nan)
        for row, answered in enumerate(by_name.values()):
            usable = {
                group: [answer for answer in by_trial.values() if answer.usable]
                for group, by_trial in self.answers_by_group(item, answered).items()
            }
            named = {group: self.rate_of(item.probe, own[0]) for group, own in usable.items() if own}
            if len(named) < len(usable) or None in named.values():
                continue
            rows[row] = 0.0
            for group, rate in named.items():
                place = pairs.index((str(rate), group))
                rows[row, place] = statistics.fmean(self.is_hit(item.probe, answer) for answer in usable[group])
                rows[row, len(pairs) + place] = 1.0
        n, missing = counts(groups, ((shown_value(answer, attribute), answer) for answer in known))
        cells = cells_of(self.observations(item, known, tuple(by_name), rows))
        reasons = self.left_out(cells)
        rows = _without_cells(rows, reasons)
        rates = [Rate(*pair, cell, why) for pair, cell, why in zip(pairs, cells, reasons, strict=True)]
        compared = [rate for rate in rates if not rate.left_out]
        smallest = int(min((rate.cell.size for rate in compared), default=0))
        trials = 1 + max((answer.trial for answer in known), default=0)
        records = Counter[str]()
        for each in compared:
            records[each.group] += int(each.cell.size)
        unlisted = self._unlisted(item, answers)
        table = UnitTable(
            units=tuple(by_name),
            columns=(
                *(f"{rate} of {group}" for rate, group in pairs),
                *(f"in {rate} of {group}" for rate, group in pairs),
            ),
            rows=rows,
            n=n,
            missing=missing,
            step=1 / (float(smallest) * trials) if smallest else 0.0,
            least_error=intervals.least_difference_error(smallest),
            # All unread answers of a group may belong to the smallest of its rates.
            counting={
                group: min(rate.cell.size / total for rate in compared if rate.group == group)
                for group, total in records.items()
            },
            notes=self._notes(rates, unlisted),
            details={
                "rates": [rate.to_json() for rate in rates],
                "unlisted": unlisted,
                "positive": item.probe.positive,
                **judge_details(item.probe, known),
            },
        )
        return table, rates

    def _notes(self, rates: Sequence[Rate], unlisted: Mapping[str, Json]) -> list[Concern]:
        notes = []
        if small := [
            f"{rate.name + ' of ' if len(self.rates) > 1 else ''}{rate.group} "
            f"({rate.cell.total_hits:.4g} of {counted(int(rate.cell.size), 'record')}, {rate.left_out})"
            for rate in rates
            if rate.left_out
        ]:
            notes.append(Concern("small_groups", f"not compared: {', '.join(small)}", withholds="nothing"))
        if unlisted["records"]:
            message = f"{counted(unlisted['records'], 'record')} of other or unknown groups: not compared"
            if unlisted["answers"]:
                message += f" ({unlisted['hits']:.4g} of {counted(unlisted['answers'], 'answer')} positive)"
            notes.append(Concern("unlisted_groups", message, withholds="nothing"))
        return notes

    def observations(self, item: RecordItem[SettingsT], answers: Answers, units: Sequence[str], rows: Floats) -> Floats:
        complete, clusters = complete_rows(rows), self.clusters(item, answers)
        if not clusters:
            return rows[complete]
        names = [clusters.get(unit, unit) for unit, is_complete in zip(units, complete, strict=True) if is_complete]
        return merged_rows(names, rows[complete], sums=True)[1]

    def _unlisted(self, item: RecordItem[SettingsT], answers: Answers) -> dict[str, Json]:
        """Count the records whose group is none of the probe's values, and their positive answers, if they have any."""
        others = [answer for answer in answers if not self._is_listed(item, answer.labels)]
        usable = [answer for answer in others if answer.usable]
        records = {answer.labels["record"] for answer in others}
        return {
            "records": max(len(records), item.probe.unlisted_records(item.labels["attribute"])),
            "answers": len(usable),
            "hits": sum(_positive_share(item.probe, answer) for answer in usable),
        }

    def check_table(self, table: UnitTable) -> None:
        """Raise `NotMeasurable` if there are too few records in total, or if no two groups can be compared."""
        super().check_table(table)
        if math.isnan(float(self.statistic(len(table.columns)).value(table.means()))):
            reasons = []
            for part in table.details["rates"]:
                if part["left_out"]:
                    rate = f"{part['name']} of " if len(self.rates) > 1 else ""
                    missing = table.missing[part["group"]]
                    answers = f", {counted(missing, 'answer')} missing" if missing else ""
                    reasons.append(f"{rate}{part['group']} ({part['left_out']}{answers})")
            raise NotMeasurable(
                "fewer than two groups have enough records to be compared; not enough are left for "
                f"{', '.join(reasons)}. Add records of these groups, or check their answers",
                unusable=any(table.missing.values()),
            )

    def shared_rows(self, current: Floats, baseline: Floats) -> tuple[Floats, Floats]:
        """Return the rows of both runs without the cells that are too small in one of them."""
        reasons = zip(*(self.left_out(cells_of(rows)) for rows in (current, baseline)), strict=True)
        small = [any(pair) for pair in reasons]
        return _without_cells(current, small), _without_cells(baseline, small)

    def pair_names(self, table: UnitTable, first: int, second: int) -> tuple[tuple[str, str], str]:
        groups = list(table.n)
        rate = self.rates[first // len(groups)] if len(self.rates) > 1 else ""
        return (groups[first % len(groups)], groups[second % len(groups)]), rate

    def unread_shares(
        self, measurement: Measurement, n: Mapping[str, int], missing: Mapping[str, int]
    ) -> dict[str, float]:
        """Return the shares of the compared groups, and of others if most of their answers are unread.

        Such a group may be too small to be compared for this reason.
        """
        compared = measurement.evidence.counting or {}
        return {
            group: share
            for group, share in super().unread_shares(measurement, n, missing).items()
            if (missing[group] and group in compared) or (share > 0.5 and missing[group] >= MINIMUM_UNITS)
        }

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> tuple[dict[str, Json], Sequence[str]]:
        cells = current.shape[1] // 2
        sums = [run.sum(axis=0) for run in (current, baseline)]
        rates = [gaps.shares(run[:cells], run[cells:]) for run in sums]
        moved = [
            (name, number_or_none(now), number_or_none(then))
            for name, now, then in zip(table.columns, rates[0], rates[1], strict=False)
        ]
        known = [(name, now, then) for name, now, then in moved if now is not None and then is not None and now != then]
        return (
            {"moved": [{"value": name, "now": now, "then": then} for name, now, then in moved]},
            [
                f"{name} {then:.1%} to {now:.1%}"
                for name, now, then in sorted(known, key=lambda rate: (-abs(rate[1] - rate[2]), rate[0]))
            ],
        )


def _positive_share(probe: CounterfactualProbe, answer: Answer) -> float:
    """Return 1 for a positive answer, else 0; the content of a number is such a share already."""
    return answer.content if isinstance(answer.content, float) else float(answer.content == probe.positive)


RATES_APART = cohens_h("the rates of the two groups that differ most")
"""Effect size of the gaps between groups of records."""


def _without_cells(rows: Floats, left_out: Sequence[object]) -> Floats:
    """Set hits and size to 0 in the cells with a reason to be left out; NaN stays NaN."""
    small = np.array([bool(reason) for reason in left_out])
    return np.where(np.tile(small, 2) & ~np.isnan(rows), 0.0, rows)
