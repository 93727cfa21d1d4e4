"""Effect sizes of audits by name, each with its formula, its cut-offs and their source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.records import Json, Measurement, Size
from pytest_fairness.stats import effect_sizes

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
        """Return the description for the report document."""
        return {"name": self.name, "formula": self.formula, "cutoffs": list(self.cutoffs), "source": self.source}

    def size(self, effect: float) -> Size:
        """Return the size of an effect in words; an effect below all cut-offs is also called small."""
        _, moderate, large = self.cutoffs
        return Size.LARGE if abs(effect) >= large else Size.MODERATE if abs(effect) >= moderate else Size.SMALL


def cohens_h(formula: str, shares: Callable[[Measurement], Sequence[float]]) -> EffectSize:
    """Return the effect size Cohen's h, which compares the lowest and the highest of several shares.

    Args:
        formula: which shares are compared, in words.
        shares: function that returns the shares that a measurement compares.
    """

    def of(value: float, measurement: Measurement) -> float:
        compared = shares(measurement)
        middle = (min(compared) + max(compared)) / 2
        return effect_sizes.cohens_h(middle + value / 2, middle - value / 2)

    return EffectSize(name="Cohen’s h", formula=formula, of=of, cutoffs=(0.2, 0.5, 0.8), source=COHEN)


def cohens_d(
    quantity: str, formula: str = "(range of the means) / (standard deviation over entities within an attribute value)"
) -> EffectSize:
    """Return the effect size Cohen's d: the range of the groups' means, divided by the groups' standard deviation.

    Args:
        quantity: name of the detail that holds the groups' standard deviations.
        formula: how the effect size is computed, in words.
    """
    return EffectSize(
        name="Cohen’s d",
        formula=formula,
        of=lambda value, measurement: _in_standard_deviations(value, measurement, quantity),
        cutoffs=(0.2, 0.5, 0.8),
        source=f"{COHEN}: the standardised range of several means",
    )


def cohens_f(quantity: str, formula: str, *, no_effect: float = 0.0) -> EffectSize:
    """Return the effect size Cohen's f: the deviation of the groups' means, divided by the groups' standard deviation.

    The deviation is the distance of the audit's value from `no_effect`.

    Args:
        quantity: name of the detail that holds the groups' standard deviations.
        formula: how the effect size is computed, in words.
        no_effect: the audit's value if there is no effect.
    """
    return EffectSize(
        name="Cohen’s f",
        formula=formula,
        of=lambda value, measurement: _in_standard_deviations(abs(value - no_effect), measurement, quantity),
        cutoffs=(0.1, 0.25, 0.4),
        source=COHEN,
        no_effect=no_effect,
    )


def _in_standard_deviations(difference: float, measurement: Measurement, quantity: str) -> float | None:
    deviations = [group["sd"] for group in measurement.details[quantity].values()]
    return effect_sizes.standardized(difference, deviations) if len(deviations) > 1 else None


def cohens_g(formula: str, *, scale: float, no_effect: float) -> EffectSize:
    """Return the effect size Cohen's g: a share minus one half.

    Args:
        formula: which share is compared with one half, in words.
        scale: difference between the audit's values for the shares 1 and 0.
        no_effect: value of the audit at a share of one half.
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
    """Return the effect size Cohen's d, computed from the standard error of a difference between two groups.

    Args:
        formula: how the effect size is computed, in words.
        of: function that computes the effect size; by default, it compares the measurement's two groups.
    """
    return EffectSize(
        name="Cohen’s d",
        formula=formula,
        of=of or _d_of_two_groups,
        cutoffs=(0.2, 0.5, 0.8),
        source=f"{COHEN}; Lakens 2013 for d from the standard error",
    )


def _d_of_two_groups(value: float, measurement: Measurement) -> float | None:
    return effect_sizes.d_from_error(value, measurement.standard_error or 0.0, *measurement.n.values())


BITS = EffectSize(
    name="bits",
    formula="the value; a value below 0 counts as 0",
    of=lambda value, _: max(0.0, value),
    cutoffs=(0.007, 0.044, 0.107),
    source="our own, because no cut-offs are published: the JSD of two normal distributions whose means differ by 0.2, "
    "0.5 and 0.8 standard deviations (Cohen 1988)",
)
"""Effect size of a Jensen-Shannon divergence in excess of chance."""


def _largest_h(measurement: Measurement) -> float:
    """Return the largest Cohen's h (in absolute value) of the significant words; 0 if no word is significant.

    Cohen's h compares the groups' shares of texts that contain the word.
    """
    shares = [word["texts"] for word in measurement.details["words"] if word["significant"]]
    return max((effect_sizes.cohens_h(each["marked"], each["unmarked"]) for each in shares), key=abs, default=0.0)


def _detectable_h(measurement: Measurement) -> float | None:
    """Return the smallest Cohen's h that the audit can find, for a word that only one group's texts contain."""
    share = measurement.details["smallest_share"]
    return effect_sizes.cohens_h(share, 0.0) if share is not None and math.isfinite(share) else None


LARGEST_H_OF_WORDS = EffectSize(
    name="Cohen’s h",
    formula="largest h of the significant words; h compares the shares of the groups’ texts with the word",
    of=lambda value, measurement: _largest_h(measurement) if value else 0.0,
    cutoffs=(0.2, 0.5, 0.8),
    source=COHEN,
    detectable=_detectable_h,
)
"""Effect size of tests of many words; the measurement has the details `words` and `smallest_share`."""

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
    of=lambda value, measurement: effect_sizes.share_of_variance(value, measurement.details["variance"]),
    cutoffs=(0.01, 0.06, 0.14),
    source=f"{COHEN}; Anderson 2001 for the variance of texts (PERMANOVA)",
)
"""Effect size of a squared maximum mean discrepancy; the measurement has the detail `variance`."""
