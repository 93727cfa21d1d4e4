"""Axes of a generation probe: the attributes by which groups differ."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.field_types import Line


class Axis(ProbeModel):
    """Axis: one attribute by which groups differ."""

    unmarked: Line = Field(description="The value with which the marked values are compared.")
    marked: tuple[Line, ...] = Field(min_length=1, description="The values that are compared with the unmarked value.")

    @property
    def values(self) -> tuple[str, ...]:
        """The unmarked value, then the marked values."""
        return (self.unmarked, *self.marked)


Intersection = Annotated[tuple[Line, ...], Field(json_schema_extra={"minItems": 2, "uniqueItems": True})]
"""Type of an intersection: the names of two or more axes whose marked values are compared jointly."""
