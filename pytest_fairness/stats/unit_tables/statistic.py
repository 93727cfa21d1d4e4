"""A statistic of the column means of a table by unit, with its gradient, its bounds and the groups it compares.

A unit is what is resampled: an entity, a record, a sentence. A table holds one row a unit and one column a quantity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.spreads import Pairs, Spread, furthest
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.mean_errors import mean_error

TAIL = 0.025
"""Either tail of a 95 % interval."""


@dataclass(frozen=True)
class Sample:
    """The rows of a table, as far as a statistic needs them.

    Attributes:
        rows: (units, columns) numbers of the complete units.
        means: (columns,) mean of each column over the units that have a number there.
        least_error: standard error to take where no unit differs from any other, as equal units do not prove that all
            units are equal.
    """

    rows: Floats
    means: Floats
    least_error: float = 0.0


class UnitStatistic(ABC):
    """A statistic of the column means of a table.

    A statistic that is the distance between groups also names the numbers it compares, one a group, and the pairs of
    groups. Such a distance is above 0 by chance alone, so that its standard error does not give its bounds.

    Attributes:
        pairs: the pairs of groups that are compared; empty where the value is no difference of two groups.
        distance: how far the groups are apart, from the groups' numbers; `None` where the value is no distance.
    """

    pairs: Pairs = ()
    distance: Spread | None = None

    @abstractmethod
    def value(self, means: Floats) -> Floats:
        """Return (...) values from (..., columns) means; NaN where the statistic is not defined."""

    @abstractmethod
    def loss_gradient(self, means: Floats) -> Floats:
        """Return the (columns,) gradient of the loss, which grows as the value gets worse, at (columns,) means."""

    @property
    def among_several(self) -> bool:
        """Return whether the value is a distance among several groups, and not a single difference."""
        return self.distance is not None and len(self.pairs) != 1

    def difference_gradient(self, means: Floats) -> Floats:
        """Return the (columns,) gradient of the largest difference between two groups of a pair."""
        high, low = furthest(self.groups(means), self.pairs)
        gradients = self.group_gradients(means)
        found: Floats = gradients[high] - gradients[low]
        return found

    def groups(self, means: Floats) -> Floats:
        """Return the (..., groups) numbers that are compared, from (..., columns) means."""
        return means

    def group_gradients(self, means: Floats) -> Floats:
        """Return the (groups, columns) gradients of the groups' numbers at (columns,) means."""
        return np.eye(len(means))

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the names of the groups, from the names of the columns."""
        return columns

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return the degrees of freedom of a standard error over complete (units, columns) rows."""
        return float(len(rows) - 1)

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error of the value, by the delta method."""
        centred = sample.rows - sample.rows.mean(axis=0)
        return mean_error(centred @ self.loss_gradient(sample.means)) or sample.least_error

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float] | None:
        """Return one-sided bounds of the loss, or `None` if the standard error gives them.

        Args:
            sample: the rows.
            alpha: chance that the lower bound is above the truth.
            beta: chance that the upper bound is below the truth.
        """
        return None

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the two-sided 95 % interval of the value."""
        bounds = self.bounds(sample, TAIL, TAIL)
        if bounds is not None:
            return bounds
        value, degrees = float(self.value(sample.means)), self.degrees_of_freedom(sample.rows)
        return normal.interval(value, self.standard_error(sample), degrees_of_freedom=degrees)

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return the estimated change of the loss between two runs.

        Args:
            current, baseline: (columns,) means of either run.
            moves: (units,) by how much each unit moved along the loss gradient.
        """
        return float(moves.mean())
