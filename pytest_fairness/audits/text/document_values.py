"""Base class of the numbers (rates, scores) that audits give to the texts of two groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from pytest_fairness.audits.text.groups import Groups, TextItem
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.records import Json
from pytest_fairness.stats.groups.stratified_values import StratifiedValues


@dataclass(frozen=True)
class DocumentValues(StratifiedValues, ABC):
    """Numbers that an audit gives to both groups' usable answers of one run, without strata that hold only one group.

    Attributes:
        item: the item.
        groups: answers of the item.
    """

    item: TextItem[AuditSettings]
    groups: Groups

    @abstractmethod
    def details(self) -> Mapping[str, Json]:
        """Return the details of a measurement of these numbers."""

    def change_details(self, baseline: Self) -> Mapping[str, Json]:
        """Return the details of a comparison with the values of the baseline's documents; by default, no details.

        Raises:
            BaselineStale: the values of the two runs cannot be compared.
        """
        return {}


ValuesT = TypeVar("ValuesT", bound=DocumentValues)
