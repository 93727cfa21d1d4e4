"""Verdicts and results of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Literal, Self

from pytest_fairness.records.measurements import Comparison, Measurement
from pytest_fairness.records.plain_json import Json, fields_of, without_nonfinite


class VerdictName(StrEnum):
    """Name of a verdict on an item."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    REGRESSION = "regression"
    OVER_LIMIT = "over-limit"
    INCONCLUSIVE = "inconclusive"
    NO_BASELINE = "no-baseline"
    STALE_BASELINE = "stale-baseline"
    NOT_MEASURABLE = "not-measurable"
    ERROR = "error"
    MEASURED = "measured"

    @property
    def outcome(self) -> Literal["passed", "failed", "inconclusive", "error", "measured"]:
        """Return the outcome of an item with this verdict and without the mark `xfail`."""
        match self:
            case VerdictName.PASS:
                return "passed"
            case VerdictName.INCONCLUSIVE:
                return "inconclusive"
            case VerdictName.MEASURED:
                return "measured"
            case VerdictName.NOT_MEASURABLE | VerdictName.ERROR:
                return "error"
            case _:
                return "failed"


def outcome_of(verdict: VerdictName, expected: Mapping[str, Json] | None) -> str:
    """Return an item's outcome: the outcome of its verdict, unless a mark `xfail` changes it to `known` or `failed`.

    Args:
        verdict: the verdict on the item.
        expected: the reason and the outcome of a mark `xfail`, as in `ItemResult.expected_failure`; `None` without it.
    """
    match expected and expected["outcome"]:
        case "xfailed":
            return "known"
        case "failed":
            return "failed"
    return verdict.outcome


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on one item.

    Attributes:
        name: name of the verdict.
        reason: explanation with the numbers, on one line.
        minimum_detectable: smallest true worsening that a run of this size detects with 80 % power; `None` if unknown.
        significant: whether the item is significantly worse than its baseline at the item's alpha, even if the
            worsening is within the tolerance.
        upper_bound: one-sided 95 % upper confidence bound of the change; `None` if the audit has none.
        contributors: words, groups or records that contribute most to the value, the strongest first (content words
            before function words). They are given only if the item is significantly worse than its baseline or limit,
            if its gap changed sides or, in a run without verdicts, if an effect was found; otherwise empty.
        undecided: phrase that says why there is no decision, and how many answers a decision needs; `None` if there is
            a decision, or if the verdict's name already says why.
    """

    name: VerdictName
    reason: str
    minimum_detectable: float | None = None
    significant: bool = False
    upper_bound: float | None = None
    contributors: Sequence[str] = ()
    undecided: str | None = None


@dataclass(frozen=True, slots=True)
class ItemResult:
    """Result of one item: verdict, measurement, comparison, and further data that reports show.

    Attributes:
        nodeid: pytest's id of the test item.
        probe, id, audit: name of the probe, id of the item, and name of the audit.
        labels: labels of the item, such as its group: `{"race": "Black"}`.
        measurement, comparison: `None` if the item was not measured, or not compared with a baseline.
        limit, tolerance: limit and tolerance of the item; `limit` is `None` without a limit.
        baseline: the baseline's `value`, `target`, `date`, `accepted_by` and `reason`, or `None`.
        category: the item's label `category`, by which reports count items; `None` without this label.
        examples: example answers that reports show side by side; see `run.examples`.
        system: the probe's system prompt.
        purpose: the probe's description.
        extra_fields: further fields of the probe's requests, by name; see `Sampling`.
        method: description of the audit; see `AuditInfo.to_json`.
        finding: finding of a failed item in words, as plain JSON; see `audits.findings.Finding`.
        line: line of the audit in the probe file, or of the Python test, from 1; `None` if unknown.
        effect: effect size of the measurement, as plain JSON; see `Effect`. `None` if there is no effect size.
        expected_failure: for an item with the mark `xfail`, the mark's `reason`, and the item's `outcome` in pytest:
            `xfailed`, `xpassed`, or `failed` if the item passes and the mark is strict. `None` without the mark, and
            for a verdict that is neither a failure nor a pass.
    """

    nodeid: str
    probe: str
    id: str
    audit: str
    labels: Mapping[str, str]
    verdict: Verdict
    measurement: Measurement | None = None
    comparison: Comparison | None = None
    limit: float | None = None
    tolerance: float | None = None
    baseline: Mapping[str, Json] | None = None
    category: str | None = None
    examples: Sequence[Mapping[str, Json]] = ()
    system: str | None = None
    purpose: str | None = None
    extra_fields: Mapping[str, Json] = field(default_factory=dict)
    method: Mapping[str, Json] = field(default_factory=dict)
    finding: Mapping[str, Json] | None = None
    line: int | None = None
    effect: Mapping[str, Json] | None = None
    expected_failure: Mapping[str, Json] | None = None

    @property
    def outcome(self) -> str:
        """Return the outcome of the item, by which reports count items; see `outcome_of`."""
        return outcome_of(self.verdict.name, self.expected_failure)

    def to_plain(self) -> dict[str, Json]:
        """Return the result as plain JSON with all fields, from which `from_plain` makes an equal result."""
        measurement, comparison = self.measurement, self.comparison
        return {
            **fields_of(self),
            "verdict": fields_of(self.verdict),
            "measurement": None if measurement is None else measurement.to_json(),
            "comparison": None if comparison is None else comparison.to_json(),
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Json]) -> Self:
        """Return the result from JSON data that `to_plain` returned."""
        verdict, measurement, comparison = data["verdict"], data["measurement"], data["comparison"]
        return cls(
            **{
                **data,
                "verdict": Verdict(**{**verdict, "name": VerdictName(verdict["name"])}),
                "measurement": None if measurement is None else Measurement.from_json(measurement),
                "comparison": None if comparison is None else Comparison.from_json(comparison),
            }
        )

    def to_json(self) -> dict[str, Json]:
        """Return the result in the form of the JSON report (schema 1), with `null` for non-finite numbers."""
        measurement, comparison = self.measurement, self.comparison
        plain: dict[str, Json] = without_nonfinite(
            {
                "nodeid": self.nodeid,
                "line": self.line,
                "probe": self.probe,
                "id": self.id,
                "audit": self.audit,
                "labels": dict(self.labels),
                "verdict": self.verdict.name.value,
                "reason": self.verdict.reason,
                "expected_failure": self.expected_failure,
                "contributors": list(self.verdict.contributors),
                "undecided": self.verdict.undecided,
                "value": measurement and measurement.value,
                "interval": measurement and measurement.interval and list(measurement.interval),
                "standard_error": measurement and measurement.standard_error,
                "p_value": measurement and measurement.p_value,
                "effect": self.effect,
                "n": dict(measurement.n) if measurement else {},
                "missing": dict(measurement.missing) if measurement else {},
                "concerns": [asdict(concern) for concern in measurement.concerns] if measurement else [],
                "minimum_detectable": self.verdict.minimum_detectable,
                "limit": self.limit,
                "tolerance": self.tolerance,
                "baseline": dict(self.baseline) if self.baseline else None,
                "change": comparison
                and {
                    "value": comparison.value,
                    "interval": comparison.interval and list(comparison.interval),
                    "p_value": comparison.p_value,
                    "significant": self.verdict.significant,
                    "upper_bound": self.verdict.upper_bound,
                    "changed_sides": comparison.reversal and comparison.reversal.description,
                    "from_answers": comparison.from_answers,
                    "same_answers": comparison.same_answers,
                    "groups": comparison.pair and str(comparison.pair),
                },
                "details": {
                    **(measurement.details if measurement else {}),
                    **(comparison.details if comparison else {}),
                    **_pair_details(measurement, comparison),
                    **({"examples": list(self.examples)} if self.examples else {}),
                },
            }
        )
        return plain


def _pair_details(measurement: Measurement | None, comparison: Comparison | None) -> dict[str, Json]:
    """Return the details `pairs` and `pair_changes`, each with a row for each pair of groups if there are several."""
    found = {"pairs": measurement and measurement.pairs, "pair_changes": comparison and comparison.pairs}
    return {
        name: [
            {
                "groups": list(pair.groups),
                **({"quantity": pair.quantity} if pair.quantity else {}),
                "value": pair.value,
                "interval": list(pair.interval),
                "p_value": pair.p_value,
            }
            for pair in pairs
        ]
        for name, pairs in found.items()
        if pairs and len(pairs) > 1
    }
