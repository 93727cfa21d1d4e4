"""Output of the command `compare`: a comparison of two runs as terminal text, Markdown and HTML."""

from __future__ import annotations

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json
from pytest_fairness.reports.changes.run_comparison import ORDER, ItemComparison, RunComparison
from pytest_fairness.reports.formatting import number, printable, signed, with_interval
from pytest_fairness.reports.items.report_items import Item, verdict_word
from pytest_fairness.reports.items.top_contributors import sided_words
from pytest_fairness.reports.markdown import escaped
from pytest_fairness.reports.markdown import table as markdown_table
from pytest_fairness.reports.text_layout import cut_middle, table

HEADINGS = ("item", "change", "verdict", "old", "new", "difference [95 %]")
INDENT = "  "


def terminal(comparison: RunComparison, width: int = 100) -> str:
    """Return a table of the changed items and a table of facts about both runs, at most `width` columns wide."""
    lines = [_headline(comparison), ""]
    if comparison.changed_items:
        # Each item has a line of its own, so that a narrow terminal cuts no value.
        names, rows = zip(*((name, cells) for name, *cells in map(_cells, comparison.changed_items)), strict=True)
        heading, *values = table([HEADINGS[1:], *rows], width - len(INDENT), right=(2, 3))
        lines.append(INDENT + heading)
        for name, line in zip(names, values, strict=True):
            lines += [cut_middle(name, width), INDENT + line]
        lines.append("")
    facts = [(name, _fact(old), _fact(new)) for name, old, new in comparison.facts]
    lines += table([("", "old", "new"), *facts], width)
    return "\n".join(lines) + "\n"


def markdown(comparison: RunComparison) -> str:
    """Return the comparison as Markdown."""
    lines = ["## Fairness: comparison of two runs", "", _headline(comparison), ""]
    if comparison.changed_items:
        lines += [
            *markdown_table(HEADINGS, ([escaped(cell) for cell in _cells(item)] for item in comparison.changed_items)),
            "",
        ]
    facts = [[escaped(cell) for cell in (name, _fact(old), _fact(new))] for name, old, new in comparison.facts]
    summary = "<summary>Facts about the two runs</summary>"
    lines += ["<details>", summary, "", *markdown_table(("", "old", "new"), facts)]
    return "\n".join([*lines, "", "</details>"]) + "\n"


def html(comparison: RunComparison) -> str:
    """Return the comparison as a self-contained HTML page.

    Raises:
        FairnessError: the extra `report` is not installed.
    """
    from pytest_fairness.reports.charts.base import Table
    from pytest_fairness.reports.html.filters import clean
    from pytest_fairness.reports.html.page import render

    rows = [[clean(cell) for cell in _cells(item)] for item in comparison.changed_items]
    facts = [[name, *(clean(_fact(value)) for value in values)] for name, *values in comparison.facts]
    return render(
        "compare.html.j2",
        headline=_headline(comparison),
        changed=Table(HEADINGS, rows),
        facts=Table(("", "old", "new"), facts),
    )


def _headline(comparison: RunComparison) -> str:
    counts = [f"{comparison.count(state)} {state}" for state in ORDER if comparison.count(state)]
    return (
        f"{counted(len(comparison.items), 'item')}: {', '.join(counts)}"
        if comparison.items
        else "Neither run has items"
    )


def _cells(item: ItemComparison) -> tuple[str, ...]:
    difference = "" if item.difference is None else with_interval(signed(item.difference), item.interval)
    words = [_significant_words(side) for side in (item.old, item.new) if side]
    if len(words) == 2 and any(words):
        # Two runs with the same number of significant words may have different words.
        old_words, new_words = words
        difference += f" ({counted(len(new_words - old_words), 'new word')}, {len(old_words - new_words)} gone)"
    verdicts = dict.fromkeys(verdict_word(side).partition(" ")[2] for side in (item.old, item.new) if side)
    old, new = ("" if side is None else number(side["value"]) for side in (item.old, item.new))
    return (printable(f"{item.probe} {item.id}"), item.state, " → ".join(verdicts), old, new, difference)


def _significant_words(item: Item) -> set[str]:
    """Return the significant words of an item that counts words; an empty set for other items."""
    return {str(word.get("word")) for word in sided_words(item["details"])["words"]}


def _fact(value: Json) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if value is None or isinstance(value, float) else printable(str(value))
