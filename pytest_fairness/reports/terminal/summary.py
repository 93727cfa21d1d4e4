"""Terminal summary at the end of a run, as lines with pytest's markup."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports import run_notes
from pytest_fairness.reports.document import reused_answers
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.items import effects
from pytest_fairness.reports.items.report_items import (
    Item,
    is_measured_only,
    reason,
    served_model_changes,
    severity,
)
from pytest_fairness.reports.suggestions.shell_commands import accept_command
from pytest_fairness.reports.terminal import measured
from pytest_fairness.reports.terminal.closing_lines import next_steps, notes, request_counts
from pytest_fairness.reports.terminal.item_table import WORST_ROWS, hidden_rows, item_rows, needs_finding
from pytest_fairness.reports.terminal.lines import Line, file_of, paragraph, row_markup, verdict_count_texts
from pytest_fairness.reports.terminal.sections import (
    accepted_baselines,
    intersection_tables,
    other_targets,
    suggestions,
    table_by_target,
    variant_effects,
)
from pytest_fairness.reports.text_layout import cut, cut_middle, fill

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
        verbose: whether all rows, full names, full reasons and suggestions are shown.
    """
    width = max(width, MIN_WIDTH)
    items: list[Item] = sorted(document["items"], key=severity)
    if not items:
        return notes(document, width)
    if is_measured_only(items):
        return measured_summary(document, width, retried=retried)
    shown = items if verbose or len(items) <= MOST_ROWS else items[:WORST_ROWS]
    lines = _heading(document, items, width)
    lines += item_rows(shown, document, width, verbose=verbose)
    if len(shown) < len(items):
        lines += hidden_rows(items, len(items) - len(shown), width)
    for text in [*other_targets(items, document), *served_model_changes(items)]:
        lines += paragraph(text, width)
    lines.append(Line(""))
    if len(shown) == len(items):
        lines += table_by_target(document, width)
    lines += intersection_tables(items, width, verbose=verbose)
    lines += variant_effects(items, width)
    if verbose:
        lines += suggestions(items, width) + accepted_baselines(items, width)
    elif len(shown) < len(items) or any(map(needs_finding, items)):
        lines += paragraph("All rows, reasons, examples and suggested next steps: run with -v.", width)
    if any(document["requests"][name] for name in ("planned", "failed")):  # files of answers need no requests
        lines += request_counts(document, width, retried, lines)
    lines += notes(document, width)
    accept = partial(accept_command, options=options, root=root, all_items=all_items)
    return lines + next_steps(items, accept, rebaseline_requests, width)


def measured_summary(document: Mapping[str, Json], width: int, *, retried: float = 0) -> list[Line]:
    """Return the summary of a run without verdicts; see `summary` for the arguments."""
    items: list[Item] = sorted(document["items"], key=severity)
    own = [item for item in items if item["verdict"] == VerdictName.MEASURED]
    lines = _heading(document, items, width)
    probes = sorted({item["probe"] for item in own})
    for probe in probes:
        of_probe = [item for item in own if item["probe"] == probe]
        table = [*measured.answer_lines(of_probe, width), *measured.table_lines(of_probe, width)]
        title = [Line(cut(printable(probe), width), {"bold": True})] if len(probes) > 1 else []
        lines += [*title, *map(Line, table), Line("")]
    if own:
        lines += [*map(Line, measured.explanation_lines(own, document.get("methods", {}), width)), Line("")]
    lines += intersection_tables(own, width, verbose=True)
    errors: dict[str, list[str]] = {}
    # The reasons can repeat a note about the rows of a file, which is shown once, below.
    note_texts = [text.partition(": ")[2] for text in run_notes.texts(document)]
    for item in items:
        if item not in own:
            why = reason(item)
            for text in note_texts:
                why = why.removesuffix(text).rstrip()
            errors.setdefault(printable(why), []).append(printable(item["id"]))
    for text, names in errors.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines += paragraph(f"{names[0]}{more}: {text}", width, {"red": True})
    lines += variant_effects(items, width)
    counts = request_counts(document, width, retried, lines) if document["requests"]["planned"] else []
    return [*lines, *counts, *notes(document, width)]


def _heading(document: Mapping[str, Json], items: Sequence[Item], width: int) -> list[Line]:
    """Return lines with the target, the probes and the number of items by verdict."""
    files = {item["probe"]: file_of(item) for item in items}
    probes = next(iter(files.values())) if len(files) == 1 else counted(len(files), "probe")
    if is_measured_only(items):
        counts = fill(re.split(r"(?<=[,;:]) ", effects.sizes(items)), width, comma="")
    else:
        reused = reused_answers(document)
        counts = [*fill(verdict_count_texts(items), width), *(fill([reused], width) if reused else [])]
    # The command `measure` gives the file of answers as target and as probe.
    audited = " · ".join(dict.fromkeys([printable(document["target"]), cut_middle(printable(probes), width - 2)]))
    lines = paragraph(f"{audited} · {counted(len(items), 'item')}", width, {"bold": True})
    markup = {"bold": True, **row_markup(items[0])}
    return [*lines, *(Line(line, markup) for line in counts), Line("")]
