"""A table of one number for each entity and value: what audits of lists measure from, and what baselines compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Json

Floats = NDArray[np.float64]

MINIMUM_ENTITIES = 4
"""Complete entities below which nothing is measured."""


@dataclass(frozen=True)
class Matrix:
    """One number for each entity and value, averaged over the draws.

    Attributes:
        entities: everything that was asked about, sorted.
        values: of the columns.
        rows: (entities, values); NaN where there is no number.
        domains: of the entities that have one.
        n, missing: draws that were measured and draws that could not be, by group.
        details: what the audit adds to its measurement.
    """

    entities: tuple[str, ...]
    values: tuple[str, ...]
    rows: Floats
    domains: Mapping[str, str]
    n: Mapping[str, int]
    missing: Mapping[str, int]
    details: Mapping[str, Json] = field(default_factory=dict)

    @classmethod
    def averaged(
        cls,
        values: Sequence[str],
        cells: Mapping[tuple[str, str], Sequence[float]],
        *,
        entities: tuple[str, ...],
        domains: Mapping[str, str],
        n: Mapping[str, int],
        missing: Mapping[str, int],
        details: Mapping[str, Json],
    ) -> Matrix:
        """From the numbers of each (entity, value)."""
        rows = np.full((len(entities), len(values)), np.nan)
        for row, entity in enumerate(entities):
            for column, value in enumerate(values):
                found = [number for number in cells.get((entity, value), ()) if not math.isnan(number)]
                if found:
                    rows[row, column] = sum(found) / len(found)
        return cls(entities, tuple(values), rows, domains, n, missing, details)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """(entities,) whether there is a number for every value."""
        return whole(self.rows)

    def means(self) -> Floats:
        """(values,) mean over the entities that have the value's number."""
        mean: Floats = np.nanmean(self.rows, axis=0)
        return mean

    def require(self) -> None:
        """Raise `NotMeasurable` unless enough entities are complete; the message says what is missing."""
        complete = int(self.complete.sum())
        if complete >= MINIMUM_ENTITIES:
            return
        lost = ", ".join(
            f"{count} of {count + self.n.get(name, 0)} for {name}" for name, count in self.missing.items() if count
        )
        cure = (
            f"lists are missing: {lost}; look at the answers with `python -m pytest_fairness export`"
            if lost
            else "name more `entities`"
        )
        raise NotMeasurable(
            f"only {complete} entities have a list for every value, {MINIMUM_ENTITIES} are needed; {cure}"
        )

    def rows_of(self, entities: Sequence[str]) -> Floats:
        """(entities, values) the rows of these entities, in their order."""
        places = {entity: row for row, entity in enumerate(self.entities)}
        return self.rows[[places[entity] for entity in entities]]


def whole(rows: Floats) -> NDArray[np.bool_]:
    """(entities,) whether a row has all its numbers."""
    complete: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(rows), axis=1)
    return complete
