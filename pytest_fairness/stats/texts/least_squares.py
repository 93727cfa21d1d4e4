"""A linear least squares classifier, left-out predictions of it, and many labellings at once.

Least squares on labels takes the place of a support vector machine's loss (Suykens and Vandewalle 1999, "Least Squares
Support Vector Machine Classifiers"). The solution is linear in the labels, so that one factorisation serves all
labellings, and leaving a unit out of training has a closed form (Cawley and Talbot 2004, "Fast exact leave-one-out
cross-validation of sparse least-squares support vector machines").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


PENALTY = 1.0
"""Ridge penalty in units of the mean squared length of a centred unit."""
CHUNK = 2**20
"""Numbers held at once while many labellings are computed."""
ROWS = 512
"""Units whose leverage is computed at once."""
ZERO = 1e-9
"""Size below which a score of a unit says nothing."""
SINGULAR = 1e-9
"""Share of the largest eigenvalue below which an eigenvalue counts as 0."""


@dataclass(frozen=True)
class Classifier:
    """Ridge regression with a free mean in each stratum, trained without the unit that it scores.

    Features and labels are centred within strata, so that a stratum's own words say nothing about the groups: a unit
    is compared with units of its own stratum only. Training leaves out the unit itself and all units equal to it.

    Attributes:
        features: (units, dimensions), sparse.
        strata: (units,) the stratum of each unit, 0 to strata − 1.
        penalty: the ridge penalty, above 0.
        inverse: of the penalised kernel (units × units) where there are no more units than dimensions, else of the
            penalised scatter matrix (dimensions × dimensions).
        dual: whether it is that of the kernel.
        leverage: (units,) how much a unit's own label weighs in its prediction, 0..1.
        repeats: of each set of equal units, the indices, and the pseudo-inverse that leaves them out together.
    """

    features: csr_array
    strata: Ints
    penalty: float
    inverse: Floats
    dual: bool
    leverage: Floats
    repeats: list[tuple[Ints, Floats]]

    @classmethod
    def of(cls, features: csr_array, strata: Ints, kinds: Ints) -> Classifier:
        """Return the classifier of these features, factorised once for all labellings.

        Args:
            features: (units, dimensions).
            strata: (units,) the stratum of each unit, each with at least two units.
            kinds: (units,) equal units have the same number.
        """
        numbers = np.unique(strata, return_inverse=True)[1].astype(np.int64)
        sizes, means = np.bincount(numbers), (_averaging(numbers) @ features).toarray()
        squared = float(features.multiply(features).sum()) - float(sizes @ (means**2).sum(axis=1))
        penalty = PENALTY * squared / len(numbers) if squared > ZERO else 1.0
        dual = features.shape[0] <= features.shape[1]
        if dual:
            # Centring within strata takes the means of rows and columns off.
            kernel = (features @ features.T).toarray()
            matrix = _centred(_centred(kernel, numbers).T, numbers)
        else:
            matrix = (features.T @ features).toarray() - (means.T * sizes) @ means
        inverse = np.linalg.inv(matrix + penalty * np.eye(len(matrix))).astype(np.float64, copy=False)
        bare = cls(features, numbers, penalty, inverse, dual, np.zeros(0), [])
        leverage = 1 / sizes[numbers] + bare._leverage(means)
        repeats = [(units, bare._leaving_out(units, means, sizes)) for units in _repeated(kinds)]
        return cls(features, numbers, penalty, inverse, dual, leverage, repeats)

    def scores(self, labels: Floats) -> Floats:
        """Return how much each unit looks like the positive labels, from the others of its stratum's mean.

        Args:
            labels: (units, labellings) numbers, those of one stratum with sum 0. A unit with label 0 takes part as one
                that looks like neither.

        Returns:
            (units, labellings) scores, in labels' unit; 0 where nothing is left to compare a unit with.
        """
        residuals = self._residuals(labels)
        sizes = np.bincount(self.strata)[self.strata][:, None]
        # Prediction without the unit (label − residual / (1 − leverage)) less the mean label of its stratum without it.
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
        """Return the weight of each dimension of the classifier that is trained on all units, (dimensions,)."""
        weights: Floats = (self.features.T @ self._residuals(labels[:, None]))[:, 0] / self.penalty
        return weights

    def _residuals(self, labels: Floats) -> Floats:
        """Return labels less their predictions with the units in training, (units, labellings)."""
        if self.dual:
            residuals: Floats = self.penalty * (self.inverse @ labels)
            return residuals
        predicted = self.features @ (self.inverse @ (self.features.T @ labels))
        return labels - _centred(predicted, self.strata)

    def _leverage(self, means: Floats) -> Floats:
        """Return the diagonal of the matrix that turns centred labels into predictions."""
        if self.dual:
            within: Floats = 1 - self.penalty * np.diag(self.inverse)
            return within
        # Rows are sparse and their means are not: the square (row − mean)ᵀ inverse (row − mean) is taken apart.
        weighted = self.inverse @ means.T
        squared_means = np.einsum("sd,ds->s", means, weighted)
        found = np.empty(len(self.strata))
        for start in range(0, len(found), ROWS):
            rows, own = self.features[start : start + ROWS], self.strata[start : start + ROWS]
            crossed = (rows @ weighted)[np.arange(len(own)), own]
            squared = np.asarray(rows.multiply(rows @ self.inverse).sum(axis=1)).ravel()
            found[start : start + ROWS] = squared - 2 * crossed + squared_means[own]
        return found

    def _leaving_out(self, units: Ints, means: Floats, sizes: Ints) -> Floats:
        """Return what turns residuals of these units into those without them in training."""
        own = self.strata[units]
        if self.dual:
            left = self.penalty * self.inverse[np.ix_(units, units)]
        else:
            centred = self.features[units].toarray() - means[own]
            left = np.eye(len(units)) - centred @ self.inverse @ centred.T
        left = left - (own[:, None] == own) / sizes[own]
        return np.linalg.pinv(left, rcond=SINGULAR, hermitian=True)


def labels_of(marked: Bools, strata: Ints, used: Bools) -> Floats:
    """Return labels for `Classifier.scores`: centred within strata, 0 for units that are not used.

    Args:
        marked: (labellings, units) whether the unit is of the marked group.
        strata: (units,) the stratum of each unit.
        used: (labellings, units) whether the unit takes part. All labellings have the same number of units of either
            group in each stratum.

    Returns:
        (units, labellings): above 0 for the marked group, below 0 for the other, 0 for units that are not used or have
        none of the other group in their stratum.
    """
    share = _marked_share(marked[0], strata, used[0])
    return np.where(used, marked - share, 0.0).T


def _marked_share(marked: Bools, strata: Ints, used: Bools) -> Floats:
    """Return the share of the marked group in each unit's stratum, among the units that are used."""
    numbers = np.unique(strata, return_inverse=True)[1]
    share: Floats = np.bincount(numbers, marked & used) / np.maximum(np.bincount(numbers, used), 1)
    return share[numbers]


@dataclass(frozen=True)
class Separation:
    """How well scores tell the groups apart, for each labelling.

    Attributes:
        accuracies: (labellings,) mean of both groups' shares of right answers, 0..1, chance 0.5; a score of 0 is half
            right.
        effects: (labellings,) mean difference of the groups' scores within strata in standard deviations, chance 0.
    """

    accuracies: Floats
    effects: Floats

    @classmethod
    def of(cls, classifier: Classifier, marked: Bools, used: Bools | None = None) -> Separation:
        """Score the units for each labelling; arguments are as in `labels_of`."""
        used = np.ones((1, marked.shape[1]), dtype=np.bool_) if used is None else used
        parts = [_separation(classifier, *batch) for batch in _batches(marked, used)]
        accuracies, effects = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(accuracies, effects)


def _batches(marked: Bools, used: Bools) -> Iterator[tuple[Bools, Bools]]:
    shape = np.broadcast_shapes(marked.shape, used.shape)
    rows = max(1, CHUNK // shape[1])
    both = np.broadcast_to(marked, shape), np.broadcast_to(used, shape)
    for start in range(0, shape[0], rows):
        yield both[0][start : start + rows], both[1][start : start + rows]


def _separation(classifier: Classifier, marked: Bools, used: Bools) -> tuple[Floats, Floats]:
    labels = labels_of(marked, classifier.strata, used)
    scores = classifier.scores(labels)
    scores[labels == 0] = 0
    size = float((labels[:, 0] ** 2).sum()) or 1.0
    difference = np.einsum("ul,ul->l", scores, labels) / size
    units = max(1, np.count_nonzero(labels[:, 0]))
    variance = (np.einsum("ul,ul->l", scores, scores) - difference**2 * size) / units
    effects = difference / np.sqrt(np.maximum(variance, ZERO**2))
    # Scores count from the stratum's mean, which is off the middle between two groups of unequal size.
    share = _marked_share(marked[0], classifier.strata, used[0])
    scores -= difference * (0.5 - share)[:, None]
    right = (np.sign(scores) * np.sign(labels) + 1) / 2
    sides = [np.where(side, right, 0).sum(axis=0) / max(1, side[:, 0].sum()) for side in (labels > 0, labels < 0)]
    return (sides[0] + sides[1]) / 2, effects


def _averaging(strata: Ints) -> csr_array:
    """Return the matrix that turns rows of units into mean rows of strata."""
    # Deferred, as scipy is not needed to load a probe.
    from scipy.sparse import csr_array

    return csr_array((1 / np.bincount(strata)[strata], (strata, np.arange(len(strata)))))


def _centred(values: Floats, strata: Ints) -> Floats:
    """Return the rows less the mean row of their stratum."""
    centred: Floats = values - (_averaging(strata) @ values)[strata]
    return centred


def _repeated(kinds: Ints) -> list[Ints]:
    """Return the indices of each set of several equal units."""
    order = np.argsort(kinds, kind="stable")
    ends = np.flatnonzero(np.diff(kinds[order])) + 1
    return [units for units in np.split(order, ends) if len(units) > 1]
