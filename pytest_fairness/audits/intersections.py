"""Intersections: groups that are combinations of the values of several attributes, each compared with a reference.

A combination, such as Black women, is called a cell. The reference is the first cell, or the most selected cell for an
impact ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.records import Json
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.mean_errors import mean_error
from pytest_fairness.stats.resampling import significance
from pytest_fairness.stats.unit_tables.statistic import Sample, UnitStatistic


@dataclass(frozen=True)
class Intersection:
    """Attributes whose combined values are the groups of an item.

    Attributes:
        attributes: names of the attributes.
        cells: attribute values of each cell; the cells are in the order in which the audit's statistic has its groups.
        quantities: names of the numbers that the statistic computes for each cell; one empty name for a single number.
    """

    attributes: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    quantities: Sequence[str] = ("",)

    def tables(self, statistic: UnitStatistic, sample: Sample) -> list[dict[str, Json]]:
        """Return, for each quantity, a table of the cells' values and of their differences from the reference.

        A difference has the 95 % interval of Student's t, and a two-sided p-value that Holm's method adjusts for all
        cells of the table. A quantity has a table only if it is defined for at least one cell.
        """
        numbers, gradients = statistic.groups(sample.means), statistic.group_gradients(sample.means)
        influence = (sample.rows - sample.rows.mean(axis=0)) @ gradients.T
        degrees = statistic.degrees_of_freedom(sample.rows)
        tables: list[dict[str, Json]] = []
        for block, quantity in enumerate(self.quantities):
            first = block * len(self.cells)
            own = numbers[first : first + len(self.cells)]
            if np.isnan(own).all():
                continue
            reference = statistic.reference(own)
            entries: list[dict[str, Json]] = []
            for place, cell in enumerate(self.cells):
                entry: dict[str, Json] = {
                    "cell": list(cell),
                    "value": None if np.isnan(own[place]) else float(own[place]),
                }
                if place != reference and not np.isnan(own[place]):
                    gap = float(own[place] - own[reference])
                    error = mean_error(influence[:, first + place] - influence[:, first + reference])
                    error = error or sample.least_error
                    entry |= {
                        "gap": gap,
                        "interval": list(normal.interval(gap, error, degrees_of_freedom=degrees)),
                        "p_value": normal.two_sided_p(gap / error, degrees) if error else float(gap == 0),
                    }
                entries.append(entry)
            compared = [entry for entry in entries if "gap" in entry]
            for entry, p_value in zip(
                compared, significance.holm([entry["p_value"] for entry in compared]), strict=True
            ):
                entry["p_value"] = p_value
            tables.append(
                {
                    "quantity": quantity,
                    "attributes": list(self.attributes),
                    "reference": list(self.cells[reference]),
                    "cells": entries,
                }
            )
        return tables
