"""Markdown report for comments on pull requests and for the page of a CI job.

Text from models and probes is escaped, so that it adds no formatting, HTML, mentions or links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json
from pytest_fairness.reports import run_notes
from pytest_fairness.reports.document import reused_age, reused_answers
from pytest_fairness.reports.formatting import escaped as without_control_characters
from pytest_fairness.reports.formatting import number, printable, signed, with_interval, without_commands
from pytest_fairness.reports.items import intersections, target_table, variant_results
from pytest_fairness.reports.items.effects import effect_text, largest_first, p_text, size_of
from pytest_fairness.reports.items.findings import expectation
from pytest_fairness.reports.items.report_items import (
    SAME_ANSWERS,
    Item,
    acceptances,
    change_suffix,
    grown_words,
    is_same_answers,
    known_failures,
    outcome,
    placebo_text,
    reason,
    served_model_changes,
    severity,
    tolerated_worsenings,
)
from pytest_fairness.reports.items.top_contributors import top_contributors
from pytest_fairness.reports.text_layout import cut

MAX_LENGTH = 65_536
"""Maximum number of characters of a comment on GitHub."""
MAX_REASON = 400
SHOWN_MESSAGES = 3

SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "❔", "error": "⚠️", "known": "📌", "measured": "📏"}
NOUNS = {"errors": "error", "known": "known failure"}
"""Nouns for keys of the document's summary that are counted with a noun: `2 known failures`, but `2 passed`."""
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


def _worse_by(item: Item) -> str:
    """Return the change from the baseline (`+0.1` or `3 words grew`) with its interval; empty without a comparison."""
    change = item["change"]
    if not change or is_same_answers(item):
        return SAME_ANSWERS if change else ""
    return with_interval(grown_words(item) or signed(change["value"]), change["interval"]) + change_suffix(item)


def report(document: Mapping[str, Json], max_length: int = MAX_LENGTH) -> str:
    """Return the Markdown report of one run.

    Args:
        document: the report document.
        max_length: maximum number of characters; rows that do not fit are replaced by their number.
    """
    items = sorted(document["items"], key=severity)
    several_probes = len({item["probe"] for item in items}) > 1
    measured = largest_first([item for item in items if outcome(item) == "measured"])
    not_passed = [item for item in items if outcome(item) not in ("passed", "measured")]
    passed = [item for item in items if outcome(item) == "passed"]
    text = MarkdownText(max_length)
    text.add(*_headline(document), "")
    if not_passed:
        lines = table((*HEADINGS, "reason"), ([*_cells(item, several_probes), _reason(item)] for item in not_passed))
        text.add_rows(lines, 2)
        text.add("")
    if measured:
        methods = document.get("methods", {})
        cells = (_measured_cells(item, methods.get(item["audit"], {}), several_probes) for item in measured)
        text.add_rows(table(MEASURED_HEADINGS, cells), 2)
        text.add("")
    names, items_by_target = target_table.items_by_target(document)
    if len(names) > 1 and not measured:
        rows = [
            [escaped(title), *(_target_cell(own[name]) if name in own else "" for name in names)]
            for title, own in items_by_target
        ]
        rows.append(["", *(target_table.passed(document, name) for name in names)])
        lines = table(["item", *(escaped(f"@{name}") for name in names)], rows)
        _add_folded(text, "Audits by target", lines, needed=2)
    if passed:
        lines = table(HEADINGS, (_cells(item, several_probes) for item in passed))
        _add_folded(text, f"{len(passed)} passed", lines, needed=2)
    if notes := [*tolerated_worsenings(passed), *_no_longer_failing(passed)]:
        text.add_rows([*(f"- {escaped(note)}" for note in notes), ""], 1)
    contributors = [line for item in items if outcome(item) == "failed" for line in _contributors(item, several_probes)]
    _add_folded(text, "Intersections", _intersections(items))
    _add_folded(text, "Top contributors to the failures", contributors)
    _add_folded(text, "Who accepted the baselines", _acceptances(items))
    _add_folded(text, "Variants compared with the original prompt", _variants(items, several_probes))
    _add_folded(text, "Suggested next steps", _suggestions(not_passed, several_probes))
    text.add(*_failures(document), _footer(document))
    return str(text)


def _add_folded(text: MarkdownText, title: str, lines: Sequence[str], needed: int = 0) -> None:
    """Add the lines in a collapsed section; add nothing if there are no lines. See `MarkdownText.add_rows`."""
    if lines:
        head = ["<details>", f"<summary>{title}</summary>", ""]
        text.add_rows([*head, *lines], len(head) + needed)
        text.add("", "</details>", "")


def _acceptances(items: Sequence[Item]) -> list[str]:
    rows = [
        [escaped(cell) for cell in (date, by, reason, cut(", ".join(ids), MAX_REASON))]
        for date, by, reason, ids in acceptances(items)
    ]
    return table(("date", "accepted by", "reason", "items"), rows) if rows else []


def _intersections(items: Sequence[Item]) -> list[str]:
    lines: list[str] = []
    for cell_table in intersections.tables(items):
        rows = [[escaped(head), *(escaped(cell.text) for cell in cells)] for head, cells in cell_table.rows]
        columns = [escaped(name) for name in cell_table.columns]
        lines += [f"**{escaped(cell_table.title)}**", "", *table(columns, rows), ""]
    return [*lines, intersections.LEGEND] if lines else []


def _no_longer_failing(items: Sequence[Item]) -> list[str]:
    return [f"{item['id']}: {text}" for item in items for text in expectation(item)]


def _variants(items: Sequence[Item], several_probes: bool) -> list[str]:
    return [
        f"- **{_cells(item, several_probes)[0]}**, {escaped(sentence)}"
        for item in items
        for sentence in variant_results.sentences(item)
    ]


def _suggestions(items: Sequence[Item], several_probes: bool) -> list[str]:
    """Return lines with the findings and the suggestions, each suggestion once; text to copy is a code block.

    Two items of a probe share an entry if the suggestions for one item contain all words of the suggestions for the
    other item. The entry has the suggestions with more words.
    """
    entries: list[list[tuple[frozenset[str], Item]]] = []  # the suggestions of an entry are those of its first item
    for item in items:
        if not item["details"].get("suggestions"):
            continue
        words = _suggested_words(item)
        for entry in entries:
            first_words, first = entry[0]
            if item["probe"] == first["probe"] and words <= first_words:
                entry.append((words, item))
                break
            if item["probe"] == first["probe"] and words > first_words:
                entry.insert(0, (words, item))
                break
        else:
            entries.append([(words, item)])
    lines: list[str] = []
    shown: list[Json] = []
    for entry in entries:
        suggestions = entry[0][1]["details"]["suggestions"]
        names = ", ".join(_cells(item, several_probes)[0] for _, item in entry)
        lines.append(f"- **{names}**: {escaped(suggestions['found'])}")
        for suggestion in suggestions["try"]:
            if suggestion in shown:
                continue
            shown.append(suggestion)
            lines.append(f"  - {escaped(suggestion['text'])}")
            if suggestion["paste"]:
                lines.append(code(suggestion["paste"], "    "))
    return lines


def _suggested_words(item: Item) -> frozenset[str]:
    suggestions = item["details"]["suggestions"]["try"]
    texts = [f"{suggestion['text']} {suggestion['paste']}" for suggestion in suggestions]
    return frozenset(re.findall(r"\w+", " ".join(texts)))


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


def _headline(document: Mapping[str, Json]) -> list[str]:
    counts = document["summary"]
    total = counts["total"]
    if not total:
        return ["## Fairness: no audit ran", *_notes(document)]
    by_outcome = ", ".join(
        f"{SIGNS[name.removesuffix('s')]} "
        + (counted(counts[name], NOUNS[name]) if name in NOUNS else f"{counts[name]:,} {name}")
        for name in ("failed", "errors", "inconclusive", "known", "passed")
        if counts.get(name)
    )
    bad = counts["failed"] + counts["errors"]
    if counts.get("measured"):
        errors = f"; {counts['errors']} could not be measured" if counts["errors"] else ""
        title = f"{counts['measured']} of {total} checks measured, without verdicts{errors}"
        return [f"## Fairness: {title}", "", f"Target: {escaped(document['target'])}.", *_notes(document)]
    checks = counted(total, "check")
    title = f"{bad} of {checks} failed" if bad else f"{counts['passed']} of {checks} passed"
    if known := known_failures(document["items"]):
        title = f"{title}, {known}"
    if reused := reused_answers(document):
        title = f"{title}; {reused}"
    changes = [line for change in served_model_changes(document["items"]) for line in ("", escaped(change))]
    return [
        f"## Fairness: {escaped(title)}",
        "",
        f"{by_outcome}. Target: {escaped(document['target'])}.",
        *_notes(document),
        *changes,
    ]


def _notes(document: Mapping[str, Json]) -> list[str]:
    return [line for text in run_notes.texts(document) for line in ("", f"> {SIGNS['error']} {escaped(text)}")]


def _cells(item: Item, several_probes: bool) -> list[str]:
    name = escaped(f"{item['probe']} {item['id']}" if several_probes else item["id"])
    baseline = (item["baseline"] or {}).get("value")
    known = "known " if outcome(item) == "known" else ""
    verdict = f"{SIGNS[outcome(item)]} {known}{item['verdict']}"
    placebo = f" (placebo {text})" if (text := placebo_text(item)) else ""
    return [name, verdict, f"{number(item['value'])}{placebo}", number(baseline), _worse_by(item)]


def _measured_cells(item: Item, method: Mapping[str, Json], several_probes: bool) -> list[str]:
    value = with_interval(number(item["value"]), item["interval"])
    explanation = (item.get("effect") or {}).get("description") or method.get("no_effect_size", "")
    cells = (size_of(item) or "-", value, p_text(item), effect_text(item), explanation)
    return [_cells(item, several_probes)[0], *map(escaped, cells)]


def _target_cell(item: Item) -> str:
    return f"{SIGNS[outcome(item)]} {number(item['value'])}"


def _reason(item: Item) -> str:
    text = printable("; ".join([*expectation(item), reason(item)]))
    return escaped(text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…")


def _contributors(item: Item, several_probes: bool) -> list[str]:
    name = _cells(item, several_probes)[0]
    return [f"- **{name}**: {escaped(text)}" for text in top_contributors(item)]


def _failures(document: Mapping[str, Json]) -> list[str]:
    failures = document["requests"].get("failures", [])[:SHOWN_MESSAGES]
    lines = [f"- {counted(failure['count'], 'request')} failed: {escaped(failure['message'])}" for failure in failures]
    return [*lines, ""] if lines else []


def _footer(document: Mapping[str, Json]) -> str:
    requests = document["requests"]
    failed = f", {requests['failed']:,} failed" if requests["failed"] else ""
    cost = "" if requests["cost"] is None else f", cost {number(requests['cost'])}"
    tokens = ""
    if requests["prompt_tokens"] or requests["completion_tokens"]:  # not every target reports tokens
        tokens = f"; {requests['prompt_tokens']:,} prompt and {requests['completion_tokens']:,} completion tokens"
    commit = f", commit {document['commit']}" if document.get("commit") else ""
    version = f", version {document['target_version']} of the target" if document.get("target_version") else ""
    when = str(document["started"]).replace("T", " ").replace("Z", " UTC")
    return (
        f"<sub>{escaped(document['tool'])}, {escaped(when + version + commit)}; {requests['sent']:,} requests sent, "
        f"{requests['reused']:,} reused{reused_age(document)}{failed}{tokens}{cost}</sub>"
    )
