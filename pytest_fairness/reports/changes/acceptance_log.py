"""Output of the command `diff --log`: acceptances of baselines over time, as terminal text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.baselines.acceptances import Acceptance, AcceptanceLog, AcceptedItem
from pytest_fairness.plurals import counted
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.markdown import MAX_LENGTH, MarkdownText, escaped
from pytest_fairness.reports.markdown import table as markdown_table
from pytest_fairness.reports.text_layout import wrap

SHOWN_ITEMS = 20
"""Maximum number of items of an acceptance that are listed."""


def terminal(log: AcceptanceLog, width: int = 80) -> str:
    """Return the acceptances as text of at most `width` columns."""
    lines = [*wrap(_title(log), width), *(line for text in log.problems for line in wrap(printable(text), width))]
    for acceptance in log.acceptances:
        lines += [
            "",
            *wrap(printable(f"{_day(acceptance)}  {_by(acceptance)}  ({_commit(acceptance)})"), width, hanging="  "),
        ]
        lines += wrap(printable(f"reason: {_reason(acceptance)}"), width, indent="  ", hanging="    ")
        for text in _items(acceptance):
            lines += wrap(printable(text), width, indent="  ", hanging="    ")
    return "\n".join(lines) + "\n"


def markdown(log: AcceptanceLog) -> str:
    """Return the acceptances as a Markdown table."""
    text = MarkdownText(MAX_LENGTH)
    text.add("## Fairness: accepted baselines", "", escaped(_title(log)), "")
    if log.problems:
        text.add_rows([*(f"- {escaped(problem)}" for problem in log.problems), ""], 1)
    rows = [
        [
            *map(escaped, (_day(acceptance), _by(acceptance), _reason(acceptance))),
            "<br>".join(map(escaped, _items(acceptance))),
            _commit(acceptance),
        ]
        for acceptance in log.acceptances
    ]
    if rows:
        text.add_rows(markdown_table(("date", "accepted by", "reason", "items: old → new", "commit"), rows), 2)
    return str(text)


def _title(log: AcceptanceLog) -> str:
    items = sum(len(acceptance.items) for acceptance in log.acceptances)
    counts = f"{counted(len(log.acceptances), 'acceptance')} of {counted(items, 'value')}" if items else "No acceptance"
    return printable(f"{counts}, {log.revisions}.")


def _day(acceptance: Acceptance) -> str:
    return acceptance.date[:10]


def _by(acceptance: Acceptance) -> str:
    return acceptance.by or "name not recorded"


def _reason(acceptance: Acceptance) -> str:
    removed = all(item.new is None for item in acceptance.items)
    return acceptance.reason or ("items removed" if removed else "no reason given")


def _commit(acceptance: Acceptance) -> str:
    return "not committed" if acceptance.commit is None else f"commit {acceptance.commit}"


def _items(acceptance: Acceptance) -> Sequence[str]:
    more = len(acceptance.items) - SHOWN_ITEMS
    shown = [f"{item.baseline} {item.id}: {_values(item)}" for item in acceptance.items[:SHOWN_ITEMS]]
    return [*shown, f"… and {more} more"] if more > 0 else shown


def _values(item: AcceptedItem) -> str:
    if item.old is None:
        return f"{number(item.new)} (new)"
    return f"{number(item.old)} → {'removed' if item.new is None else number(item.new)}"
