"""Table of one number for each entity and each value of an attribute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.lists import incomplete


@dataclass(frozen=True)
class Matrix(UnitTable):
    """A table of one number for each entity (row) and attribute value (column); the numbers are means over trials.

    Attributes:
        domains: domain of each entity; entities without a domain are left out.
        measured: the numbers before `compared` completed the rows; `None` if the rows are not completed.
    """

    domains: Mapping[str, str] = field(default_factory=dict)
    measured: Floats | None = None

    @property
    def numbers(self) -> Floats:
        """Return the (entities, columns) measured numbers; NaN for a missing number."""
        return self.rows if self.measured is None else self.measured

    def compared(self, columns: Sequence[int]) -> Matrix:
        """Return the table of these columns with completed rows; see `stats.lists.incomplete`.

        The details list the other attribute values with their number of entities and their mean, as `too_few`.
        """
        left_out = {
            name: {
                "entities": int((~np.isnan(self.rows[:, column])).sum()),
                "mean": None if np.isnan(self.rows[:, column]).all() else float(np.nanmean(self.rows[:, column])),
            }
            for column, name in enumerate(self.columns)
            if column not in columns
        }
        measured = self.rows[:, columns]
        return replace(
            self,
            columns=tuple(self.columns[column] for column in columns),
            rows=incomplete.complete_rows(measured),
            measured=measured,
            details={**self.details, **({"too_few": left_out} if left_out else {})},
        )

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
