"""Records whose answer changes if one attribute is flipped: counts by value, and other fields that change."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pytest_fairness.audits.records.decisions import SHOWN_TEXT, RecordAnswers, Trials
from pytest_fairness.probes.counterfactual.flips import Flip
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.records import Answer, Json
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.resampling import paired_tests, significance

SHOWN_FLIPS = 200
"""Largest number of changed records in the details."""


@dataclass(frozen=True)
class RecordChange:
    """Changes of the answers about one record if an attribute is flipped, and if the prompt is repeated.

    Attributes:
        labels: labels of the record's answers.
        changed: share of answers about the flipped record that differ from the answer about the unchanged record in the
            same trial; NaN if, for one of the attribute's other values, no trial has usable answers about both records.
        again: share of answers to the repeated, unchanged prompt that differ from the first answer in the same trial;
            NaN if the prompt was not repeated, or if no trial has two usable answers.
        towards: mean over trials, for each other value of the attribute: +1 if only the unchanged record gets the
            positive answer, −1 if only the flipped record gets it, 0 otherwise.
        example: answer about the unchanged record, a different answer about the flipped record, and the attribute's
            value after the flip; `None` if no answer changed.
    """

    labels: Mapping[str, str]
    changed: float
    again: float
    towards: Mapping[str, float]
    example: tuple[Answer, Answer, str] | None


def record_change(answered: RecordAnswers, positive: str, attribute: str, values: Sequence[str]) -> RecordChange:
    """Return the changes of the answers about one record.

    Args:
        answered: answers about the record.
        positive: text of the positive answer.
        attribute: name of the flipped attribute.
        values: all values of the attribute.
    """
    pairs = [
        (own, flipped, value)
        for value in values
        if value != answered.labels[attribute]
        for own, flipped in _pairs(answered.own, answered.flipped.get(value, {}))
    ]
    again = [own.content != other.content for own, other in _pairs(answered.own, answered.again)]
    complete = {value for _, _, value in pairs} == {*values} - {answered.labels[attribute]}
    towards: dict[str, list[int]] = {}
    for own, flipped, value in pairs:
        towards.setdefault(value, []).append((own.content == positive) - (flipped.content == positive))
    return RecordChange(
        labels=answered.labels,
        changed=statistics.fmean(own.content != flipped.content for own, flipped, _ in pairs) if complete else np.nan,
        again=statistics.fmean(again) if again else np.nan,
        towards={value: statistics.fmean(signs) for value, signs in towards.items()},
        example=next((pair for pair in pairs if pair[0].content != pair[1].content), None),
    )


def _pairs(first: Trials, second: Trials) -> Iterator[tuple[Answer, Answer]]:
    """Yield the pairs of usable answers with the same trial number."""
    for trial in sorted(first.keys() & second.keys()):
        if first[trial].usable and second[trial].usable:
            yield first[trial], second[trial]


def shares(records: Sequence[RecordChange], *, repeated: bool) -> dict[str, Json]:
    """Return the mean share of a record's answers that change if the record is flipped, with Wilson's interval.

    The detail `floor` is the mean share of answers that change if the unchanged prompt is repeated; `None` if no prompt
    is repeated. The result is empty without records.

    Args:
        records: records without missing answers.
        repeated: whether prompts were repeated unchanged.
    """
    if not records:
        return {}
    changed = sum(record.changed for record in records)
    return {
        "share": changed / len(records),
        "share_interval": list(proportions.wilson(changed, len(records), normal.quantile(0.975))),
        "floor": statistics.fmean(record.again for record in records) if repeated else None,
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
