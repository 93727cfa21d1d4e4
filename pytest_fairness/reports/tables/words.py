"""Table of words: one row for each word of each item that compares texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.tables.data_table import Column, DataTable, Row

COLUMNS = (
    Column("probe", str, "name of the probe"),
    Column("item", str, "id of the item, such as `jsd[race=Black]`"),
    Column("word", str, "word, or term of a lexicon"),
    Column(
        "side",
        str,
        "group that uses the word more: it has the higher rate among all words of the group's texts or, if rates are "
        "equal, occurs in a larger share of the texts; for a marker, the list that contains it: `stereotype` or "
        "`anti_stereotype`",
    ),
    Column("statistic", str, "name of the statistic that the audit computes for each word"),
    Column(
        "value",
        float,
        "size of the statistic, with the sign of the side: above 0 for the marked group's words, below 0 for the "
        "unmarked group's; for a marker, the number of answers with it",
    ),
    Column("significant", bool, "whether the word is significant in a test of all words together; empty if not tested"),
    Column("marked", str, "marked group; in rows of markers, the stereotype case"),
    Column("unmarked", str, "unmarked group"),
    Column("uses_marked", int, "occurrences in the texts of the marked group"),
    Column("uses_unmarked", int, "occurrences in the texts of the unmarked group"),
    Column("texts_marked", int, "texts of the marked group that contain the word"),
    Column("texts_unmarked", int, "texts of the unmarked group that contain the word"),
    Column("share_marked", float, "share of the marked group's texts that contain the word"),
    Column("share_unmarked", float, "share of the unmarked group's texts that contain the word"),
)


def words(rows: Iterable[Mapping[str, Json]]) -> DataTable:
    """Return a table of words; each row maps the names of `COLUMNS` to values."""
    return DataTable(
        COLUMNS,
        list(rows),
        [
            ("Item", lambda row: str(row["item"])),
            ("Word", lambda row: str(row["word"])),
            ("More for", lambda row: str(row["side"])),
            ("Statistic", lambda row: f"{row['statistic']} {number(row['value'])}"),  # type: ignore[arg-type] # a float
            ("Texts of the marked group", lambda row: _texts(row, "marked")),
            ("Texts of the unmarked group", lambda row: _texts(row, "unmarked")),
        ],
    )


def _texts(row: Row, group: str) -> str:
    share = row[f"share_{group}"]
    return f"{row[f'texts_{group}']} ({share:.0%})" if isinstance(share, float) else ""
