"""Table of the words in the answers of one item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Answer, Json
from pytest_fairness.reports.tables.data_table import DataTable
from pytest_fairness.reports.tables.words import words
from pytest_fairness.run.items.probe_items import ProbeItem


def words_of(item: ProbeItem, answers: Sequence[Answer], details: Mapping[str, Json]) -> DataTable:
    """Return the table of the words in an item's answers; empty if the audit uses no words.

    Args:
        answers: answers of a run; answers that the item does not measure are ignored.
        details: details of the item's measurement.

    Raises:
        NotMeasurable: there are too few usable answers.
    """
    own = list(item.select_own(answers))
    rows = item.audit.word_rows(item, own, details)
    return words({"probe": item.probe.name, "item": item.id, **row} for row in rows)
