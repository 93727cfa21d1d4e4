"""Intersections: groups that are combinations of the values of several attributes, each compared with a reference.

A combination, such as Black women, is called a cell. The reference is the first cell, or the most selected cell for an
impact ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import number_or_none
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

        A difference has a 95 % interval and a two-sided p-value; see `UnitStatistic.reference_tests`. A quantity has a
        table only if it is defined for at least one cell.
        """
        numbers = statistic.groups(sample.means)
        tables: list[dict[str, Json]] = []
        for block, quantity in enumerate(self.quantities):
            first = block * len(self.cells)
            own = numbers[first : first + len(self.cells)]
            if np.isnan(own).all():
                continue
            reference = statistic.reference(own)
            others = [first + place for place in np.flatnonzero(~np.isnan(own)).tolist() if place != reference]
            tests = {test.first - first: test for test in statistic.reference_tests(sample, first + reference, others)}
            entries: list[dict[str, Json]] = []
            for place, cell in enumerate(self.cells):
                entry: dict[str, Json] = {"cell": list(cell), "value": number_or_none(own[place])}
                if (test := tests.get(place)) is not None:
                    entry |= {"gap": test.value, "interval": list(test.interval), "p_value": test.p_value}
                entries.append(entry)
            tables.append(
                {
                    "quantity": quantity,
                    "attributes": list(self.attributes),
                    "reference": list(self.cells[reference]),
                    "cells": entries,
                }
            )
        return tables
