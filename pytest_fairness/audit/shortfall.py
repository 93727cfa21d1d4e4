"""Who gets fewer items than were asked for? The counterpart of every list audit, which leave missing lists out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audit.base import AuditItem, Direction, Probe
from pytest_fairness.audit.closeness import indirect
from pytest_fairness.audit.entities import BetweenValues, values_of
from pytest_fairness.audit.lists import NEUTRAL, Draw, Lists, count
from pytest_fairness.audit.matrix import Matrix
from pytest_fairness.audit.units import UnitTable
from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Answer, Measurement, Status
from pytest_fairness.stats import blocks, proportions

Floats = NDArray[np.float64]


class ShortfallSettings(AuditSettings):
    """The gap in missing items takes no settings of its own."""


class Shortfall(BetweenValues[ShortfallSettings]):
    """Largest gap between values in the share of missing items, 0..1.

    A refused or unreadable list lacks all its items; one that never came is missing altogether. The answer to the
    indirect wording does not undo the refusal of the direct one.
    """

    name: ClassVar[str] = "shortfall"
    version: ClassVar[int] = 2
    settings_model: ClassVar[type[AuditSettings]] = ShortfallSettings
    better: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""
    default_tolerance: ClassVar[float] = 0.10
    quantity: ClassVar[str] = "share_missing"
    harmed: ClassVar[str] = "highest"

    def table(self, probe: Probe, item: AuditItem[ShortfallSettings], answers: Sequence[Answer]) -> Matrix:
        """Share of missing items by entity and value."""
        attribute = item.labels["attribute"]
        values = values_of(probe, attribute)
        lists = Lists.of(probe, answers, direct_only=True)
        reworded = any(answer.labels.get("form") for answer in answers)
        lists_by_any_wording = Lists.of(probe, answers) if reworded else lists
        draws = [draw for draw in lists.of_group(attribute) if draw.value in values]
        neutral = lists.of_group(NEUTRAL)
        cells: dict[tuple[str, str], list[float]] = {}
        for draw in draws:
            if draw.status is not Status.FAILED:
                cells.setdefault((draw.entity, draw.value), []).append(1 - draw.returned / probe.k)
        came = (Status.OK, Status.REFUSED, Status.UNREADABLE)
        groups = (*values, NEUTRAL)
        refused, unreadable = (count([*draws, *neutral], groups, status) for status in came[1:])
        return Matrix.averaged(
            values,
            cells,
            entities=tuple(sorted({draw.entity for draw in draws})),
            domains=lists.domains,
            n=count(draws, values, *came),
            missing=count(draws, values, Status.FAILED),
            details={
                "by_value": {
                    group: {
                        "asked": probe.k * len(own := _came([*draws, *neutral], group)),
                        "returned": sum(draw.returned for draw in own),
                        "refused": refused[group],
                        "unreadable": unreadable[group],
                    }
                    for group in groups
                },
                "indirect": indirect(lists_by_any_wording.draws, values),
                "refused": {value: refused[value] for value in values},
                "unreadable": {value: unreadable[value] for value in values},
                "merged": lists.merge_details(),
            },
        )

    def statistic(self, means: Floats) -> Floats:
        """Largest minus smallest."""
        return blocks.value_range(means)

    def error_floor(self, table: UnitTable) -> float:
        """That nothing was missing in so many lists does not show that nothing ever will."""
        lists = min(table.n.values())
        return proportions.difference_error(0, lists, 0, lists)

    def describe(self, measurement: Measurement) -> str:
        """The gap, and the shares of the values furthest apart."""
        shares = sorted((part["mean"], value) for value, part in measurement.details[self.quantity].items())
        (low, least), (high, most) = shares[0], shares[-1]
        return f"missing items differ by {measurement.value:.3g} ({high:.0%} for {most}, {low:.0%} for {least})"


def _came(draws: Sequence[Draw], group: str) -> list[Draw]:
    return [draw for draw in draws if draw.group == group and draw.status is not Status.FAILED]
