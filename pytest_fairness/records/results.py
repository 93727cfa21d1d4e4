"""Measurements of items, their comparison with the baseline, their effect sizes, verdicts and results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Literal, Self

from pytest_fairness.records.plain import JsonRecord
from pytest_fairness.records.requests import Json, without_nonfinite

# Verdicts and results of items.


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
    """Return an item's outcome: the outcome of its verdict, unless a mark `xfail` changes it to `known` or `failed`."""
    match expected and expected["outcome"]:
        case "xfailed":
            return "known"
        case "failed":
            return "failed"
    return verdict.outcome


@dataclass(frozen=True, slots=True)
class Verdict(JsonRecord):
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


# Explanations of values and changes in words.


@dataclass(frozen=True, slots=True)
class Contributor(JsonRecord):
    """Word, group, case or record that contributes to a value, or to its change.

    Attributes:
        name: the word, or the name of the part, as the verdict's reason names it.
        group: group that has more of it, or that gets it more often; empty if it belongs to no group.
        now: its number in this run; `None` without a number.
        before: the same number in the baseline; `None` if it was not compared.
        unit: what the numbers are: `bits`, `z`, `weight`, `share of texts`, `per 100 words`.
        text: phrase with name and numbers for lists of contributors; empty if the name says everything.
    """

    name: str
    group: str = ""
    now: float | None = None
    before: float | None = None
    unit: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Listing(JsonRecord):
    """Contributors under one heading, the strongest first.

    Attributes:
        title: heading, such as `used more for woman (bits)`.
        parts: the contributors.
    """

    title: str
    parts: Sequence[Contributor]


@dataclass(frozen=True, slots=True)
class Quote(JsonRecord):
    """Answer that reports show as an example.

    Attributes:
        group: name of the answer's group.
        text: the answer; `None` without a response.
        status: status of the answer; `ok` if it could be measured.
        before: the baseline's answer to the same prompt; `None` if it has none.
        prompt: the prompt; `None` for answers in a file.
        set: number of the set of answers that are shown side by side, from 1.
        labels: labels of the answer.
        trial: number of the answer among those to the same prompt, from 0.
    """

    group: str
    text: str | None
    status: str = "ok"
    before: str | None = None
    prompt: str | None = None
    set: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    trial: int = 0

    def to_json(self) -> dict[str, Json]:
        """Return the answer as in the detail `examples` of the JSON report, without `before` if there is none."""
        plain = JsonRecord.to_json(self)
        return {name: value for name, value in plain.items() if name != "before" or value is not None}


@dataclass(frozen=True, slots=True)
class Explanation(JsonRecord):
    """Words and numbers about an item's value and its change, made once from its measurement and comparison.

    Attributes:
        phrase: the value in words, with the numbers that it is made of: `gap 0.2 (selected: 40.0% of Black, …)`.
        change: the change in words: `worse by 0.12`; empty without a comparison.
        unit: unit of value and change; empty for a share or a score.
        amount: the change as an amount, if it is not a number of the unit: `3 words grew`; else empty.
        contributors: words, groups, cases or records that contribute most to the value, or to its change if it got
            worse, the strongest first.
        contributions: a number for each part of the value (word, group or record), which baselines store.
        rates: rates or means that the value compares, such as each group's share of refused answers; those of unit
            `share` are shares of answers.
        lists: contributors with their numbers, by heading; reports show the first of each.
        words: words to highlight in the examples: those that contribute most; without a `group` if they are typical of
            no single group.
        notes: further phrases with numbers: refused and unreadable answers by group, values by paraphrase.
        sentences: sentences with their answers, those that became worse first.
        examples: answers that are shown side by side; empty for an item that passed.
        finding: how the answers of a failed item differ, in one or two sentences; empty for other items.
        placebo: value of the placebo swap; `unknown` if it was not measured, empty without a placebo.
        served, served_change: models that the server reports, and how they changed since the baseline; empty if
            unknown or unchanged.
    """

    phrase: str = ""
    change: str = ""
    unit: str = ""
    amount: str = ""
    contributors: Sequence[Contributor] = ()
    contributions: Mapping[str, float] = field(default_factory=dict)
    rates: Sequence[Contributor] = ()
    lists: Sequence[Listing] = ()
    words: Sequence[Contributor] = ()
    notes: Sequence[str] = ()
    sentences: Sequence[str] = ()
    examples: Sequence[Quote] = ()
    finding: str = ""
    placebo: str = ""
    served: str = ""
    served_change: str = ""

    @classmethod
    def of(
        cls,
        phrase: str = "",
        names: Iterable[str] = (),
        contributions: Mapping[str, float] | None = None,
        finding: str = "",
    ) -> Self:
        """Return an explanation whose contributors have names that say everything."""
        numbers = {name: float(number) for name, number in (contributions or {}).items()}
        return cls(phrase, contributors=tuple(map(Contributor, names)), contributions=numbers, finding=finding)


# Measurements of items and their comparison with the baseline.

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Concern(JsonRecord):
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
class Pair(JsonRecord):
    """Comparison of two groups, or the change of their gap since the baseline.

    Attributes:
        groups: names of the two groups.
        quantity: name of the rate that is compared; empty if the audit has only one.
        value: number that compares the groups: a difference, first minus second group, or a ratio; in a comparison with
            a baseline, how much their gap grew.
        interval: two-sided 95 % confidence interval of `value`.
        p_value: p-value of the null hypothesis that the groups do not differ, or that nothing changed; adjusted for the
            number of pairs.
        standard_error: standard error of `value`; `None` if only the p-value is needed.
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


@dataclass(frozen=True, slots=True)
class Evidence(JsonRecord):
    """Numbers that decisions and effect sizes need beside value, standard error and p-value.

    Attributes:
        units: number of measured or, in a comparison, of compared units such as records; `None` for trials.
        observations: number of independent observations if equal prompts share answers, so that they are fewer than the
            units; else `None`.
        step: change of the value if one answer of one unit changes; 0 if the value can change by any amount.
        bounds: one-sided bounds of the loss, the lower at the item's alpha and the upper at its beta; `None` to compute
            them from the standard error.
        effective_size: size of the sample whose share is the value, for bounds by Wilson's interval; `None` for others.
        smallest_share: smallest share of one group's texts in which the run detects a new word; `None` without words.
        needed_documents: number of a group's texts that must contain a new word for it to be significant (`None` if all
            are too few), and number of these texts; `None` without words.
        other_change: a second estimate of a change with its standard error, of which neither must exclude a pass; see
            `audits.rules`. `None` if there is only one.
        either_side: whether the direction of a gap is unknown, so that a pass must exclude a worsening on both sides.
        compared: numbers of the answers of run and baseline that a comparison used; `None` if it used all.
        effect_basis: numbers from which, with the value, the effect size follows: the compared shares, or the standard
            deviations within groups.
        counting: share of each group's read answers of which the value is made; `None` for all answers of all groups.
            Groups that are not compared are missing.
    """

    units: int | None = None
    observations: int | None = None
    step: float = 0.0
    bounds: Interval | None = None
    effective_size: float | None = None
    smallest_share: float | None = None
    needed_documents: tuple[int | None, int] | None = None
    other_change: tuple[float, float] | None = None
    either_side: bool = False
    compared: Sequence[int] | None = None
    effect_basis: Sequence[float] = ()
    counting: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class SampleSize(JsonRecord):
    """How many observations the answers of an item are, if several belong to one unit: a name, a prompt, near-copies.

    Attributes:
        units: what the units are, in the plural: `names of applicant`, `prompts`, `near-copies`.
        numbers: number of units, by group.
        answers: number of answers.
        correlation: intraclass correlation: share of the variance that answers of one unit have in common, 0..1.
        design_effect: factor by which it widens the variance of a mean.
        effective: number of independent answers that tell as much.
        smallest_p_value: smallest p-value that a test of these units can have.
        carrier: the unit that carries most of the value; empty if none does.
        without_carrier: the value without it.
        means: mean of each unit, such as the share of refusals for a name, if the audit compares means.
        declared: whether the units are a sample by the probe's key `units`, so that a result is about others, too.
    """

    units: str
    numbers: Mapping[str, int]
    answers: int
    correlation: float
    design_effect: float
    effective: float
    smallest_p_value: float
    carrier: str = ""
    without_carrier: float | None = None
    means: Mapping[str, float] = field(default_factory=dict)
    declared: bool = True

    def __str__(self) -> str:
        independent = f"{self.answers:,} answers, about {self.effective:,.0f} independent"
        rho = f"intraclass correlation {self.correlation:.2g}"
        if not self.declared:
            return f"{independent}: answers to a prompt are near-copies ({rho})"
        numbers = " + ".join(f"{number:,}" for number in self.numbers.values())
        effect = f"{rho}, design effect {self.design_effect:.2g}"
        return f"{independent} ({numbers} {self.units}, {effect}); generalises to other {self.units}"


@dataclass(frozen=True, slots=True)
class Measurement(JsonRecord):
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
        evidence: further numbers that decisions and the effect size need.
        placebo: value of the placebo swap, or why it was not measured; `None` without a placebo.
        explanation: the value in words, and what contributes to it.
        samples: sizes of the sample, by kind of unit; empty if each answer is an observation.
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
    evidence: Evidence = Evidence()
    placebo: float | str | None = None
    explanation: Explanation = Explanation()
    samples: Sequence[SampleSize] = ()

    @property
    def judgeable(self) -> bool:
        """Return whether a verdict or a baseline may be based on the measurement."""
        return all(concern.withholds != "verdict" for concern in self.concerns)


@dataclass(frozen=True, slots=True)
class Reversal(JsonRecord):
    """Gap that changed sides since the baseline: the group that is worse off now was better off then.

    The size of the gap does not show a reversal. If the groups' refusal rates change from 40 % and 10 % to 10 % and 40
    %, the gap is 0.3 before and after.

    Attributes:
        value: size of the current gap, in the audit's unit.
        p_value: two-sided p-value of the null hypothesis that nothing changed; see `intervals.p_value_of_second_test`.
        description: phrase about the gaps of run and baseline, for the verdict's reason.
    """

    value: float
    p_value: float
    description: str


@dataclass(frozen=True, slots=True)
class SharedChange(JsonRecord):
    """Large change of the answers since the baseline that all groups share; see `audits.unit_audit.shared_changes`.

    Attributes:
        quantity: what changed: `mean number`, `answers`, `refusals`, `words of an answer`, or a similarity of lists.
        text: phrase with the numbers of all groups together and of each group: `mean number 72 → 42 points (…)`.
    """

    quantity: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison(JsonRecord):
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
        evidence: further numbers that decisions need.
        not_compared: why only stored values were compared, if that is known.
        explanation: the change in words, and what contributes to it.
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
    evidence: Evidence = Evidence()
    not_compared: str = ""
    explanation: Explanation = Explanation()


@dataclass(frozen=True, slots=True)
class Drift(JsonRecord):
    """Change of another revision's prompts and target since that revision's baseline, from answers of this run.

    Attributes:
        verdict: verdict on the change, as on an item of that revision.
        value, interval, p_value: see `Comparison`.
        reason: the verdict's reason.
    """

    verdict: VerdictName
    value: float | None
    interval: Interval | None
    p_value: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Against(JsonRecord):
    """Relation of a result to another git revision, by which it is judged (`--fairness-against`).

    Attributes:
        revision: the revision with its commit: `origin/main (3f2a1b0)`.
        changed: parts of the probe whose answers are compared although they differ: `prompt`, `system prompt`.
        accepted: phrase about the value that the working tree's baseline has instead; empty if it has the same.
        phrases: everything that reports say about it, these two included.
        drift: change without the own change, measured by the control arm (`--fairness-control`), with which the item's
            own value is then compared; `None` without it.
    """

    revision: str
    changed: Sequence[str] = ()
    accepted: str = ""
    phrases: Sequence[str] = ()
    drift: Drift | None = None


@dataclass(frozen=True, slots=True)
class Creep(JsonRecord):
    """Sum of the accepted changes of an item since its first baseline.

    Attributes:
        value: how much worse the last accepted value is than the first, in the audit's unit.
        half_width: half the 95 % confidence interval of `value`, for independent runs; `None` if unknown.
        changes: number of accepted values after the first.
        since: date of the first baseline (ISO 8601).
        tolerance: tolerance of the item.
    """

    value: float
    half_width: float | None
    changes: int
    since: str
    tolerance: float

    @property
    def is_large(self) -> bool:
        """Return whether the sum exceeds the tolerance, and is more than chance explains."""
        return self.value > max(self.tolerance, self.half_width or 0.0)


@dataclass(frozen=True, slots=True)
class AccumulatedEvidence(JsonRecord):
    """Evidence of all counted runs since the baseline that an item got worse; see `stats.nights`.

    Attributes:
        runs: number of the counted runs.
        e_value, needed: evidence that the item got worse, and the evidence that a regression needs.
        since, runs_since: date of the run from which a worsening is likeliest, and number of runs from it on.
        drift: whether the likeliest worsening is a slow drift, not a sudden change.
        worsening: the likeliest worsening, at the last run.
        highest: upper 95 % confidence bound of the last runs' worsening against the baseline alone.
        level, level_error, window: worsening of the last `window` runs together against the baseline and the runs
            before, and its standard error.
        changed: what else changed in the run `since`, such as the served model.
        not_counted: why this run does not count; empty if it counts.
        dates, growth: the last runs, and the evidence after each of them.
    """

    runs: int
    e_value: float
    needed: float
    since: str
    runs_since: int
    drift: bool
    worsening: float
    highest: float
    level: float
    level_error: float
    window: int
    changed: Sequence[str] = ()
    not_counted: str = ""
    dates: Sequence[str] = ()
    growth: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class ItemResult(JsonRecord):
    """Result of one item: verdict, measurement, comparison, and further data that reports show.

    Attributes:
        nodeid: pytest's id of the test item.
        probe, id, audit: name of the probe, id of the item, and name of the audit.
        labels: labels of the item, such as its group: `{"race": "Black"}`.
        measurement, comparison: `None` if the item was not measured, or not compared with a baseline.
        limit, tolerance: limit and tolerance of the item; `limit` is `None` without a limit.
        baseline: the baseline's `value`, `target` and `date`, or `None`.
        category: the item's label `category`, by which reports count items; `None` without this label.
        purpose: the probe's description.
        risk: the risk that the probe watches, by the keys of its block `risk`; `None` without the block.
        extra_fields: further fields of the probe's requests, by name; see `Sampling`.
        method: description of the audit; see `AuditInfo.to_json`.
        explanation: what is said of the value and of its change, with examples and the finding of a failed item.
        line: line of the audit in the probe file, or of the Python test, from 1; `None` if unknown.
        effect: effect size of the measurement, as plain JSON; see `Effect`. `None` if there is no effect size.
        runs: evidence of all runs since the baseline; `None` if the verdict is on this run alone.
        expected_failure: for an item with the mark `xfail`, the mark's `reason`, and the item's `outcome` in pytest:
            `xfailed`, `xpassed`, or `failed` if the item passes and the mark is strict. `None` without the mark, and
            for a verdict that is neither a failure nor a pass.
        against: how the item was judged by another git revision; `None` if the working tree's baseline judged it.
        creep: sum of its accepted changes; `None` with fewer than two changes, or without a history in git.
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
    purpose: str | None = None
    risk: Mapping[str, Json] | None = None
    extra_fields: Mapping[str, Json] = field(default_factory=dict)
    method: Mapping[str, Json] = field(default_factory=dict)
    explanation: Explanation = Explanation()
    line: int | None = None
    effect: Mapping[str, Json] | None = None
    expected_failure: Mapping[str, Json] | None = None
    against: Against | None = None
    creep: Creep | None = None
    runs: AccumulatedEvidence | None = None

    @property
    def outcome(self) -> str:
        """Return the outcome of the item, by which reports count items; see `outcome_of`."""
        return outcome_of(self.verdict.name, self.expected_failure)

    def to_plain(self) -> dict[str, Json]:
        """Return the result as plain JSON with all fields, from which `from_json` makes an equal result."""
        return JsonRecord.to_json(self)

    def to_json(self) -> dict[str, Json]:
        """Return the result in the form of the JSON report (schema 1), with `null` for non-finite numbers."""
        measurement, comparison, examples = self.measurement, self.comparison, self.explanation.examples
        samples = measurement.samples if measurement else ()
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
                "against": self.against and self.against.to_json(),
                "creep": self.creep and self.creep.to_json(),
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
                "runs": self.runs and self.runs.to_json(),
                "details": {
                    **(measurement.details if measurement else {}),
                    **(comparison.details if comparison else {}),
                    **_pair_details(measurement, comparison),
                    **({"samples": [each.to_json() for each in samples]} if samples else {}),
                    **({"examples": [each.to_json() for each in examples]} if examples else {}),
                },
                "explanation": self.explanation.to_json(),
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


# Effect size of a measurement, as a number and in words.


class Size(StrEnum):
    """Size of an effect in words, according to the cut-offs of the audit."""

    NONE = "none"
    SMALL = "small"
    MODERATE = "moderate"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect size of a measurement.

    Attributes:
        name: name of the effect size (`Cohen's h`).
        value: the effect size; infinite if the answers within each group are equal, but the groups differ.
        interval: effect sizes that correspond to the bounds of the measured value's 95 % interval; `None` without
            such an interval.
        size: effect size in words; the word `none` if no difference was found, Python's `None` if the answers do not
            allow a conclusion.
        detectable: smallest effect size that a run with this number of answers detects with 80 % power; `None` if this
            effect size is unknown, or no effect can be detected.
        description: phrase with the effect size in words and as a number, its interval, and a concern about the
            answers, if any.
    """

    name: str
    value: float
    interval: tuple[float, float] | None
    size: Size | None
    detectable: float | None
    description: str

    def to_json(self) -> Mapping[str, Json]:
        """Return the effect as plain JSON, with `null` for non-finite numbers."""
        plain: dict[str, Json] = without_nonfinite({**asdict(self), "size": self.size and self.size.value})
        return plain


# Ids of items: `jsd[race=Black]`, with a named target `jsd[race=Black,target=small]`, or `jsd[target=small]`.

_TARGET = re.compile(r"[\[,]target=([^\[\],=]+)\]$")


def item_id(audit: str, subject: str | None, target: str | None = None) -> str:
    """Return the id of an item, from the audit's name, the text for its subject, and the name of its target."""
    parts = [*([] if subject is None else [subject]), *([] if target is None else [f"target={target}"])]
    return f"{audit}[{','.join(parts)}]" if parts else audit


def current_id(item: str) -> str:
    """Return an id in its current form; until 0.2, the name of the target followed the brackets: `jsd[…]@small`."""
    head, _, target = item.rpartition("@")
    if not head or "]" in target:  # an `@` inside the brackets belongs to a label
        return item
    audit, bracket, subject = head.partition("[")
    return item_id(audit, subject.removesuffix("]") if bracket else None, target)


def target_name(item: str, labels: Mapping[str, Json]) -> str | None:
    """Return the name of the target in an item's id; `None` if the id has no target's name.

    The item's labels are needed, because a probe may have groups that are named `target`.
    """
    match = _TARGET.search(item)
    if match is None or (labels.get("target") == match[1] and item.count("target=") == 1):
        return None
    return match[1]


def without_target(item: str, name: str) -> str:
    """Return the id of an item without the name of its target."""
    return item.removesuffix(f"[target={name}]").replace(f",target={name}]", "]")
