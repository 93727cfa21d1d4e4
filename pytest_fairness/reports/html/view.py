"""The report document as the page's templates take it: ordered, cleaned, with its pictures drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from pytest_fairness.records import Json
from pytest_fairness.reports import charts, target_table
from pytest_fairness.reports.charts.base import Picture, Table
from pytest_fairness.reports.charts.vega import svg
from pytest_fairness.reports.html import filters, text_diff
from pytest_fairness.reports.report_items import Item, mappings, outcome, rank, reason
from pytest_fairness.reports.top_contributors import driven_by

LONGEST_TABLE = 200
"""Rows of a table; the JSON report has them all."""

MOST_EXAMPLES = 6

OUTCOMES = ("failed", "error", "inconclusive", "passed")


@dataclass(frozen=True)
class Figure:
    """A picture ready for the page.

    Attributes:
        picture: its caption, description and table, from which `left_out` rows are only in the JSON report.
        drawn: an SVG element; empty where the table is all there is.
    """

    picture: Picture
    drawn: str
    left_out: int


@dataclass(frozen=True)
class Sheet:
    """A table ready for the page; `left_out` rows are only in the JSON report."""

    title: str
    table: Table
    left_out: int = 0


@dataclass(frozen=True)
class Side:
    """One group's answer of an example.

    Attributes:
        group: the group.
        question, answer: in pieces; nothing where nobody was asked, or nothing came back.
        status: what became of the answer.
        before: the baseline's answer, in pieces against today's; `None` where the baseline has none.
    """

    group: str
    question: Sequence[text_diff.Piece]
    answer: Sequence[text_diff.Piece]
    status: str
    before: Sequence[text_diff.Piece] | None


@dataclass(frozen=True)
class Example:
    """Answers side by side, and what they have in common, as `entity: baking; trial: 0`."""

    about: str
    sides: Sequence[Side]


@dataclass(frozen=True)
class ItemView:
    """One item of the page; `name` is its anchor."""

    name: str
    item: Item
    outcome: str
    reason: str
    drivers: Sequence[str]
    standing: Figure | None
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
    """The items of one probe, the worst first."""

    name: str
    anchor: str
    counts: Mapping[str, Json]
    overview: Figure | None
    items: Sequence[ItemView]


@dataclass
class View:
    """Everything that the page shows of a report document.

    Args:
        document: the report document.
        trends: as in `html.report`.
    """

    document: Mapping[str, Json]
    trends: Mapping[tuple[str, str], Sequence[Mapping[str, Json]]]
    items: list[ItemView] = field(init=False)
    probes: list[ProbeView] = field(init=False)
    methods: dict[str, Mapping[str, Json]] = field(init=False)
    outcomes: Sequence[str] = OUTCOMES

    def __post_init__(self) -> None:
        # By the names before cleaning, under which the store knows them.
        trends = {(item["nodeid"], item["probe"], item["id"]): self._points(item) for item in self.document["items"]}
        ordered = sorted(self.document["items"], key=rank)
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
        """How many items have this outcome."""
        return sum(one.outcome == outcome_name for one in self.items)

    @property
    def duration(self) -> str:
        """How long the run took."""
        return filters.duration(self.document["seconds"])

    @property
    def categories(self) -> Table:
        """Counts by category, where items have one."""
        columns = ("total", "passed", "failed", "inconclusive", "errors")
        by_category = self.document["summary"]["by_category"]
        return Table(
            ("category", *columns),
            [[name, *(counts[column] for column in columns)] for name, counts in by_category.items()],
        )

    @property
    def targets(self) -> Table | None:
        """Several targets against all audit items, value and verdict."""
        names, rows = target_table.against_items(self.document)
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
        found, rest = charts.evidence(item)
        suggested = item["details"].get("suggestions") or {}
        facts, sheets = _facts_and_sheets(rest)
        return ItemView(
            name=f"item-{place}",
            item=item,
            outcome=outcome(item),
            reason=reason(item),
            drivers=driven_by(item),
            standing=self._figure(charts.standing(item, self.methods.get(item["audit"]))),
            trend=self._figure(charts.trend(filters.clean(points))),
            figures=[figure for picture in found if (figure := self._figure(picture)) is not None],
            examples=_examples(item),
            facts=facts,
            sheets=sheets,
            groups=list(dict.fromkeys([*item["n"], *item["missing"]])),
            found=suggested.get("found", ""),
            to_try=mappings(suggested.get("try")),
        )

    def _figure(self, picture: Picture | None) -> Figure | None:
        if picture is None:
            return None
        self._drawn += 1
        name = f"picture-{self._drawn}"
        shown = replace(picture, table=replace(picture.table, rows=picture.table.rows[:LONGEST_TABLE]))
        drawn = svg(picture, name) if picture.spec else ""
        return Figure(shown, drawn, len(picture.table.rows) - len(shown.table.rows))


def _facts_and_sheets(details: Mapping[str, Json]) -> tuple[dict[str, Json], list[Sheet]]:
    """Details that no picture shows: single values by name, and everything else as tables."""
    facts: dict[str, Json] = {}
    sheets: list[Sheet] = []
    for name, value in details.items():
        title = filters.plain(name)
        if isinstance(value, Mapping):
            if value:
                sheets.append(_sheet(title, _table_of_mapping(value)))
        elif rows := mappings(value):
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
    left_out = max(0, len(table.rows) - LONGEST_TABLE)
    columns = [filters.plain(column) for column in table.columns]
    return Sheet(title, Table(columns, table.rows[:LONGEST_TABLE]), left_out)


def _examples(item: Item) -> list[Example]:
    """Examples by their `set`; of an audit that gives none, each by itself."""
    drivers = text_diff.driving_words(item["details"])
    sets: dict[Any, list[Mapping[str, Json]]] = {}
    for place, example in enumerate(mappings(item["details"].get("examples"))):
        sets.setdefault(str(example.get("set", f"-{place}")), []).append(example)
    return [_example(own, drivers) for own in list(sets.values())[:MOST_EXAMPLES]]


def _example(own: Sequence[Mapping[str, Json]], drivers: frozenset[str]) -> Example:
    labels = [part if isinstance(part := one.get("labels"), Mapping) else {} for one in own]
    common = {name: value for name, value in labels[0].items() if all(other.get(name) == value for other in labels)}
    about = [f"{name}: {value}" for name, value in common.items()]
    trial = own[0].get("trial")
    about += [f"trial {trial + 1}"] if isinstance(trial, int) else []
    return Example("; ".join(about), [_side(own, place, drivers) for place in range(len(own))])


def _side(own: Sequence[Mapping[str, Json]], place: int, drivers: frozenset[str]) -> Side:
    # Each against the other; of more than two, each against the first.
    one, other = own[place], own[1 if place == 0 and len(own) > 1 else 0]
    against = place > 0
    pair = (other, one) if against else (one, other)
    question, answer = (
        text_diff.side_by_side(_text(pair[0], name), _text(pair[1], name), words)[int(against)]
        for name, words in (("prompt", frozenset()), ("text", drivers))
    )
    before = None
    if "before" in one:
        before = text_diff.side_by_side(_text(one, "before"), _text(one, "text"), drivers)[0]
    return Side(str(one.get("group", "example")), question, answer, str(one.get("status", "ok")), before)


def _text(example: Mapping[str, Json], name: str) -> str:
    value = example.get(name)
    return value if isinstance(value, str) else ""
