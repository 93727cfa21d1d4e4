"""View model of the HTML report: the report document, sorted and escaped, with its charts drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from pytest_fairness.records import Json
from pytest_fairness.reports import charts, target_table
from pytest_fairness.reports.charts.base import Chart, Table
from pytest_fairness.reports.charts.vega import svg
from pytest_fairness.reports.html import filters, text_diff
from pytest_fairness.reports.report_items import Item, mappings_in, outcome, reason, severity
from pytest_fairness.reports.top_contributors import top_contributors

MAX_ROWS = 200
"""Maximum number of rows of a table; the JSON report has all."""

MAX_EXAMPLES = 6

OUTCOMES = ("failed", "error", "inconclusive", "passed")


@dataclass(frozen=True)
class Figure:
    """A drawn chart.

    Attributes:
        chart: caption, description and table.
        drawn: an SVG element; empty for a chart without a drawing.
        left_out: number of rows that only the JSON report has.
    """

    chart: Chart
    drawn: str
    left_out: int


@dataclass(frozen=True)
class Sheet:
    """A table with its title; only the JSON report has the `left_out` further rows."""

    title: str
    table: Table
    left_out: int = 0


@dataclass(frozen=True)
class Side:
    """One group's answer in an example.

    Attributes:
        group: name of the group.
        question, answer: pieces of the texts; empty without a request or a response.
        status: status of the answer.
        before: pieces of the baseline's answer, compared with the current one; `None` if the baseline has none.
    """

    group: str
    question: Sequence[text_diff.Piece]
    answer: Sequence[text_diff.Piece]
    status: str
    before: Sequence[text_diff.Piece] | None


@dataclass(frozen=True)
class Example:
    """Answers side by side; `about` has their common labels, as `entity: baking; trial 1`."""

    about: str
    sides: Sequence[Side]


@dataclass(frozen=True)
class ItemView:
    """One item of the report; `name` is its anchor."""

    name: str
    item: Item
    outcome: str
    reason: str
    contributors: Sequence[str]
    baseline_change: Figure | None
    trend: Figure | None
    figures: Sequence[Figure]
    examples: Sequence[Example]
    facts: Mapping[str, Json]
    sheets: Sequence[Sheet]
    groups: Sequence[str]
    found: str
    to_try: Sequence[Mapping[str, Json]]


@dataclass(frozen=True)
class ProbeView:
    """The items of one probe, the worst verdict first."""

    name: str
    anchor: str
    counts: Mapping[str, Json]
    overview: Figure | None
    items: Sequence[ItemView]


@dataclass
class View:
    """The content of the HTML report.

    Args:
        document: the report document.
        trends: see `html.report`.
    """

    document: Mapping[str, Json]
    trends: Mapping[tuple[str, str], Sequence[Mapping[str, Json]]]
    items: list[ItemView] = field(init=False)
    probes: list[ProbeView] = field(init=False)
    methods: dict[str, Mapping[str, Json]] = field(init=False)
    outcomes: Sequence[str] = OUTCOMES

    def __post_init__(self) -> None:
        # The history has the names before escaping.
        trends = {(item["nodeid"], item["probe"], item["id"]): self._points(item) for item in self.document["items"]}
        ordered = sorted(self.document["items"], key=severity)
        keys = [(item["nodeid"], item["probe"], item["id"]) for item in ordered]
        self.document = filters.clean(self.document)
        methods = self.document.get("methods", {})
        self.methods = {name: method for name, method in methods.items() if method.get("question")}
        self._drawn = 0
        items = [filters.clean(item) for item in ordered]
        self.items = [
            self._item(place, item, trends[key])
            for place, (item, key) in enumerate(zip(items, keys, strict=True), start=1)
        ]
        by_probe = groupby(sorted(self.items, key=lambda one: one.item["probe"]), key=lambda one: one.item["probe"])
        self.probes = [self._probe(place, name, list(own)) for place, (name, own) in enumerate(by_probe, start=1)]

    def count(self, outcome_name: str) -> int:
        """Return the number of items with this outcome."""
        return sum(one.outcome == outcome_name for one in self.items)

    @property
    def duration(self) -> str:
        """Return the duration of the run."""
        return filters.duration(self.document["seconds"])

    @property
    def categories(self) -> Table:
        """Return the counts by category."""
        columns = ("total", "passed", "failed", "inconclusive", "errors")
        by_category = self.document["summary"]["by_category"]
        return Table(
            ("category", *columns),
            [[name, *(counts[column] for column in columns)] for name, counts in by_category.items()],
        )

    @property
    def targets(self) -> Table | None:
        """Return value and verdict of each audit item for each target; `None` for fewer than two targets."""
        names, rows = target_table.items_by_target(self.document)
        if len(names) < 2:
            return None
        cells = [
            [
                title,
                *(
                    f"{filters.number(own[name]['value'])} {own[name]['verdict']}" if name in own else ""
                    for name in names
                ),
            ]
            for title, own in rows
        ]
        passed = ["all", *(target_table.passed(self.document, name) for name in names)]
        return Table(("item", *(f"@{name}" for name in names)), [*cells, passed])

    def _points(self, item: Item) -> Sequence[Mapping[str, Json]]:
        return self.trends.get((item["probe"], item["id"]), ())

    def _probe(self, place: int, name: str, items: list[ItemView]) -> ProbeView:
        return ProbeView(
            name=name,
            anchor=f"probe-{place}",
            counts=self.document["summary"]["by_probe"][name],
            overview=self._figure(charts.overview([one.item for one in items])),
            items=items,
        )

    def _item(self, place: int, item: Item, points: Sequence[Mapping[str, Json]]) -> ItemView:
        found, rest = charts.detail_charts(item, self.document.get("methods", {}).get(item["audit"], {}))
        suggested = item["details"].get("suggestions") or {}
        facts, sheets = _facts_and_sheets(rest)
        return ItemView(
            name=f"item-{place}",
            item=item,
            outcome=outcome(item),
            reason=reason(item),
            contributors=top_contributors(item),
            baseline_change=self._figure(charts.baseline_change(item, self.methods.get(item["audit"]))),
            trend=self._figure(charts.trend(filters.clean(points))),
            figures=[figure for chart in found if (figure := self._figure(chart)) is not None],
            examples=_examples(item),
            facts=facts,
            sheets=sheets,
            groups=list(dict.fromkeys([*item["n"], *item["missing"]])),
            found=suggested.get("found", ""),
            to_try=mappings_in(suggested.get("try")),
        )

    def _figure(self, chart: Chart | None) -> Figure | None:
        if chart is None:
            return None
        self._drawn += 1
        name = f"chart-{self._drawn}"
        shown = replace(chart, table=replace(chart.table, rows=chart.table.rows[:MAX_ROWS]))
        drawn = svg(chart, name) if chart.spec else ""
        return Figure(shown, drawn, len(chart.table.rows) - len(shown.table.rows))


def _facts_and_sheets(details: Mapping[str, Json]) -> tuple[dict[str, Json], list[Sheet]]:
    """Return details without a chart: single values by name, and tables of all others."""
    facts: dict[str, Json] = {}
    sheets: list[Sheet] = []
    for name, value in details.items():
        title = filters.plain(name)
        if isinstance(value, Mapping):
            if value:
                sheets.append(_sheet(title, _table_of_mapping(value)))
        elif rows := mappings_in(value):
            columns = _columns(rows)
            sheets.append(_sheet(title, Table(columns, [[row.get(column) for column in columns] for row in rows])))
        elif not (isinstance(value, list) and not value):
            facts[title] = value
    return facts, sheets


def _table_of_mapping(value: Mapping[str, Json]) -> Table:
    if not all(isinstance(part, Mapping) for part in value.values()):
        return Table(("", "value"), [[name, part] for name, part in value.items()])
    columns = _columns(value.values())
    return Table(("", *columns), [[name, *(part.get(column) for column in columns)] for name, part in value.items()])


def _columns(rows: Iterable[Mapping[str, Json]]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row))


def _sheet(title: str, table: Table) -> Sheet:
    left_out = max(0, len(table.rows) - MAX_ROWS)
    columns = [filters.plain(column) for column in table.columns]
    return Sheet(title, Table(columns, table.rows[:MAX_ROWS]), left_out)


def _examples(item: Item) -> list[Example]:
    """Return the examples grouped by their `set`; an example without `set` stands alone."""
    contributors = text_diff.contributing_words(item["details"])
    sets: dict[Any, list[Mapping[str, Json]]] = {}
    for place, example in enumerate(mappings_in(item["details"].get("examples"))):
        sets.setdefault(str(example.get("set", f"-{place}")), []).append(example)
    return [_example(own, contributors) for own in list(sets.values())[:MAX_EXAMPLES]]


def _example(own: Sequence[Mapping[str, Json]], contributors: frozenset[str]) -> Example:
    labels = [part if isinstance(part := one.get("labels"), Mapping) else {} for one in own]
    common = {name: value for name, value in labels[0].items() if all(other.get(name) == value for other in labels)}
    about = [f"{name}: {value}" for name, value in common.items()]
    trial = own[0].get("trial")
    about += [f"trial {trial + 1}"] if isinstance(trial, int) else []
    return Example("; ".join(about), [_side(own, place, contributors) for place in range(len(own))])


def _side(own: Sequence[Mapping[str, Json]], place: int, contributors: frozenset[str]) -> Side:
    # Each of two answers is compared with the other; each of several with the first.
    one, other = own[place], own[1 if place == 0 and len(own) > 1 else 0]
    against = place > 0
    pair = (other, one) if against else (one, other)
    question, answer = (
        text_diff.side_by_side(_text(pair[0], name), _text(pair[1], name), words)[int(against)]
        for name, words in (("prompt", frozenset()), ("text", contributors))
    )
    before = None
    if "before" in one:
        before = text_diff.side_by_side(_text(one, "before"), _text(one, "text"), contributors)[0]
    return Side(str(one.get("group", "example")), question, answer, str(one.get("status", "ok")), before)


def _text(example: Mapping[str, Json], name: str) -> str:
    value = example.get(name)
    return value if isinstance(value, str) else ""
