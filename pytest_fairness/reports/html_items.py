"""Items of the HTML report: examples, tables, highlighted words, and filters of the templates."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import SequenceMatcher
from typing import ClassVar, Self

from pytest_fairness.records import Json, Quote
from pytest_fairness.reports import formatting
from pytest_fairness.reports.charts import Chart, Table, table_of
from pytest_fairness.reports.formatting import as_float, interval_of, rows_of
from pytest_fairness.reports.view import ItemView, status_in_words

# One item of the HTML report, with its charts, examples and tables.

OUTCOMES = ("failed", "error", "inconclusive", "known", "measured", "passed")
"""Outcomes of items, the worst first."""


@dataclass(frozen=True)
class Figure:
    """Chart with its drawing, if it has one.

    Attributes:
        chart: caption, description and table.
        drawn: an SVG element; empty for a chart without a drawing.
        left_out: number of further rows of the table, which only the JSON report has.
    """

    chart: Chart
    drawn: str
    left_out: int


@dataclass(frozen=True)
class ChangeChart:
    """Small chart of a change and its interval. The unit of its scale is the tolerance.

    The scale goes from `LOWEST` to `HIGHEST`; numbers outside of it are drawn near its ends.

    Attributes:
        low, value, high: positions of the interval's bounds and of the change on the scale, in percent of its length.
    """

    LOWEST: ClassVar[float] = -1.0
    HIGHEST: ClassVar[float] = 3.0

    low: float
    value: float
    high: float

    @classmethod
    def of(cls, item: Mapping[str, Json]) -> Self | None:
        """Return the chart of an item's change and interval; `None` if the item has no change or no tolerance."""
        tolerance, change = as_float(item["tolerance"]), item["change"] or {}
        moved = as_float(change.get("value"))
        if moved is None or not tolerance:
            return None
        low, high = interval_of(change.get("interval")) or (moved, moved)
        return cls(*(cls._place(end / tolerance) for end in (low, moved, high)))

    @classmethod
    def _place(cls, tolerances: float) -> float:
        share = (tolerances - cls.LOWEST) / (cls.HIGHEST - cls.LOWEST)
        return round(100 * max(0.04, min(0.96, share)), 1)


@dataclass(frozen=True)
class Piece:
    """Piece of a text; `highlighted` is whether the report highlights the piece."""

    text: str
    highlighted: bool


# Examples of an item in the HTML report: answers side by side, with highlighted words.


@dataclass(frozen=True)
class Side:
    """One group's answer in an example.

    Attributes:
        group: name of the group.
        question: text of the prompt; empty if the prompt is unknown.
        answer: the answer in pieces; empty if there is no response.
        status: why the answer could not be measured; see `answer_status`.
        before: the baseline's answer in pieces, empty if its request got no response; `None` without a baseline for the
            prompt.
    """

    group: str
    question: str
    answer: Sequence[Piece]
    status: str
    before: Sequence[Piece] | None


@dataclass(frozen=True)
class Example:
    """Answers that are shown side by side; `about` is a text with their common labels: `entity: baking; trial 1`."""

    about: str
    sides: Sequence[Side]


@dataclass(frozen=True)
class Sheet:
    """Table with its title; `left_out` is the number of further rows, which only the JSON report has."""

    title: str
    table: Table
    left_out: int = 0


@dataclass(frozen=True)
class ReportItem:
    """One item of the report.

    Attributes:
        name: HTML anchor of the item.
        view: what is said of the item.
        display_outcome: outcome that selects the item's colour and shape; see `html.display_outcome`.
        probe, audit, groups: positions of the item's probe, audit and groups in the lists of the page's filters.
        full: whether the item is shown with its examples, tables and charts.
        change_chart: chart of the change in the list of items; `None` without a chart.
        evidence: lines of `ItemView.evidence`, if the change is significant.
        figures: charts of the details.
        facts, sheets: details without a chart: plain values by name, and tables; see `facts_and_sheets`.
        answers: names of the groups whose numbers of answers are shown.
        found, to_try: description of the failed item's finding, and suggestions; see `findings.suggestions`.
    """

    name: str
    view: ItemView
    display_outcome: str
    probe: int
    audit: int
    groups: Sequence[int]
    full: bool
    change_chart: ChangeChart | None = None
    evidence: Sequence[str] = ()
    baseline_change: Figure | None = None
    trend: Figure | None = None
    figures: Sequence[Figure] = ()
    examples: Sequence[Example] = ()
    facts: Mapping[str, Json] = field(default_factory=dict)
    sheets: Sequence[Sheet] = ()
    answers: Sequence[str] = ()
    found: str = ""
    to_try: Sequence[Mapping[str, Json]] = ()


def has_changed(item: Mapping[str, Json]) -> bool:
    """Return whether the 95 % confidence interval of the change excludes 0, or the change is significant."""
    change = item["change"] or {}
    low, high = interval_of(change.get("interval")) or (0.0, 0.0)
    return bool(change.get("significant")) or low > 0 or high < 0


MAX_EXAMPLES = 6

Words = Mapping[str, frozenset[str]]
"""Words that contribute to a value, by group; see `contributing_words`."""


def examples_of(quotes: Sequence[Quote], words: Words | None) -> list[Example]:
    """Return the examples of an item; answers with the same value of `set` are shown side by side.

    Args:
        quotes: the answers.
        words: words to highlight, by group. `None`: highlight nothing, for an item without a significant change. Empty
            mapping: highlight differences between the answer and another answer. The first answer is compared with the
            second, each further answer with the first, and the baseline's answer with the current answer.
    """
    sets: dict[object, list[Quote]] = {}
    for quote in quotes:
        sets.setdefault(quote.set, []).append(quote)
    return [_example(answers, words) for answers in list(sets.values())[:MAX_EXAMPLES]]


def _example(answers: Sequence[Quote], words: Words | None) -> Example:
    first = answers[0]
    common = {
        name: value for name, value in first.labels.items() if all(other.labels.get(name) == value for other in answers)
    }
    about = [f"{name}: {value}" for name, value in common.items()]
    about += [f"trial {first.trial + 1}"] if first.prompt is not None else []
    return Example("; ".join(about), [_side(answers, place, words) for place in range(len(answers))])


def _side(answers: Sequence[Quote], place: int, words: Words | None) -> Side:
    answer, other = answers[place], answers[1 if place == 0 and len(answers) > 1 else 0]
    current = answer.text or ""

    def pieces(text: str, against: str) -> list[Piece]:
        if words == {}:
            return highlight_differences(text, against)
        by_group = words or {}
        return highlight(text, by_group.get(answer.group, frozenset()) | by_group.get("", frozenset()))

    return Side(
        answer.group,
        answer.prompt or "",
        pieces(current, other.text or ""),
        status_in_words(answer.status),
        None if answer.before is None else pieces(answer.before, current),
    )


# Highlighting of words in texts: words that contribute to an item's value, or words that differ between two texts.

_PIECES = re.compile(r"\s+|\w[\w'’-]*|.", re.DOTALL)
MIN_LIST_LINES, MAX_LIST_LINE = 2, 60
"""A text counts as a list if it has at least `MIN_LIST_LINES` line ends and no line over `MAX_LIST_LINE` characters.
Two lists are compared line by line, other texts word by word."""
MAX_COMPARED = 1500
"""Maximum number of compared pieces of a text; the rest is not highlighted."""


def highlight(text: str, words: Set[str]) -> list[Piece]:
    """Return the text in pieces, in which `words` (case-folded) are highlighted."""
    pieces = _PIECES.findall(text) if words else [text]
    return _merged([Piece(piece, piece.casefold() in words) for piece in pieces if piece])


def highlight_differences(text: str, other: str) -> list[Piece]:
    """Return the text in pieces, in which its differences from the other text are highlighted."""
    texts = (text, other)
    are_lists = all(
        side.count("\n") >= MIN_LIST_LINES and max(map(len, side.split("\n"))) <= MAX_LIST_LINE for side in texts
    )
    parts, other_parts = [side.splitlines(keepends=True) if are_lists else _PIECES.findall(side) for side in texts]
    left, right = ([part.casefold().strip() or part for part in side[:MAX_COMPARED]] for side in (parts, other_parts))
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    equal = {place for block in blocks for place in range(block.a, block.a + block.size)}
    return _merged(
        [
            Piece(part, place < MAX_COMPARED and place not in equal and any(map(str.isalnum, part)))
            for place, part in enumerate(parts)
        ]
    )


def _merged(pieces: list[Piece]) -> list[Piece]:
    merged: list[Piece] = []
    for piece in pieces:
        if merged and merged[-1].highlighted == piece.highlighted:
            merged[-1] = Piece(merged[-1].text + piece.text, piece.highlighted)
        else:
            merged.append(piece)
    return merged


def contributing_words(view: ItemView) -> dict[str, frozenset[str]]:
    """Return the case-folded words that contribute most to an item's value, by the group that uses them more.

    Words that belong to no single group are under an empty name. If the groups' use of some words differs more than in
    the baseline, only these words are returned.
    """
    by_group: defaultdict[str, set[str]] = defaultdict(set)
    for word in view.explanation.words:
        by_group[word.group].add(word.name.casefold())
    return {group: frozenset(own) for group, own in by_group.items()}


# Tables of the HTML report, and the details of an item as values and tables.

MAX_ROWS = 200
"""Maximum number of rows of a table; the JSON report has all rows."""


def sheet_of(title: str, table: Table) -> Sheet:
    return Sheet(title, Table(table.columns, table.rows[:MAX_ROWS]), max(0, len(table.rows) - MAX_ROWS))


def facts_and_sheets(details: Mapping[str, Json]) -> tuple[dict[str, Json], list[Sheet]]:
    """Return the details in two parts: plain values by name, and a table of each mapping or list of mappings."""
    facts: dict[str, Json] = {}
    sheets: list[Sheet] = []
    for name, value in details.items():
        if rows := rows_of(value):
            sheets.append(sheet_of(plain(name), table_of(rows)))
        elif value not in ([], {}):
            facts[plain(name)] = value
    return facts, sheets


# Template filters, which convert values to the texts that the HTML report shows.

MISSING = "–"


def number(value: Json) -> str:
    """Return the number as `formatting.number` does, but with a typographic minus sign; a dash for `None`."""
    return MISSING if value is None else formatting.number(float(value)).replace("-", "−")


def cell(value: Json) -> str:
    match value:
        case None | "":
            return MISSING
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return number(value)
        case str():
            return value
        case [*parts] if not any(isinstance(part, Mapping | list | tuple) for part in parts):
            return ", ".join(map(cell, parts)) or MISSING
        case Mapping() if not any(isinstance(part, Mapping) for part in value.values()):
            return "; ".join(f"{name} {cell(part)}" for name, part in value.items()) or MISSING
        case _:
            return json.dumps(value, ensure_ascii=False)


def plain(name: str) -> str:
    return name.replace("_", " ")


def duration(seconds: float) -> str:
    """Return a duration as text: `75.0 s`; from two minutes, `H:MM:SS`."""
    return f"{seconds:.1f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))


def clean(value: Json) -> Json:
    r"""Return the JSON value with control and direction characters written as codes (`\x1b`).

    HTML cannot contain some of these characters, and others change the order of the text around them. Line ends are
    kept.
    """
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "\n".join(formatting.escaped(line) for line in value.replace("\r\n", "\n").split("\n"))
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [clean(part) for part in value]
    return value
