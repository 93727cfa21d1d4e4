"""Sections of the terminal summary below the table of items: targets, intersections, variants, suggestions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import escaped, number, printable
from pytest_fairness.reports.items import intersections, target_table, variant_results
from pytest_fairness.reports.items.report_items import Item, acceptances, target_name, verdict_word
from pytest_fairness.reports.suggestions.variant_yaml import narrowed
from pytest_fairness.reports.terminal.lines import GAP, INDENT, Line, file_of, full_name, paragraph
from pytest_fairness.reports.text_layout import cut, cut_middle, pad, width_of
from pytest_fairness.reports.text_layout import table as aligned

SHOWN_VARIANTS = 12
SHOWN_ACCEPTANCES = 10
SHOWN_INTERSECTIONS = 3


def other_targets(items: Sequence[Item], document: Mapping[str, Json]) -> list[str]:
    """Return a sentence for each target with which a baseline was measured, except for this run's targets."""
    by_name = document["summary"].get("by_target", {})
    others = set()
    for item in items:
        name, baseline = target_name(item["id"]), item["baseline"]
        current = by_name[name]["target"] if name in by_name else document["target"]
        # A run of several files of answers has their names as its target.
        if baseline and baseline["target"] not in (current, *current.split(", ")):
            subject = f"the baseline of @{name}" if name in by_name else "the baseline"
            others.add(f"{subject} was measured with {baseline['target']} on {str(baseline['date'])[:10]}")
    return sorted(map(printable, others))


def table_by_target(document: Mapping[str, Json], width: int) -> list[Line]:
    """Return a table of value and verdict by item and target; an empty list for fewer than two targets."""
    names, items_by_target = target_table.items_by_target(document)
    if len(names) < 2 or not items_by_target:
        return []
    head = ["", *(f"@{name}" for name in names)]
    rows = [
        [
            printable(title),
            *(f"{number(own[name]['value'])} {verdict_word(own[name])}" if name in own else "" for name in names),
        ]
        for title, own in items_by_target
    ]
    rows.append(["", *(target_table.passed(document, name) for name in names)])
    columns = [max(width_of(row[column]) for row in [head, *rows]) for column in range(len(head))]
    columns[0] = max(20, min(columns[0], width - sum(columns[1:]) - len(GAP) * len(names)))
    lines = [Line(cut("audits by target", width), {"bold": True})]
    for row in [head, *rows]:
        cells = [pad(cut(cell, size), size) for cell, size in zip(row, columns, strict=True)]
        lines.append(Line(cut(GAP.join(cells).rstrip(), width)))
    return [*lines, Line("")]


def intersection_tables(items: Sequence[Item], width: int, *, verbose: bool) -> list[Line]:
    """Return the tables of intersections: all if `verbose` is set, otherwise the first tables with failures."""
    tables = intersections.tables(items)
    shown = tables if verbose else [table for table in tables if table.failed][:SHOWN_INTERSECTIONS]
    lines: list[Line] = []
    for table in shown:
        lines += paragraph(table.title, width, {"bold": True})
        lines += [*map(Line, _grid_lines(table, width)), Line("")]
    return [*lines[:-1], *paragraph(intersections.LEGEND, width), Line("")] if lines else []


def _grid_lines(table: intersections.CellTable, width: int) -> list[str]:
    """Return the table with aligned columns or, if it is too wide, a line for each cell."""
    grid = [[*table.columns], *([head, *(cell.text for cell in cells)] for head, cells in table.rows)]
    lines = [f"{INDENT}{line}" for line in aligned(grid, sys.maxsize)]
    if max(map(width_of, lines)) <= width:
        return lines
    cells_by_name = [
        (f"{head}, {column}", cell.text)
        for head, cells in table.rows
        for column, cell in zip(table.columns[1:], cells, strict=True)
        if cell.text
    ]
    longest = max(width_of(text) for _, text in cells_by_name)
    room = min(max(width_of(name) for name, _ in cells_by_name), width - len(INDENT) - len(GAP) - longest)
    return [cut(f"{INDENT}{pad(cut_middle(name, room), room)}{GAP}{text}", width) for name, text in cells_by_name]


def variant_effects(items: Sequence[Item], width: int) -> list[Line]:
    """Return lines with the effects of the probes' variants on the items; an empty list without variants."""
    several_probes = len({item["probe"] for item in items}) > 1
    sentences = [
        f"{full_name(item, several_probes=several_probes)}, {printable(sentence)}"
        for item in items
        for sentence in variant_results.sentences(item)
    ]
    lines = [line for text in sentences[:SHOWN_VARIANTS] for line in paragraph(text, width)]
    if len(sentences) > SHOWN_VARIANTS:
        lines.append(Line(cut(f"… and {len(sentences) - SHOWN_VARIANTS} more in the HTML and JSON reports", width)))
    return [Line("variants compared with the original prompt:", {"bold": True}), *lines, Line("")] if lines else []


def suggestions(items: Sequence[Item], width: int) -> list[Line]:
    """Return the first suggestion for the worst failure of each probe."""
    lines: list[Line] = []
    for probe in sorted({item["probe"] for item in items}):
        own = [item for item in items if item["probe"] == probe and item["details"].get("suggestions")]
        if not own:
            continue
        suggested = own[0]["details"]["suggestions"]
        first = suggested["try"][0]
        lines.append(Line(cut(f"suggested next step ({printable(file_of(own[0]))}):", width), {"bold": True}))
        lines += paragraph(printable(f"{suggested['found']} {first['text']}"), width)
        lines += [Line(escaped(line)) for line in narrowed(first["paste"], width).split("\n")]
        if len(own) > 1 or len(suggested["try"]) > 1:
            lines += paragraph("The HTML and JSON reports have all suggestions (--fairness-report).", width)
        lines.append(Line(""))
    return lines


def accepted_baselines(items: Sequence[Item], width: int) -> list[Line]:
    """Return lines with the acceptances of the baselines."""
    groups = acceptances(items)
    lines = [Line("baselines accepted:", {"bold": True})] if groups else []
    for date, by, reason, ids in groups[:SHOWN_ACCEPTANCES]:
        lines += paragraph(printable(f"{date} by {by}, {counted(len(ids), 'item')}: {reason}"), width)
    if len(groups) > SHOWN_ACCEPTANCES:
        lines.append(Line(f"… and {len(groups) - SHOWN_ACCEPTANCES} more in the JSON report"))
    return [*lines, Line("")] if lines else []
