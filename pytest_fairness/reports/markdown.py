"""The summary of a run as Markdown, for a comment on a pull request and for a CI job's page.

What a model or a probe wrote is escaped: it is neither formatting nor HTML, and it mentions and links nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pytest_fairness.records import Json
from pytest_fairness.reports import run_notes, target_table, variant_results
from pytest_fairness.reports.document import age_of_reused
from pytest_fairness.reports.formatting import escaped as shown
from pytest_fairness.reports.formatting import number, printable, without_commands
from pytest_fairness.reports.report_items import (
    Item,
    outcome,
    rank,
    reason,
    served_changes,
    significant_within_tolerance,
)
from pytest_fairness.reports.top_contributors import driven_by

LONGEST = 65_536
"""Characters of a comment on GitHub."""
LONGEST_REASON = 400
SHOWN_MESSAGES = 3

SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "❔", "error": "⚠️"}
HEAD = ("item", "verdict", "value", "baseline", "worse by [95 %]")

NUMBERS = ("value", "baseline", "old", "new")
"""Columns that are aligned on their right."""

_FORMATTING = re.compile(r"([\\`*_{}\[\]#|~$!])")
# A space of no width keeps a forge from seeing a name, a number of an issue or an address.
# Two colons may begin a command to the runner that shows the text in its log.
_MENTIONS = re.compile(r"(@(?=\w)|:(?=:)|#(?=\d)|:(?=//)|\b(?:www|ftp)(?=\.)|\bGH(?=-\d))", re.IGNORECASE)


def escaped(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    apart = _MENTIONS.sub("\\1\u200b", printable(text))
    return _FORMATTING.sub(r"\\\1", escape(apart, quote=False))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table's lines; the cells are Markdown already."""
    marks = ["---:" if name in NUMBERS else "---" for name in head]
    return [_row(head), _row(marks), *map(_row, rows)]


def worse_by(item: Item) -> str:
    """The change with its interval, with a sign; empty where there is none."""
    change = item["change"]
    if not change:
        return ""
    shown = number(change["value"])
    plus = "" if shown in ("0", "-") or shown.startswith("-") else "+"
    ends = change["interval"]
    return plus + shown + (f" [{number(ends[0])}, {number(ends[1])}]" if ends else "")


def report(document: Mapping[str, Json], longest: int = LONGEST) -> str:
    """The summary of one run.

    Args:
        document: the report document.
        longest: characters; what does not fit is counted instead.
    """
    items = sorted(document["items"], key=rank)
    several = len({item["probe"] for item in items}) > 1
    told = [item for item in items if outcome(item) != "passed"]
    passed = [item for item in items if outcome(item) == "passed"]
    text = _Text(longest)
    text.add(*_headline(document), "")
    if told:
        lines = table((*HEAD, "reason"), ([*_cells(item, several), _reason(item)] for item in told))
        text.add_rows(lines, 2)
        text.add("")
    names, found = target_table.against_items(document)
    if len(names) > 1:
        lines = ["<details>", "<summary>Targets against audits</summary>", ""]
        rows = [
            [escaped(title), *(_in_target(own[name]) if name in own else "" for name in names)] for title, own in found
        ]
        rows.append(["", *(target_table.passed(document, name) for name in names)])
        text.add_rows([*lines, *table(["item", *(escaped(f"@{name}") for name in names)], rows)], len(lines) + 2)
        text.add("", "</details>", "")
    if passed:
        lines = ["<details>", f"<summary>{len(passed)} passed</summary>", ""]
        text.add_rows([*lines, *table(HEAD, (_cells(item, several) for item in passed))], len(lines) + 2)
        text.add("", "</details>", "")
    if notes := significant_within_tolerance(passed):
        text.add_rows([*(f"- {escaped(note)}" for note in notes), ""], 1)
    driven = [line for item in told if outcome(item) == "failed" for line in _driven(item, several)]
    _add_folded(text, "What drove the failures", driven)
    _add_folded(text, "Variants, against the probe's own wording", _variants(items, several))
    _add_folded(text, "What to try next", [line for item in told for line in _to_try(item, several)])
    text.add(*_failures(document), _sent(document))
    return str(text)


def _add_folded(text: _Text, title: str, lines: Sequence[str]) -> None:
    """Lines behind a title that opens them; nothing where there are none."""
    if lines:
        head = ["<details>", f"<summary>{title}</summary>", ""]
        text.add_rows([*head, *lines], len(head))
        text.add("", "</details>", "")


def _variants(items: Sequence[Item], several: bool) -> list[str]:
    return [
        f"- **{_cells(item, several)[0]}**, {escaped(sentence)}"
        for item in items
        for sentence in variant_results.sentences(item)
    ]


def _to_try(item: Item, several: bool) -> list[str]:
    """What was found and what may be tried, with what is to be pasted as code."""
    found = item["details"].get("suggestions")
    if not found:
        return []
    lines = [f"- **{_cells(item, several)[0]}**: {escaped(found['found'])}"]
    for each in found["try"]:
        lines.append(f"  - {escaped(each['text'])}")
        if each["paste"]:
            lines.append(_code(each["paste"], "    "))
    return lines


def _code(text: str, indent: str) -> str:
    """A fenced block, whose fence is longer than any in the text; one string, as half of it would swallow the rest."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = [*(without_commands(shown(line)) for line in text.split("\n"))]
    return "\n".join(f"{indent}{line}".rstrip() for line in ("", fence, *lines, fence))


class _Text:
    """Lines up to a number of characters; what is added in rows is counted where it does not fit."""

    RESERVE = 700
    """Characters kept for what closes the text."""

    def __init__(self, longest: int) -> None:
        self._room = longest - self.RESERVE
        self._lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Lines that are short and needed."""
        self._lines += lines
        self._room -= sum(len(line) + 1 for line in lines)

    def add_rows(self, lines: Sequence[str], needed: int) -> None:
        """Lines of which the first few are needed and the rest are added as far as they fit."""
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
    parts = (("failed", "failed"), ("errors", "error"), ("inconclusive", "inconclusive"), ("passed", "passed"))
    told = ", ".join(f"{SIGNS[kind]} {counts[name]} {kind}" for name, kind in parts if counts[name])
    bad = counts["failed"] + counts["errors"]
    title = f"{bad} of {total} audits failed" if bad else f"{counts['passed']} of {total} audits passed"
    changes = [line for change in served_changes(document["items"]) for line in ("", escaped(change))]
    return [
        f"## Fairness: {title}",
        "",
        f"{told}. Target: {escaped(document['target'])}.",
        *_notes(document),
        *changes,
    ]


def _notes(document: Mapping[str, Json]) -> list[str]:
    return [line for text in run_notes.texts(document) for line in ("", f"> {SIGNS['error']} {escaped(text)}")]


def _cells(item: Item, several: bool) -> list[str]:
    name = escaped(f"{item['probe']} {item['id']}" if several else item["id"])
    baseline = (item["baseline"] or {}).get("value")
    verdict = f"{SIGNS[outcome(item)]} {item['verdict']}"
    return [name, verdict, number(item["value"]), number(baseline), worse_by(item)]


def _in_target(item: Item) -> str:
    return f"{SIGNS[outcome(item)]} {number(item['value'])}"


def _reason(item: Item) -> str:
    text = printable(reason(item))
    return escaped(text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…")


def _driven(item: Item, several: bool) -> list[str]:
    name = _cells(item, several)[0]
    return [f"- **{name}**: {escaped(text)}" for text in driven_by(item)]


def _failures(document: Mapping[str, Json]) -> list[str]:
    found = document["requests"].get("failures", [])[:SHOWN_MESSAGES]
    lines = [f"- {failure['count']:,} requests failed: {escaped(failure['message'])}" for failure in found]
    return [*lines, ""] if lines else []


def _sent(document: Mapping[str, Json]) -> str:
    requests = document["requests"]
    failed = f", {requests['failed']:,} failed" if requests["failed"] else ""
    cost = "" if requests["cost"] is None else f", cost {number(requests['cost'])}"
    tokens = f"{requests['prompt_tokens']:,} prompt and {requests['completion_tokens']:,} completion tokens{cost}"
    when = str(document["started"]).replace("T", " ").replace("Z", " UTC")
    return (
        f"<sub>{escaped(document['tool'])}, {escaped(when)}; {requests['sent']:,} requests sent, "
        f"{requests['reused']:,} reused{age_of_reused(document)}{failed}; {tokens}</sub>"
    )
