"""Measurements of items and their comparison with the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from pytest_fairness.records.plain_json import Json, fields_of

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Concern:
    """Reason to doubt a measurement, found by a check of the measured answers.

    Attributes:
        name: name of the check, by which reports group concerns (`constant_answers`, `missing_answers`).
        message: phrase for the verdict's reason, with numbers and remedy.
        withholds: what the concern rules out. `pass`: the item cannot pass. `test`: a verdict from a statistical test,
            so that the item is judged only with `gate: point`. `failure`: the item cannot fail. `verdict`: any verdict,
            and a new baseline. `nothing`: the message is a note.
    """

    name: str
    message: str
    withholds: Literal["nothing", "pass", "failure", "test", "verdict"] = "pass"


@dataclass(frozen=True, slots=True)
class Pair:
    """Comparison of two groups, or the change of their gap since the baseline.

    Attributes:
        groups: names of the two groups.
        quantity: name of the rate that is compared; empty if the audit has only one.
        value: number that compares the groups: a difference, first minus second group, or a ratio; in a comparison with
            a baseline, how much their gap grew.
        interval: two-sided 95 % confidence interval of `value`.
        p_value: p-value of the null hypothesis that the groups do not differ, or that nothing changed; adjusted for the
            number of pairs.
        standard_error: standard error of a change; `None` for a comparison within one run.
    """

    groups: tuple[str, str]
    quantity: str
    value: float
    interval: Interval
    p_value: float
    standard_error: float | None = None

    def __str__(self) -> str:
        first, second = self.groups
        return f"{self.quantity} of {first} and {second}" if self.quantity else f"{first} and {second}"

    def to_json(self) -> dict[str, Json]:
        """Return the pair for the JSON report; `from_json` makes an equal pair from it."""
        return {**fields_of(self), "groups": list(self.groups), "interval": list(self.interval)}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the pair from JSON data that `to_json` returned."""
        return cls(**{**data, "groups": tuple(data["groups"]), "interval": tuple(data["interval"])})


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measurement of one item in one run.

    Attributes:
        value: the estimate, in the audit's unit.
        interval: two-sided 95 % confidence interval of `value`; `None` if the audit has none.
        standard_error: standard error of `value`, in the same unit.
        p_value: p-value of the null hypothesis that the groups do not differ; one-sided if the audit has a direction.
        degrees_of_freedom: degrees of freedom of `standard_error`; `None` for the normal distribution.
        n: number of usable answers, by group.
        missing: number of refused, unreadable, cut off or failed answers, by group.
        details: further results that reports show, as plain JSON.
        pairs: comparisons of each two groups, if the audit tests each pair by itself.
        concerns: reasons to doubt the measurement; see `audits.answer_checks.checks`.
    """

    value: float
    interval: Interval | None
    standard_error: float | None
    p_value: float | None
    n: Mapping[str, int]
    missing: Mapping[str, int]
    details: Mapping[str, Json] = field(default_factory=dict)
    concerns: Sequence[Concern] = ()
    degrees_of_freedom: float | None = None
    pairs: Sequence[Pair] = ()

    @property
    def judgeable(self) -> bool:
        """Return whether a verdict or a baseline may be based on the measurement."""
        return all(concern.withholds != "verdict" for concern in self.concerns)

    def to_json(self) -> dict[str, Json]:
        """Return the measurement as plain JSON, from which `from_json` makes an equal measurement."""
        return {
            **fields_of(self),
            "concerns": [fields_of(concern) for concern in self.concerns],
            "pairs": [pair.to_json() for pair in self.pairs],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the measurement from JSON data that `to_json` returned."""
        concerns = tuple(Concern(**concern) for concern in data["concerns"])
        known = {**data, **_numbers(data), "interval": _interval(data["interval"]), "concerns": concerns}
        return cls(**{**known, "pairs": _pairs(data)})


@dataclass(frozen=True, slots=True)
class Reversal:
    """Gap that changed sides since the baseline: the group that is worse off now was better off then.

    The size of the gap does not show a reversal. If the groups' refusal rates change from 40 % and 10 % to 10 % and 40
    %, the gap is 0.3 before and after.

    Attributes:
        value: size of the current gap, in the audit's unit.
        p_value: two-sided p-value of the null hypothesis that nothing changed.
        description: phrase about the gaps of run and baseline, for the verdict's reason.
    """

    value: float
    p_value: float
    description: str

    @classmethod
    def with_bonferroni(cls, value: float, p_value: float, description: str) -> Self:
        """Return a reversal with a doubled p-value (Bonferroni), because reversal and change are both tested."""
        return cls(value, min(1.0, 2 * p_value), description)


@dataclass(frozen=True, slots=True)
class SharedChange:
    """Large change of the answers since the baseline that all groups share; see `audits.comparisons.shared_changes`.

    Attributes:
        quantity: what changed: `mean number`, `answers`, `refusals`, `words of an answer`, or a similarity of lists.
        text: phrase with the numbers of all groups together and of each group: `mean number 72 → 42 points (…)`.
    """

    quantity: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Change of an item's value since its baseline; a positive change is a worsening.

    Attributes:
        value: change since the baseline, in the audit's unit.
        interval: two-sided 95 % confidence interval of `value`.
        standard_error: standard error of `value`.
        p_value: one-sided p-value of the null hypothesis that nothing changed.
        from_answers: whether the answers of run and baseline were compared; if not, only the baseline's stored value
            and standard error were available.
        details: further results about the change that reports show, as plain JSON.
        degrees_of_freedom: degrees of freedom of `standard_error`; `None` for the normal distribution.
        reversal: the reversal, if the gap changed sides; else `None`.
        pairs: change of the gap of each two groups, if the audit tests each pair by itself and has several pairs.
        same_answers: whether the answers of the run are those of the baseline, so that nothing was compared.
        pair: the one of `pairs` that `value`, its error and its p-value are about: the groups that differ most in both
            runs together or, if another gap grew significantly beyond the tolerance, the surest of these.
        shared_changes: large changes of the answers that all groups share, which the value does not show.
    """

    value: float
    interval: Interval | None = None
    standard_error: float | None = None
    p_value: float | None = None
    from_answers: bool = True
    details: Mapping[str, Json] = field(default_factory=dict)
    degrees_of_freedom: float | None = None
    reversal: Reversal | None = None
    pairs: Sequence[Pair] = ()
    same_answers: bool = False
    pair: Pair | None = None
    shared_changes: Sequence[SharedChange] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the comparison as plain JSON, from which `from_json` makes an equal comparison."""
        return {
            **fields_of(self),
            "reversal": None if self.reversal is None else fields_of(self.reversal),
            "shared_changes": [fields_of(change) for change in self.shared_changes],
            "pairs": [pair.to_json() for pair in self.pairs],
            "pair": self.pair and self.pair.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the comparison from JSON data that `to_json` returned."""
        reversal = None if data["reversal"] is None else Reversal(**data["reversal"])
        shared = tuple(SharedChange(**change) for change in data.get("shared_changes", ()))
        known = {**data, **_numbers(data), "interval": _interval(data["interval"]), "reversal": reversal}
        known["shared_changes"] = shared
        pair = data["pair"] and Pair.from_json(data["pair"])
        return cls(**{**known, "pairs": _pairs(data), "pair": pair})


def _numbers(data: Mapping[str, Json]) -> dict[str, float | None]:
    """Return the numeric fields of a measurement or comparison; raise `TypeError` if a field is no number."""
    optional = {name: data[name] for name in ("standard_error", "p_value", "degrees_of_freedom")}
    numbers = {name: None if number is None else number + 0 for name, number in optional.items()}
    return {"value": data["value"] + 0, **numbers}


def _pairs(data: Mapping[str, Json]) -> tuple[Pair, ...]:
    return tuple(map(Pair.from_json, data["pairs"]))


def _interval(pair: Json) -> Interval | None:
    return None if pair is None else (float(pair[0]), float(pair[1]))
