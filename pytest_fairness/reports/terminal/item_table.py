"""Table of the terminal summary: a row for each item, and its finding where the row alone is not sufficient."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.formatting import number, printable, signed, with_interval
from pytest_fairness.reports.items.findings import expectation, finding
from pytest_fairness.reports.items.report_items import (
    SAME_ANSWERS,
    Item,
    change_suffix,
    grown_words,
    is_same_answers,
    is_tolerated_worsening,
    outcome,
    placebo_text,
    reason,
    verdict_word,
)
from pytest_fairness.reports.shell_layout import reason_lines
from pytest_fairness.reports.terminal.lines import GAP, INDENT, Line, full_name, row_markup, verdict_count_texts
from pytest_fairness.reports.text_layout import cut, cut_ids, pad, width_of, wrap

WORST_ROWS = 10
FINDING_LINES = 3
LEAST_NAME = 20
"""Minimum width of an item's name; other columns of the table are left out if there is less room."""

OF_PAIRS = "Of several groups, the change is that of the two that differ most in both runs together, or that got worse."
"""Note below a table that has the change of one of several pairs of groups."""


def item_rows(items: Sequence[Item], document: Mapping[str, Json], width: int, *, verbose: bool) -> list[Line]:
    """Return the headings and a row for each item, followed by its finding if `needs_finding` says so."""
    several = len({item["probe"] for item in document["items"]}) > 1
    compared = any(item["change"] for item in items)
    exact, short = (
        [_cells(item, several_probes=several, rounded=rounded) for item in items] for rounded in (False, True)
    )
    headings = {"change": "change ± 95 %"}, {"change": "change ± 95 %"}
    if not compared:  # there is room for the interval of the value, or at least for half its width
        headings = {"value": "value [95 %]"}, {"value": "value ± 95 %"}
        for item, exact_cells, short_cells in zip(items, exact, short, strict=True):
            exact_cells["value"] = with_interval(exact_cells["value"], item["interval"])
            short_cells["value"] = _with_half_width(short_cells["value"], item["interval"])
    needed = [name for name in exact[0] if name != "baseline" and any(row[name] for row in exact)]
    fits = verbose or _room(exact, headings[0], width, needed) >= max(width_of(row["item"]) for row in exact)
    table, heading = (exact, headings[0]) if fits else (short, headings[1])
    cells = _fitting(table, heading, width, verbose=verbose)
    texts = [_text(item, document, verbose=verbose) for item in items]
    lines = [Line(cells[0])]
    for item, row, (text, next_text) in zip(items, cells[1:], pairwise([*texts, None]), strict=True):
        lines.append(Line(row, row_markup(item)))
        if text and text != next_text:  # a text of consecutive items is shown once, below the last of these items
            if verbose or outcome(item) == "error":
                lines += [Line(f"{INDENT}{line}") for line in reason_lines(text, width - len(INDENT))]
            else:
                lines += map(Line, wrap(text, width, indent=INDENT, lines=FINDING_LINES))
    if any((item["change"] or {}).get("groups") for item in items):
        lines += map(Line, wrap(OF_PAIRS, width, lines=FINDING_LINES))
    return lines


def needs_finding(item: Item) -> bool:
    """Return whether the item's finding must be shown below its row."""
    if item["verdict"] == VerdictName.NO_BASELINE:
        return bool(item.get("undecided"))
    noted = is_tolerated_worsening(item) or item["concerns"] or item.get("expected_failure")
    return item["verdict"] != VerdictName.PASS or bool(noted)


def _text(item: Item, document: Mapping[str, Json], *, verbose: bool) -> str:
    """Return the text below an item's row; empty if the row alone is sufficient."""
    if not needs_finding(item):
        return ""
    if verbose and outcome(item) != "failed":
        return printable("; ".join([*expectation(item), reason(item)]))
    return printable(finding(item, document.get("methods", {}).get(item["audit"], {})))


def _cells(item: Item, *, several_probes: bool, rounded: bool) -> dict[str, str]:
    """Return the cells of an item by column; a cell without a value is empty.

    Args:
        item: the item.
        several_probes: whether names begin with the probe's name.
        rounded: whether value and change are rounded to the digits of the half width of their intervals.
    """
    change, limit = item["change"], item["limit"]
    # The change of one of several pairs is no difference between the largest gaps of two runs.
    baseline = None if (change or {}).get("groups") else (item["baseline"] or {}).get("value")
    value = _rounded(item["value"], item["interval"]) if rounded else item["value"]
    shown_change = change and (_rounded(change["value"], change["interval"]) if rounded else change["value"])
    if change and item["verdict"] != VerdictName.OVER_LIMIT:
        allowed = number(item["tolerance"])
    else:
        allowed = "" if limit is None else f"limit {number(limit)}"
    return {
        "verdict": verdict_word(item),
        "value": "" if value is None else number(value),
        "baseline": "" if baseline is None else number(baseline),
        "change": (
            SAME_ANSWERS
            if is_same_answers(item)
            else _with_half_width(grown_words(item) or signed(shown_change), change["interval"]) + change_suffix(item)
            if change
            else ""
        ),
        "allowed": allowed,
        "placebo": placebo_text(item),
        "item": full_name(item, several_probes=several_probes),
    }


def _with_half_width(text: str, interval: Sequence[float | None] | None) -> str:
    """Return the text of a number with the half width of its 95 % interval, as `0.12 ± 0.056`, if there is one."""
    half = _half_width(interval)
    return text if half is None else f"{text} ± {half:.2g}"


def _rounded(value: float | None, interval: Sequence[float | None] | None) -> float | None:
    """Return the value rounded to the place of the half width's second digit: 0.1234 ± 0.056 gives 0.123."""
    half = _half_width(interval)
    return value if value is None or not half else round(value, 1 - math.floor(math.log10(half)))


def _half_width(interval: Sequence[float | None] | None) -> float | None:
    low, high = interval or (None, None)
    return None if low is None or high is None else (high - low) / 2


def _fitting(
    table: Sequence[Mapping[str, str]], headings: Mapping[str, str], width: int, *, verbose: bool
) -> list[str]:
    """Return the heading and the rows as lines.

    Unless `verbose` is set, columns are left out and names are cut to fit the width.
    """
    heading = {name: headings.get(name, name) for name in table[0]}
    rows = [heading, *table]
    sizes = {name: max(width_of(row[name]) for row in rows) for name in heading}
    used = [name for name in heading if any(row[name] for row in table)]
    for name, room in (("baseline", sizes["item"]), ("value", LEAST_NAME), ("allowed", LEAST_NAME)):
        if name in used and _room(table, headings, width, used) < min(room, sizes["item"]) and not verbose:
            used.remove(name)
    names = [row["item"] for row in table]
    shown = names if verbose else cut_ids(names, _room(table, headings, width, used))
    lines = []
    for row, name in zip(rows, [heading["item"], *shown], strict=True):
        cells = [
            pad(row[column], sizes[column], right=heading[column] in ("value", "baseline")) for column in used[:-1]
        ]
        lines.append(GAP.join([*cells, name]))
    return lines


def _room(table: Sequence[Mapping[str, str]], headings: Mapping[str, str], width: int, columns: Iterable[str]) -> int:
    """Return the width that is left for the column of item names, next to the other columns."""
    others = [name for name in columns if name != "item"]
    return width - sum(
        max(width_of(text) for text in (headings.get(name, name), *(row[name] for row in table))) + len(GAP)
        for name in others
    )


def hidden_rows(items: Sequence[Item], hidden: int, width: int) -> list[Line]:
    """Return lines with the number of hidden rows and, for several probes, the verdicts of all items by probe."""
    by_probe: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_probe[item["probe"]].append(item)
    lines = [Line(f"… and {hidden:,} more"), Line("")]
    if len(by_probe) == 1:
        return lines
    for probe, own in list(by_probe.items())[:WORST_ROWS]:
        lines.append(Line(cut(f"{printable(probe)}: {', '.join(verdict_count_texts(own))}", width), row_markup(own[0])))
    if len(by_probe) > WORST_ROWS:
        lines.append(Line(f"… and {counted(len(by_probe) - WORST_ROWS, 'more probe')}"))
    return lines
