"""The terminal summary at the end of a run.

A line has the names of pytest's markup; the plugin passes them to pytest's terminal writer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports import run_notes, target_table, variant_results
from pytest_fairness.reports.document import reused_age
from pytest_fairness.reports.formatting import escaped, number, printable, signed, with_interval
from pytest_fairness.reports.report_items import Item, served_model_changes, severity, target_name, tolerated_worsenings
from pytest_fairness.reports.shell_commands import accept_command, reason_lines, shell_lines
from pytest_fairness.reports.terminal.forecast import money
from pytest_fairness.reports.text_layout import cut, pad, width_of
from pytest_fairness.reports.top_contributors import evidence_lines, failure_text
from pytest_fairness.reports.variant_yaml import narrowed

__all__ = ["Line", "failure_text", "summary"]

MIN_WIDTH = 50
SHOWN_FAILURES = 20
SHOWN_VARIANTS = 12
SHOWN_MESSAGES = 3
_HEADER = ("", "value", "baseline", "worse by [95 %]", "verdict")
_GAP = "  "


@dataclass(frozen=True)
class Line:
    """A line of text with pytest's markup (`red`, `yellow`, `green`, `bold`)."""

    text: str
    markup: Mapping[str, bool] = field(default_factory=dict)


def summary(
    document: Mapping[str, Json],
    width: int = 80,
    *,
    options: Sequence[str] = (),
    root: str = "",
    retried: float = 0,
) -> list[Line]:
    """Return the summary: a table per probe, top contributors to failures, suggestions, request counts, accept command.

    Args:
        document: the report document.
        width: maximum width of a line; commands that cannot be broken may be longer.
        options: options of the accept command, which select the same requests as this run
            (`["--fairness-target", "openai:gpt-5"]`).
        root: path from the user's working directory to pytest's rootdir; empty if they are the same.
        retried: number of retries.
    """
    width = max(width, MIN_WIDTH)
    items: list[Item] = sorted(document["items"], key=severity)
    if not items:
        return _notes(document, width)
    lines: list[Line] = []
    for probe in sorted({item["probe"] for item in items}):
        lines += _table([item for item in items if item["probe"] == probe], document, width)
    lines += _table_by_target(document, width)
    lines += _explanations(items, width)
    lines += _variants(items, width)
    lines += _suggestions(items, width)
    lines += _counts(document, width, retried)
    lines += _notes(document, width)
    lines += _acceptance(items, accept_command(items, options, root), width)
    return lines


def _file(item: Item) -> str:
    nodeid: str = item["nodeid"]
    return nodeid.partition("::")[0]


def _markup(item: Item) -> dict[str, bool]:
    match VerdictName(item["verdict"]).outcome:
        case "passed":
            return {"green": True}
        case "inconclusive":
            return {"yellow": True}
        case _:
            return {"red": True}


# Tables


def _table(items: Sequence[Item], document: Mapping[str, Json], width: int) -> list[Line]:
    rows = [_row(item) for item in items]
    columns = [max(width_of(row[column]) for row in [_HEADER, *rows]) for column in range(len(_HEADER))]
    numbers = sum(columns[1:]) + len(_GAP) * (len(columns) - 1)
    # A name too long for its numbers to fit on the same line gets its own line.
    columns[0] = min(columns[0], max(0, width - numbers))
    title = printable(items[0]["probe"])
    file = printable(_file(items[0]))
    lines = [Line(cut(f"{title} ({file})", width), {"bold": True}), Line(_joined(_HEADER, columns, width))]
    for item, row in zip(items, rows, strict=True):
        markup = _markup(item)
        if width_of(row[0]) > columns[0]:
            lines.append(Line(cut(row[0], width), markup))
            row = ("", *row[1:])
        lines.append(Line(_joined(row, columns, width), markup))
    for text in [
        *_other_targets(items, document),
        *served_model_changes(items),
        *tolerated_worsenings(items),
    ]:
        lines += _paragraph(text, width)
    return [*lines, Line("")]


def _row(item: Item) -> tuple[str, ...]:
    change, baseline = item["change"], item["baseline"] or {}
    worse_by = with_interval(signed(change["value"]), change["interval"]) if change else ""
    return (printable(item["id"]), number(item["value"]), number(baseline.get("value")), worse_by, item["verdict"])


def _joined(row: Sequence[str], columns: Sequence[int], width: int) -> str:
    cells = [pad(cell, columns[i], right=i in (1, 2)) for i, cell in enumerate(row)]
    return cut(_GAP.join(cells).rstrip(), width)


def _other_targets(items: Sequence[Item], document: Mapping[str, Json]) -> list[str]:
    """Return a sentence for each baseline that was measured on another target."""
    named = document["summary"].get("by_target", {})
    others = set()
    for item in items:
        name, baseline = target_name(item["id"]), item["baseline"]
        current = named[name]["target"] if name in named else document["target"]
        if baseline and baseline["target"] != current:
            whose = f"baseline of @{name}" if name in named else "baseline"
            others.add(f"{whose}: {baseline['target']}, measured {str(baseline['date'])[:10]}")
    return sorted(map(printable, others))


def _table_by_target(document: Mapping[str, Json], width: int) -> list[Line]:
    """Return a table of value and verdict by item and target, for several targets."""
    names, found = target_table.items_by_target(document)
    if len(names) < 2 or not found:
        return []
    head = ["", *(f"@{name}" for name in names)]
    rows = [
        [
            printable(title),
            *(f"{number(own[name]['value'])} {own[name]['verdict']}" if name in own else "" for name in names),
        ]
        for title, own in found
    ]
    rows.append(["", *(target_table.passed(document, name) for name in names)])
    columns = [max(width_of(row[column]) for row in [head, *rows]) for column in range(len(head))]
    columns[0] = max(20, min(columns[0], width - sum(columns[1:]) - len(_GAP) * len(names)))
    lines = [Line(cut("audits by target", width), {"bold": True})]
    for row in [head, *rows]:
        cells = [pad(cut(cell, size), size) for cell, size in zip(row, columns, strict=True)]
        lines.append(Line(cut(_GAP.join(cells).rstrip(), width)))
    return [*lines, Line("")]


# Explanations


def _explanations(items: Sequence[Item], width: int) -> list[Line]:
    """Return failures with their top contributors, inconclusive items with their reasons, and errors by reason."""
    several_probes = len({item["probe"] for item in items}) > 1
    name = partial(_named, several_probes=several_probes)
    no_baseline = [item for item in items if item["verdict"] == VerdictName.NO_BASELINE]
    failed = [item for item in items if VerdictName(item["verdict"]).outcome == "failed" and item not in no_baseline]
    lines: list[Line] = []
    for item in failed[:SHOWN_FAILURES]:
        lines += _paragraph(f"{name(item)}: {_reason(item)}", width, {"red": True})
        if item["verdict"] in (VerdictName.REGRESSION, VerdictName.OVER_LIMIT):
            lines += [Line(line) for line in evidence_lines(item, width)]
    if len(failed) > SHOWN_FAILURES:
        lines.append(Line(f"… and {len(failed) - SHOWN_FAILURES} more failures"))
    if no_baseline:
        more = f" and {len(no_baseline) - 1} more have" if len(no_baseline) > 1 else " has"
        lines += _paragraph(f"{name(no_baseline[0])}{more} no baseline and no limit.", width, {"red": True})
    for item in items:
        noted = item["verdict"] == VerdictName.PASS and item["concerns"]
        if item["verdict"] == VerdictName.INCONCLUSIVE or noted:
            lines += _paragraph(f"{name(item)}: {_reason(item)}", width, {"yellow": True})
    errors: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if VerdictName(item["verdict"]).outcome == "error":
            errors[_reason(item)].append(name(item))
    for reason, names in errors.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines += _paragraph(f"{names[0]}{more}: {reason}", width, {"red": True})
    return [*lines, Line("")] if lines else []


def _paragraph(text: str, width: int, markup: Mapping[str, bool] | None = None) -> list[Line]:
    return [Line(line, markup or {}) for line in reason_lines(text, width)]


def _named(item: Item, *, several_probes: bool) -> str:
    """Return the item's id, after the probe's name in a run with several probes."""
    return printable(f"{item['probe']} {item['id']}" if several_probes else item["id"])


def _reason(item: Item) -> str:
    """Return the reason without the item id that may precede it."""
    return printable(item["reason"]).removeprefix(f"{printable(item['id'])}: ")


# Variants and suggestions


def _variants(items: Sequence[Item], width: int) -> list[Line]:
    """Return the effect of the probes' variants on each item."""
    several_probes = len({item["probe"] for item in items}) > 1
    sentences = [
        f"{_named(item, several_probes=several_probes)}, {printable(sentence)}"
        for item in items
        for sentence in variant_results.sentences(item)
    ]
    lines = [line for text in sentences[:SHOWN_VARIANTS] for line in _paragraph(text, width)]
    if len(sentences) > SHOWN_VARIANTS:
        lines.append(Line(cut(f"… and {len(sentences) - SHOWN_VARIANTS} more in the other reports", width)))
    return [Line("variants compared with the original prompt:", {"bold": True}), *lines, Line("")] if lines else []


def _suggestions(items: Sequence[Item], width: int) -> list[Line]:
    """Return the first suggestion for the worst failure of each probe."""
    lines: list[Line] = []
    for probe in sorted({item["probe"] for item in items}):
        own = [item for item in items if item["probe"] == probe and item["details"].get("suggestions")]
        if not own:
            continue
        found = own[0]["details"]["suggestions"]
        first = found["try"][0]
        lines.append(Line(cut(f"suggested next step ({printable(_file(own[0]))}):", width), {"bold": True}))
        lines += _paragraph(printable(f"{found['found']} {first['text']}"), width)
        lines += [Line(escaped(line)) for line in narrowed(first["paste"], width).split("\n")]
        if len(own) > 1 or len(found["try"]) > 1:
            lines += _paragraph("The HTML and JSON reports have all suggestions (--fairness-report).", width)
        lines.append(Line(""))
    return lines


# Counts, notes and the accept command


def _counts(document: Mapping[str, Json], width: int, retried: float) -> list[Line]:
    requests, counts = document["requests"], document["summary"]
    failed = f", {requests['failed']:,} failed" if requests["failed"] else ""
    tokens = f"{requests['prompt_tokens']:,} prompt and {requests['completion_tokens']:,} completion tokens"
    retries = f" ({retried:,.0f} retr{'y' if retried == 1 else 'ies'})" if retried else ""
    cost = "" if requests["cost"] is None else f"; cost {money(requests['cost'])}"
    reused = f"{requests['reused']:,} reused{reused_age(document)}"
    sent = f"requests: {requests['sent']:,} sent{retries}, {reused}{failed}; {tokens}{cost}"
    audits = f"audits: {counts['passed']} passed, {counts['failed']} failed, {counts['inconclusive']} inconclusive"
    if counts["errors"]:
        audits += f", {counts['errors']} error{'s' if counts['errors'] > 1 else ''}"
    return _paragraph(sent, width) + _failures(requests, width) + _paragraph(audits, width)


def _failures(requests: Mapping[str, Json], width: int) -> list[Line]:
    """Return the error messages of failed requests, the most frequent first."""
    found = requests.get("failures", [])
    lines = [
        line
        for failure in found[:SHOWN_MESSAGES]
        for line in _paragraph(
            printable(f"{failure['count']:,} requests failed: {failure['message']}"), width, {"red": True}
        )
    ]
    if len(found) > SHOWN_MESSAGES:
        lines.append(Line(f"  … and {len(found) - SHOWN_MESSAGES} more messages in the other reports"))
    return lines


def _notes(document: Mapping[str, Json], width: int) -> list[Line]:
    red = [note["kind"] in ("no-audit", "few-audits") for note in document.get("notes", ())]
    return [
        line
        for text, is_red in zip(run_notes.texts(document), red, strict=True)
        for line in _paragraph(text, width, {"red" if is_red else "yellow": True})
    ]


def _acceptance(items: Sequence[Item], command: Sequence[str] | None, width: int) -> list[Line]:
    lines: list[Line] = []
    if any(item["verdict"] == VerdictName.OVER_LIMIT for item in items):
        text = (
            "Over the limit: a new baseline does not help. Fix the target, or change the audit's `limit` in the probe."
        )
        lines += _paragraph(text, width)
    if command is None:
        return lines
    lines.append(Line("To accept the current values as the new baseline:"))
    return lines + [Line(line, {"bold": True}) for line in shell_lines(command, width)]
