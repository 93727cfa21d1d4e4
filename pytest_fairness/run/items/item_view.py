"""Base class of measured items, which notebooks show as tables and plots.

The methods import the modules of tables and charts only when needed, because most pytest runs need neither.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_fairness.errors import FairnessError, NotMeasurable
from pytest_fairness.records import Answer, ItemResult, Json, Measurement, Verdict, VerdictName
from pytest_fairness.run.effect_sizes import effect_in_words
from pytest_fairness.run.items.probe_items import ProbeItem

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.reports.charts.plot import Plot
    from pytest_fairness.reports.tables.data_table import DataTable


class ItemView(ABC):
    """Base class of measured items, with the tables and plots that notebooks show.

    Attributes:
        item: the item.
        target: name of the target.
    """

    item: ProbeItem
    target: str

    @abstractmethod
    def _measurement_or_error(self) -> Measurement | FairnessError:
        """Return the measurement, or the error that prevented the measurement."""

    @abstractmethod
    def _answers(self) -> Sequence[Answer]:
        """Return the answers from which the item was measured."""

    @property
    def id(self) -> str:
        """Return the item's id, as in pytest: `svm[race=Black]`."""
        return self.item.id

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the item, such as its group: `{"race": "Black"}`."""
        return self.item.labels

    @property
    def value(self) -> float:
        """Return the measured value in the audit's unit; raise the item's error if it was not measured."""
        return self._measurement().value

    @property
    def table(self) -> DataTable:
        """Return the table of measurements with this item as its only row."""
        return table_of([self])

    def to_pandas(self) -> pd.DataFrame:
        """Return the item as a pandas data frame of one row.

        Raises:
            FairnessError: pandas is not installed.
        """
        return self.table.to_pandas()

    def words(self) -> DataTable:
        """Return a table of all words in the item's answers, with their counts by group.

        The table is empty if the audit uses no words.

        Raises:
            FairnessError: the item was not measured, or its answers are no longer recorded.
        """
        from pytest_fairness.run.items.item_words import words_of

        details = self._measurement().details
        return words_of(self.item, self._answers(), details)

    @property
    def plots(self) -> list[Plot]:
        """Return the charts of the item, as the HTML report shows them; an empty list without a measurement."""
        from pytest_fairness.reports import charts
        from pytest_fairness.reports.charts.plot import Plot

        found, _ = charts.detail_charts(_document_item(self), self.item.audit.info.to_json())
        return [Plot(chart) for chart in found]

    def __repr__(self) -> str:
        found = self._measurement_or_error()
        text = str(found) if isinstance(found, FairnessError) else self.item.audit.describe(found)
        return f"<{type(self).__name__} {self.id}: {text}>"

    def _repr_html_(self) -> str:
        drawn = next((plot._repr_html_() for plot in self.plots if plot.chart.spec), "")
        return self.table._repr_html_() + drawn

    def _measurement(self) -> Measurement:
        found = self._measurement_or_error()
        if isinstance(found, FairnessError):
            raise found
        return found


def table_of(views: Sequence[ItemView], started: str | None = None) -> DataTable:
    """Return the table of measurements of these items; only items with an error have a verdict."""
    from pytest_fairness.reports.tables.data_table import DataTable
    from pytest_fairness.reports.tables.measurements import measurements

    rows = [
        row
        for view in views
        for row in measurements(
            {
                "target": view.target,
                "started": started,
                "methods": {view.item.audit_name: view.item.audit.info.to_json()},
                "items": [_document_item(view)],
            }
        ).rows
    ]
    empty = measurements({"target": "", "started": None, "items": []})
    return DataTable(empty.columns, rows, empty.paper_columns)


def _document_item(view: ItemView) -> dict[str, Json]:
    """Return an item as in a report document; only an item with an error has a verdict."""
    item, found = view.item, view._measurement_or_error()
    error = found if isinstance(found, FairnessError) else None
    name = VerdictName.NOT_MEASURABLE if isinstance(error, NotMeasurable) else VerdictName.ERROR
    result = ItemResult(
        nodeid=item.id,
        probe=item.probe.name,
        id=item.id,
        audit=item.audit_name,
        labels=item.labels,
        verdict=Verdict(name, "" if error is None else str(error)),
        measurement=None if isinstance(found, FairnessError) else found,
        limit=item.settings.limit,
        effect=None if isinstance(found, FairnessError) else effect_in_words(item.audit.info, found),
    )
    return {**result.to_json(), **({"verdict": None} if error is None else {})}
