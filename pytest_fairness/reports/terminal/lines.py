"""Lines of the terminal summary, and parts that several of its sections share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pytest_fairness.plurals import counted
from pytest_fairness.records import VerdictName
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.items.report_items import Item, outcome, verdict_counts
from pytest_fairness.reports.shell_layout import reason_lines

NOUNS = {"error": "error", "regression": "regression", "known": "known failure"}
"""Nouns for the words of statuses that are counted with a noun: `2 known failures`, but `5 pass`."""
_COLOURS = {
    "passed": "green", "failed": "red", "error": "red", "inconclusive": "yellow", "known": "cyan", "measured": "",
}  # fmt: skip
"""Colour of an item's row by the item's outcome."""
INDENT = "    "
GAP = "  "


@dataclass(frozen=True)
class Line:
    """A line of text with pytest's markup (`red`, `yellow`, `green`, `bold`)."""

    text: str
    markup: Mapping[str, bool] = field(default_factory=dict)


def paragraph(text: str, width: int, markup: Mapping[str, bool] | None = None) -> list[Line]:
    """Return the text wrapped to the width; a command at its end is not wrapped."""
    return [Line(line, markup or {}) for line in reason_lines(text, width)]


def row_markup(item: Item) -> dict[str, bool]:
    """Return the colour of the item's row, as pytest's markup."""
    if item["verdict"] == VerdictName.NO_BASELINE:
        return {"yellow": True}
    colour = _COLOURS[outcome(item)]
    return {colour: True} if colour else {}


def verdict_count_texts(items: Iterable[Item]) -> list[str]:
    """Return the number of items by status, the worst status first: `✗ 2 regressions`, `✓ 5 pass`."""
    texts = []
    for word, count in verdict_counts(items).items():
        symbol, _, name = word.partition(" ")
        texts.append(f"{symbol} {counted(count, NOUNS[name]) if name in NOUNS else f'{count:,} {name}'}")
    return texts


def full_name(item: Item, *, several_probes: bool) -> str:
    """Return the item's id; in a run with several probes, with the probe's name before it (`probe::id`)."""
    return printable(f"{item['probe']}::{item['id']}" if several_probes else item["id"])


def file_of(item: Item) -> str:
    """Return the path of the item's probe file or Python test file, as in the item's node id."""
    nodeid: str = item["nodeid"]
    return nodeid.partition("::")[0]
