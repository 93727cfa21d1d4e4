"""The summary at the end of a run: the report document in, lines for a terminal out.

Knows no pytest: a line carries the names of pytest's markup, which the plugin hands to its terminal writer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports import run_notes, target_table, variant_results
from pytest_fairness.reports.document import age_of_reused
from pytest_fairness.reports.formatting import escaped, number, printable
from pytest_fairness.reports.report_items import Item, rank, served_changes, significant_within_tolerance, target_of
from pytest_fairness.reports.shell_commands import accept_command, reason_lines, shell_lines
from pytest_fairness.reports.terminal.forecast import money
from pytest_fairness.reports.terminal.layout import cut, pad, width_of
from pytest_fairness.reports.top_contributors import evidence, failure_text
from pytest_fairness.reports.variant_yaml import narrowed

__all__ = ["Line", "failure_text", "summary"]

NARROWEST = 50
SHOWN_FAILURES = 20
SHOWN_VARIANTS = 12
SHOWN_MESSAGES = 3
_HEADER = ("", "value", "baseline", "worse by [95 %]", "verdict")
_GAP = "  "


@dataclass(frozen=True)
class Line:
    """A line of text and how to show it, by pytest's names (`red`, `yellow`, `green`, `bold`)."""

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
    """The summary of one run: a table a probe, what drove the failures, what was sent, and how to accept it all.

    Args:
        document: the report document.
        width: columns of the terminal; only what is to be pasted may be wider, where it cannot be broken.
        options: of the command that accepts the changes, those that chose what was asked of whom
            (`["--fairness-target", "openai:gpt-5"]`).
        root: path from where the user typed the command to the folder that node ids begin in; empty if it is the same.
        retried: further tries of the requests that were sent.
    """
    width = max(width, NARROWEST)
    items: list[Item] = sorted(document["items"], key=rank)
    if not items:
        return _notes(document, width)
    lines: list[Line] = []
    for probe in sorted({item["probe"] for item in items}):
        lines += _table([item for item in items if item["probe"] == probe], document, width)
    lines += _targets(document, width)
    lines += _explanations(items, width)
    lines += _variants(items, width)
    lines += _to_try(items, width)
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


# The table


def _table(items: Sequence[Item], document: Mapping[str, Json], width: int) -> list[Line]:
    rows = [_row(item) for item in items]
    columns = [max(width_of(row[column]) for row in [_HEADER, *rows]) for column in range(len(_HEADER))]
    numbers = sum(columns[1:]) + len(_GAP) * (len(columns) - 1)
    # A name that leaves no room for its numbers gets a line of its own.
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
        *served_changes(items),
        *significant_within_tolerance(items),
    ]:
        lines += _paragraph(text, width)
    return [*lines, Line("")]


def _row(item: Item) -> tuple[str, ...]:
    change, worse = item["change"], ""
    if change:
        worse = number(change["value"])
        if worse not in ("0", "-") and not worse.startswith("-"):
            worse = f"+{worse}"
        if change["interval"]:
            worse += f" [{number(change['interval'][0])}, {number(change['interval'][1])}]"
    baseline = item["baseline"] or {}
    return (printable(item["id"]), number(item["value"]), number(baseline.get("value")), worse, item["verdict"])


def _joined(row: Sequence[str], columns: Sequence[int], width: int) -> str:
    cells = [pad(cell, columns[i], right=i in (1, 2)) for i, cell in enumerate(row)]
    return cut(_GAP.join(cells).rstrip(), width)


def _other_targets(items: Sequence[Item], document: Mapping[str, Json]) -> list[str]:
    """A baseline of another target is no mistake, but nobody should overlook it."""
    named = document["summary"].get("by_target", {})
    others = set()
    for item in items:
        name, baseline = target_of(item["id"]), item["baseline"]
        now = named[name]["target"] if name in named else document["target"]
        if baseline and baseline["target"] != now:
            whose = f"baseline of @{name}" if name in named else "baseline"
            others.add(f"{whose}: {baseline['target']}, measured {str(baseline['date'])[:10]}")
    return sorted(map(printable, others))


def _targets(document: Mapping[str, Json], width: int) -> list[Line]:
    """Several targets against all audit items, value and verdict."""
    names, found = target_table.against_items(document)
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
    lines = [Line(cut("targets against audits", width), {"bold": True})]
    for row in [head, *rows]:
        cells = [pad(cut(cell, size), size) for cell, size in zip(row, columns, strict=True)]
        lines.append(Line(cut(_GAP.join(cells).rstrip(), width)))
    return [*lines, Line("")]


# What drove it


def _explanations(items: Sequence[Item], width: int) -> list[Line]:
    """Failures in full, inconclusive items and those with concerns with their reasons, errors by reason."""
    several_probes = len({item["probe"] for item in items}) > 1
    name = partial(_named, several_probes=several_probes)
    without = [item for item in items if item["verdict"] == VerdictName.NO_BASELINE]
    failed = [item for item in items if VerdictName(item["verdict"]).outcome == "failed" and item not in without]
    lines: list[Line] = []
    for item in failed[:SHOWN_FAILURES]:
        lines += _paragraph(f"{name(item)}: {_reason(item)}", width, {"red": True})
        if item["verdict"] in (VerdictName.REGRESSION, VerdictName.OVER_LIMIT):
            lines += [Line(line) for line in evidence(item, width)]
    if len(failed) > SHOWN_FAILURES:
        lines.append(Line(f"… and {len(failed) - SHOWN_FAILURES} more failures"))
    if without:
        more = f" and {len(without) - 1} more have" if len(without) > 1 else " has"
        lines += _paragraph(f"{name(without[0])}{more} no baseline and no limit to be held to.", width, {"red": True})
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
    """The item's id, and its probe's name where the run has several."""
    return printable(f"{item['probe']} {item['id']}" if several_probes else item["id"])


def _reason(item: Item) -> str:
    """The reason without the item's id at its head, which not every reason has."""
    return printable(item["reason"]).removeprefix(f"{printable(item['id'])}: ")


# What may be done about it


def _variants(items: Sequence[Item], width: int) -> list[Line]:
    """What the probes' other wordings changed, item by item."""
    several_probes = len({item["probe"] for item in items}) > 1
    told = [
        (item, f"{_named(item, several_probes=several_probes)}, {printable(sentence)}")
        for item in items
        for sentence in variant_results.sentences(item)
    ]
    lines = [line for _, text in told[:SHOWN_VARIANTS] for line in _paragraph(text, width)]
    if len(told) > SHOWN_VARIANTS:
        lines.append(Line(cut(f"… and {len(told) - SHOWN_VARIANTS} more in the other reports", width)))
    return [Line("variants, against the probe's own wording:", {"bold": True}), *lines, Line("")] if lines else []


def _to_try(items: Sequence[Item], width: int) -> list[Line]:
    """What may be tried next, for the worst failure of each probe."""
    lines: list[Line] = []
    for probe in sorted({item["probe"] for item in items}):
        own = [item for item in items if item["probe"] == probe and item["details"].get("suggestions")]
        if not own:
            continue
        found = own[0]["details"]["suggestions"]
        first = found["try"][0]
        lines.append(Line(cut(f"to try next ({printable(_file(own[0]))}):", width), {"bold": True}))
        lines += _paragraph(printable(f"{found['found']} {first['text']}"), width)
        lines += [Line(escaped(line)) for line in narrowed(first["paste"], width).split("\n")]
        if len(own) > 1 or len(found["try"]) > 1:
            lines += _paragraph("More, and for each failure, in the HTML and JSON reports (--fairness-report).", width)
        lines.append(Line(""))
    return lines


# What was sent, and what to do


def _counts(document: Mapping[str, Json], width: int, retried: float) -> list[Line]:
    requests, counts = document["requests"], document["summary"]
    failed = f", {requests['failed']:,} failed" if requests["failed"] else ""
    tokens = f"{requests['prompt_tokens']:,} prompt and {requests['completion_tokens']:,} completion tokens"
    again = f" ({retried:,.0f} tr{'y' if retried == 1 else 'ies'} more)" if retried else ""
    cost = "" if requests["cost"] is None else f"; cost {money(requests['cost'])}"
    reused = f"{requests['reused']:,} reused{age_of_reused(document)}"
    sent = f"requests: {requests['sent']:,} sent{again}, {reused}{failed}; {tokens}{cost}"
    audits = f"audits: {counts['passed']} passed, {counts['failed']} failed, {counts['inconclusive']} inconclusive"
    if counts["errors"]:
        audits += f", {counts['errors']} error{'s' if counts['errors'] > 1 else ''}"
    return _paragraph(sent, width) + _failures(requests, width) + _paragraph(audits, width)


def _failures(requests: Mapping[str, Json], width: int) -> list[Line]:
    """Return why requests failed, the most frequent messages first."""
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
            "Over a limit: a new baseline does not help; mend the target, or change the audit's `limit` in the probe."
        )
        lines += _paragraph(text, width)
    if command is None:
        return lines
    lines.append(Line("To accept what was measured as the new baseline:"))
    return lines + [Line(line, {"bold": True}) for line in shell_lines(command, width)]
