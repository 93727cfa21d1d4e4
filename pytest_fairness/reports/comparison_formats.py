"""What changed between two runs, as a terminal's table, as Markdown and as a page."""

from __future__ import annotations

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.markdown import escaped
from pytest_fairness.reports.markdown import table as markdown_table
from pytest_fairness.reports.run_comparison import ORDER, Changes, Moved
from pytest_fairness.reports.terminal.layout import table

HEAD = ("item", "change", "verdict", "old", "new", "difference [95 %]")


def terminal(changes: Changes, width: int = 100) -> str:
    """A table of what changed, and the runs' facts; at most `width` columns wide."""
    lines = [_headline(changes), ""]
    if changes.told:
        lines += [*table([HEAD, *(_cells(item) for item in changes.told)], width, right=(3, 4)), ""]
    facts = [(name, _shown(old), _shown(new)) for name, old, new in changes.facts]
    lines += table([("", "old", "new"), *facts], width)
    return "\n".join(lines) + "\n"


def markdown(changes: Changes) -> str:
    """The same as Markdown."""
    lines = ["## Fairness: what changed", "", _headline(changes), ""]
    if changes.told:
        lines += [*markdown_table(HEAD, ([escaped(cell) for cell in _cells(item)] for item in changes.told)), ""]
    facts = [[escaped(cell) for cell in (name, _shown(old), _shown(new))] for name, old, new in changes.facts]
    lines += ["<details>", "<summary>The runs</summary>", "", *markdown_table(("", "old", "new"), facts)]
    return "\n".join([*lines, "", "</details>"]) + "\n"


def html(changes: Changes) -> str:
    """The same as a page that needs nothing else.

    Raises:
        FairnessError: the extra `report` is missing.
    """
    from pytest_fairness.reports.charts.base import Table
    from pytest_fairness.reports.html.filters import clean
    from pytest_fairness.reports.html.page import render

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
    verdicts = dict.fromkeys(str(one["verdict"]) for one in (item.old, item.new) if one)
    old, new = ("" if one is None else number(one["value"]) for one in (item.old, item.new))
    return (printable(f"{item.probe} {item.id}"), item.state, " → ".join(verdicts), old, new, difference)


def _signed(value: float) -> str:
    shown = number(value)
    return shown if shown == "0" or shown.startswith("-") else f"+{shown}"


def _shown(value: Json) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if value is None or isinstance(value, float) else printable(str(value))
