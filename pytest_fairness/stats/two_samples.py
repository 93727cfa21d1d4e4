"""Distances of two samples for many labellings at once: maximum mean discrepancy, and a least-squares classifier.

`kernel` are the (units, units) similarities of units, and `strata` and `cells` (units,) numbers. `first` and `second`,
or `marked` and `used`, say which units a labelling puts into which sample: (units,) or (labellings, units). A unit may
be in neither sample. All labellings have the same number of units of each sample in each stratum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.stats import resampling
from pytest_fairness.stats.resampling import Bools, Floats, Ints
from pytest_fairness.stats.strata import precision

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CHUNK = 2**20
"""Largest number of values in memory at the same time while labellings are computed."""


# Unbiased squared maximum mean discrepancy (MMD) of two samples within strata, for many labellings at once.
#
# See Gretton, Borgwardt, Rasch, Schölkopf and Smola 2012, "A Kernel Two-Sample Test", equation 3. A labelling
# assigns units to the two samples. The kernel holds the inner products of the units' vectors; the mean embedding of
# a sample is the mean of its vectors, and every estimate is a quadratic form of the kernel.


@dataclass(frozen=True)
class Design:
    """The strata with units of both samples, and their weights in the estimate; see `mmd_estimates`.

    Attributes:
        units: indices of each stratum's units; also of units in neither sample, as another labelling may use them.
        sizes: (strata, 2) numbers of units of the first and of the second sample.
        weights: (strata,) weights w(s) of the strata; they add up to 1.
        shares: (strata,) weights in the mean W of the discrepancies within strata; 0 for a stratum without estimate,
            in which a sample has only one unit.
        within: weight c of the mean W.
    """

    units: tuple[Ints, ...]
    sizes: Ints
    weights: Floats
    shares: Floats
    within: float

    @classmethod
    def of(cls, strata: Ints, first: Bools, second: Bools) -> Design:
        names, numbers = np.unique(strata, return_inverse=True)
        sizes = np.stack([np.bincount(numbers[side], minlength=len(names)) for side in (first, second)], axis=1)
        used = np.flatnonzero(sizes.min(axis=1))
        sizes = sizes[used]
        weights = precision(*sizes.T)
        weights = weights / weights.sum()
        shares = np.where(sizes.min(axis=1) > 1, weights, 0.0)
        effective_number = 1 / float((weights**2).sum())
        share = 1 / (2 * math.sqrt(effective_number))
        within = share + (1 - share) / effective_number if shares.any() else 0.0
        return cls(
            units=tuple(np.flatnonzero(numbers == stratum) for stratum in used),
            sizes=sizes,
            weights=weights,
            shares=shares / (shares.sum() or 1.0),
            within=1.0 if len(used) == 1 else within,
        )

    @property
    def between(self) -> float:
        """Return the weight of each product w(s) ⟨δ(s), δ(t)⟩ w(t) of different strata in the estimate."""
        return (1 - self.within) / (1 - float((self.weights**2).sum())) if self.within < 1 else 0.0

    def contrasts(self, first: Bools, second: Bools) -> Floats:
        """Return the coefficients of the units in the difference of the mean embeddings; shape (strata, units)."""
        contrasts = np.zeros((len(self.units), len(first)))
        for row, units, (size, other) in zip(contrasts, self.units, self.sizes, strict=True):
            row[units] = first[units] / size - second[units] / other
        return contrasts


def mmd_estimates(kernel: Floats, strata: Ints, first: Bools, second: Bools) -> Floats:
    """Return the estimated squared discrepancy between the two samples, for each labelling.

    The result is c W + (1 − c) B, a combination of two unbiased estimates. Let δ(s) be the difference of the two mean
    embeddings in stratum s. Strata are weighted by w(s), which is proportional to m n / (m + n) for samples of m and n
    units, with Σ w(s) = 1.

    - W is the weighted mean of ‖δ(s)‖² over strata. It detects differences whose directions are opposite in different
      strata. A stratum in which a sample has only one unit is left out.
    - B is the weighted mean of ⟨δ(s), δ(t)⟩ over pairs of different strata. It has less noise, but opposite differences
      cancel.
    - c = λ + (1 − λ) / S, with the effective number of strata S = 1 / Σ w(s)² and λ = 1 / (2 √S). With one stratum, c
      is 1; if W has no stratum, c is 0.

    The result equals λ W + (1 − λ) D, where D estimates ‖Σ w(s) δ(s)‖², the discrepancy of all strata together. A
    difference that is equal in all strata counts in full; differences that cancel each other count with the factor λ.
    For strata of equal size, the standard deviation is at most 12 % larger than that of D. An estimate is below 0 if
    the samples are more similar than random samples are on average.
    """
    design = Design.of(strata, first[0], second[0])
    rows, estimates = max(1, CHUNK // len(kernel)), []
    for start in range(0, len(first), rows):
        sides = first[start : start + rows], second[start : start + rows]
        lengths, unbiased = _squared_differences(kernel, design, *sides)
        estimate = design.within * (unbiased @ design.shares)
        if design.between:
            together = np.zeros(sides[0].shape)
            for units, weight, (size, other) in zip(design.units, design.weights, design.sizes, strict=True):
                together[:, units] = weight * (sides[0][:, units] / size - sides[1][:, units] / other)
            estimate += design.between * (_inner(_products(together, kernel), together) - lengths @ design.weights**2)
        estimates.append(estimate)
    return np.concatenate(estimates)


def mmd_within_strata(kernel: Floats, strata: Ints, first: Bools, second: Bools) -> dict[int, float]:
    """Return the estimate of each stratum, by stratum number, for strata with at least two units of each sample."""
    design = Design.of(strata, first, second)
    _, (estimates,) = _squared_differences(kernel, design, first[None], second[None])
    return {
        int(strata[units[0]]): float(estimate)
        for units, estimate, share in zip(design.units, estimates, design.shares, strict=True)
        if share
    }


def mmd_standard_error(
    kernel: Floats, strata: Ints, first: Bools, second: Bools, count: int, random: np.random.Generator
) -> float:
    """Return the standard error of the estimate of one labelling; it is valid whether the samples differ or not.

    The estimate is a quadratic form of mean embeddings. Its variance has a linear part, which grows with the
    difference, and a second-order part, which remains if the samples do not differ. The delta method at the observed
    difference gives the linear part plus twice the second-order part, because the observed difference contains noise
    too. The second-order part is therefore subtracted once. It is the variance of the null distribution of the units
    without the samples' difference (see `without_difference`), over `count` permutations of labels within strata; a
    permutation of samples that differ has a larger variance, because it mixes the difference into both samples. The
    standard error is at least that of the second-order part. Every unit is in one of the samples.
    """
    design = Design.of(strata, first, second)
    differences = design.contrasts(first, second)
    weighted = design.weights[:, None] * differences
    # The gradient of the estimate in each stratum's difference of mean embeddings, as coefficients of the units.
    gradients = 2 * design.within * design.shares[:, None] * differences
    gradients += 2 * design.between * design.weights[:, None] * (weighted.sum(axis=0) - weighted)
    projected, variance = kernel @ gradients.T, 0.0
    for side, sign in ((first, -1), (second, 1)):
        alone = []
        for number, units in enumerate(design.units):
            own = units[side[units]]
            if len(own) < 2:
                alone.append(float(projected[own[0], number]))
                continue
            # A unit x is compared with the mean of the other units of its sample. With vectors of length 1, ⟨x, mean of
            # the others⟩ − ⟨x, mean of all⟩ is −‖x − mean of all‖² / (2 (n − 1)) and a constant.
            products = kernel[np.ix_(own, own)]
            lengths = products.diagonal() - 2 * products.mean(axis=1)
            apart = design.within * design.shares[number] * lengths / (len(own) - 1)
            variance += float(np.var(projected[own, number] + sign * apart, ddof=1)) / len(own)
        # A single unit has no variance within its stratum. The variance between such strata is used instead; it is not
        # smaller.
        variance += len(alone) * float(np.var(alone, ddof=1)) if len(alone) > 1 else 0.0
    labels, _ = resampling.relabellings(first, strata, count, random)
    alike = without_difference(kernel, strata, first, second)
    null_variance = float(mmd_estimates(alike, strata, labels, ~labels).var())
    return math.sqrt(max(variance - null_variance, null_variance))


def without_difference(kernel: Floats, strata: Ints, first: Bools, second: Bools) -> Floats:
    """Return the kernel after the samples' means have been moved together, as if only chance made them differ.

    The unbiased squared discrepancy of the result is about 0 in each stratum. A stratum with a single unit of a sample,
    which has no estimate of its own, is moved by the mean difference of all strata.
    """
    design = Design.of(strata, first, second)
    contrasts = design.contrasts(first, second)
    together = design.weights @ contrasts
    lengths, excess = (each[0] for each in _squared_differences(kernel, design, first[None], second[None]))
    estimated = design.shares > 0
    lengths = np.where(estimated, lengths, together @ kernel @ together)
    excess = np.where(estimated, excess, mmd_estimates(kernel, strata, first[None], second[None])[0])
    remaining = 1 - np.divide(excess, lengths, out=np.zeros_like(excess), where=(lengths > 0) & (excess > 0))
    moved = (1 - np.sqrt(np.maximum(0, remaining)))[:, None] * np.where(estimated[:, None], contrasts, together)
    # A unit of stratum s moves by its number in column s of `steps` times the difference `moved[s]`.
    steps = np.zeros((len(strata), len(design.units)))
    for number, (units, (size, other)) in enumerate(zip(design.units, design.sizes, strict=True)):
        steps[units, number] = np.where(first[units], -other, size) / (size + other)
    products = kernel @ moved.T
    crossed = steps @ products.T
    return np.asarray(kernel + crossed + crossed.T + steps @ (moved @ products) @ steps.T)


def vector_variance(kernel: Floats, cells: Ints) -> float:
    """Return the unbiased variance of vectors around the mean of their cell, summed over dimensions; else 0."""
    squares, degrees = 0.0, 0
    for cell in np.unique(cells):
        inside = np.flatnonzero(cells == cell)
        own = kernel[np.ix_(inside, inside)]
        squares += float(own.trace() - own.mean() * len(own))
        degrees += len(own) - 1
    return squares / degrees if degrees else 0.0


def mmd_contributions(values: csr_array, strata: Ints, first: Bools, second: Bools) -> Floats:
    """Return the contribution of each dimension to the difference between the samples, at least 0; shape (dimensions,).

    A contribution is √(c Σ w(s) δ(s)² + (1 − c) (Σ w(s) δ(s))²), where δ(s) is the difference of the dimension's means
    in stratum s; c and w(s) are those of `mmd_estimates`. With one stratum it is the absolute difference of means.
    """
    from scipy.sparse import csr_array

    design = Design.of(strata, first, second)
    differences = csr_array(design.contrasts(first, second)) @ values
    together, apart = design.weights @ differences, design.weights @ (differences * differences)
    return np.asarray(np.sqrt(design.within * apart + (1 - design.within) * together**2))


def _squared_differences(kernel: Floats, design: Design, first: Bools, second: Bools) -> tuple[Floats, Floats]:
    """Return ‖δ(s)‖², and an estimate of it, for each labelling and stratum: two (labellings, strata) arrays.

    The estimate is unbiased if the stratum has at least two units of each sample.
    """
    lengths, estimates = np.zeros((2, len(first), len(design.units)))
    for number, (units, sizes) in enumerate(zip(design.units, design.sizes.tolist(), strict=True)):
        own = kernel[np.ix_(units, units)]
        means = [side[:, units] / size for side, size in zip((first, second), sizes, strict=True)]
        products = [_products(mean, own) for mean in means]
        squares = [_inner(*pair) for pair in zip(products, means, strict=True)]
        lengths[:, number] = squares[0] + squares[1] - 2 * _inner(products[0], means[1])
        # The squared length of a mean vector is too large by variance / size; the variance of one unit is unknown.
        estimates[:, number] = lengths[:, number] - sum(
            (mean @ own.diagonal() - square) / (size - 1)
            for mean, square, size in zip(means, squares, sizes, strict=True)
            if size > 1
        )
    return lengths, estimates


def _products(rows: Floats, kernel: Floats) -> Floats:
    used = rows.any(axis=0)  # if runs are swapped, a group has only half of the units
    return rows @ kernel if used.all() else rows[:, used] @ kernel[used]


def _inner(rows: Floats, others: Floats) -> Floats:
    return np.asarray(np.einsum("lu,lu->l", rows, others))


# Linear least-squares classifier with leave-one-out predictions, computed for many labellings at once.
#
# A labelling assigns units to two groups. Least squares on the labels replaces the loss of a support vector machine
# (Suykens and Vandewalle 1999, "Least Squares Support Vector Machine Classifiers"). The solution is linear in the
# labels, so that one inverse matrix serves all labellings. The prediction of a unit that is left out of training has
# a closed form (Cawley and Talbot 2004, "Fast exact leave-one-out cross-validation of sparse least-squares support
# vector machines").

PENALTY = 3.0
"""Ridge penalty, as a multiple of the mean squared length of the units' centred feature vectors."""
ZERO = 1e-9
"""A unit's score whose absolute value is below this number counts as 0."""
SINGULAR = 1e-9
"""An eigenvalue below this share of the largest eigenvalue counts as 0."""


@dataclass(frozen=True)
class Classifier:
    """Ridge regression with leave-one-out predictions and a separate intercept for each stratum.

    Features and labels are centred within strata: a unit is compared only with units of its own stratum, so that words
    typical of a stratum do not reveal the group. To predict a unit, the classifier is trained without the unit itself
    and without all units that equal it.

    Attributes:
        features: (units, dimensions) features.
        penalty: ridge penalty, above 0.
        inverse: inverse of the penalised kernel (units × units) if `dual`, otherwise of the penalised scatter matrix
            (dimensions × dimensions). The kernel is the smaller matrix if there are no more units than dimensions.
        left_out: (units,) 1 minus the weight of a unit's own label in its prediction.
        repeats: for each set of equal units, their indices and a matrix that converts their residuals into those if all
            of them are left out of training: the pseudo-inverse of their rows and columns in (I − hat matrix).
        sizes: (strata,) number of units of each stratum.
    """

    features: csr_array
    strata: Ints
    penalty: float
    dual: bool
    inverse: Floats
    left_out: Floats
    repeats: list[tuple[Ints, Floats]]
    sizes: Ints

    @classmethod
    def of(cls, features: csr_array, strata: Ints, kinds: Ints) -> Classifier:
        """Return the classifier, whose matrix is inverted once; each stratum has at least two units.

        `kinds` has a number for each unit; units with equal features have the same number.
        """
        numbers = np.unique(strata, return_inverse=True)[1].astype(np.int64)
        sizes, dual = np.bincount(numbers), features.shape[0] <= features.shape[1]
        if dual:
            rows = matrix = centred(centred((features @ features.T).toarray(), numbers).T, numbers)
        else:
            rows = centred(features.toarray(), numbers)
            matrix = rows.T @ rows
        squared = float(matrix.trace())
        penalty = PENALTY * squared / len(numbers) if squared > ZERO else 1.0
        inverse: Floats = np.linalg.inv(matrix + penalty * np.eye(len(matrix))).astype(np.float64, copy=False)

        repeats, order = [], np.argsort(kinds, kind="stable")
        for units in np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1):
            if len(units) > 1:
                own = numbers[units]
                if dual:
                    left = penalty * inverse[np.ix_(units, units)]
                else:
                    left = np.eye(len(units)) - rows[units] @ inverse @ rows[units].T
                left = left - (own[:, None] == own) / sizes[own]
                repeats.append((units.astype(np.int64), np.linalg.pinv(left, rcond=SINGULAR, hermitian=True)))
        alone = penalty * inverse.diagonal() if dual else 1 - np.einsum("ud,ud->u", rows @ inverse, rows)
        return cls(features, numbers, penalty, dual, inverse, alone - 1 / sizes[numbers], repeats, sizes)

    def scores(self, labels: Floats) -> Floats:
        """Return the predicted label of each unit, with the unit itself (and units that equal it) left out of training.

        Labels are (units, labellings) numbers with sum 0 in each stratum; a unit with label 0 belongs to neither group.
        The scores have the labels' shape and scale: they are larger for units that are more similar to units with
        positive labels, and 0 if the unit's stratum holds no other unit to compare with.
        """
        residuals, sizes = self._residuals(labels), self.sizes[self.strata]
        # Leave-one-out prediction (label − residual / (1 − leverage)) minus the mean label of the stratum's other
        # units.
        scores: Floats = labels * (sizes / (sizes - 1))[:, None] - residuals / self.left_out[:, None]
        for units, inverse in self.repeats:
            same = self.strata[units][:, None] == self.strata[units]
            left = sizes[units, None] - same.sum(axis=1, keepdims=True)
            means = -(same @ labels[units]) / np.maximum(left, 1)
            scores[units] = np.where(left > 0, labels[units] - inverse @ residuals[units] - means, 0)
        scores[np.abs(scores) < ZERO] = 0
        return scores

    def weights(self, labels: Floats) -> Floats:
        """Return the weight of each dimension in the classifier trained on all units; shape (dimensions,)."""
        return np.asarray(self.features.T @ self._residuals(labels) / self.penalty)

    def _residuals(self, labels: Floats) -> Floats:
        """Return labels minus their predictions, with all units in training; the shape is that of the labels."""
        if self.dual:
            return np.asarray(self.penalty * (self.inverse @ labels))
        predicted = self.features @ (self.inverse @ (self.features.T @ labels))
        return labels - centred(predicted, self.strata)

    def distances(self, marked: Bools, used: Bools | None = None) -> Floats:
        """Return the distance d' between the two groups, for each labelling; shape (labellings,).

        d' is the difference between the groups' mean scores within strata, in standard deviations of the scores within
        groups. Each unit is scored without itself, so that d' is 0 on average if the groups do not differ. By default,
        all units are used.
        """
        used = np.ones((1, marked.shape[1]), dtype=np.bool_) if used is None else used
        marked, used = np.broadcast_arrays(marked, used)
        rows, distances = max(1, CHUNK // marked.shape[1]), []
        for start in range(0, len(marked), rows):
            labels = centred_labels(marked[start : start + rows], self.strata, used[start : start + rows])
            scores = self.scores(labels)
            scores[labels == 0] = 0
            # Labellings of whole clusters differ in the sizes of the groups.
            sizes = (labels**2).sum(axis=0)
            size = np.where(sizes > 0, sizes, 1.0)
            difference = np.einsum("ul,ul->l", scores, labels) / size
            units = np.maximum(1, np.count_nonzero(labels, axis=0))
            variance = (np.einsum("ul,ul->l", scores, scores) - difference**2 * size) / units
            distances.append(difference / np.sqrt(np.maximum(variance, ZERO**2)))
        return np.concatenate(distances)


def centred_labels(marked: Bools, strata: Ints, used: Bools) -> Floats:
    """Return (units, labellings) labels for `Classifier.scores`, centred within strata.

    The labels are above 0 for the marked group and below 0 for the other group; 0 for units that the labelling does not
    include, and for units whose stratum holds one group only.
    """
    from scipy.sparse import csr_array

    numbers = np.unique(strata, return_inverse=True)[1]
    adding: csr_array = csr_array((np.ones(len(numbers)), (numbers, np.arange(len(numbers)))))
    share = (adding @ (marked & used).T) / np.maximum(adding @ used.T, 1)
    return np.where(used.T, marked.T - share[numbers], 0.0)


def centred(values: Floats, strata: Ints) -> Floats:
    """Return (units, …) values minus their mean within strata."""
    from scipy.sparse import csr_array

    numbers = np.unique(strata, return_inverse=True)[1]
    averaging: csr_array = csr_array((1 / np.bincount(numbers)[numbers], (numbers, np.arange(len(numbers)))))
    return np.asarray(values - (averaging @ values)[numbers])
