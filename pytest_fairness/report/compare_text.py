"""What changed between two runs, as a terminal's table, as Markdown and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.records import Json
from pytest_fairness.report.compare import ORDER, Changes, Moved
from pytest_fairness.report.markdown import escaped
from pytest_fairness.report.markdown import table as markdown_table
from pytest_fairness.report.order import Item
from pytest_fairness.report.text import cut, number, pad, printable, width_of

HEAD = ("item", "old", "new", "difference [95 %]", "old verdict", "new verdict", "change")
_RIGHT = (1, 2)


def terminal(changes: Changes, width: int = 100) -> str:
    """A table of what changed, and the runs' facts; at most `width` columns wide."""
    lines = [_headline(changes), ""]
    if changes.told:
        lines += [*_table([HEAD, *(_cells(item) for item in changes.told)], width), ""]
    facts = [(name, _shown(old), _shown(new)) for name, old, new in changes.facts]
    lines += _table([("", "old", "new"), *facts], width, right=())
    return "\n".join(lines) + "\n"


def markdown(changes: Changes) -> str:
    """The same as Markdown."""
    lines = ["## Fairness: what changed", "", _headline(changes), ""]
    if changes.told:
        head = [name.replace("old", "before").replace("new", "now") for name in HEAD]
        lines += [*markdown_table(head, ([escaped(cell) for cell in _cells(item)] for item in changes.told)), ""]
    facts = [[escaped(cell) for cell in (name, _shown(old), _shown(new))] for name, old, new in changes.facts]
    lines += ["<details>", "<summary>The runs</summary>", "", *markdown_table(("", "before", "now"), facts)]
    return "\n".join([*lines, "", "</details>"]) + "\n"


def html(changes: Changes) -> str:
    """The same as a page that needs nothing else.

    Raises:
        FairnessError: the extra `report` is missing.
    """
    from pytest_fairness.report.html.page import render
    from pytest_fairness.report.html.text import clean
    from pytest_fairness.report.pictures.base import Table

    rows = [[clean(cell) for cell in _cells(item)] for item in changes.told]
    facts = [[name, *(clean(_shown(value)) for value in values)] for name, *values in changes.facts]
    return render(
        "compare.html.j2",
        headline=_headline(changes),
        changed=Table(HEAD, rows),
        facts=Table(("", "old", "new"), facts),
    )


def _headline(changes: Changes) -> str:
    counts = [f"{changes.count(state)} {state}" for state in ORDER if changes.count(state)]
    return f"{len(changes.items)} items: {', '.join(counts)}" if changes.items else "Neither run has an item."


def _cells(item: Moved) -> tuple[str, ...]:
    difference = "" if item.difference is None else _signed(item.difference)
    if item.interval is not None:
        difference += f" [{number(item.interval[0])}, {number(item.interval[1])}]"
    old, new = (_value_and_verdict(one) for one in (item.old, item.new))
    return (printable(f"{item.probe} {item.id}"), old[0], new[0], difference, old[1], new[1], item.state)


def _value_and_verdict(item: Item | None) -> tuple[str, str]:
    return ("", "") if item is None else (number(item["value"]), str(item["verdict"]))


def _signed(value: float) -> str:
    shown = number(value)
    return shown if shown == "0" or shown.startswith("-") else f"+{shown}"


def _shown(value: Json) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if value is None or isinstance(value, float) else printable(str(value))


def _table(rows: Sequence[Sequence[str]], width: int, right: Sequence[int] = _RIGHT) -> list[str]:
    columns = [max(width_of(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [pad(cell, columns[place], right=place in right) for place, cell in enumerate(row)]
        lines.append(cut("  ".join(cells).rstrip(), width))
    return lines
