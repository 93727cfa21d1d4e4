"""Assignment of trial numbers to the rows of an answer file, and collection of errors in the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from pytest_fairness.answers.recorded import fields
from pytest_fairness.probes.diagnostics import raise_file_errors

if TYPE_CHECKING:
    from pytest_fairness.probes.table import Row


class TrialNumbers:
    """Trial numbers of the rows of an answer file, and errors in these rows.

    Trials are counted separately for each cell (combination of labels).

    Args:
        name: name of the file or files, for messages.
        column: the column of trial numbers; if it is `None`, the rows of a cell are numbered in the file's order.
        duplicate_remedy: remedy that is added to the error message for a trial number that occurs twice.

    Attributes:
        errors: errors of rows, each as `file:line: message`.
    """

    def __init__(self, name: str, column: str | None, duplicate_remedy: str = "") -> None:
        self.errors: list[str] = []
        self._name, self._column, self._duplicate_remedy = name, column, duplicate_remedy
        self._counted: Counter[Hashable] = Counter()
        self._places: dict[Hashable, dict[int, tuple[str, int]]] = {}

    def add_error(self, row: Row, message: str) -> None:
        """Add an error of this row to `errors`."""
        self.errors.append(f"{row.file}:{row.line}: {message}")

    def raise_errors(self) -> None:
        """Raise `ProbeError` if any row has an error."""
        raise_file_errors(self.errors, self._name)

    def lacks(self, row: Row, columns: Iterable[str]) -> bool:
        """Return whether a row lacks any of these columns; if so, add an error of the row to `errors`."""
        lacking = [column for column in columns if column not in row.fields]
        if lacking:
            self.add_error(row, f"this row has no {', '.join(map(repr, lacking))}; each row needs a value")
        return bool(lacking)

    def written_number(self, row: Row, default: int) -> int | None:
        """Return the trial number written in a row; `None` if the number is invalid.

        If the file has no column of trial numbers, return `default`.
        """
        if self._column is None:
            return default
        number = fields.whole_number(row.fields.get(self._column))
        if number is None:
            self.add_error(row, f"{self._column!r} must be a whole number, at least 0")
        return number

    def number(self, row: Row, cell: Hashable, where: Iterable[str]) -> int | None:
        """Return the trial number of a row, from 0; `None` if the number is invalid or another row of the cell has it.

        Args:
            row: the row.
            cell: the labels of the row.
            where: texts that describe the cell in messages.
        """
        number = self.written_number(row, self._counted[cell])
        self._counted[cell] += 1
        if number is None or self._column is None:
            return number
        file, line = self._places.setdefault(cell, {}).setdefault(number, (row.file, row.line))
        if (file, line) != (row.file, row.line):
            place = f"line {line}" if file == row.file else f"{file}:{line}"
            self.add_error(
                row, f"trial {number} of {', '.join(filter(None, where))} is also in {place}{self._duplicate_remedy}"
            )
            return None
        return number
