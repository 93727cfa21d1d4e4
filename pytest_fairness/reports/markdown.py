"""Markdown report, and reports inside a CI service: comment on a pull request, job summary, annotations."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports import report_items
from pytest_fairness.reports.document import request_counts, reused_answers, texts_of_notes
from pytest_fairness.reports.formatting import escaped as without_control_characters
from pytest_fairness.reports.formatting import number, printable, shell_lines, with_interval, without_commands
from pytest_fairness.reports.report_items import accept_command
from pytest_fairness.reports.view import KNOWN, NO_LONGER_FAILS, UNEXPECTED_PASS, ItemView, largest_first, views

# Markdown report for comments on pull requests and for the page of a CI job.
#
# Text from models and probes is escaped, so that it adds no formatting, HTML, mentions or links.

MAX_LENGTH = 65_536
"""Maximum number of characters of a comment on GitHub."""
MAX_REASON = 400
SHOWN_MESSAGES = 3

SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "❔", "error": "⚠️", "known": "📌", "measured": "📏"}
MEASURED_HEADINGS = ("item", "size", "value [95 %]", "p", "effect", "explanation")
HEADINGS = ("item", "verdict", "value", "baseline", "worse by [95 %]")

RIGHT_ALIGNED = ("value", "baseline", "old", "new")
"""Headings of right-aligned columns."""

_FORMATTING = re.compile(r"([\\`*_{}\[\]#|~$!])")
# A zero-width space keeps GitHub and GitLab from linking a user name, an issue number or an address.
# Two colons may start a workflow command when a CI job prints the text in its log.
_MENTIONS = re.compile(r"(@(?=\w)|:(?=:)|#(?=\d)|:(?=//)|\b(?:www|ftp)(?=\.)|\bGH(?=-\d))", re.IGNORECASE)


def escaped(text: str) -> str:
    """Return the text as one line, escaped so that Markdown shows it unchanged."""
    return _FORMATTING.sub(r"\\\1", escaped_html(text))


def escaped_html(text: str) -> str:
    """Return the text as one line, escaped for an HTML element in Markdown, such as `<summary>`."""
    return escape(_MENTIONS.sub("\\1\u200b", printable(text)), quote=False)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; the cells are Markdown, so they are not escaped."""
    marks = ["---:" if name in RIGHT_ALIGNED else "---" for name in head]
    return [_row(head), _row(marks), *map(_row, rows)]


def report(document: Mapping[str, Json], max_length: int = MAX_LENGTH) -> str:
    items = views(document)
    several_probes = len({view.item["probe"] for view in items}) > 1
    measured = largest_first(view for view in items if view.outcome == "measured")
    not_passed = [view for view in items if view.outcome not in ("passed", "measured")]
    passed = [view for view in items if view.outcome == "passed"]
    text = MarkdownText(max_length)
    text.add(*_headline(document, items), "")
    if not_passed:
        lines = table((*HEADINGS, "reason"), ([*_cells(view, several_probes), _reason(view)] for view in not_passed))
        text.add_rows(lines, 2)
        text.add("")
    if measured:
        text.add_rows(table(MEASURED_HEADINGS, (_measured_cells(view, several_probes) for view in measured)), 2)
        text.add("")
    targets = report_items.target_table(
        document, items, lambda view: f"{SIGNS[view.outcome]} {number(view.item['value'])}"
    )
    if targets is not None and not measured:
        names, rows, counts = targets
        rows = [*([escaped(row[0]), *row[1:]] for row in rows), ["", *counts]]
        lines = table(["item", *map(escaped, names)], rows)
        _add_folded(text, "Audits by target", lines, needed=2)
    if passed:
        lines = table(HEADINGS, (_cells(view, several_probes) for view in passed))
        _add_folded(text, f"{len(passed)} passed", lines, needed=2)
    notes = [f"{view.item['id']}: {view.headline}" for view in passed if view.is_tolerated_worsening]
    notes += [f"{view.item['id']}: {note}" for view in passed for note in view.expectation]
    if notes:
        text.add_rows([*(f"- {escaped(note)}" for note in notes), ""], 1)
    failed = [view for view in items if view.outcome == "failed"]
    named = [(f"**{_name(view, several_probes)}**", view) for view in items]
    evidence = [f"- {name}: {escaped(line)}" for name, view in named if view in failed for line in view.evidence]
    variants = [
        f"- {name}, {escaped(line)}" for name, view in named for line in report_items.variant_sentences(view.item)
    ]
    _add_folded(text, "Intersections", _intersections(items))
    _add_folded(text, "Top contributors to the failures", evidence)
    _add_folded(text, "Variants compared with the original prompt", variants)
    _add_folded(text, "Findings", _findings(not_passed, several_probes))
    if (risks := report_items.risk_table(document)) is not None:
        lines = table(risks[0], ([escaped(cell) for cell in row] for row in risks[1]))
        _add_folded(text, "Risks", lines, needed=2)
    text.add(*_failures(document), _footer(document))
    return str(text)


def _add_folded(text: MarkdownText, title: str, lines: Sequence[str], needed: int = 0) -> None:
    if lines:
        head = ["<details>", f"<summary>{title}</summary>", ""]
        text.add_rows([*head, *lines], len(head) + needed)
        text.add("", "</details>", "")


def _intersections(items: Sequence[ItemView]) -> list[str]:
    lines: list[str] = []
    for cell_table in report_items.intersection_tables(items):
        rows = [[escaped(head), *(escaped(cell.text) for cell in cells)] for head, cells in cell_table.rows]
        columns = [escaped(name) for name in cell_table.columns]
        lines += [f"**{escaped(cell_table.title)}**", "", *table(columns, rows), ""]
    return [*lines, report_items.INTERSECTION_LEGEND] if lines else []


def _findings(items: Sequence[ItemView], several_probes: bool) -> list[str]:
    """Return a line for each finding, with the names of its items."""
    named: dict[str, list[str]] = {}
    for view in items:
        if view.finding:
            named.setdefault(view.finding, []).append(_name(view, several_probes))
    return [f"- **{', '.join(names)}**: {escaped(finding)}" for finding, names in named.items()]


def code(text: str, indent: str = "") -> str:
    """Return a fenced code block as one string, so that `MarkdownText` does not cut the block between its lines."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = [*(without_commands(without_control_characters(line)) for line in text.split("\n"))]
    return "\n".join(f"{indent}{line}".rstrip() for line in ("", fence, *lines, fence))


class MarkdownText:
    """Markdown text with a maximum length; rows that do not fit are replaced by their number."""

    RESERVE = 700
    """Number of characters that are reserved for the last lines."""

    def __init__(self, max_length: int) -> None:
        self._room = max_length - self.RESERVE
        self._lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Add short lines, which are kept even if the text becomes too long."""
        self._lines += lines
        self._room -= sum(len(line) + 1 for line in lines)

    def add_rows(self, lines: Sequence[str], needed: int) -> None:
        """Add the first `needed` lines in any case, and then the other lines until one does not fit."""
        self.add(*lines[:needed])
        for place, line in enumerate(lines[needed:]):
            if len(line) + 1 > self._room:
                self.add("", f"… and {len(lines) - needed - place} more: see the JSON or HTML report.")
                return
            self.add(line)

    def __str__(self) -> str:
        return "\n".join(self._lines).rstrip("\n") + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _headline(document: Mapping[str, Json], items: Sequence[ItemView]) -> list[str]:
    if not items:
        return ["## Fairness: no audit ran", *_notes(document)]
    changes = [line for change in report_items.served_model_changes(items) for line in ("", escaped(change))]
    head = [f"## Fairness: {_verdict(document, items)}", "", f"Target: {escaped(document['target'])}."]
    return [*head, *_notes(document), *changes]


def _verdict(document: Mapping[str, Json], items: Sequence[ItemView]) -> str:
    return escaped(report_items.run_verdict(items, reused_answers(document)))


def _notes(document: Mapping[str, Json]) -> list[str]:
    return [line for text in texts_of_notes(document) for line in ("", f"> {SIGNS['error']} {escaped(text)}")]


def _name(view: ItemView, several_probes: bool) -> str:
    return escaped(view.name(with_probe=several_probes, separator=" "))


def _cells(view: ItemView, several_probes: bool) -> list[str]:
    known = "known " if view.outcome == "known" else ""
    verdict = f"{SIGNS[view.outcome]} {known}{view.item['verdict']}"
    value, baseline = ("" if shown is None else number(shown) for shown in (view.shown_value, view.shown_baseline))
    placebo = f" (placebo {text})" if (text := view.explanation.placebo) else ""
    worse = with_interval(view.worse_by(), view.change_interval) + view.change_suffix
    return [_name(view, several_probes), verdict, f"{value}{placebo}", baseline, worse]


def _measured_cells(view: ItemView, several_probes: bool) -> list[str]:
    value = with_interval(number(view.item["value"]), view.item["interval"])
    explanation = (view.item.get("effect") or {}).get("description") or view.method.get("no_effect_size", "")
    cells = (view.size or "-", value, view.p_value, view.effect, explanation)
    return [_name(view, several_probes), *map(escaped, cells)]


def _reason(view: ItemView) -> str:
    text = printable("; ".join([*view.expectation, *filter(None, [view.felt]), view.reason]))
    return escaped(text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…")


def _failures(document: Mapping[str, Json]) -> list[str]:
    failures = document["requests"].get("failures", [])[:SHOWN_MESSAGES]
    lines = [f"- {counted(failure['count'], 'request')} failed: {escaped(failure['message'])}" for failure in failures]
    return [*lines, ""] if lines else []


def _footer(document: Mapping[str, Json]) -> str:
    commit = f", commit {document['commit']}" if document.get("commit") else ""
    version = f", version {document['target_version']} of the target" if document.get("target_version") else ""
    when = str(document["started"]).replace("T", " ").replace("Z", " UTC")
    counts = request_counts(document)
    return f"<sub>{escaped(document['tool'])}, {escaped(when + version + commit)}; {counts}</sub>"


# Comment on a pull request: the result in words, the failed items, and the command that accepts new values.

MARKER = "<!-- pytest-fairness -->"
"""First line of the comment, by which a workflow finds the comment of an earlier run."""
SHOWN = 10
MAX_FINDING = 300
LINE_WIDTH = 100


def github_comment(document: Mapping[str, Json], options: Sequence[str] = (), root: str = "") -> str:
    items = views(document)
    worse = [view for view in items if view.outcome == "failed" and not view.is_new]
    sign = SIGNS[
        "failed" if any(view.outcome == "failed" for view in items) else items[0].outcome if items else "error"
    ]
    verdict = _verdict(document, items) if items else "no audit ran"
    lines = [MARKER, f"### {sign} Fairness: {verdict}", "", f"Audited: {escaped(document['target'])}.", ""]
    lines += _failure_table(worse)
    lines += _errors(items)
    command = accept_command(items, options, root)
    if command is not None:
        text = "To accept the current values as the new baseline, run this and commit the baselines:"
        lines += [text, code("\n".join(shell_lines(command, LINE_WIDTH))), ""]
    lines += ["<details>", "<summary>All checks</summary>", ""]
    tail = ["", "</details>"]
    used = sum(len(line) + 1 for line in [*lines, *tail])
    return "\n".join([*lines, report(document, MAX_LENGTH - used).rstrip("\n"), *tail]) + "\n"


def _failure_table(items: Sequence[ItemView]) -> list[str]:
    if not items:
        return []
    rows = []
    for view in items[:SHOWN]:
        text = printable(view.headline)
        text = text if len(text) <= MAX_FINDING else f"{text[:MAX_FINDING]}…"
        verdict = f"{SIGNS['failed']} {view.verdict[2:]}"
        rows.append([verdict, *map(escaped, (view.title, text, view.item["probe"]))])
    more = [f"… and {len(items) - SHOWN} more, below.", ""] if len(items) > SHOWN else []
    return [*table(("verdict", "check", "finding", "probe"), rows), "", *more]


def _errors(items: Sequence[ItemView]) -> list[str]:
    reasons: dict[str, int] = defaultdict(int)
    for view in items:
        if view.outcome == "error":
            reasons[printable(view.reason)[:MAX_FINDING]] += 1
    lines = [f"- {SIGNS['error']} {counted(count, 'check')}: {escaped(reason)}" for reason, count in reasons.items()]
    return [*lines[:SHOWN], ""] if lines else []


# Job summary of GitHub Actions, which shows the Markdown report.

VARIABLE = "GITHUB_STEP_SUMMARY"
MAX_BYTES = 1024 * 1024
"""Maximum size in bytes of a step's summary; GitHub does not show larger summaries."""


def append_step_summary(document: Mapping[str, Json]) -> None:
    """Append the Markdown report to the file that `$GITHUB_STEP_SUMMARY` names.

    Do nothing if this environment variable is not set, or if the file would have more than `MAX_BYTES` bytes.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return
    path = Path(name)
    try:
        used = path.stat().st_size if path.exists() else 0
        text = report(document).encode("utf-8", "backslashreplace")
        if used + len(text) <= MAX_BYTES:
            with path.open("ab") as file:
                file.write(text + b"\n")
    except OSError as error:
        raise FairnessError(
            f"{VARIABLE} {path}: the summary cannot be written ({error.strerror}). Set this environment variable to a "
            "file that can be written."
        ) from error


# Annotations of failures at lines of files, as GitHub's workflow commands and GitLab's Code Quality report.

MAX_ANNOTATIONS = 10
"""Maximum number of errors, and of notices, that GitHub shows as annotations for one step."""

FAILING = ("failed", "error")
"""Outcomes of items that fail the run."""

_SEVERITIES: Mapping[str, str] = {
    VerdictName.ERROR: "critical",
    VerdictName.NOT_MEASURABLE: "major",
    VerdictName.REGRESSION: "major",
    VerdictName.OVER_LIMIT: "major",
    VerdictName.STALE_BASELINE: "minor",
    VerdictName.NO_BASELINE: "minor",
    UNEXPECTED_PASS: "minor",
    KNOWN: "info",
    NO_LONGER_FAILS: "info",
}
"""GitLab's severity (info, minor, major, critical or blocker) of each status."""


class Annotation(NamedTuple):
    """Annotation at a line of a file: a failure, or a remark on an item marked `xfail`.

    Attributes:
        view: the item.
        file: path from the root of the repository.
        line: line in the file, from 1.
        text: the finding as one line.
    """

    view: ItemView
    file: str
    line: int
    text: str


def github_commands(document: Mapping[str, Json], folder: str = "") -> list[str]:
    """Return a workflow command `::error file=…,line=…,title=…::…` for each failure, the worst failure first.

    Items marked `xfail` that fail as expected, or no longer fail, get a `::notice`. Items with the same finding share
    one command, which states their number. The result has at most `MAX_ANNOTATIONS` errors and as many notices.
    """
    by_text: dict[str, list[Annotation]] = {}
    for annotation in _annotations(document, folder):
        by_text.setdefault(annotation.text, []).append(annotation)
    commands: dict[str, list[str]] = {"error": [], "notice": []}
    for same in by_text.values():
        kind = "error" if same[0].view.outcome in FAILING else "notice"
        commands[kind].append(_command(kind, same[0], len(same)))
    return [*commands["error"][:MAX_ANNOTATIONS], *commands["notice"][:MAX_ANNOTATIONS]]


def code_quality(document: Mapping[str, Json], folder: str = "") -> str:
    """Return the failures in GitLab's Code Quality format, a JSON list; see `github_commands` for the arguments.

    Items marked `xfail` that fail as expected, or no longer fail, are listed with the severity `info`.
    """
    entries = [
        {
            "description": f"{_title(annotation.view)}: {annotation.text}",
            "check_name": f"fairness/{annotation.view.item['audit']}",
            # GitLab compares the fingerprints of two branches: they must not contain numbers, which change in each run.
            "fingerprint": hashlib.sha256(
                json.dumps([annotation.view.item[name] for name in ("nodeid", "id", "verdict")]).encode()
            ).hexdigest(),
            "severity": _SEVERITIES[annotation.view.status],
            "location": {"path": annotation.file, "lines": {"begin": annotation.line}},
        }
        for annotation in _annotations(document, folder)
    ]
    return json.dumps(entries, ensure_ascii=False, indent=2) + "\n"


def _annotations(document: Mapping[str, Json], folder: str) -> Iterator[Annotation]:
    for view in views(document):
        if view.outcome in FAILING or view.item.get("expected_failure"):
            file = posixpath.normpath(posixpath.join(folder, view.file))
            yield Annotation(view, file, view.item.get("line") or 1, printable(view.headline))


def _title(view: ItemView) -> str:
    known = "known " if view.outcome == "known" else ""
    return f"{known}{view.item['verdict']}: {view.name(with_probe=False)}"


def _command(kind: str, annotation: Annotation, count: int) -> str:
    title = _title(annotation.view) + (f" and {count - 1} more" if count > 1 else "")
    place = {"file": annotation.file, "line": str(annotation.line), "title": title}
    properties = ",".join(
        f"{name}={_escaped_property(without_commands(printable(value)))}" for name, value in place.items()
    )
    return f"::{kind} {properties}::{_escaped(without_commands(annotation.text))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
