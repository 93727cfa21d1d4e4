"""Terminal summary at the end of a run: estimates, sections and last lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from pytest_fairness.errors import counted
from pytest_fairness.records import Json, VerdictName, target_name
from pytest_fairness.reports import formatting, report_items, terminal_items
from pytest_fairness.reports.document import request_counts, reused_answers, texts_of_notes
from pytest_fairness.reports.findings import accept_command
from pytest_fairness.reports.formatting import text_table as aligned
from pytest_fairness.reports.terminal_items import GAP, INDENT, WORST_ROWS, Line
from pytest_fairness.reports.view import FOUND, UNKNOWN, ItemView, largest_first, views

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
    lines += terminal_items.item_rows(shown, width, several_probes=several_probes, verbose=verbose)
    if len(shown) < len(items):
        lines += terminal_items.hidden_rows(items, len(items) - len(shown), width)
    for text in [*other_targets(items, document), *report_items.served_model_changes(items)]:
        lines += terminal_items.paragraph(text, width)
    lines.append(Line(""))
    if len(shown) == len(items):
        lines += table_by_target(document, items, width)
    lines += intersection_tables(items, width, verbose=verbose)
    lines += variant_effects(items, width)
    if verbose:
        lines += findings(items, width)
    elif len(shown) < len(items) or any(view.needs_headline for view in items):
        lines += terminal_items.paragraph("All rows, reasons, examples and findings: run with -v.", width)
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
        title = [Line(formatting.cut(formatting.printable(probe), width), {"bold": True})] if len(probes) > 1 else []
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
            errors.setdefault(formatting.printable(why), []).append(view.name(with_probe=False))
    for text, names in errors.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines += terminal_items.paragraph(f"{names[0]}{more}: {text}", width, {"red": True})
    lines += variant_effects(items, width)
    counts = requests(document, width, retried, lines) if document["requests"]["planned"] else []
    return [*lines, *counts, *notes(document, width)]


def _heading(document: Mapping[str, Json], items: Sequence[ItemView], width: int) -> list[Line]:
    files = {view.item["probe"]: view.file for view in items}
    probes = next(iter(files.values())) if len(files) == 1 else counted(len(files), "probe")
    if report_items.is_measured_only(items):
        counts = formatting.fill(re.split(r"(?<=[,;:]) ", report_items.effect_size_counts(items)), width, comma="")
    else:
        reused = reused_answers(document)
        counts = [
            *formatting.fill(terminal_items.verdict_count_texts(items), width),
            *(formatting.fill([reused], width) if reused else []),
        ]
    # The command `measure` gives the file of answers as target and as probe.
    audited = " · ".join(
        dict.fromkeys(
            [formatting.printable(document["target"]), formatting.cut_middle(formatting.printable(probes), width - 2)]
        )
    )
    lines = terminal_items.paragraph(f"{audited} · {counted(len(items), 'item')}", width, {"bold": True})
    markup = {"bold": True, **terminal_items.row_markup(items[0])}
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
    numbers = sum(
        max(formatting.width_of(row[place]) for row in (_HEADER, *rows)) + _GAP for place in range(len(_HEADER) - 1)
    )
    names = formatting.cut_ids([row[-1] for row in rows], max(width - numbers, len(_HEADER[-1])))
    return formatting.text_table([_HEADER, *((*row[:-1], name) for row, name in zip(rows, names, strict=True))], width)


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
        texts.append(
            f"{formatting.printable(group)} {_range_text(answers - lost[answers] for answers in lost)}{missing_text}"
        )
    more = [counted(len(texts) - SHOWN, "more group")] if len(texts) > SHOWN else []
    return (
        formatting.wrap(f"usable answers: {', '.join([*texts[:SHOWN], *more])}", width, hanging="  ") if texts else []
    )


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
        lines += formatting.wrap(formatting.printable(f"{name}: {text}"), width, hanging="  ")
    if len(by_sentence) > SHOWN:
        lines.append(f"… and {len(by_sentence) - SHOWN} more")
    known = [view for view in explained if view.size not in ("", UNKNOWN)]
    if known:
        differing = sum(view.size in FOUND for view in known)
        lines += formatting.wrap(
            f"{differing} of {counted(len(known), 'item')} show a difference; if the groups did not differ at all, "
            f"about {formatting.number(len(known) * _CHANCE)} would still show a difference by chance.",
            width,
        )
    return lines


def _row(view: ItemView) -> tuple[str, ...]:
    value = formatting.with_interval(formatting.number(view.item["value"]), view.item["interval"])
    return (view.size or "-", value, view.p_value, view.effect, view.name(with_probe=False))


# Sections of the terminal summary below the table of items: targets, intersections, variants, findings.

SHOWN_VARIANTS = 12
SHOWN_INTERSECTIONS = 3


def other_targets(items: Sequence[ItemView], document: Mapping[str, Json]) -> list[str]:
    """Return a sentence for each target with which a baseline was measured, except for this run's targets."""
    by_name = document["summary"].get("by_target", {})
    others = set()
    for item in (view.item for view in items):
        name, baseline = target_name(item["id"], item["labels"]), item["baseline"]
        current = by_name[name]["target"] if name in by_name else document["target"]
        # A run of several files of answers has their names as its target.
        if baseline and baseline["target"] not in (current, *current.split(", ")):
            subject = f"the baseline of @{name}" if name in by_name else "the baseline"
            others.add(f"{subject} was measured with {baseline['target']} on {str(baseline['date'])[:10]}")
    return sorted(map(formatting.printable, others))


def table_by_target(document: Mapping[str, Json], items: Sequence[ItemView], width: int) -> list[Line]:
    """Return a table of value and verdict by item and target; an empty list for fewer than two targets."""
    table = report_items.target_table(
        document, items, lambda view: f"{formatting.number(view.item['value'])} {view.verdict}"
    )
    if table is None:
        return []
    names, rows, passed = table
    head = ["", *names]
    rows = [*([formatting.printable(row[0]), *row[1:]] for row in rows), ["", *passed]]
    columns = [max(formatting.width_of(row[column]) for row in [head, *rows]) for column in range(len(head))]
    columns[0] = max(20, min(columns[0], width - sum(columns[1:]) - len(GAP) * len(names)))
    lines = [Line(formatting.cut("audits by target", width), {"bold": True})]
    for row in [head, *rows]:
        cells = [formatting.pad(formatting.cut(cell, size), size) for cell, size in zip(row, columns, strict=True)]
        lines.append(Line(formatting.cut(GAP.join(cells).rstrip(), width)))
    return [*lines, Line("")]


def intersection_tables(items: Sequence[ItemView], width: int, *, verbose: bool) -> list[Line]:
    """Return the tables of intersections: all if `verbose` is set, otherwise the first tables with failures."""
    tables = report_items.intersection_tables(items)
    shown = tables if verbose else [table for table in tables if table.failed][:SHOWN_INTERSECTIONS]
    lines: list[Line] = []
    for table in shown:
        lines += terminal_items.paragraph(table.title, width, {"bold": True})
        lines += [*map(Line, _grid_lines(table, width)), Line("")]
    return [*lines[:-1], *terminal_items.paragraph(report_items.INTERSECTION_LEGEND, width), Line("")] if lines else []


def _grid_lines(table: report_items.CellTable, width: int) -> list[str]:
    grid = [[*table.columns], *([head, *(cell.text for cell in cells)] for head, cells in table.rows)]
    lines = [f"{INDENT}{line}" for line in aligned(grid, sys.maxsize)]
    if max(map(formatting.width_of, lines)) <= width:
        return lines
    cells_by_name = [
        (f"{head}, {column}", cell.text)
        for head, cells in table.rows
        for column, cell in zip(table.columns[1:], cells, strict=True)
        if cell.text
    ]
    longest = max(formatting.width_of(text) for _, text in cells_by_name)
    room = min(max(formatting.width_of(name) for name, _ in cells_by_name), width - len(INDENT) - len(GAP) - longest)
    return [
        formatting.cut(f"{INDENT}{formatting.pad(formatting.cut_middle(name, room), room)}{GAP}{text}", width)
        for name, text in cells_by_name
    ]


def variant_effects(items: Sequence[ItemView], width: int) -> list[Line]:
    """Return lines with the effects of the probes' variants on the items; an empty list without variants."""
    several_probes = len({view.item["probe"] for view in items}) > 1
    sentences = [
        f"{view.name(with_probe=several_probes)}, {formatting.printable(sentence)}"
        for view in items
        for sentence in report_items.variant_sentences(view.item)
    ]
    lines = [line for text in sentences[:SHOWN_VARIANTS] for line in terminal_items.paragraph(text, width)]
    if len(sentences) > SHOWN_VARIANTS:
        lines.append(
            Line(formatting.cut(f"… and {len(sentences) - SHOWN_VARIANTS} more in the HTML and JSON reports", width))
        )
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
        for line in [*terminal_items.paragraph(f"{', '.join(names)}: {finding}", width), Line("")]
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
        if formatting.printable(failure["message"]).removesuffix("…") not in shown  # long messages are cut
    ]
    lines = terminal_items.paragraph(request_counts(document, retried), width)
    lines += [
        line
        for failure in failures[:SHOWN_MESSAGES]
        for line in terminal_items.paragraph(
            formatting.printable(f"{counted(failure['count'], 'request')} failed: {failure['message']}"),
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
        for line in terminal_items.paragraph(
            note["text"], width, {"red" if note["kind"] in TOO_FEW_AUDITS else "yellow": True}
        )
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
    lines: list[Line] = (
        terminal_items.paragraph(rebaseline_requests, width) if rebaseline_requests and accept(items) else []
    )
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
        lines += terminal_items.paragraph(text, width)
    if command := accept([view for view in items if not view.is_new]):
        lines += _command("To accept the current values as the new baseline:", command, width)
    return lines


def _command(text: str, command: Sequence[str], width: int) -> list[Line]:
    return [
        *terminal_items.paragraph(text, width),
        *(Line(line, {"bold": True}) for line in formatting.shell_lines(command, width)),
    ]
