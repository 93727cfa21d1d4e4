"""Terminal summary at the end of a run: estimates, sections and last lines."""

from __future__ import annotations

import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from pytest_fairness.errors import counted
from pytest_fairness.records import Json, Quote, VerdictName, target_name
from pytest_fairness.reports import report_items
from pytest_fairness.reports.document import request_counts, reused_answers, texts_of_notes
from pytest_fairness.reports.formatting import (
    cut,
    cut_ids,
    cut_middle,
    fill,
    number,
    pad,
    plus_minus,
    printable,
    reason_lines,
    shell_lines,
    text_table,
    width_of,
    with_interval,
    wrap,
)
from pytest_fairness.reports.report_items import accept_command, verdict_counts
from pytest_fairness.reports.view import FOUND, UNKNOWN, ItemView, largest_first, status_in_words, views
from pytest_fairness.stats.intervals import half_width

# Terminal summary at the end of a run, as lines with pytest's markup.

MIN_WIDTH = 50
MOST_ROWS = 30
"""Maximum number of items for which all rows are shown; for more items, only the `WORST_ROWS` worst rows are shown."""


def summary(
    document: Mapping[str, Json],
    width: int = 80,
    *,
    options: Sequence[str] = (),
    root: str = "",
    all_items: Mapping[str, Collection[str]] | None = None,
    rebaseline_requests: str = "",
    retried: float = 0,
    verbose: bool = False,
) -> list[Line]:
    """Return the summary: the target, a row and the finding of each item, notes, request counts and next steps.

    Args:
        document: the report document.
        width: maximum width of a line; unbreakable commands and rows of a verbose summary may be longer.
        options: options of the suggested rebaseline command, which select the same requests as this run
            (`["--fairness-target", "openai:gpt-5"]`).
        root: path from the user's working directory to pytest's rootdir; empty if they are the same.
        all_items: node ids of all items by probe file; some files may be left out.
        rebaseline_requests: sentence about the requests of the suggested rebaseline command; empty if it sends none.
        retried: number of retries.
        verbose: whether all rows, full names, full reasons and findings are shown.
    """
    width = max(width, MIN_WIDTH)
    items = views(document)
    if not items:
        return notes(document, width)
    if report_items.is_measured_only(items):
        return measured_summary(document, width, retried=retried)
    shown = items if verbose or len(items) <= MOST_ROWS else items[:WORST_ROWS]
    lines = _heading(document, items, width)
    several_probes = len({view.item["probe"] for view in items}) > 1
    lines += item_rows(shown, width, several_probes=several_probes, verbose=verbose)
    if len(shown) < len(items):
        lines += hidden_rows(items, len(items) - len(shown), width)
    for text in [*other_targets(items, document), *report_items.served_model_changes(items)]:
        lines += paragraph(text, width)
    lines.append(Line(""))
    if len(shown) == len(items):
        lines += table_by_target(document, items, width)
    lines += intersection_tables(items, width, verbose=verbose)
    lines += variant_effects(items, width)
    if verbose:
        lines += findings(items, width)
    elif len(shown) < len(items) or any(view.needs_headline for view in items):
        lines += paragraph("All rows, reasons, examples and findings: run with -v.", width)
    if any(document["requests"][name] for name in ("planned", "failed")):  # files of answers need no requests
        lines += requests(document, width, retried, lines)
    lines += notes(document, width)
    accept = partial(accept_command, options=options, root=root, all_items=all_items)
    return lines + next_steps(items, accept, rebaseline_requests, width)


def measured_summary(document: Mapping[str, Json], width: int, *, retried: float = 0) -> list[Line]:
    """Return the summary of a run without verdicts; see `summary` for the arguments."""
    items = views(document)
    own = [view for view in items if view.status == VerdictName.MEASURED]
    lines = _heading(document, items, width)
    probes = sorted({view.item["probe"] for view in own})
    for probe in probes:
        of_probe = [view for view in own if view.item["probe"] == probe]
        table = [*answer_lines(of_probe, width), *table_lines(of_probe, width)]
        title = [Line(cut(printable(probe), width), {"bold": True})] if len(probes) > 1 else []
        lines += [*title, *map(Line, table), Line("")]
    if own:
        lines += [*map(Line, explanation_lines(own, width)), Line("")]
    lines += intersection_tables(own, width, verbose=True)
    errors: dict[str, list[str]] = {}
    # The reasons can repeat a note about the rows of a file, which is shown once, below.
    note_texts = [text.partition(": ")[2] for text in texts_of_notes(document)]
    for view in items:
        if view not in own:
            why = view.reason
            for text in note_texts:
                why = why.removesuffix(text).rstrip()
            errors.setdefault(printable(why), []).append(view.name(with_probe=False))
    for text, names in errors.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines += paragraph(f"{names[0]}{more}: {text}", width, {"red": True})
    lines += variant_effects(items, width)
    counts = requests(document, width, retried, lines) if document["requests"]["planned"] else []
    return [*lines, *counts, *notes(document, width)]


def _heading(document: Mapping[str, Json], items: Sequence[ItemView], width: int) -> list[Line]:
    files = {view.item["probe"]: view.file for view in items}
    probes = next(iter(files.values())) if len(files) == 1 else counted(len(files), "probe")
    if report_items.is_measured_only(items):
        counts = fill(re.split(r"(?<=[,;:]) ", report_items.effect_size_counts(items)), width, comma="")
    else:
        reused = reused_answers(document)
        counts = [
            *fill(verdict_count_texts(items), width),
            *(fill([reused], width) if reused else []),
        ]
    # The command `measure` gives the file of answers as target and as probe.
    audited = " · ".join(dict.fromkeys([printable(document["target"]), cut_middle(printable(probes), width - 2)]))
    lines = paragraph(f"{audited} · {counted(len(items), 'item')}", width, {"bold": True})
    markup = {"bold": True, **row_markup(items[0])}
    return [*lines, *(Line(line, markup) for line in counts), Line("")]


# Table of items that are measured without a verdict, with their estimates, p-values and effect sizes.

SHOWN = 10
"""Maximum number of groups above the table, and of explanations below it."""
_HEADER = ("size", "value [95 % interval]", "p", "effect", "item")
_GAP = 2
_CHANCE = 0.05


def table_lines(items: Sequence[ItemView], width: int) -> list[str]:
    """Return the table of measured items; each item has one line, in which a long name is cut."""
    rows = [_row(view) for view in largest_first(items)]
    numbers = sum(max(width_of(row[place]) for row in (_HEADER, *rows)) + _GAP for place in range(len(_HEADER) - 1))
    names = cut_ids([row[-1] for row in rows], max(width - numbers, len(_HEADER[-1])))
    return text_table([_HEADER, *((*row[:-1], name) for row, name in zip(rows, names, strict=True))], width)


def answer_lines(items: Sequence[ItemView], width: int) -> list[str]:
    """Return the number of usable and of missing answers by group, as lines of text.

    Refused answers count as missing, although the audit `refusals` uses them. If the items have different numbers of
    answers of a group, the smallest and the largest number are shown.
    """
    groups: dict[str, dict[int, int]] = {}  # the most missing answers, by group and number of answers
    for item in (view.item for view in items):
        for group in dict.fromkeys((*item["n"], *item["missing"])):
            missing = item["missing"].get(group, 0)
            lost, answers = groups.setdefault(group, {}), item["n"].get(group, 0) + missing
            lost[answers] = max(missing, lost.get(answers, 0))
    texts = []
    for group, lost in groups.items():
        missing_text = f" ({_range_text(lost.values())} missing)" if any(lost.values()) else ""
        texts.append(f"{printable(group)} {_range_text(answers - lost[answers] for answers in lost)}{missing_text}")
    more = [counted(len(texts) - SHOWN, "more group")] if len(texts) > SHOWN else []
    return wrap(f"usable answers: {', '.join([*texts[:SHOWN], *more])}", width, hanging="  ") if texts else []


def _range_text(counts: Iterable[int]) -> str:
    numbers = sorted(counts)
    low, high = numbers[0], numbers[-1]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def explanation_lines(items: Sequence[ItemView], width: int) -> list[str]:
    """Return a sentence for each item, and a sentence about the number of differences that chance alone would give.

    An item's sentence states the finding or, if no difference was found, the smallest difference that would have been
    found. Equal sentences appear once, with the number of their items.
    """
    explained = [view for view in largest_first(items) if view.size or view.method.get("no_effect_size")]
    by_sentence: dict[str, list[ItemView]] = {}
    for view in explained:
        by_sentence.setdefault(view.headline, []).append(view)
    lines: list[str] = []
    for text, (first, *others) in list(by_sentence.items())[:SHOWN]:
        title, name = first.method.get("title"), first.item["id"]
        name = f"{name} and {len(others)} more" if others else f"{title} ({name})" if title else name
        lines += wrap(printable(f"{name}: {text}"), width, hanging="  ")
    if len(by_sentence) > SHOWN:
        lines.append(f"… and {len(by_sentence) - SHOWN} more")
    known = [view for view in explained if view.size not in ("", UNKNOWN)]
    if known:
        differing = sum(view.size in FOUND for view in known)
        lines += wrap(
            f"{differing} of {counted(len(known), 'item')} show a difference; if the groups did not differ at all, "
            f"about {number(len(known) * _CHANCE)} would still show a difference by chance.",
            width,
        )
    return lines


def _row(view: ItemView) -> tuple[str, ...]:
    value = with_interval(number(view.item["value"]), view.item["interval"])
    return (view.size or "-", value, view.p_value, view.effect, view.name(with_probe=False))


# Sections of the terminal summary below the table of items: targets, intersections, variants, findings.

SHOWN_VARIANTS = 12
SHOWN_INTERSECTIONS = 3


def other_targets(items: Sequence[ItemView], document: Mapping[str, Json]) -> list[str]:
    """Return a sentence for each target with which a baseline was measured, except for this run's targets."""
    by_name = document["summary"].get("by_target", {})
    others = set()
    for view in items:
        item = view.item
        name, baseline = target_name(item["id"], item["labels"]), item["baseline"]
        current = by_name[name]["target"] if name in by_name else document["target"]
        # A run of several files of answers has their names as its target.
        if baseline and not view.relation.get("drift") and baseline["target"] not in (current, *current.split(", ")):
            subject = f"the baseline of @{name}" if name in by_name else "the baseline"
            others.add(f"{subject} was measured with {baseline['target']} on {str(baseline['date'])[:10]}")
    return sorted(map(printable, others))


def table_by_target(document: Mapping[str, Json], items: Sequence[ItemView], width: int) -> list[Line]:
    """Return a table of value and verdict by item and target; an empty list for fewer than two targets."""
    table = report_items.target_table(document, items, lambda view: f"{number(view.item['value'])} {view.verdict}")
    if table is None:
        return []
    names, rows, passed = table
    head = ["", *names]
    rows = [*([printable(row[0]), *row[1:]] for row in rows), ["", *passed]]
    columns = [max(width_of(row[column]) for row in [head, *rows]) for column in range(len(head))]
    columns[0] = max(20, min(columns[0], width - sum(columns[1:]) - len(GAP) * len(names)))
    lines = [Line(cut("audits by target", width), {"bold": True})]
    for row in [head, *rows]:
        cells = [pad(cut(cell, size), size) for cell, size in zip(row, columns, strict=True)]
        lines.append(Line(cut(GAP.join(cells).rstrip(), width)))
    return [*lines, Line("")]


def intersection_tables(items: Sequence[ItemView], width: int, *, verbose: bool) -> list[Line]:
    """Return the tables of intersections: all if `verbose` is set, otherwise the first tables with failures."""
    tables = report_items.intersection_tables(items)
    shown = tables if verbose else [table for table in tables if table.failed][:SHOWN_INTERSECTIONS]
    lines: list[Line] = []
    for table in shown:
        lines += paragraph(table.title, width, {"bold": True})
        lines += [*map(Line, _grid_lines(table, width)), Line("")]
    return [*lines[:-1], *paragraph(report_items.INTERSECTION_LEGEND, width), Line("")] if lines else []


def _grid_lines(table: report_items.CellTable, width: int) -> list[str]:
    grid = [[*table.columns], *([head, *(cell.text for cell in cells)] for head, cells in table.rows)]
    lines = [f"{INDENT}{line}" for line in text_table(grid, sys.maxsize)]
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


def variant_effects(items: Sequence[ItemView], width: int) -> list[Line]:
    """Return lines with the effects of the probes' variants on the items; an empty list without variants."""
    several_probes = len({view.item["probe"] for view in items}) > 1
    sentences = [
        f"{view.name(with_probe=several_probes)}, {printable(sentence)}"
        for view in items
        for sentence in report_items.variant_sentences(view.item)
    ]
    lines = [line for text in sentences[:SHOWN_VARIANTS] for line in paragraph(text, width)]
    if len(sentences) > SHOWN_VARIANTS:
        lines.append(Line(cut(f"… and {len(sentences) - SHOWN_VARIANTS} more in the HTML and JSON reports", width)))
    return [Line("variants compared with the original prompt:", {"bold": True}), *lines, Line("")] if lines else []


def findings(items: Sequence[ItemView], width: int) -> list[Line]:
    """Return the findings of failed items, each once, with the names of their items."""
    named: dict[str, list[str]] = {}
    for view in items:
        if view.finding:
            named.setdefault(view.finding, []).append(view.name(with_probe=True))
    return [
        line
        for finding, names in named.items()
        for line in [*paragraph(f"{', '.join(names)}: {finding}", width), Line("")]
    ]


# Last lines of the terminal summary: request counts, notes and the commands that accept the results.

SHOWN_MESSAGES = 3
TOO_FEW_AUDITS = ("no-audit", "few-audits")


def requests(document: Mapping[str, Json], width: int, retried: float, above: Sequence[Line]) -> list[Line]:
    """Return lines with the counts of requests, and the errors that no line `above` shows, the most frequent first."""
    shown = " ".join(" ".join(line.text.split()) for line in above)
    failures = [
        failure
        for failure in document["requests"].get("failures", [])
        if printable(failure["message"]).removesuffix("…") not in shown  # long messages are cut
    ]
    lines = paragraph(request_counts(document, retried), width)
    lines += [
        line
        for failure in failures[:SHOWN_MESSAGES]
        for line in paragraph(
            printable(f"{counted(failure['count'], 'request')} failed: {failure['message']}"),
            width,
            {"red": True},
        )
    ]
    if len(failures) > SHOWN_MESSAGES:
        more = counted(len(failures) - SHOWN_MESSAGES, "more message")
        lines.append(Line(f"  … and {more} in the HTML and JSON reports"))
    return lines


def notes(document: Mapping[str, Json], width: int) -> list[Line]:
    """Return the lines of the notes on the run: red for notes on too few audits, yellow for other notes."""
    return [
        line
        for note in document.get("notes", ())
        for line in paragraph(note["text"], width, {"red" if note["kind"] in TOO_FEW_AUDITS else "yellow": True})
    ]


def next_steps(
    items: Sequence[ItemView],
    accept: Callable[[Sequence[ItemView]], list[str] | None],
    rebaseline_requests: str,
    width: int,
) -> list[Line]:
    """Return advice on failed items: how to make a missing baseline, to accept a change, or to get below a limit.

    `accept` returns the command that accepts the values of items; `rebaseline_requests` says which requests the command
    sends, and is empty if the command sends none.
    """
    lines: list[Line] = paragraph(rebaseline_requests, width) if rebaseline_requests and accept(items) else []
    new = [view for view in items if view.is_new]
    if command := accept(new):
        has = "has" if len(new) == 1 else "have"
        text = f"{counted(len(new), 'item')} {has} no baseline and no limit. To record the values as the baseline:"
        lines += _command(text, command, width)
    if any(view.status == VerdictName.OVER_LIMIT for view in items):
        text = (
            "Some items are over their limit, which a new baseline does not change. Fix the target, or change the "
            "audit's `limit` in the probe."
        )
        lines += paragraph(text, width)
    if command := accept([view for view in items if not view.is_new]):
        lines += _command("To accept the current values as the new baseline:", command, width)
    return lines


def _command(text: str, command: Sequence[str], width: int) -> list[Line]:
    return [
        *paragraph(text, width),
        *(Line(line, {"bold": True}) for line in shell_lines(command, width)),
    ]


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
            exact_cells["value"] = with_interval(exact_cells["value"], view.item["interval"])
            short_cells["value"] = _with_half_width(short_cells["value"], view.item["interval"])
    needed = [name for name in exact[0] if name != "baseline" and any(row[name] for row in exact)]
    fits = verbose or _room(exact, headings[0], width, needed) >= max(width_of(row["item"]) for row in exact)
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
    if any((view.item["change"] or {}).get("groups") and len(view.item["n"]) > 2 for view in items):
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
        "value": "" if value is None else number(value),
        "baseline": "" if baseline is None else number(baseline),
        "change": _with_half_width(view.worse_by(value=moved), interval) + view.change_suffix,
        "allowed": view.allowed,
        "placebo": view.explanation.placebo,
        "item": view.name(with_probe=several_probes),
    }


def _with_half_width(text: str, interval: Sequence[float | None] | None) -> str:
    """Return the text of a number with the half width of its 95 % interval, as `0.12 ± 0.056`, if there is one."""
    return text + plus_minus(half_width(interval))


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
        lines.append(Line(cut(text, width), row_markup(own[0])))
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
    return [Line(line, markup or {}) for line in reason_lines(text, width)]


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
