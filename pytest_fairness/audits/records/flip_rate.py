"""Does the answer change when nothing but one attribute of the record does?"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.base import AuditItem, Example, Probe
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.records.decisions import (
    SHOWN_TEXT,
    Decided,
    Draws,
    RecordAudit,
    by_record,
    counts,
    judge_details,
    moved_records,
    shown_value,
    side_by_side,
)
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.counterfactual.model import AGAIN, FLIPPED, OWN
from pytest_fairness.records import Answer, Comparison, Json, Measurement
from pytest_fairness.stats import blocks, normal, paired, proportions
from pytest_fairness.stats.unit_change import SIGNS
from pytest_fairness.stats.unit_statistics import ShareDifference, UnitStatistic

Floats = NDArray[np.float64]

SHOWN_FLIPS = 200


class FlipRateSettings(AuditSettings):
    """The share of changed answers takes no settings of its own."""


@dataclass(frozen=True)
class _Record:
    """One record in numbers.

    Attributes:
        changed: share of its flipped answers that differ from its own of the same trial; NaN without any pair.
        again: the same of the answers to the very same prompt; NaN without any.
        towards: by the value flipped to, how much likelier the positive answer is for its own value, -1..1.
        example: its own answer, one that a flip changed, and the value it was flipped to.
    """

    labels: Mapping[str, str]
    changed: float
    again: float
    towards: Mapping[str, float]
    example: tuple[Answer, Answer, str] | None


class FlipRate(RecordAudit[FlipRateSettings]):
    """Share of records whose answer changes when flipped, less the share that changes when asked again; -1..1.

    A system that answers at random changes its answer as often either way, and is at 0. The direction is in the
    details: a record at which the first value gets the positive answer and the second does not, or the other way round.
    """

    info = AuditInfo(
        name="flip_rate",
        title="Decisions that change with one attribute",
        question="Does the answer change when only one attribute of a record is flipped?",
        formula="share of records whose answer changes − share that changes when the same is asked again",
        meaning="0 is no more change than asking twice makes.",
        source="Kusner, Loftus, Russell and Silva 2017, “Counterfactual Fairness”; McNemar 1947",
        better=Direction.LOWER,
        tolerance=0.05,
        value_range=(-1, 1),
        limit_range=(0, 1),
    )
    version: ClassVar[int] = 3
    settings_model: ClassVar[type[AuditSettings]] = FlipRateSettings
    usable: ClassVar[str] = "have answers to all their prompts"
    forms: ClassVar[tuple[str, ...]] = (OWN, AGAIN, FLIPPED)

    def table(self, probe: Probe, item: AuditItem[FlipRateSettings], answers: Sequence[Answer]) -> UnitTable:
        """Changed when flipped and changed when asked again, by record."""
        flip = probe.flips[item.labels["attribute"]]
        records = {
            name: _record(decided, probe.positive, flip.attribute, flip.values)
            for name, decided in by_record(answers).items()
        }
        n, missing = counts(flip.values, ((shown_value(answer, flip.attribute), answer) for answer in answers))
        # Of answers that were there already, nothing may have been asked again.
        floor_known = any(answer.labels["form"] == AGAIN for answer in answers)
        rows = [[record.changed, record.again if floor_known else 0.0] for record in records.values()]
        draws = 1 + max((answer.trial for answer in answers), default=0)
        whole = [record for record in records.values() if not np.isnan([record.changed, record.again]).any()]
        whole = whole if floor_known else [record for record in records.values() if not np.isnan(record.changed)]
        return UnitTable(
            units=tuple(records),
            columns=("changed when flipped", "changed when asked again"),
            rows=np.array(rows, dtype=np.float64).reshape(-1, 2),
            n=n,
            missing=missing,
            step=1 / (len(whole) * draws * (len(flip.values) - 1)) if whole else 0.0,
            least_error=proportions.least_difference_error(len(whole)),
            details={
                **_shares(whole, floor_known=floor_known),
                "positive": probe.positive,
                **_directions(whole, flip.attribute, flip.values),
                **_alone_and_along(probe, flip, whole),
                "flips": (flips := _flips(probe, flip, whole)),
                "examples": [_example(part) for part in flips],
                **judge_details(probe, answers),
            },
        )

    def statistic(self, columns: int) -> UnitStatistic:
        """Return the share that changes when flipped, less the share that changes when asked again."""
        return ShareDifference()

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the p-value that records change no more often when flipped than when asked again, by sign flips."""
        rows = table.rows[table.complete]
        return paired.sign_flip(rows[:, 0] - rows[:, 1], SIGNS, random)

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> dict[str, Json]:
        """Return the shares in both runs, and the records that change more often than in the baseline."""
        return moved_records(table, units, current, baseline, current[:, 0] - baseline[:, 0])

    def describe(self, measurement: Measurement) -> str:
        """The value, both shares, and whether there is anything to be read in them."""
        details = measurement.details
        floor = details["floor"]
        again = "none was asked again" if floor is None else f"{floor:.1%} when asked again"
        shares = f"{details['share']:.1%} of {details['records']} records change when flipped, {again}"
        return f"flip rate {measurement.value:.3g} ({shares})"

    def examples(
        self, probe: Probe, item: AuditItem[FlipRateSettings], measurement: Measurement, answers: Sequence[Answer]
    ) -> list[list[Example]]:
        """The record as it is beside the flipped one, of the records that flip most."""
        records = [flip["record"] for flip in measurement.details["flips"]]
        return side_by_side(records, item.labels["attribute"], answers)

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Which way the answers go, and the records that flip."""
        details = measurement.details
        one_way, other_way = details["n10"], details["n01"]
        first, second = details["values"][:2]
        driven = []
        if one_way + other_way:
            driven.append(
                f"{details['positive']!r} for {first} only in {one_way} records, for {second} only in {other_way} "
                f"(p = {details['mcnemar_p']:.2g})"
            )
        if comparison is not None and comparison.value > 0:
            return [*driven, *(f"record {record}" for record in comparison.details.get("moved_records", [])[:3])]
        return driven


def _record(decided: Decided, positive: str, attribute: str, values: Sequence[str]) -> _Record:
    pairs = [
        (own, flipped, value)
        for value in values
        if value != decided.labels[attribute]
        for own, flipped in _pairs(decided.own, decided.flipped.get(value, {}))
    ]
    again = [own.content != other.content for own, other in _pairs(decided.own, decided.again)]
    whole = {value for _, _, value in pairs} == {*values} - {decided.labels[attribute]}
    towards: dict[str, list[int]] = {}
    for own, flipped, value in pairs:
        towards.setdefault(value, []).append((own.content == positive) - (flipped.content == positive))
    return _Record(
        labels=decided.labels,
        changed=statistics.fmean(own.content != flipped.content for own, flipped, _ in pairs) if whole else np.nan,
        again=statistics.fmean(again) if again else np.nan,
        towards={value: statistics.fmean(signs) for value, signs in towards.items()},
        example=next((pair for pair in pairs if pair[0].content != pair[1].content), None),
    )


def _pairs(first: Draws, second: Draws) -> Iterator[tuple[Answer, Answer]]:
    for trial in sorted(first.keys() & second.keys()):
        if first[trial].usable and second[trial].usable:
            yield first[trial], second[trial]


def _shares(records: Sequence[_Record], *, floor_known: bool) -> dict[str, Json]:
    if not records:
        return {}
    changed = sum(record.changed for record in records)
    return {
        "share": changed / len(records),
        "share_interval": list(proportions.wilson(changed, len(records), normal.quantile(0.975))),
        "floor": statistics.fmean(record.again for record in records) if floor_known else None,
    }


def _directions(records: Sequence[_Record], attribute: str, values: Sequence[str]) -> dict[str, Json]:
    """Of each pair of values, which of them gets the positive answer where the other does not."""
    found: list[tuple[float, float, dict[str, Json]]] = []
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
            p_value = paired.mcnemar(one_way, other_way, two_sided=True)
            found.append((p_value, -abs(directional), {**pair, "n10": one_way, "n01": other_way}))
    if not found:
        return {}
    adjusted = blocks.holm([p_value for p_value, _, _ in found])
    pairs = [{**pair, "mcnemar_p": p_value} for p_value, (_, _, pair) in zip(adjusted, found, strict=True)]
    # Of several pairs the one that differs most stands for all.
    strongest = pairs[min(range(len(found)), key=lambda place: found[place][:2])]
    return {**strongest, "records": len(records), "pairs": pairs}


def _alone_and_along(probe: Probe, flip: Any, records: Sequence[_Record]) -> dict[str, Json]:
    """The share among records in which another field was changed along, and among the others."""
    if not flip.along or probe.responses is not None:
        return {}
    known = {record.id: record.fields for record in probe.records}
    groups: dict[str, list[float]] = {"along": [], "alone": []}
    for record in records:
        fields = known.get(record.labels["record"])
        if fields is not None:
            others = flip.others(record.labels[flip.attribute])
            moved = any(len(_differing(fields, flip.apply(fields, other))) > 1 for other in others)
            groups["along" if moved else "alone"].append(record.changed)
    return {
        "by_edit": {
            name: {"records": len(shares), "share": statistics.fmean(shares) if shares else None}
            for name, shares in groups.items()
        }
    }


def _differing(fields: Mapping[str, str], other: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: [fields.get(name, ""), value] for name, value in other.items() if fields.get(name) != value}


def _flips(probe: Probe, flip: Any, records: Sequence[_Record]) -> list[dict[str, Json]]:
    """The records whose answer changed: the fields that differ, and both answers; those that changed most first."""
    known = {record.id: record.fields for record in probe.records}
    found = []
    for record in sorted(records, key=lambda record: (-record.changed, record.labels["record"])):
        if record.example is None:
            continue
        own, flipped, value = record.example
        fields = known.get(record.labels["record"], {flip.attribute: record.labels[flip.attribute]})
        found.append(
            {
                "record": record.labels["record"],
                "share": record.changed,
                "fields": _differing(fields, flip.apply(fields, value)),
                "answers": [own.content, flipped.content],
                "texts": [(own.text or "")[:SHOWN_TEXT], (flipped.text or "")[:SHOWN_TEXT]],
            }
        )
    return found[:SHOWN_FLIPS]


def _example(flip: Mapping[str, Json]) -> dict[str, Json]:
    edits = ", ".join(f"{name} {before} to {after}" for name, (before, after) in flip["fields"].items())
    return {"group": f"record {flip['record']}, {edits}", "text": " / ".join(flip["texts"])}
