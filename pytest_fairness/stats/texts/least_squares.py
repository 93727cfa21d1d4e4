"""Linear least-squares classifier with leave-one-out predictions, computed for many labellings at once.

A labelling assigns units to two groups. Least squares on the labels replaces the loss of a support vector machine
(Suykens and Vandewalle 1999, "Least Squares Support Vector Machine Classifiers"). The solution is linear in the labels,
so that one inverse matrix serves all labellings. The prediction of a unit that is left out of training has a
closed form (Cawley and Talbot 2004, "Fast exact leave-one-out cross-validation of sparse least-squares support vector
machines").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


PENALTY = 3.0
"""Ridge penalty, as a multiple of the mean squared length of the units' centred feature vectors."""
CHUNK = 2**20
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
        features: (units, dimensions) sparse feature matrix.
        strata: (units,) stratum number of each unit, from 0.
        penalty: ridge penalty, above 0.
        inverse: inverse of the penalised kernel (units × units) if `dual`, otherwise of the penalised scatter matrix
            (dimensions × dimensions).
        dual: whether `inverse` belongs to the kernel, which is the smaller matrix if there are no more units than
            dimensions.
        kinds: (units,) a number for each unit; units with equal features have the same number.
        sizes: (strata,) number of units of each stratum.
        means: (strata, dimensions) mean feature vector of each stratum.
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
        """Return the classifier of these features; the inverse of its matrix is computed once for all labellings.

        Args:
            features: (units, dimensions) sparse feature matrix.
            strata: (units,) stratum number of each unit; each stratum has at least two units.
            kinds: (units,) a number for each unit; units with equal features have the same number.
        """
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

        Args:
            labels: (units, labellings) numbers with sum 0 in each stratum. A unit with label 0 belongs to neither
                group.

        Returns:
            (units, labellings) scores, on the scale of the labels: larger for units that are more similar to units with
            positive labels. The score is 0 if the unit's stratum holds no other unit to compare with.
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
        """Return the weight of each dimension in the classifier trained on all units; shape (dimensions,).

        Args:
            labels: (units,) numbers with sum 0 in each stratum.
        """
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

        Args:
            units: indices of equal units.
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
    """Return numeric labels for `Classifier.scores`, centred within strata.

    Args:
        marked: (labellings, units) whether the unit belongs to the marked group.
        strata: (units,) stratum number of each unit.
        used: (labellings, units) whether the labelling includes the unit. All labellings include the same number of
            units of each group in each stratum.

    Returns:
        (units, labellings) labels: above 0 for the marked group and below 0 for the other group; 0 for units that
        the labelling does not include, and for units whose stratum holds one group only.
    """
    share = _marked_share(marked[0], strata, used[0])
    return np.where(used, marked - share, 0.0).T


def _marked_share(marked: Bools, strata: Ints, used: Bools) -> Floats:
    """Return, for each unit, the share of the marked group among the `used` units of its stratum."""
    numbers = np.unique(strata, return_inverse=True)[1]
    share: Floats = np.bincount(numbers, marked & used) / np.maximum(np.bincount(numbers, used), 1)
    return share[numbers]


def distances(classifier: Classifier, marked: Bools, used: Bools | None = None) -> Floats:
    """Return the distance d' between the two groups, for each labelling; shape (labellings,).

    d' is the difference between the groups' mean scores within strata, in standard deviations of the scores within
    groups. Each unit is scored without itself, so that d' is 0 on average if the groups do not differ.

    Args:
        classifier: classifier of the units.
        marked: (labellings, units) whether the unit belongs to the marked group.
        used: (labellings, units) whether the labelling includes the unit; `None` for all units.
    """
    used = np.ones((1, marked.shape[1]), dtype=np.bool_) if used is None else used
    return np.concatenate([_distances(classifier, *batch) for batch in _batches(marked, used)])


def _batches(marked: Bools, used: Bools) -> Iterator[tuple[Bools, Bools]]:
    """Yield `marked` and `used` in batches of labellings that fit into memory."""
    shape = np.broadcast_shapes(marked.shape, used.shape)
    rows = max(1, CHUNK // shape[1])
    both = np.broadcast_to(marked, shape), np.broadcast_to(used, shape)
    for start in range(0, shape[0], rows):
        yield both[0][start : start + rows], both[1][start : start + rows]


def _distances(classifier: Classifier, marked: Bools, used: Bools) -> Floats:
    """Return `distances` for labellings that fit into memory together."""
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
    """Return each unit's row minus the mean row of its stratum."""
    return np.asarray(values - (_averaging_matrix(strata) @ values)[strata])


def _sets_of_equal_units(kinds: Ints) -> list[Ints]:
    """Return the indices of each set of two or more equal units."""
    order = np.argsort(kinds, kind="stable")
    ends = np.flatnonzero(np.diff(kinds[order])) + 1
    return [units for units in np.split(order, ends) if len(units) > 1]
