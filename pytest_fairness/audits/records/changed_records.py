"""Records whose answer changes if one attribute is flipped: counts by value, and other fields that change."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from pytest_fairness.audits.records.decisions import SHOWN_TEXT, Draws, RecordAnswers
from pytest_fairness.probes.counterfactual.flips import Flip
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.records import Answer, Json
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.resampling import paired_tests, significance

SHOWN_FLIPS = 200
"""Largest number of changed records in the details."""


class Repeats(StrEnum):
    """Prompts to which a run has at least two answers."""

    ALL = "own and flipped prompts"
    OWN = "own prompts"
    NONE = "no prompts"

    @classmethod
    def of(cls, records: Collection[RecordAnswers]) -> Repeats:
        """Return the prompts that were asked at least twice for at least half of the records."""
        own = sum(len(record.own) > 1 for record in records)
        all_prompts = sum(
            len(record.own) > 1 and all(len(draws) > 1 for draws in record.flipped.values()) for record in records
        )
        return cls.ALL if 2 * all_prompts >= len(records) else cls.OWN if 2 * own >= len(records) else cls.NONE


@dataclass(frozen=True)
class RecordChange:
    """Changes of the answers about one record if an attribute is flipped, and if a prompt is repeated.

    Attributes:
        labels: labels of the record's answers.
        changed: share of the pairs of an answer about the unchanged and an answer about the flipped record that differ;
            NaN if, for one of the attribute's other values, there is no such pair of usable answers.
        again: share of the pairs of two answers to the same prompt that differ; 0 if no prompt was repeated, and NaN if
            a repeated prompt has fewer than two usable answers. Half of this share is that of the own prompt, and half
            that of the flipped prompts, if these were repeated.
        towards: for each other value of the attribute, the share of positive answers about the unchanged record minus
            the share about the flipped record.
        example: answer about the unchanged record, a different answer about the flipped record, and the attribute's
            value after the flip; `None` if no answer changed.
    """

    labels: Mapping[str, str]
    changed: float
    again: float
    towards: Mapping[str, float]
    example: tuple[Answer, Answer, str] | None


def record_change(
    answered: RecordAnswers, positive: str, attribute: str, values: Sequence[str], repeats: Repeats
) -> RecordChange:
    """Return the changes of the answers about one record.

    Args:
        answered: answers about the record.
        positive: text of the positive answer.
        attribute: name of the flipped attribute.
        values: all values of the attribute.
        repeats: the prompts that were repeated.
    """
    own = _usable(answered.own)
    flipped = {
        value: _usable(answered.flipped.get(value, {})) for value in values if value != answered.labels[attribute]
    }
    before, after = _contents(own), {value: _contents(answers) for value, answers in flipped.items()}
    again = 0.0 if repeats is Repeats.NONE else _difference_of_repeats(before)
    if repeats is Repeats.ALL:
        again = (again + statistics.fmean(map(_difference_of_repeats, after.values()))) / 2
    pairs = ((first, second, value) for value in flipped for first in own for second in flipped[value])
    return RecordChange(
        labels=answered.labels,
        changed=statistics.fmean(_difference(before, contents) for contents in after.values()),
        again=again,
        towards={
            value: before[positive] / len(own) - contents[positive] / contents.total()
            for value, contents in after.items()
            if own and contents
        },
        example=next((pair for pair in pairs if pair[0].content != pair[1].content), None),
    )


def _usable(draws: Draws) -> list[Answer]:
    return [draws[draw] for draw in sorted(draws) if draws[draw].usable]


def _contents(answers: Iterable[Answer]) -> Counter[str]:
    return Counter(answer.content for answer in answers)


def _difference(first: Counter[str], second: Counter[str]) -> float:
    """Return the share of the pairs of an answer of each side that differ; NaN without pairs."""
    pairs = first.total() * second.total()
    return 1 - sum(count * second[content] for content, count in first.items()) / pairs if pairs else math.nan


def _difference_of_repeats(answers: Counter[str]) -> float:
    """Return the share of the pairs of two of the answers that differ; NaN without pairs."""
    pairs = answers.total() * (answers.total() - 1)
    return 1 - sum(count * (count - 1) for count in answers.values()) / pairs if pairs else math.nan


def shares(records: Sequence[RecordChange], repeats: Repeats) -> dict[str, Json]:
    """Return the mean share of a record's answers that change if the record is flipped, with Wilson's interval.

    The detail `floor` is the mean share of answers that change if a prompt is repeated; `None` if no prompt is
    repeated. The result is empty without records.

    Args:
        records: records without missing answers.
        repeats: the prompts that were repeated.
    """
    if not records:
        return {}
    changed = sum(record.changed for record in records)
    return {
        "share": changed / len(records),
        "share_interval": list(proportions.wilson(changed, len(records), normal.quantile(0.975))),
        "floor": None if repeats is Repeats.NONE else statistics.fmean(record.again for record in records),
        "repeated": repeats.value,
    }


def directions(records: Sequence[RecordChange], attribute: str, values: Sequence[str]) -> dict[str, Json]:
    """Return, for each pair of values, how many records get more positive answers with each value, and McNemar's test.

    The p-values are adjusted for all pairs by Holm's method. The entries of the pair with the smallest p-value are
    repeated at the top level of the result. The result is empty if no pair of values has answers.

    Args:
        records: records without missing answers.
        attribute: name of the flipped attribute.
        values: all values of the attribute.
    """
    tested: list[tuple[float, float, dict[str, Json]]] = []
    for first, second in combinations(values, 2):
        own = [
            record.towards[other] * sign
            for record in records
            for value, other, sign in ((first, second, 1), (second, first, -1))
            if record.labels[attribute] == value and other in record.towards
        ]
        if own:
            one_way, other_way = sum(sign > 0 for sign in own), sum(sign < 0 for sign in own)
            directional = statistics.fmean(own)
            pair = {"values": [first, second], "records": len(own), "directional": directional}
            p_value = paired_tests.mcnemar(one_way, other_way, two_sided=True)
            tested.append((p_value, -abs(directional), {**pair, "n10": one_way, "n01": other_way}))
    if not tested:
        return {}
    adjusted = significance.holm([p_value for p_value, _, _ in tested])
    pairs = [{**pair, "mcnemar_p": p_value} for p_value, (_, _, pair) in zip(adjusted, tested, strict=True)]
    strongest = pairs[min(range(len(tested)), key=lambda place: tested[place][:2])]
    return {**strongest, "records": len(records), "pairs": pairs}


def change_with_other_fields(
    probe: CounterfactualProbe, flip: Flip, records: Sequence[RecordChange]
) -> dict[str, Json]:
    """Return two shares of changed answers: for records whose flip changes other fields too, and for all other records.

    For example, a flip of the sex may also change "Husband" to "Wife". The result is empty if flips change no other
    fields, or if the probe reads its answers from a file (key `responses`).
    """
    if not flip.dependents or probe.responses is not None:
        return {}
    fields_of = {record.id: record.fields for record in probe.records}
    groups: dict[str, list[float]] = {"along": [], "alone": []}
    for record in records:
        fields = fields_of.get(record.labels["record"])
        if fields is not None:
            others = flip.others(record.labels[flip.attribute])
            moved = any(len(_differing_fields(fields, flip.apply(fields, other))) > 1 for other in others)
            groups["along" if moved else "alone"].append(record.changed)
    return {
        "by_edit": {
            name: {"records": len(shares), "share": statistics.fmean(shares) if shares else None}
            for name, shares in groups.items()
        }
    }


def _differing_fields(fields: Mapping[str, str], other: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the fields that differ, each with its value in both records."""
    return {name: [fields.get(name, ""), value] for name, value in other.items() if fields.get(name) != value}


def changed_answers(probe: CounterfactualProbe, flip: Flip, records: Sequence[RecordChange]) -> list[dict[str, Json]]:
    """Return at most `SHOWN_FLIPS` records whose answers changed, the largest change first, for reports."""
    fields_of = {record.id: record.fields for record in probe.records}
    details = []
    for record in sorted(records, key=lambda record: (-record.changed, record.labels["record"])):
        if record.example is None:
            continue
        own, flipped, value = record.example
        fields = fields_of.get(record.labels["record"], flip.fields_of(record.labels[flip.attribute]))
        details.append(
            {
                "record": record.labels["record"],
                "share": record.changed,
                "fields": _differing_fields(fields, flip.apply(fields, value)),
                "answers": [own.content, flipped.content],
                "texts": [(own.text or "")[:SHOWN_TEXT], (flipped.text or "")[:SHOWN_TEXT]],
            }
        )
    return details[:SHOWN_FLIPS]


def flip_example(flip: Mapping[str, Json]) -> dict[str, Json]:
    """Return a changed record as an example for reports; `flip` is one of the entries of `changed_answers`."""
    edits = ", ".join(f"{name} {before} to {after}" for name, (before, after) in flip["fields"].items())
    return {"group": f"record {flip['record']}, {edits}", "text": " / ".join(flip["texts"])}
