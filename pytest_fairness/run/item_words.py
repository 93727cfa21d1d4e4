"""Word table of one item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Answer, Json
from pytest_fairness.reports.tables.data_table import DataTable
from pytest_fairness.reports.tables.words import words
from pytest_fairness.run.probe_items import ProbeItem


def words_of(item: ProbeItem, answers: Sequence[Answer], details: Mapping[str, Json]) -> DataTable:
    """Return the words of an item's answers; an empty table for an audit without words.

    Args:
        item: the item.
        answers: at least those that the item measures.
        details: of the item's measurement.

    Raises:
        NotMeasurable: too few usable answers.
    """
    own = [answer for answer in answers if item.uses(answer.labels)]
    rows = item.audit.word_rows(item.probe, item, own, details)
    return words({"probe": item.probe.name, "item": item.id, **row} for row in rows)
