"""Table of one number for each entity and each value of an attribute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.records import Json


@dataclass(frozen=True)
class Matrix(UnitTable):
    """A table of one number for each entity (row) and attribute value (column); the numbers are means over trials.

    Attributes:
        domains: domain of each entity; entities without a domain are left out.
    """

    domains: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def averaged(
        cls,
        values: Sequence[str],
        cells: Mapping[tuple[str, str], Sequence[float]],
        *,
        entities: Iterable[str],
        domains: Mapping[str, str],
        n: Mapping[str, int],
        missing: Mapping[str, int],
    ) -> Matrix:
        """Return a table in which each cell is the mean of the numbers of its entity and attribute value.

        Args:
            values: names of the columns.
            cells: the numbers of each pair (entity, attribute value).
            entities: names of the entities, in any order and with repetitions.
            domains, n, missing: see the attributes of `Matrix` and `UnitTable`.
        """
        units = tuple(sorted({*entities}))
        rows = np.full((len(units), len(values)), np.nan)
        for row, entity in enumerate(units):
            for column, value in enumerate(values):
                numbers = [number for number in cells.get((entity, value), ()) if not math.isnan(number)]
                if numbers:
                    rows[row, column] = sum(numbers) / len(numbers)
        return cls(units, tuple(values), rows, n, missing, domains=domains)

    @classmethod
    def joined(
        cls, values: Sequence[str], groups: Sequence[str], parts: Sequence[Matrix], details: Mapping[str, Json]
    ) -> Matrix:
        """Return one table with the rows of several tables, in the order of these tables.

        Args:
            values: names of the columns.
            groups: groups whose numbers of usable and missing answers are added up over the tables.
            parts: tables to join; no entity is in two of them.
            details: details of the joined table.
        """
        return cls(
            tuple(entity for part in parts for entity in part.units),
            tuple(values),
            np.concatenate([np.empty((0, len(values))), *(part.rows for part in parts)]),
            {group: sum(part.n[group] for part in parts) for group in groups},
            {group: sum(part.missing[group] for part in parts) for group in groups},
            details,
            domains={entity: domain for part in parts for entity, domain in part.domains.items()},
        )
