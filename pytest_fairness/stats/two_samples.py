"""Distances of two samples for many labellings at once: maximum mean discrepancy, and a least-squares classifier.

`features` are (units, dimensions) vectors, and `strata` and `cells` (units,) numbers. `first` and `second`, or `marked`
and `used`, say which units a labelling puts into which sample: (units,) or (labellings, units). A unit may be in
neither sample. All labellings have the same number of units of each sample in each stratum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import resampling
from pytest_fairness.stats.resampling import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Unbiased squared maximum mean discrepancy (MMD) of two samples within strata, for many labellings at once.
#
# See Gretton, Borgwardt, Rasch, Schölkopf and Smola 2012, "A Kernel Two-Sample Test", equation 3. A labelling
# assigns units to the two samples. Units are given as feature vectors whose inner products are the kernel; the mean
# embedding of a sample is then the plain mean of its vectors. `features_of` computes such vectors from a kernel
# matrix.

Features = NDArray[np.float32] | Floats

MMD_CHUNK = 2**22
"""Largest number of values in memory at the same time while labellings are computed."""
LARGEST_MOVED = 2**13
"""Largest number of units whose vectors are copied for a standard error; of more, the second-order part is small."""
JITTER = 1e-9
"""Small number added to the kernel's diagonal so that it can be factorised; estimates do not use the diagonal."""


def features_of(kernel: Floats) -> Floats:
    """Return (n, n) feature vectors, one in each row, whose inner products are the (n, n) kernel matrix."""
    return np.linalg.cholesky(kernel + JITTER * np.eye(len(kernel))).astype(np.float64, copy=False)


def mmd_estimates(features: Features, strata: Ints, first: Bools, second: Bools) -> Floats:
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
    rows = max(1, MMD_CHUNK // features.shape[1])
    parts = [slice(start, start + rows) for start in range(0, len(first), rows)]
    return np.concatenate([_combined_estimates(features, design, first[part], second[part]) for part in parts])


def mmd_within_strata(features: Features, strata: Ints, first: Bools, second: Bools) -> dict[int, float]:
    """Return the estimate of each stratum, by stratum number, for strata with at least two units of each sample."""
    design = Design.of(strata, first, second)
    return {
        int(strata[stratum.units[0]]): float(_difference(features, stratum, first[None], second[None])[1][0])
        for stratum in design.strata
        if stratum.has_estimate
    }


def mmd_standard_error(
    features: Features, strata: Ints, first: Bools, second: Bools, count: int, random: np.random.Generator
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
    differences = np.array([_difference(features, each, first[None], second[None])[0][0] for each in design.strata])
    variance = 0.0
    for side in (first, second):
        alone = []
        for stratum, gradient, share in zip(
            design.strata, design.gradients(differences), design.strata_weights(), strict=True
        ):
            own = features[stratum.units[side[stratum.units]]]
            projected = own @ gradient
            if len(own) < 2:
                alone.append(float(projected[0]))
                continue
            # A unit x is compared with the mean of the other units of its sample. With vectors of length 1, ⟨x, mean of
            # the others⟩ − ⟨x, mean of all⟩ is −‖x − mean of all‖² / (2 (n − 1)) and a constant.
            lengths = _squared_lengths(own) - 2 * own @ own.mean(axis=0)
            apart = design.within_weight * share * lengths / (len(own) - 1)
            variance += float(np.var(projected + (apart if side is second else -apart), ddof=1)) / len(own)
        # A single unit has no variance within its stratum. The variance between such strata is used instead; it is not
        # smaller.
        variance += len(alone) * float(np.var(alone, ddof=1)) if len(alone) > 1 else 0.0
    labels, _ = resampling.relabellings(first, strata, count, random)
    alike = without_difference(features, strata, first, second) if len(features) <= LARGEST_MOVED else features
    null_variance = float(mmd_estimates(alike, strata, labels, ~labels).var())
    return math.sqrt(max(variance - null_variance, null_variance))


def without_difference(features: Features, strata: Ints, first: Bools, second: Bools) -> Features:
    """Return the features after the samples' means have been moved together, as if only chance made them differ.

    The unbiased squared discrepancy of the result is about 0 in each stratum. A stratum with a single unit of a sample,
    which has no estimate of its own, is moved by the mean difference of all strata.
    """
    design = Design.of(strata, first, second)
    differences = [_difference(features, each, first[None], second[None]) for each in design.strata]
    together = sum(
        each.weight * difference[0] for each, (difference, _) in zip(design.strata, differences, strict=True)
    )
    squared = float(mmd_estimates(features, strata, first[None], second[None])[0])
    moved = features.copy()
    for stratum, (difference, unbiased) in zip(design.strata, differences, strict=True):
        apart, excess = (difference[0], float(unbiased[0])) if stratum.has_estimate else (together, squared)
        length = float(apart @ apart)
        if length <= 0 or excess <= 0:
            continue
        apart = apart * (1 - math.sqrt(max(0.0, 1 - excess / length)))
        size = stratum.first + stratum.second
        for side, part in ((first, -stratum.second / size), (second, stratum.first / size)):
            moved[stratum.units[side[stratum.units]]] += apart * part
    return moved


def vector_variance(features: Features, cells: Ints) -> float:
    """Return the unbiased variance of vectors around the mean of their cell, summed over dimensions; else 0."""
    squares, degrees = 0.0, 0
    for cell in np.unique(cells):
        inside = cells == cell
        own = np.asarray(features[inside], dtype=np.float64)
        squares += float(((own - own.mean(axis=0)) ** 2).sum())
        degrees += len(own) - 1
    return squares / degrees if degrees else 0.0


def mmd_contributions(values: Features | csr_array, strata: Ints, first: Bools, second: Bools) -> Floats:
    """Return the contribution of each dimension to the difference between the samples, at least 0; shape (dimensions,).

    A contribution is √(c Σ w(s) δ(s)² + (1 − c) (Σ w(s) δ(s))²), where δ(s) is the difference of the dimension's means
    in stratum s; c and w(s) are those of `mmd_estimates`. With one stratum it is the absolute difference of means.
    """
    design = Design.of(strata, first, second)
    together, apart = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    for stratum in design.strata:
        units = stratum.units
        means = [np.asarray(values[units[side[units]]].mean(axis=0)).ravel() for side in (first, second)]
        together += stratum.weight * (means[0] - means[1])
        apart += stratum.weight * (means[0] - means[1]) ** 2
    return np.asarray(np.sqrt(design.within_weight * apart + (1 - design.within_weight) * together**2))


@dataclass(frozen=True)
class Stratum:
    """A stratum with units of both samples: the indices of its units, and its weight; all weights add up to 1."""

    units: Ints
    first: int
    second: int
    weight: float

    @property
    def has_estimate(self) -> bool:
        return min(self.first, self.second) > 1


@dataclass(frozen=True)
class Design:
    """The strata with units of both samples, and the weight of discrepancies within them: c in `mmd_estimates`."""

    strata: tuple[Stratum, ...]
    within_weight: float

    @classmethod
    def of(cls, strata: Ints, first: Bools, second: Bools) -> Design:
        members = [np.flatnonzero((strata == stratum) & (first | second)) for stratum in np.unique(strata)]
        sizes = [(int(first[units].sum()), int(second[units].sum())) for units in members]
        precision = [m * n / (m + n) if m and n else 0.0 for m, n in sizes]
        # Units outside of both samples are kept, because another labelling may use them.
        members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
        used = tuple(
            Stratum(units, m, n, weight / sum(precision))
            for units, (m, n), weight in zip(members, sizes, precision, strict=True)
            if weight
        )
        effective_number = 1 / sum(stratum.weight**2 for stratum in used)
        if len(used) == 1:
            return cls(used, 1.0)
        if not any(stratum.has_estimate for stratum in used):
            return cls(used, 0.0)
        share = 1 / (2 * math.sqrt(effective_number))
        return cls(used, share + (1 - share) / effective_number)

    @property
    def pair_weight(self) -> float:
        """Return the sum of w(s) w(t) over all pairs (s, t) of different strata; w is a stratum's weight."""
        return 1 - sum(stratum.weight**2 for stratum in self.strata)

    def strata_weights(self) -> Iterator[float]:
        """Yield the weight of each stratum in the mean discrepancy within strata; 0 for a stratum without estimate."""
        total = sum(stratum.weight for stratum in self.strata if stratum.has_estimate)
        for stratum in self.strata:
            yield stratum.weight / total if stratum.has_estimate else 0.0

    def gradients(self, differences: Floats) -> Floats:
        """Return the (strata, dimensions) gradient of the estimate in the differences of mean embeddings."""
        weights = np.array([stratum.weight for stratum in self.strata])[:, None]
        own: Floats = 2 * self.within_weight * np.array([*self.strata_weights()])[:, None] * differences
        if self.within_weight == 1:
            return own
        others = (weights * differences).sum(axis=0) - weights * differences
        crossed: Floats = 2 * (1 - self.within_weight) / self.pair_weight * weights * others
        return own + crossed


def _combined_estimates(features: Features, design: Design, first: Bools, second: Bools) -> Floats:
    together = np.zeros((len(first), features.shape[1]), dtype=features.dtype)
    within, squares = np.zeros(len(first)), np.zeros(len(first))
    for stratum, share in zip(design.strata, design.strata_weights(), strict=True):
        difference, unbiased = _difference(features, stratum, first, second)
        within += share * unbiased if share else 0.0
        if design.within_weight < 1:
            squares += stratum.weight**2 * _squared_lengths(difference)
            together += stratum.weight * difference
    if design.within_weight == 1:
        return within
    return (
        design.within_weight * within
        + (1 - design.within_weight) * (_squared_lengths(together) - squares) / design.pair_weight
    )


def _difference(features: Features, stratum: Stratum, first: Bools, second: Bools) -> tuple[Features, Floats]:
    """Return, for each labelling, a stratum's difference of mean embeddings, and an estimate of its squared length.

    The estimate is unbiased if the stratum has at least two units of each sample.
    """
    # Subtracting the mean changes no difference, and avoids rounding errors from large sums.
    vectors = features[stratum.units]
    vectors = vectors - vectors.mean(axis=0)
    centred = vectors, _squared_lengths(vectors)
    mean, bias = _mean_and_bias(*centred, first[:, stratum.units], stratum.first)
    other, other_bias = _mean_and_bias(*centred, second[:, stratum.units], stratum.second)
    difference = mean - other
    return difference, _squared_lengths(difference) - bias - other_bias


def _mean_and_bias(own: Features, squares: Floats, labels: Bools, size: int) -> tuple[Features, Floats]:
    """Return a sample's mean vector, and the bias of the vector's squared length, for each labelling.

    The bias is variance / `size`; it is returned as 0 for a sample of one unit, whose variance is unknown.
    """
    used = labels.any(axis=0)
    own, chosen = own[used], cast("Features", labels[:, used].astype(own.dtype))
    mean = chosen @ own / own.dtype.type(size)
    return mean, (chosen @ squares[used] / size - _squared_lengths(mean)) / (size - 1) if size > 1 else np.zeros(
        len(labels)
    )


def _squared_lengths(vectors: Features) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors).astype(np.float64))


# Linear least-squares classifier with leave-one-out predictions, computed for many labellings at once.
#
# A labelling assigns units to two groups. Least squares on the labels replaces the loss of a support vector machine
# (Suykens and Vandewalle 1999, "Least Squares Support Vector Machine Classifiers"). The solution is linear in the
# labels, so that one inverse matrix serves all labellings. The prediction of a unit that is left out of training has
# a closed form (Cawley and Talbot 2004, "Fast exact leave-one-out cross-validation of sparse least-squares support
# vector machines").

PENALTY = 3.0
"""Ridge penalty, as a multiple of the mean squared length of the units' centred feature vectors."""
CLASSIFIER_CHUNK = 2**20
"""Largest number of values in memory at the same time while labellings are computed."""
ROWS = 512
"""Number of units whose leverage is computed at once."""
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
        penalty: ridge penalty, above 0.
        inverse: inverse of the penalised kernel (units × units) if `dual`, otherwise of the penalised scatter matrix
            (dimensions × dimensions). The kernel is the smaller matrix if there are no more units than dimensions.
        kinds: (units,) a number for each unit; units with equal features have the same number.
        sizes, means: number of units, and mean feature vector, of each stratum.
    """

    features: csr_array
    strata: Ints
    penalty: float
    inverse: Floats
    dual: bool
    kinds: Ints
    sizes: Ints
    means: Floats

    @classmethod
    def of(cls, features: csr_array, strata: Ints, kinds: Ints) -> Classifier:
        """Return the classifier, whose matrix is inverted once; each stratum has at least two units."""
        numbers = np.unique(strata, return_inverse=True)[1].astype(np.int64)
        sizes, means = np.bincount(numbers), (_averaging_matrix(numbers) @ features).toarray()
        lengths = np.asarray(features.multiply(features).sum(axis=1)).ravel()
        squared = float(lengths.sum()) - float(sizes @ (means**2).sum(axis=1))
        penalty = PENALTY * squared / len(numbers) if squared > ZERO else 1.0
        dual = features.shape[0] <= features.shape[1]
        if dual:
            # Centring within strata subtracts the means of rows and of columns.
            kernel = (features @ features.T).toarray()
            matrix = _centred(_centred(kernel, numbers).T, numbers)
        else:
            products = (features.T @ features).toarray()
            matrix = products - (means.T * sizes) @ means
        inverse = np.linalg.inv(matrix + penalty * np.eye(len(matrix))).astype(np.float64, copy=False)
        return cls(features, numbers, penalty, inverse, dual, kinds, sizes, means)

    @cached_property
    def leverage(self) -> Floats:
        """Return the weight of each unit's own label in its prediction, 0..1; shape (units,)."""
        return 1 / self.sizes[self.strata] + self._leverage_within_strata()

    @cached_property
    def repeats(self) -> list[tuple[Ints, Floats]]:
        """Return, for each set of equal units, their indices and the matrix of `_leave_out_matrix`."""
        return [(units, self._leave_out_matrix(units)) for units in _sets_of_equal_units(self.kinds)]

    def scores(self, labels: Floats) -> Floats:
        """Return the predicted label of each unit, with the unit itself (and units that equal it) left out of training.

        Labels are (units, labellings) numbers with sum 0 in each stratum; a unit with label 0 belongs to neither group.
        The scores have the labels' shape and scale: they are larger for units that are more similar to units with
        positive labels, and 0 if the unit's stratum holds no other unit to compare with.
        """
        residuals = self._residuals(labels)
        sizes = self.sizes[self.strata][:, None]
        # Leave-one-out prediction (label − residual / (1 − leverage)) minus the mean label of the stratum's other
        # units.
        scores: Floats = labels * (sizes / (sizes - 1)) - residuals / (1 - self.leverage[:, None])
        for units, inverse in self.repeats:
            own = self.strata[units]
            same = own[:, None] == own
            left = sizes[units] - same.sum(axis=1, keepdims=True)
            means = -(same @ labels[units]) / np.maximum(left, 1)
            scores[units] = np.where(left > 0, labels[units] - inverse @ residuals[units] - means, 0)
        scores[np.abs(scores) < ZERO] = 0
        return scores

    def weights(self, labels: Floats) -> Floats:
        """Return the weight of each dimension in the classifier trained on all units; shape (dimensions,)."""
        return np.asarray((self.features.T @ self._residuals(labels[:, None]))[:, 0] / self.penalty)

    def _residuals(self, labels: Floats) -> Floats:
        """Return labels minus their predictions, with all units in training; shape (units, labellings)."""
        if self.dual:
            return np.asarray(self.penalty * (self.inverse @ labels))
        predicted = self.features @ (self.inverse @ (self.features.T @ labels))
        return labels - _centred(predicted, self.strata)

    def _leverage_within_strata(self) -> Floats:
        """Return the diagonal of the matrix that maps centred labels to their predictions; shape (units,)."""
        if self.dual:
            return np.asarray(1 - self.penalty * np.diag(self.inverse))
        # Rows are sparse but means are not: the product (row − mean)ᵀ inverse (row − mean) is therefore expanded into
        # terms.
        weighted = self.inverse @ self.means.T
        squared_means = np.einsum("sd,ds->s", self.means, weighted)
        diagonal = np.empty(len(self.strata))
        for start in range(0, len(diagonal), ROWS):
            rows, own = self.features[start : start + ROWS], self.strata[start : start + ROWS]
            crossed = (rows @ weighted)[np.arange(len(own)), own]
            squared = np.asarray(rows.multiply(rows @ self.inverse).sum(axis=1)).ravel()
            diagonal[start : start + ROWS] = squared - 2 * crossed + squared_means[own]
        return diagonal

    def _leave_out_matrix(self, units: Ints) -> Floats:
        """Return the matrix that converts the residuals of these equal units into their leave-out residuals.

        A leave-out residual is the residual of a unit if all units in `units` are left out of training. The matrix is
        the pseudo-inverse of the rows and columns of these units in (I − hat matrix).
        """
        own = self.strata[units]
        if self.dual:
            left = self.penalty * self.inverse[np.ix_(units, units)]
        else:
            centred = self.features[units].toarray() - self.means[own]
            left = np.eye(len(units)) - centred @ self.inverse @ centred.T
        left = left - (own[:, None] == own) / self.sizes[own]
        return np.linalg.pinv(left, rcond=SINGULAR, hermitian=True)


def centred_labels(marked: Bools, strata: Ints, used: Bools) -> Floats:
    """Return (units, labellings) labels for `Classifier.scores`, centred within strata.

    The labels are above 0 for the marked group and below 0 for the other group; 0 for units that the labelling does not
    include, and for units whose stratum holds one group only.
    """
    share = _marked_share(marked[0], strata, used[0])
    return np.where(used, marked - share, 0.0).T


def _marked_share(marked: Bools, strata: Ints, used: Bools) -> Floats:
    """Return, for each unit, the share of the marked group among the `used` units of its stratum."""
    numbers = np.unique(strata, return_inverse=True)[1]
    share: Floats = np.bincount(numbers, marked & used) / np.maximum(np.bincount(numbers, used), 1)
    return share[numbers]


def classifier_distances(classifier: Classifier, marked: Bools, used: Bools | None = None) -> Floats:
    """Return the distance d' between the two groups, for each labelling; shape (labellings,).

    d' is the difference between the groups' mean scores within strata, in standard deviations of the scores within
    groups. Each unit is scored without itself, so that d' is 0 on average if the groups do not differ.
    """
    used = np.ones((1, marked.shape[1]), dtype=np.bool_) if used is None else used
    return np.concatenate([_distances(classifier, *batch) for batch in _batches(marked, used)])


def _batches(marked: Bools, used: Bools) -> Iterator[tuple[Bools, Bools]]:
    shape = np.broadcast_shapes(marked.shape, used.shape)
    rows = max(1, CLASSIFIER_CHUNK // shape[1])
    both = np.broadcast_to(marked, shape), np.broadcast_to(used, shape)
    for start in range(0, shape[0], rows):
        yield both[0][start : start + rows], both[1][start : start + rows]


def _distances(classifier: Classifier, marked: Bools, used: Bools) -> Floats:
    labels = centred_labels(marked, classifier.strata, used)
    scores = classifier.scores(labels)
    scores[labels == 0] = 0
    size = float((labels[:, 0] ** 2).sum()) or 1.0
    difference = np.einsum("ul,ul->l", scores, labels) / size
    units = max(1, np.count_nonzero(labels[:, 0]))
    variance = (np.einsum("ul,ul->l", scores, scores) - difference**2 * size) / units
    return np.asarray(difference / np.sqrt(np.maximum(variance, ZERO**2)))


def _averaging_matrix(strata: Ints) -> csr_array:
    """Return the (strata, units) matrix that averages the rows of each stratum's units."""
    # Deferred, as scipy is not needed to load a probe.
    from scipy.sparse import csr_array

    return csr_array((1 / np.bincount(strata)[strata], (strata, np.arange(len(strata)))))


def _centred(values: Floats, strata: Ints) -> Floats:
    return np.asarray(values - (_averaging_matrix(strata) @ values)[strata])


def _sets_of_equal_units(kinds: Ints) -> list[Ints]:
    order = np.argsort(kinds, kind="stable")
    ends = np.flatnonzero(np.diff(kinds[order])) + 1
    return [units for units in np.split(order, ends) if len(units) > 1]
