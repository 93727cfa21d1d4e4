"""Unbiased squared maximum mean discrepancy (MMD) of two samples, within strata, for many labellings at once.

Gretton, Borgwardt, Rasch, Schölkopf and Smola 2012, "A Kernel Two-Sample Test", equation 3. Units come as feature
vectors whose inner products are the kernel, so that mean embeddings are plain means: `features_of` turns any kernel
matrix into such vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Features = NDArray[np.float32] | Floats

CHUNK = 2**22
"""Numbers held at once while many labellings are computed."""
JITTER = 1e-9
"""Added to a kernel's diagonal, so that it can be factorised; the estimate leaves the diagonal out."""


def features_of(kernel: Floats) -> Floats:
    """Return (n, n) feature vectors whose inner products are the (n, n) kernel matrix."""
    return np.linalg.cholesky(kernel + JITTER * np.eye(len(kernel))).astype(np.float64, copy=False)


def estimates(features: Features, strata: Ints, first: Bools, second: Bools) -> Floats:
    """Return the squared discrepancy of both samples for each labelling.

    In stratum s, let δ(s) be the difference of the two mean embeddings, and w(s) the stratum's share of the precision,
    w(s) ∝ m n / (m + n). Two unbiased estimates are combined, α W + (1 − α) B:

    - W, the mean of ‖δ(s)‖² over strata. It sees effects that point in opposite directions.
    - B, the mean of ⟨δ(s), δ(t)⟩ over pairs of different strata. It has less noise, but opposite effects cancel.

    α = λ + (1 − λ) / S with S = 1 / Σ w(s)² strata and λ = 1 / (2 √S): the result is λ times the mean discrepancy
    within strata plus 1 − λ times that of the strata taken together. For equal strata its standard deviation is at most
    12 % above that of the latter alone. A difference that is the same everywhere counts in full, opposite ones as λ of
    it. With one stratum this is the plain estimate. A stratum with one unit on a side has no W; it takes part in B.

    Args:
        features: (units, dimensions) vectors; their inner product is the kernel.
        strata: (units,) the stratum of each unit.
        first: (labellings, units) whether the unit is in the first sample. All labellings have the same number of
            units in each stratum.
        second: the same for the second sample. A unit may be in neither.

    Returns:
        (labellings,) the estimates; below 0 where the samples are closer than chance makes them.
    """
    design = Design.of(strata, first[0], second[0])
    rows = max(1, CHUNK // features.shape[1])
    parts = [slice(start, start + rows) for start in range(0, len(first), rows)]
    return np.concatenate([_combined(features, design, first[part], second[part]) for part in parts])


def within_strata(features: Features, strata: Ints, first: Bools, second: Bools) -> dict[int, float]:
    """Return the estimate of each stratum by itself, where it has at least two units on either side.

    Arguments are as in `estimates`, with one labelling, (units,).
    """
    design = Design.of(strata, first, second)
    return {
        int(strata[stratum.units[0]]): float(_difference(features, stratum, first[None], second[None])[1][0])
        for stratum in design.strata
        if stratum.measured
    }


def standard_error(features: Features, strata: Ints, first: Bools, second: Bools, null_sd: float) -> float:
    """Return the standard error of the estimate, whether the samples differ or not.

    The estimate is a quadratic form of mean embeddings. Its variance has a part that is linear in the difference, and
    a second-order part that is left where the samples are alike. The delta method at the observed difference gives
    the first plus twice the second, as the observed difference is noisy itself; the null distribution gives the second.

    Args:
        features: as in `estimates`.
        strata: as in `estimates`.
        first: (units,) whether the unit is in the first sample.
        second: (units,) the same for the second sample.
        null_sd: standard deviation of the estimate over labels permuted within strata.
    """
    design = Design.of(strata, first, second)
    differences = [_difference(features, stratum, first[None], second[None])[0][0] for stratum in design.strata]
    gradients = design.gradients(np.array(differences))
    variance = 0.0
    for side in (first, second):
        alone = []
        for stratum, gradient in zip(design.strata, gradients, strict=True):
            projected = features[stratum.units[side[stratum.units]]] @ gradient
            if len(projected) > 1:
                variance += float(np.var(projected, ddof=1)) / len(projected)
            else:
                alone.append(float(projected[0]))
        # Single units show no spread of their own: that between strata stands in, which is larger if anything.
        variance += len(alone) * float(np.var(alone, ddof=1)) if len(alone) > 1 else 0.0
    return math.sqrt(max(variance - null_sd**2, null_sd**2))


def contributions(values: Features | csr_array, strata: Ints, first: Bools, second: Bools) -> Floats:
    """Return the part of each dimension in the difference of the samples, signed, combined over strata as the estimate.

    The size is √(α Σ w(s) δ(s)² + (1 − α) (Σ w(s) δ(s))²) of the dimension, the sign that of Σ w(s) δ(s): above 0 where
    the first sample has more. With one stratum this is the plain difference of means.

    Args:
        values: (units, dimensions).
        strata: (units,) the stratum of each unit.
        first: (units,) whether the unit is in the first sample.
        second: (units,) the same for the second sample.
    """
    design = Design.of(strata, first, second)
    together, apart = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    for stratum in design.strata:
        mine = stratum.units
        means = [np.asarray(values[mine[side[mine]]].mean(axis=0)).ravel() for side in (first, second)]
        together += stratum.weight * (means[0] - means[1])
        apart += stratum.weight * (means[0] - means[1]) ** 2
    size = np.sqrt(design.alpha * apart + (1 - design.alpha) * together**2)
    signed: Floats = np.copysign(size, together)
    return signed


@dataclass(frozen=True)
class Stratum:
    """A stratum with units on both sides.

    Attributes:
        units: the units' indices.
        first, second: how many are in either sample.
        weight: share of the precision of all strata, adding up to 1.
    """

    units: Ints
    first: int
    second: int
    weight: float

    @property
    def measured(self) -> bool:
        """Return whether the stratum has an estimate of its own."""
        return min(self.first, self.second) > 1


@dataclass(frozen=True)
class Design:
    """How strata are combined.

    Attributes:
        strata: those with units on both sides.
        alpha: weight of the mean discrepancy within strata, 0..1.
    """

    strata: tuple[Stratum, ...]
    alpha: float

    @classmethod
    def of(cls, strata: Ints, first: Bools, second: Bools) -> Design:
        """Return the design of one labelling, and of all others that keep its numbers."""
        members = [np.flatnonzero((strata == stratum) & (first | second)) for stratum in np.unique(strata)]
        sizes = [(int(first[units].sum()), int(second[units].sum())) for units in members]
        precision = [m * n / (m + n) if m and n else 0.0 for m, n in sizes]
        # Units outside of both samples stay: another labelling may have them.
        members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
        found = tuple(
            Stratum(units, m, n, each / sum(precision))
            for units, (m, n), each in zip(members, sizes, precision, strict=True)
            if each
        )
        count = 1 / sum(stratum.weight**2 for stratum in found)
        if len(found) == 1:
            return cls(found, 1.0)
        if not any(stratum.measured for stratum in found):
            return cls(found, 0.0)
        share = 1 / (2 * math.sqrt(count))
        return cls(found, share + (1 - share) / count)

    @property
    def between(self) -> float:
        """Return the sum of the weights of all pairs of different strata."""
        return 1 - sum(stratum.weight**2 for stratum in self.strata)

    def within(self) -> Iterator[float]:
        """Yield each stratum's weight in the mean discrepancy within strata."""
        whole = sum(stratum.weight for stratum in self.strata if stratum.measured)
        for stratum in self.strata:
            yield stratum.weight / whole if stratum.measured else 0.0

    def gradients(self, differences: Floats) -> Floats:
        """Return the derivative of the estimate by each stratum's difference, both (strata, dimensions)."""
        weights = np.array([stratum.weight for stratum in self.strata])[:, None]
        own: Floats = 2 * self.alpha * np.array([*self.within()])[:, None] * differences
        if self.alpha == 1:
            return own
        others = (weights * differences).sum(axis=0) - weights * differences
        crossed: Floats = 2 * (1 - self.alpha) / self.between * weights * others
        return own + crossed


def _combined(features: Features, design: Design, first: Bools, second: Bools) -> Floats:
    """Return the estimates of a few labellings."""
    together = np.zeros((len(first), features.shape[1]), dtype=features.dtype)
    within, squares = np.zeros(len(first)), np.zeros(len(first))
    for stratum, share in zip(design.strata, design.within(), strict=True):
        difference, unbiased = _difference(features, stratum, first, second)
        within += share * unbiased if share else 0.0
        if design.alpha < 1:
            squares += stratum.weight**2 * _square(difference)
            together += stratum.weight * difference
    if design.alpha == 1:
        return within
    return design.alpha * within + (1 - design.alpha) * (_square(together) - squares) / design.between


def _difference(features: Features, stratum: Stratum, first: Bools, second: Bools) -> tuple[Features, Floats]:
    """Return the difference of mean embeddings of each labelling, and its squared length without bias."""
    own = features[stratum.units]
    # Moving the origin changes no difference, and keeps large sums from cancelling.
    own = own - own.mean(axis=0)
    mean, bias = _mean_and_bias(own, first[:, stratum.units], stratum.first)
    other, other_bias = _mean_and_bias(own, second[:, stratum.units], stratum.second)
    difference = mean - other
    return difference, _square(difference) - bias - other_bias


def _mean_and_bias(own: Features, labels: Bools, size: int) -> tuple[Features, Floats]:
    """Return the mean vector of each labelling, and how far its squared length is off: the variance over `size`."""
    used = labels.any(axis=0)
    own, chosen = own[used], cast("Features", labels[:, used].astype(own.dtype))
    mean = chosen @ own / own.dtype.type(size)
    return mean, (chosen @ _square(own) / size - _square(mean)) / (size - 1) if size > 1 else np.zeros(len(labels))


def _square(vectors: Features) -> Floats:
    squared: Floats = np.einsum("ij,ij->i", vectors, vectors).astype(np.float64)
    return squared
