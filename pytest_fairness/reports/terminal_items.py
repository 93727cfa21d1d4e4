"""Table of items in the terminal summary, and its lines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pytest_fairness.errors import counted
from pytest_fairness.records import Quote
from pytest_fairness.reports import formatting
from pytest_fairness.reports.formatting import printable, reason_lines, wrap
from pytest_fairness.reports.report_items import verdict_counts
from pytest_fairness.reports.view import ItemView, status_in_words
from pytest_fairness.stats.intervals import half_width

# Table of the terminal summary: a row for each item, and its finding where the row alone is not sufficient.

WORST_ROWS = 10
FINDING_LINES = 3
LEAST_NAME = 20
"""Minimum width of an item's name; other columns of the table are left out if there is less room."""

OF_PAIRS = "Of several groups, the change is that of the two that differ most in both runs together, or that got worse."
"""Note below a table that has the change of one of several pairs of groups."""


def item_rows(items: Sequence[ItemView], width: int, *, several_probes: bool, verbose: bool) -> list[Line]:
    """Return the headings and a row for each item, followed by its finding if `needs_headline` says so."""
    compared = any(view.item["change"] for view in items)
    exact, short = (
        [_cells(view, several_probes=several_probes, rounded=rounded) for view in items] for rounded in (False, True)
    )
    headings = {"change": "worse ± 95 %"}, {"change": "worse ± 95 %"}
    if not compared:  # there is room for the interval of the value, or at least for half its width
        headings = {"value": "value [95 %]"}, {"value": "value ± 95 %"}
        for view, exact_cells, short_cells in zip(items, exact, short, strict=True):
            exact_cells["value"] = formatting.with_interval(exact_cells["value"], view.item["interval"])
            short_cells["value"] = _with_half_width(short_cells["value"], view.item["interval"])
    needed = [name for name in exact[0] if name != "baseline" and any(row[name] for row in exact)]
    fits = verbose or _room(exact, headings[0], width, needed) >= max(formatting.width_of(row["item"]) for row in exact)
    table, heading = (exact, headings[0]) if fits else (short, headings[1])
    cells = _fitting(table, heading, width, verbose=verbose)
    texts = [_text(view, verbose=verbose) for view in items]
    lines = [Line(cells[0])]
    for view, row, (text, next_text) in zip(items, cells[1:], pairwise([*texts, None]), strict=True):
        lines.append(Line(row, row_markup(view)))
        if text and text != next_text:  # a text of consecutive items is shown once, below the last of these items
            if verbose or view.outcome == "error":
                lines += [Line(f"{INDENT}{line}") for line in reason_lines(text, width - len(INDENT))]
            else:
                lines += map(Line, wrap(text, width, indent=INDENT, lines=FINDING_LINES))
    if any((view.item["change"] or {}).get("groups") for view in items):
        lines += map(Line, wrap(OF_PAIRS, width, lines=FINDING_LINES))
    return lines


def _text(view: ItemView, *, verbose: bool) -> str:
    if not view.needs_headline:
        return ""
    if verbose and view.outcome != "failed":
        return printable("; ".join([*view.expectation, view.reason]))
    return printable(view.headline)


def _cells(view: ItemView, *, several_probes: bool, rounded: bool) -> dict[str, str]:
    change, interval = view.item["change"], view.change_interval
    value, baseline = view.shown_value, view.shown_baseline
    value = _rounded(value, view.item["interval"]) if rounded else value
    moved = _rounded(change["value"], interval) if change and rounded else None
    return {
        "verdict": view.verdict,
        "value": "" if value is None else formatting.number(value),
        "baseline": "" if baseline is None else formatting.number(baseline),
        "change": _with_half_width(view.worse_by(value=moved), interval) + view.change_suffix,
        "allowed": view.allowed,
        "placebo": view.explanation.placebo,
        "item": view.name(with_probe=several_probes),
    }


def _with_half_width(text: str, interval: Sequence[float | None] | None) -> str:
    """Return the text of a number with the half width of its 95 % interval, as `0.12 ± 0.056`, if there is one."""
    half = half_width(interval)
    return text if half is None else f"{text} ± {formatting.spread(half)}"


def _rounded(value: float | None, interval: Sequence[float | None] | None) -> float | None:
    """Return the value rounded to the place of the half width's second digit: 0.1234 ± 0.056 gives 0.123."""
    half = half_width(interval)
    return value if value is None or not half else round(value, 1 - math.floor(math.log10(half)))


def _fitting(
    table: Sequence[Mapping[str, str]], headings: Mapping[str, str], width: int, *, verbose: bool
) -> list[str]:
    """Return the heading and the rows as lines.

    Unless `verbose` is set, columns are left out and names are cut to fit the width.
    """
    heading = {name: headings.get(name, name) for name in table[0]}
    rows = [heading, *table]
    sizes = {name: max(formatting.width_of(row[name]) for row in rows) for name in heading}
    used = [name for name in heading if any(row[name] for row in table)]
    for name, room in (("baseline", sizes["item"]), ("value", LEAST_NAME), ("allowed", LEAST_NAME)):
        if name in used and _room(table, headings, width, used) < min(room, sizes["item"]) and not verbose:
            used.remove(name)
    names = [row["item"] for row in table]
    shown = names if verbose else formatting.cut_ids(names, _room(table, headings, width, used))
    lines = []
    for row, name in zip(rows, [heading["item"], *shown], strict=True):
        cells = [
            formatting.pad(row[column], sizes[column], right=heading[column] in ("value", "baseline"))
            for column in used[:-1]
        ]
        lines.append(GAP.join([*cells, name]))
    return lines


def _room(table: Sequence[Mapping[str, str]], headings: Mapping[str, str], width: int, columns: Iterable[str]) -> int:
    """Return the width that is left for the column of item names, next to the other columns."""
    others = [name for name in columns if name != "item"]
    return width - sum(
        max(formatting.width_of(text) for text in (headings.get(name, name), *(row[name] for row in table))) + len(GAP)
        for name in others
    )


def hidden_rows(items: Sequence[ItemView], hidden: int, width: int) -> list[Line]:
    """Return lines with the number of hidden rows and, for several probes, the verdicts of all items by probe."""
    by_probe: defaultdict[str, list[ItemView]] = defaultdict(list)
    for view in items:
        by_probe[view.item["probe"]].append(view)
    lines = [Line(f"… and {hidden:,} more"), Line("")]
    if len(by_probe) == 1:
        return lines
    for probe, own in list(by_probe.items())[:WORST_ROWS]:
        text = f"{printable(probe)}: {', '.join(verdict_count_texts(own))}"
        lines.append(Line(formatting.cut(text, width), row_markup(own[0])))
    if len(by_probe) > WORST_ROWS:
        lines.append(Line(f"… and {counted(len(by_probe) - WORST_ROWS, 'more probe')}"))
    return lines


# Text of a failed item in pytest's section FAILURES.

WIDTH = 80
"""Maximum width of a line of a failure's text in pytest's output."""
SHOWN_EXAMPLES = 2
SHOWN_SENTENCES = 4
EXAMPLE_LINES = 3


def failure_text(view: ItemView) -> str:
    """Return a failed item's text in pytest's output: reason, top contributors, examples, sentences with answers."""
    lines = reason_lines(view.item["reason"], WIDTH)
    for text in view.evidence:
        lines += wrap(printable(text), WIDTH, indent="  ", hanging="    ")
    examples = map(_quoted, view.explanation.examples[:SHOWN_EXAMPLES])
    for text in [*examples, *view.explanation.sentences[:SHOWN_SENTENCES]]:
        lines += wrap(printable(text), WIDTH, indent="  ", hanging="    ", lines=EXAMPLE_LINES)
    return "\n".join(lines)


def _quoted(example: Quote) -> str:
    status = status_in_words(example.status)
    if not (isinstance(example.text, str) and example.text.strip()):
        return f"{example.group}: ({status or 'no answer'})"
    return f"{example.group}{f' ({status})' if status else ''}: “{example.text}”"


# Lines of the terminal summary, and parts that several of its sections share.

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
    return [Line(line, markup or {}) for line in formatting.reason_lines(text, width)]


def row_markup(view: ItemView) -> dict[str, bool]:
    colour = "yellow" if view.is_new else _COLOURS[view.outcome]
    return {colour: True} if colour else {}


def verdict_count_texts(items: Iterable[ItemView]) -> list[str]:
    """Return the number of items by status, the worst status first: `✗ 2 regressions`, `✓ 5 pass`."""
    texts = []
    for word, count in verdict_counts(items).items():
        symbol, _, name = word.partition(" ")
        texts.append(f"{symbol} {counted(count, NOUNS[name]) if name in NOUNS else f'{count:,} {name}'}")
    return texts
