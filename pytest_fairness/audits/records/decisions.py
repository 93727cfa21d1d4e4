"""Base class of audits of decisions about records, and the answers grouped by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pytest_fairness.audits.base import AuditItem, Example, SettingsT
from pytest_fairness.audits.findings import Finding, axis_of, details_of, shortened
from pytest_fairness.audits.intersections import Intersection
from pytest_fairness.audits.unit_audit import UnitAudit, UnitTable
from pytest_fairness.plurals import counted
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.counterfactual.model import AGAIN, FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.probes.prompts import judge_prompt
from pytest_fairness.records import Answer, Answers, Comparison, ItemResult, Json, Measurement
from pytest_fairness.stats.arrays import Floats

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
    """The answers about one record.

    Attributes:
        labels: labels of the first answer.
        own: answers about the unchanged record.
        flipped: answers about the flipped record, by the value to which it was flipped.
    """

    labels: Mapping[str, str]
    own: Draws = field(default_factory=dict)
    flipped: dict[str, Draws] = field(default_factory=dict)


def by_record(answers: Iterable[Answer]) -> dict[str, RecordAnswers]:
    """Return the answers of one item, grouped by record and sorted by the records' names."""
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
        """Return one item for each attribute that the probe flips."""
        return [AuditItem(probe, self.info.name, name, {"attribute": name}, settings) for name in probe.flips]

    def uses(self, item: RecordItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to an answer that the item needs.

        The answer must have one of the audit's `forms`, and its record must have a value of the item's attribute. An
        answer about a flipped record must belong to a flip of this attribute.
        """
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
        """Return the attributes that the item combines; `None` for a single one. See `UnitAudit.intersection`."""
        flip = item.probe.flips[item.labels["attribute"]]
        return Intersection(tuple(part.attribute for part in flip.parts), flip.cells) if flip.parts else None

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return how many records get the positive answer more often with each of the two compared attribute values.

        The result is empty if the audit does not count these records.
        """
        details = measurement.details
        if details.get("n10") is None:
            return {}
        first, second = details["values"][:2]
        return {f"records in favour of {first}": details["n10"], f"records in favour of {second}": details["n01"]}

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return a phrase with the numbers of records that favour each compared value, and records that became worse.

        A record favours the attribute value with which it gets more positive answers. If no record favours a value, the
        phrase is left out. Records are named only if the audit's value became worse.
        """
        details, contributors = measurement.details, []
        if details.get("n10") or details.get("n01"):
            first, second = details["values"][:2]
            test = f"; McNemar p = {details['mcnemar_p']:.2g}" if "mcnemar_p" in details else ""
            contributors.append(
                f"the answer {details['positive']!r} more often as {first} ({counted(details['n10'], 'record')}) than "
                f"as {second} ({counted(details['n01'], 'record')}{test})"
            )
        moved = comparison.details.get("moved_records", []) if comparison is not None and comparison.value > 0 else []
        return [*contributors, *(f"record {record}" for record in moved[:SHOWN_CONTRIBUTORS])]

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that decisions depend on the attribute; see `Audit.finding`."""
        axis, details = axis_of(result), details_of(result)
        description = f"Decisions depend on {axis}."
        if details.get("n10") is not None:
            first, second = map(shortened, details["values"])
            description += (
                f" {details['n10']} records get the positive answer more often as {first} than as {second}; "
                f"{details['n01']} records get it more often as {second}."
            )
        return Finding(
            description,
            f"Decide by the other facts of the record only. Give the same answer for every {axis}, even if the "
            "record only hints at it.",
            trainable=True,
        )

    def comparable(self, item: RecordItem[SettingsT], current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
        """Return the answers of both runs, cut to the same number of trials unless the audit's change is linear.

        The difference between two means has the same expected value for each number of trials. The largest of several
        differences becomes smaller with more trials.
        """
        if self.linear and len(item.probe.flips[item.labels["attribute"]].values) == 2:
            return current, baseline
        return at_equal_draws(current, baseline)


def at_equal_draws(current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
    """Return the answers of both runs, cut to the same number of answers to each own and to each flipped prompt."""
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
) -> dict[str, Json]:
    """Return the mean of each column in both runs, and the records that became worse, the largest worsening first.

    Args:
        table: table of this run, for the names of the columns.
        units: names of the records that are complete in both runs.
        current, baseline: (records, columns) shares in the two runs.
        change: (records,) change of each record; above 0 if the record became worse.
    """
    more = change.tolist()
    order = sorted((row for row, size in enumerate(more) if size > 0), key=lambda row: (-more[row], units[row]))
    shares = [
        {"value": name, "now": float(current[:, column].mean()), "then": float(baseline[:, column].mean())}
        for column, name in enumerate(table.columns)
    ]
    return {"moved": shares, "moved_records": [units[row] for row in order[:SHOWN_MOVED]]}


def judge_details(probe: CounterfactualProbe, answers: Answers) -> dict[str, Json]:
    """Return details of the judge model: its name, its prompt and its votes; empty without a judge model."""
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
            "prompt": judge_prompt.filled(probe.reading.judging, "ANSWER"),
            "votes": probe.reading.judging.votes,
            "answers": len(judged),
            "disagreements": len(disputed),
            "disputed": [{"text": text, "votes": votes} for text, votes in disputed[:SHOWN_DISPUTES]],
        }
    }


def counts(groups: Sequence[str], pairs: Iterable[tuple[str, Answer]]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of usable and of missing answers, each by group; `pairs` holds each answer with its group."""
    usable, missing = Counter[str](), Counter[str]()
    for group, answer in pairs:
        (usable if answer.usable else missing)[group] += 1
    return {group: usable[group] for group in groups}, {group: missing[group] for group in groups}


def shown_value(answer: Answer, attribute: str) -> str:
    """Return the attribute's value in the prompt of the answer."""
    return answer.labels["to"] if "to" in answer.labels else answer.labels[attribute]


def side_by_side(records: Iterable[str], attribute: str, answers: Answers) -> list[list[Example]]:
    """Return pairs of different answers: about an unchanged record, and about the same record after a flip.

    A record has at most one pair.
    """
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
