"""The rows of a file of answers as draws: numbered within their cells, each there once, with the faults on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from pytest_fairness.answers.recorded import fields
from pytest_fairness.probes.loading.diagnostics import raise_file_errors

if TYPE_CHECKING:
    from pytest_fairness.probes.loading.table import Row


class Draws:
    """Numbers rows by their cell.

    Args:
        name: the file as messages name it.
        column: the file's column of the number; `None` where rows are numbered as they come.
        cure: what to do about a draw that is there twice, if there is something.

    Attributes:
        faults: what is wrong with rows, `file:line: message`.
    """

    def __init__(self, name: str, column: str | None, cure: str = "") -> None:
        self.faults: list[str] = []
        self._name, self._column, self._cure = name, column, cure
        self._counted: Counter[Hashable] = Counter()
        self._lines: dict[tuple[Hashable, int], int] = {}

    def fault(self, row: Row, message: str) -> None:
        """Something is wrong with a row."""
        self.faults.append(f"{self._name}:{row.line}: {message}")

    def raise_faults(self) -> None:
        """Raise `ProbeError` if anything was wrong."""
        raise_file_errors(self.faults, self._name)

    def lacks(self, row: Row, columns: Iterable[str]) -> bool:
        """Whether a row lacks any of these columns, which is a fault."""
        lacking = [column for column in columns if column not in row.fields]
        if lacking:
            self.fault(row, f"no {', '.join(map(repr, lacking))} in this row")
        return bool(lacking)

    def written(self, row: Row, default: int) -> int | None:
        """The number that a row is given; the default without a column for it, `None` if it is at fault."""
        if self._column is None:
            return default
        number = fields.whole_number(row.fields.get(self._column))
        if number is None:
            self.fault(row, f"{self._column!r} must be a whole number from 0")
        return number

    def number(self, row: Row, cell: Hashable, where: str) -> int | None:
        """Which draw of its cell a row is, from 0; `None` if it is at fault.

        Args:
            row: the row.
            cell: everything that draws have in common.
            where: the cell for messages.
        """
        number = self.written(row, self._counted[cell])
        self._counted[cell] += 1
        if number is None:
            return None
        first = self._lines.setdefault((cell, number), row.line)
        if first != row.line:
            self.fault(row, f"trial {number} of {where} is in line {first} already{self._cure}")
            return None
        return number
