"""Description of an audit and of its findings, and effect sizes with their formulas and cut-offs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from pytest_fairness.records import Contributor, ItemResult, Json, Measurement, Size, without_nonfinite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Effect sizes: differences on a scale that does not depend on the unit or on the number of answers.


def cohens_h_of_shares(first: float, second: float) -> float:
    """Return Cohen's h of two shares: the difference of their arcsine transforms, above 0 if the first is larger.

    A share below 0 counts as 0, and a share above 1 counts as 1, because the bounds of an interval may be outside 0..1.
    """
    angles = [2 * math.asin(math.sqrt(min(1.0, max(0.0, share)))) for share in (first, second)]
    return angles[0] - angles[1]


def standardized_difference(difference: float, standard_deviations: Sequence[float]) -> float:
    """Return a difference divided by the root mean square of the groups' standard deviations; 0 for 0 / 0."""
    pooled_sd = math.sqrt(sum(sd**2 for sd in standard_deviations) / len(standard_deviations))
    return ratio_or_infinity(difference, pooled_sd)


def d_from_error(difference: float, standard_error: float, first: int, second: int) -> float:
    """Return Cohen's d of a difference between two independent means of `first` and of `second` units."""
    return ratio_or_infinity(difference, standard_error) * math.sqrt(1 / first + 1 / second)


def share_of_variance(square_distance: float, variance: float) -> float:
    """Return η²: the share of the variance that two groups of equal size explain.

    It follows from the squared distance of their means (below 0 counts as 0) and the variance within them.
    """
    square = ratio_or_infinity(max(0.0, square_distance), variance)
    return 1.0 if math.isinf(square) else square / (square + 4)


def ratio_or_infinity(numerator: float, denominator: float) -> float:
    """Return numerator / denominator; 0 for 0 / 0, and ±infinity if only the denominator is 0."""
    if denominator > 0:
        return numerator / denominator
    return math.copysign(math.inf, numerator) if numerator else 0.0


# Effect sizes of audits by name, each with its formula, its cut-offs and their source.

COHEN = "Cohen 1988, “Statistical Power Analysis for the Behavioral Sciences”"


@dataclass(frozen=True, kw_only=True)
class EffectSize:
    """Effect size of an audit, with the cut-offs for “small”, “moderate” and “large”.

    Attributes:
        name: name of the effect size (`Cohen's h`).
        formula: how the effect size is computed from the measurement, in words.
        of: function that computes the effect size from a number and the measurement; the number is the audit's value or
            a bound of its interval. The function returns `None` if the item compares no groups.
        cutoffs: smallest effect sizes that are called small, moderate and large.
        source: publication of the cut-offs, or their derivation.
        no_effect: the audit's value if there is no effect.
        detectable: function that returns the smallest effect size that a measurement can detect, for an audit without a
            standard error; `None` to compute it from the standard error.
    """

    name: str
    formula: str
    of: Callable[[float, Measurement], float | None]
    cutoffs: tuple[float, float, float]
    source: str
    no_effect: float = 0.0
    detectable: Callable[[Measurement], float | None] | None = None

    def to_json(self) -> Mapping[str, Json]:
        return {"name": self.name, "formula": self.formula, "cutoffs": list(self.cutoffs), "source": self.source}

    def size(self, effect: float) -> Size:
        """Return the size in words; an effect below all cut-offs is also called small."""
        _, moderate, large = self.cutoffs
        return Size.LARGE if abs(effect) >= large else Size.MODERATE if abs(effect) >= moderate else Size.SMALL


def cohens_h(formula: str) -> EffectSize:
    """Return Cohen's h of the lowest and the highest share of `Evidence.effect_basis`; the formula names the shares."""

    def of(value: float, measurement: Measurement) -> float:
        compared = measurement.evidence.effect_basis
        middle = (min(compared) + max(compared)) / 2
        return cohens_h_of_shares(middle + value / 2, middle - value / 2)

    return EffectSize(name="Cohen’s h", formula=formula, of=of, cutoffs=(0.2, 0.5, 0.8), source=COHEN)


def cohens_d(
    formula: str = "(range of the means) / (standard deviation over entities within an attribute value)",
) -> EffectSize:
    """Return the effect size Cohen's d: the range of the groups' means, divided by the groups' standard deviation."""
    return EffectSize(
        name="Cohen’s d",
        formula=formula,
        of=_in_standard_deviations,
        cutoffs=(0.2, 0.5, 0.8),
        source=f"{COHEN}: the standardised range of several means",
    )


def cohens_f(formula: str, *, no_effect: float = 0.0) -> EffectSize:
    """Return Cohen's f: the distance of the value from `no_effect`, divided by the groups' standard deviation."""
    return EffectSize(
        name="Cohen’s f",
        formula=formula,
        of=lambda value, measurement: _in_standard_deviations(abs(value - no_effect), measurement),
        cutoffs=(0.1, 0.25, 0.4),
        source=COHEN,
        no_effect=no_effect,
    )


def _in_standard_deviations(difference: float, measurement: Measurement) -> float | None:
    deviations = measurement.evidence.effect_basis
    return standardized_difference(difference, deviations) if len(deviations) > 1 else None


def cohens_g(formula: str, *, scale: float, no_effect: float) -> EffectSize:
    """Return the effect size Cohen's g: a share minus one half.

    `scale` is the difference between the audit's values for the shares 1 and 0, `no_effect` the value at one half.
    """
    return EffectSize(
        name="Cohen’s g",
        formula=formula,
        of=lambda value, _: (value - no_effect) / scale,
        cutoffs=(0.05, 0.15, 0.25),
        source=COHEN,
        no_effect=no_effect,
    )


def cohens_d_of_error(formula: str, of: Callable[[float, Measurement], float | None] | None = None) -> EffectSize:
    """Return Cohen's d, computed from the standard error of a difference between two groups.

    By default, `of` compares the measurement's two groups.
    """
    return EffectSize(
        name="Cohen’s d",
        formula=formula,
        of=of or _d_of_two_groups,
        cutoffs=(0.2, 0.5, 0.8),
        source=f"{COHEN}; Lakens 2013 for d from the standard error",
    )


def _d_of_two_groups(value: float, measurement: Measurement) -> float | None:
    return d_from_error(value, measurement.standard_error or 0.0, *measurement.n.values())


BITS = EffectSize(
    name="bits",
    formula="the value; a value below 0 counts as 0",
    of=lambda value, _: max(0.0, value),
    cutoffs=(0.007, 0.044, 0.107),
    source="our own, because no cut-offs are published: the JSD of two normal distributions whose means differ by 0.2, "
    "0.5 and 0.8 standard deviations (Cohen 1988)",
)
"""Effect size of a Jensen-Shannon divergence in excess of chance."""


def _detectable_h(measurement: Measurement) -> float | None:
    """Return the smallest h that the audit can find, for a word that only one group's texts contain."""
    share = measurement.evidence.smallest_share
    return cohens_h_of_shares(share, 0.0) if share is not None and math.isfinite(share) else None


LARGEST_H_OF_WORDS = EffectSize(
    name="Cohen’s h",
    formula="largest h of the significant words; h compares the shares of the groups’ texts with the word",
    of=lambda value, measurement: max(measurement.evidence.effect_basis, key=abs, default=0.0) if value else 0.0,
    cutoffs=(0.2, 0.5, 0.8),
    source=COHEN,
    detectable=_detectable_h,
)
"""Effect size of tests of many words; `Evidence.effect_basis` is the h of each significant word."""

CLIFFS_DELTA = EffectSize(
    name="Cliff’s δ",
    formula="2 · value = P(A > B) − P(A < B), where A is the answered number for a random record with one attribute "
    "value, and B the answered number for a random record with the other attribute value",
    of=lambda value, _: 2 * value,
    cutoffs=(0.147, 0.33, 0.474),
    source="Romano, Kromrey, Coraggio and Skowronek 2006: the δ of two normal distributions whose means differ by 0.2, "
    "0.5 and 0.8 standard deviations",
)
"""Effect size of a difference between mean ranks; a rank is a share of all numbers, from 0 to 1."""

COHENS_U2 = EffectSize(
    name="Cohen’s U₂",
    formula="the value, Φ(d' / 2); a value below 0.5 counts as 0.5",
    of=lambda value, _: max(0.5, value),
    cutoffs=(0.54, 0.6, 0.66),
    source=f"{COHEN}: U₂ = Φ(d/2), the accuracy of the best classifier of two normal distributions whose means differ "
    "by d = 0.2, 0.5 and 0.8 standard deviations",
    no_effect=0.5,
)
"""Effect size of the distance between a classifier's scores of two groups, shown as an accuracy."""

ETA_SQUARED = EffectSize(
    name="η²",
    formula="MMD² / (MMD² + 4 s²), where s² is the variance of texts around their group’s mean",
    of=lambda value, measurement: share_of_variance(value, *measurement.evidence.effect_basis),
    cutoffs=(0.01, 0.06, 0.14),
    source=f"{COHEN}; Anderson 2001 for the variance of texts (PERMANOVA)",
)
"""Effect size of a squared maximum mean discrepancy; `Evidence.effect_basis` is the variance."""


# Drawings of details: which columns of a detail's table reports draw, and how.


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How reports draw a detail: a list of mappings, or a mapping from names (column "") to mappings or numbers.

    Attributes:
        kind: `bars` on both sides of 0, the unmarked group's on the left; `counts` (a bar for each row, made of the
            numbers in `columns`); `intervals` (a point for each row, with its interval); `lines` (a line for each name,
            through its quantiles); or `table` (no drawing).
        title: caption of the drawing.
        names: columns whose texts together name a row.
        value: column of the drawn number; also the title of its axis.
        interval: column of the interval of `value`.
        filled: column that says whether a bar is filled; empty to fill all bars.
        columns: headings of the table's columns; `{marked}` and `{unmarked}` stand for the groups. Empty: all columns.
        changes: columns that hold two entries, one before and one after a change.
        line: number and label of a dashed line.
        reference: detail with the mean of a dashed line, and the label of the line.
        shows_limit: whether the item's limit is a dashed line.
    """

    kind: Literal["bars", "counts", "intervals", "lines", "table"]
    title: str
    names: Sequence[str] = ("",)
    value: str = "mean"
    interval: str = "interval"
    filled: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    changes: Sequence[str] = ()
    line: tuple[float, str] | None = None
    reference: tuple[str, str] | None = None
    shows_limit: bool = False


_WEIGHTS = {"word": "word", "weight": "weight", "side": "typical of"}
_ANSWERS = ("stereotypical", "anti_stereotypical", "person", "ambiguous", "unknown", "refused", "unparsed")

DRAWINGS: Mapping[str, Drawing] = {
    "marked_words": Drawing(
        kind="bars",
        title="Words by z, the standardised log-odds ratio; filled bars are significant",
        names=("word",),
        value="z",
        filled="significant",
        columns={
            "word": "word", "z": "z", "log_odds": "log-odds", "marked": "uses in {marked}",
            "unmarked": "uses in {unmarked}", "documents": "documents", "significant": "significant",
        },
    ),
    "grown_words": Drawing(
        kind="bars",
        title="Words whose difference between the groups grew since the baseline",
        names=("word",),
        value="growth",
        columns={
            "word": "word", "side": "grew for", "growth": "growth of the difference",
            "marked": "share of the texts about {marked}", "unmarked": "share of the texts about {unmarked}",
        },
        changes=("marked", "unmarked"),
    ),
    "word_contributions": Drawing(
        kind="bars",
        title="Words by contribution to the Jensen-Shannon divergence",
        names=("word",),
        value="bits",
        columns={"word": "word", "bits": "bits", "share": "share of total", "side": "more in"},
    ),
    "word_weights": Drawing(
        kind="bars", title="Words that distinguish the groups", names=("word",), value="weight", columns=_WEIGHTS
    ),
    "function_words": Drawing(
        kind="bars",
        title="Function words that distinguish the groups",
        names=("word",),
        value="weight",
        columns=_WEIGHTS,
    ),
    "term_rates": Drawing(
        kind="bars",
        title="Terms of the lexicon by difference between the groups, in uses per 100 words",
        names=("term",),
        value="gap",
        columns={
            "term": "term", "marked": "per 100 words in {marked}", "unmarked": "per 100 words in {unmarked}",
            "gap": "difference", "documents": "documents",
        },
    ),
    "answer_counts": Drawing(
        kind="counts",
        title="Kinds of answers, by type of sentence or question",
        columns={"": "type", **{kind: kind.replace("_", "-") for kind in _ANSWERS}},
    ),
    "impact_ratios": Drawing(
        kind="intervals",
        title="Impact ratio by group",
        names=("group",),
        value="ratio",
        interval="ratio_interval",
        columns={
            "group": "group", "records": "records", "hits": "selected", "rate": "selection rate",
            "ratio": "impact ratio", "ratio_interval": "95 % interval", "left_out": "left out, because",
        },
        shows_limit=True,
    ),
    "rates": Drawing(kind="intervals", title="Rates by group", names=("name", "group"), value="rate"),
    "shares": Drawing(kind="intervals", title="Share by group", value="share"),
    "stereotype_ratios": Drawing(
        kind="intervals", title="Stereotype ratio by case", value="ratio", line=(0.5, "balance")
    ),
    "similarity": Drawing(
        kind="intervals",
        title="Similarity to the neutral list, by value of the attribute",
        reference=("noise_floor", "two neutral lists"),
    ),
    "share_missing": Drawing(kind="intervals", title="Share of missing items, by value of the attribute"),
    "entropy": Drawing(kind="intervals", title="Entropy in bits"),
    "ndcg": Drawing(kind="intervals", title="NDCG, by value of the attribute"),
    "scores": Drawing(kind="intervals", title="Mean score, by group"),
    "mean": Drawing(kind="intervals", title="Mean of the numbers, by value of the attribute"),
    "quantile": Drawing(kind="intervals", title="Quantile of the numbers, by value of the attribute", value="quantile"),
    "rank": Drawing(
        kind="intervals",
        title="Mean rank as a share of the ranking's length, by value of the attribute",
        value="rank",
    ),
    "variants": Drawing(
        kind="intervals",
        title="Variants compared with the original prompt; below 0 is less bias",
        value="change",
        interval="change_interval",
        columns={
            "": "variant", "effect": "effect", "value": "value", "change": "change", "change_interval": "95 % interval",
            "p_value": "p", "unusable": "unusable answers", "quality": "quality", "error": "not measured, because",
        },
        line=(0, "original prompt"),
    ),
    "distribution": Drawing(
        kind="lines", title="Distribution of the numbers, by value of the attribute",
        value="share of records with a smaller number",
    ),
    "flips": Drawing(
        kind="table",
        title="Records whose answer changes when the attribute is flipped",
        columns={"record": "record", "share": "share of changed answers", "fields": "fields", "answers": "answers"},
        changes=("fields", "answers"),
    ),
    "changed_sentences": Drawing(kind="table", title="Sentences whose answers became worse than in the baseline"),
    "changed_questions": Drawing(kind="table", title="Questions whose answers became worse than in the baseline"),
}  # fmt: skip
"""Drawings by name. A detail gets the drawing that `AuditInfo.charts` names for it, else that of its own name."""


# Description of an audit: name, unit, direction, tolerance and the explanation that reports print.

Range = tuple[float, float]
"""Smallest and largest possible number."""
Numbers = TypeVar("Numbers", float, "NDArray[np.float64]")


class Direction(StrEnum):
    LOWER = "lower"
    HIGHER = "higher"
    ZERO = "zero"
    FIFTY = "fifty"

    def loss(self, value: Numbers) -> Numbers:
        """Return the loss of a value, or of each value of an array; it is larger for a worse value."""
        match self:
            case Direction.LOWER:
                return value
            case Direction.HIGHER:
                return -value
            case Direction.ZERO:
                return abs(value)
            case Direction.FIFTY:
                return abs(value - 50)


@dataclass(frozen=True, kw_only=True)
class AuditInfo:
    """Description of an audit method.

    Attributes:
        name: name in probe files (`jsd`).
        title: name in plain words.
        question: question that the audit answers.
        formula: how the value is computed.
        meaning: how to read the value.
        source: publications that describe the method.
        better: whether lower or higher values, or values near 0 or 50, are better.
        unit: unit of the value; empty for a share or a score.
        tolerance: largest acceptable change from the baseline, unless the probe sets another; NaN if the probe must set
            it.
        tolerance_of_value: whether the tolerance has the unit of the value, so that a chart of values can show it.
        value_range: smallest and largest possible value; a baseline with a value outside this range is invalid.
        limit_range: smallest and largest limit that a probe may set; by default `value_range`.
        best_is_decidable: whether a system can keep the best possible limit in every run, as with a share of mistakes,
            which is 0 for a perfect system. If not, the value differs from the best one by chance.
        worst: worst possible value of an audit of shares or bounded scores: if a share of a group's answers is unread,
            these answers can move the value by this share of the way to `worst`. `None` for texts, lists and numbers
            without bounds; see `audits.rules`.
        best: value that means no bias; smaller values count as this value. `None` if there is no such value.
        charts: name of the drawing (see `DRAWINGS`) of a detail of the measurement, by the detail's name. A detail
            whose name is that of a drawing, or that maps names to mean values, needs no entry.
        effect: effect size with its cut-offs in words; `None` if the audit has none.
        no_effect_size: reason why the audit has no effect size, for reports.
    """

    name: str
    title: str
    question: str = ""
    formula: str = ""
    meaning: str = ""
    source: str = ""
    better: Direction
    unit: str = ""
    tolerance: float
    tolerance_of_value: bool = True
    value_range: Range
    limit_range: Range | None = None
    best_is_decidable: bool = False
    worst: float | None = None
    best: float | None = None
    charts: Mapping[str, str] = field(default_factory=dict)
    effect: EffectSize | None = None
    no_effect_size: str = ""

    @property
    def limits(self) -> Range:
        return self.limit_range or self.value_range

    @property
    def undecidable_limit(self) -> float | None:
        """Return the limit that no number of answers can show to be kept: the value of equal groups, if there is one.

        By chance, the values of about half of all fair systems, or of all of them, are worse than this limit.
        """
        return None if self.best_is_decidable else self._best_value

    @property
    def least_loss(self) -> float:
        """Return the loss of the best possible value: that of equal groups, or of no mistakes."""
        return self.loss(self._best_value)

    @property
    def _best_value(self) -> float:
        match self.better:
            case Direction.LOWER:
                return self.limits[0]
            case Direction.HIGHER:
                return self.limits[1]
            case Direction.ZERO:
                return 0.0
            case Direction.FIFTY:
                return 50.0

    def loss(self, value: Numbers) -> Numbers:
        """Return the loss as `Direction.loss` does; a value below `best` has the loss of `best`."""
        if self.best is None:
            return self.better.loss(value)
        # Deferred, so that audits can be listed without importing numpy.
        import numpy as np

        bounded: Numbers = np.maximum(value, self.best)
        return self.better.loss(bounded)

    def to_json(self) -> Mapping[str, Json]:
        return self._json

    @cached_property
    def _json(self) -> Mapping[str, Json]:
        plain = asdict(replace(self, effect=None))
        described: dict[str, Json] = without_nonfinite({**plain, "effect": self.effect and self.effect.to_json()})
        return described


# Findings: descriptions of the bias in failed items, with instructions and words that may help to reduce the bias.

MOST_WORDS = 8
"""Largest number of words of each group that a finding names."""
LONGEST_NAME = 100
LONGEST_WORD = 40
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*(?: [^\W_]+(?:['’-][^\W_]+)*){0,3}")


def details_of(result: ItemResult) -> dict[str, Json]:
    """Return the details of a result's measurement and comparison together."""
    return {
        name: value for each in (result.measurement, result.comparison) if each for name, value in each.details.items()
    }


class Labelled(Protocol):
    """An item or its result, with the labels of the item."""

    @property
    def labels(self) -> Mapping[str, str]: ...


def axis_of(item: Labelled) -> str:
    """Return the attributes of an item as a phrase: `race and gender`, or `who is spoken of` without any."""
    attribute = item.labels.get("attribute") or next(iter(item.labels), None)
    return shortened(attribute).replace("+", " and ").replace("_", " ") if attribute else "who is spoken of"


def subject_of(result: ItemResult) -> str:
    """Return the values of an item's labels, `Black, woman`, or its id without labels."""
    return ", ".join(map(shortened, result.labels.values())) or shortened(result.id)


def shortened(name: str) -> str:
    """Cut a name with “…” after `LONGEST_NAME` characters."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def grown_words(words: Sequence[Mapping[str, Json]], groups: Mapping[str, str]) -> list[Contributor]:
    """Return words with the shares of texts that contain them; only the first word of a group names the groups."""
    found, explained = list[Contributor](), set[str]()
    for word in words:
        own = str(word.get("side", "marked"))
        other = "marked" if own == "unmarked" else "unmarked"
        group, name = groups.get(own, ""), str(word.get("word"))
        spans = [_span(word.get(side)) for side in (own, other)]
        if not all(spans):
            found.append(Contributor(name, group, text=name))
            continue
        whose = ("", "") if group in explained else (" of this group's texts", " of the other group's texts")
        shown = ", ".join(f"{span}{of}" for span, of in zip(spans, whose, strict=True))
        before, now = word[own]
        found.append(Contributor(name, group, now, before, "share of texts", f"{name} ({shown})"))
        explained.add(group)
    return found


def _span(shares: Json) -> str | None:
    """Return the shares of texts in the baseline and in this run, as `0% → 60%`; `None` if they are unknown."""
    if not isinstance(shares, list | tuple) or len(shares) != 2 or not all(isinstance(x, int | float) for x in shares):
        return None
    return f"{shares[0]:.0%} → {shares[1]:.0%}"


def plain_words(entries: Iterable[Json]) -> list[str]:
    """Return the first `MOST_WORDS` distinct words or short phrases: a model may have written anything else."""
    words = [word for word in entries if isinstance(word, str) and len(word) <= LONGEST_WORD and _WORD.fullmatch(word)]
    return list(dict.fromkeys(words))[:MOST_WORDS]


def listed(words: Sequence[str]) -> str:
    """Join the first 2 × `MOST_WORDS` words: `hair, oil and skin`."""
    shown = words[: 2 * MOST_WORDS]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def strongest(weights: Mapping[str, float], share: float = 0.25) -> dict[str, float]:
    """Return the entries with at least `share` of the largest absolute weight; smaller ones may be due to chance."""
    largest = max(map(abs, weights.values()), default=0.0)
    return {name: weight for name, weight in weights.items() if abs(weight) >= share * largest}
