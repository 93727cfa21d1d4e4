"""View model of the HTML report: the report document, sorted and escaped, with its charts drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json
from pytest_fairness.reports import charts
from pytest_fairness.reports.charts.base import Chart, Table
from pytest_fairness.reports.charts.vega import svg
from pytest_fairness.reports.document import reused_answers
from pytest_fairness.reports.html import filters, headline, text_diff
from pytest_fairness.reports.html.examples import examples_of
from pytest_fairness.reports.html.headline import Headline
from pytest_fairness.reports.html.item_view import OUTCOMES, ChangeChart, Figure, ReportItem, has_changed
from pytest_fairness.reports.html.sheets import MAX_ROWS, Sheet, facts_and_sheets, sheet_of
from pytest_fairness.reports.items import intersections, target_table
from pytest_fairness.reports.items.effects import largest_first
from pytest_fairness.reports.items.findings import finding
from pytest_fairness.reports.items.report_items import (
    Item,
    acceptances,
    is_measured_only,
    mappings_in,
    outcome,
    reason,
    severity,
    verdict_word,
)
from pytest_fairness.reports.items.top_contributors import top_contributors

MAX_ACCEPTANCES = 5
MAX_OPEN = 10
"""Maximum number of failed items whose details are unfolded; the worst items come first."""
MAX_FULL = 200
"""Maximum number of items with examples, tables and charts; the worst items come first."""


@dataclass
class View:
    """Content of the HTML report.

    Args:
        document: the report document.
        trends: values of the last runs, by probe and item id, the oldest first.

    Attributes:
        headline: verdict on the run in words, and findings.
        items: the items, the worst first, or in a run without verdicts the largest effect first.
        methods: descriptions of audits, by name; only descriptions with the key `question`.
        probes, audits, groups, verdicts: values of the page's filters.
    """

    document: Mapping[str, Json]
    trends: Mapping[tuple[str, str], Sequence[Mapping[str, Json]]]
    headline: Headline = field(init=False)
    items: list[ReportItem] = field(init=False)
    methods: dict[str, Mapping[str, Json]] = field(init=False)
    probes: list[str] = field(init=False)
    audits: list[str] = field(init=False)
    groups: list[str] = field(init=False)
    verdicts: list[str] = field(init=False)

    def __post_init__(self) -> None:
        ordered = largest_first(self.document["items"])
        if self.measured_only:
            ordered.sort(key=lambda item: item["value"] is None)
        else:
            ordered.sort(key=lambda item: severity(item)[:2])
        # The history has unescaped names: its results are looked up before the names in the document are escaped.
        trends = [self.trends.get((item["probe"], item["id"]), ()) for item in ordered]
        self.document = filters.clean({**self.document, "items": ordered})
        items: list[Item] = self.document["items"]
        methods = self.document.get("methods", {})
        self.methods = {name: method for name, method in methods.items() if method.get("question")}
        self.probes = sorted({item["probe"] for item in items})
        self.audits = sorted({item["audit"] for item in items})
        self.verdicts = list(dict.fromkeys(map(verdict_word, items)))
        self.groups = sorted({str(value) for item in items for value in item["labels"].values()})
        self._drawn = self._full = 0
        self._groups = {name: place for place, name in enumerate(self.groups)}
        self.items = [
            self._item(place, item, points) for place, (item, points) in enumerate(zip(items, trends, strict=True))
        ]
        outcomes = {item.display_outcome for item in self.items}
        self.headline = Headline(
            verdict=headline.verdict(items, reused_answers(self.document)),
            outcome=next((name for name in OUTCOMES if name in outcomes), "passed"),
            findings=headline.findings(
                (view.name, view.item, methods.get(view.item["audit"], {})) for view in self.items
            ),
            affected=headline.affected(items),
            unaffected=headline.unaffected(items),
        )

    @property
    def measured_only(self) -> bool:
        """Return whether the run measured without verdicts."""
        return is_measured_only(self.document["items"])

    @property
    def opened(self) -> Sequence[ReportItem]:
        """Return the items whose details are unfolded: the first `MAX_OPEN` items with the display outcome `failed`."""
        return [item for item in self.items if item.display_outcome == "failed"][:MAX_OPEN]

    @property
    def served_models(self) -> Sequence[str]:
        """Return the names of the models that the server reported, without repetitions."""
        served = (item["details"].get("served_model") for item in self.document["items"])
        return sorted({str(model) for model in served if model is not None})

    @property
    def categories(self) -> Table:
        """Return a table of the number of items by the probes' category and by outcome."""
        columns = ("total", "passed", "failed", "known", "inconclusive", "errors")
        by_category = self.document["summary"]["by_category"]
        return Table(
            ("category", *columns),
            [[name, *(counts.get(column, 0) for column in columns)] for name, counts in by_category.items()],
        )

    @property
    def targets(self) -> Sheet | None:
        """Return a table of the value and verdict of each audit item by target; `None` for fewer than two targets."""
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
        table = Table(("item", *(f"@{name}" for name in names)), [passed, *cells])
        return sheet_of("Audits by target", table)

    @property
    def cell_tables(self) -> Sequence[intersections.CellTable]:
        """Return the tables of the cells that items compare; see `reports.items.intersections`."""
        return intersections.tables(self.document["items"])

    cell_legend: ClassVar[str] = intersections.LEGEND

    @property
    def acceptances(self) -> Sheet | None:
        """Return a table of the baselines' acceptances, the latest first; `None` if no acceptance is known."""
        rows = [
            (date, by, reason, counted(len(ids), "check"))
            for date, by, reason, ids in acceptances(self.document["items"])
        ]
        table = Table(("date", "accepted by", "reason", "checks"), rows[:MAX_ACCEPTANCES])
        return Sheet("Accepted baselines", table, max(0, len(rows) - MAX_ACCEPTANCES)) if rows else None

    def _item(self, place: int, item: Item, points: Sequence[Mapping[str, Json]]) -> ReportItem:
        method = self.document.get("methods", {}).get(item["audit"], {})
        view = ReportItem(
            name=f"item-{place + 1}",
            item=item,
            outcome=outcome(item),
            display_outcome=headline.display_outcome(item),
            verdict=verdict_word(item),
            title=f"{method['title']} ({item['audit']})" if method.get("title") else item["audit"],
            line=finding(item, method),
            reason=reason(item),
            probe=self.probes.index(item["probe"]),
            audit=self.audits.index(item["audit"]),
            groups=[self._groups[str(value)] for value in item["labels"].values()],
            full=item["value"] is not None and self._full < MAX_FULL,
        )
        if not view.full:
            return view
        self._full += 1
        drawn = view.outcome != "passed" or has_changed(item)
        change = charts.baseline_change(item, method) if drawn else None
        trend = charts.trend(filters.clean(points)) if drawn else None
        significant = headline.is_significant(item)
        charts_of_details, rest = charts.detail_charts(item, method)
        suggested = item["details"].get("suggestions") or {}
        facts, sheets = facts_and_sheets(rest)
        words = text_diff.contributing_words(item) if significant else None
        return replace(
            view,
            change_chart=ChangeChart.of(item) if drawn else None,
            contributors=top_contributors(item) if significant else (),
            baseline_change=None if change is None else self._figure(change),
            trend=None if trend is None else self._figure(trend),
            figures=[self._figure(chart if drawn else replace(chart, spec={})) for chart in charts_of_details],
            examples=examples_of(item, words),
            facts=facts,
            sheets=sheets,
            answers=list(dict.fromkeys([*item["n"], *item["missing"]])),
            found=suggested.get("found", "") if significant else "",
            to_try=mappings_in(suggested.get("try")),
        )

    def _figure(self, chart: Chart) -> Figure:
        self._drawn += 1
        name = f"chart-{self._drawn}"
        shown = replace(chart, table=replace(chart.table, rows=chart.table.rows[:MAX_ROWS]))
        drawn = svg(chart, name) if chart.spec else ""
        return Figure(shown, drawn, len(chart.table.rows) - len(shown.table.rows))
