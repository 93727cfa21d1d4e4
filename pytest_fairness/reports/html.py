"""HTML report: one self-contained file, which needs no network access; its view model, headline and templates."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports import charts, formatting, html_items, report_items
from pytest_fairness.reports.charts import Chart, Table, svg
from pytest_fairness.reports.document import reused_answers
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.html_items import MAX_ROWS, OUTCOMES, ChangeChart, Figure, ReportItem, Sheet
from pytest_fairness.reports.view import UNEXPECTED_PASS, ItemView, largest_first, views

if TYPE_CHECKING:
    from jinja2 import Environment


__all__ = ["report"]


def report(
    document: Mapping[str, Json], trends: Mapping[tuple[str, str], Sequence[Mapping[str, Json]]] | None = None
) -> str:
    """Return the HTML report of one run. Text from models and probes is escaped."""
    return render("report.html.j2", view=View(document, trends or {}))


# View model of the HTML report: the report document, sorted and escaped, with its charts drawn.

MAX_OPEN = 10
"""Maximum number of failed items whose details are unfolded; the worst items come first."""
MAX_FULL = 200
"""Maximum number of items with examples, tables and charts; the worst items come first."""


# Summary of a run in words: the verdict on the run, the findings, and the affected and unaffected groups.


@dataclass(frozen=True)
class Finding:
    """Finding about one group: the finding of its worst item.

    Attributes:
        anchor, probe: HTML anchor of the item, and name of its probe.
        sentence: the finding, in which the contributing words are highlighted.
        size: largest regression of the group as a multiple of the tolerance: `Up to 3 times what is allowed`. Without a
            tolerance above 0, it is the change or value of the worst item: `3 words grew (allowed 0)`. It is empty if
            `sentence` already contains this change or value.
    """

    anchor: str
    probe: str
    sentence: Sequence[html_items.Piece]
    size: str


@dataclass(frozen=True)
class Headline:
    """First lines of the report.

    Attributes:
        verdict: verdict on the run in words.
        outcome: outcome that selects the colour of the verdict: the worst of the items' outcomes.
        findings: one finding about each of the first `MAX_FINDINGS` groups that are significantly worse than allowed.
        affected: groups that are worse than allowed.
        unaffected: groups whose items all passed without a significant change.
    """

    verdict: str
    outcome: str
    findings: Sequence[Finding]
    affected: Sequence[str]
    unaffected: Sequence[str]


@dataclass
class View:
    """Content of the HTML report.

    Args:
        document: the report document.
        trends: values of the last runs, by probe and item id, the oldest first.

    Attributes:
        headline: verdict on the run in words, and findings.
        views: the items, the worst first, or in a run without verdicts the largest effect first.
        items: the same items with their charts, examples and tables.
        methods: descriptions of audits, by name; only descriptions with the key `question`.
        probes, audits, groups, verdicts: values of the page's filters.
    """

    document: Mapping[str, Json]
    trends: Mapping[tuple[str, str], Sequence[Mapping[str, Json]]]
    headline: Headline = field(init=False)
    views: list[ItemView] = field(init=False)
    items: list[ReportItem] = field(init=False)
    methods: dict[str, Mapping[str, Json]] = field(init=False)
    probes: list[str] = field(init=False)
    audits: list[str] = field(init=False)
    groups: list[str] = field(init=False)
    verdicts: list[str] = field(init=False)

    def __post_init__(self) -> None:
        found = views(self.document)
        ordered = largest_first(found) if report_items.is_measured_only(found) else found
        ordered.sort(key=lambda view: (view.outcome == "error") if view.status == VerdictName.MEASURED else 0)
        # The history has unescaped names: its results are looked up before the names in the document are escaped.
        trends = [self.trends.get((view.item["probe"], view.item["id"]), ()) for view in ordered]
        self.document = html_items.clean({**self.document, "items": [view.item for view in ordered]})
        methods = self.document.get("methods", {})
        self.views = [ItemView(item, methods.get(item["audit"], {})) for item in self.document["items"]]
        self.methods = {name: method for name, method in methods.items() if method.get("question")}
        self.probes = sorted({view.item["probe"] for view in self.views})
        self.audits = sorted({view.item["audit"] for view in self.views})
        self.verdicts = list(dict.fromkeys(view.verdict for view in self.views))
        self.groups = sorted({str(value) for view in self.views for value in view.item["labels"].values()})
        self._drawn = self._full = 0
        self._groups = {name: place for place, name in enumerate(self.groups)}
        self.items = [
            self._item(f"item-{place}", view, points)
            for place, (view, points) in enumerate(zip(self.views, trends, strict=True), start=1)
        ]
        outcomes = {one.display_outcome for one in self.items}
        self.headline = Headline(
            verdict=report_items.run_verdict(self.views, reused_answers(self.document)),
            outcome=next((name for name in OUTCOMES if name in outcomes), "passed"),
            findings=group_findings((one.name, one.view) for one in self.items),
            affected=affected_groups(self.views),
            unaffected=unaffected_groups(self.views),
        )

    @property
    def measured_only(self) -> bool:
        """Return whether the run measured without verdicts."""
        return report_items.is_measured_only(self.views)

    @property
    def opened(self) -> Sequence[ReportItem]:
        """Return the items whose details are unfolded: the first `MAX_OPEN` items with the display outcome `failed`."""
        return [item for item in self.items if item.display_outcome == "failed"][:MAX_OPEN]

    @property
    def served_models(self) -> Sequence[str]:
        """Return the names of the models that the server reported, without repetitions."""
        return sorted({view.explanation.served for view in self.views} - {""})

    @property
    def categories(self) -> Table:
        columns = ("total", "passed", "failed", "known", "inconclusive", "errors")
        by_category = self.document["summary"]["by_category"]
        return Table(
            ("category", *columns),
            [[name, *(counts.get(column, 0) for column in columns)] for name, counts in by_category.items()],
        )

    @property
    def targets(self) -> Sheet | None:
        """Return a table of the value and verdict of each audit item by target; `None` for fewer than two targets."""
        names, rows = report_items.items_by_target(self.document, self.views)
        if len(names) < 2:
            return None
        cells = [
            [
                title,
                *(
                    f"{html_items.number(own[name].item['value'])} {own[name].item['verdict']}" if name in own else ""
                    for name in names
                ),
            ]
            for title, own in rows
        ]
        passed = ["all", *(report_items.passed_items(self.document, name) for name in names)]
        table = Table(("item", *(f"@{name}" for name in names)), [passed, *cells])
        return html_items.sheet_of("Audits by target", table)

    @property
    def cell_tables(self) -> Sequence[report_items.CellTable]:
        return report_items.intersection_tables(self.views)

    cell_legend: ClassVar[str] = report_items.INTERSECTION_LEGEND

    def _item(self, name: str, view: ItemView, points: Sequence[Mapping[str, Json]]) -> ReportItem:
        item = view.item
        one = ReportItem(
            name=name,
            view=view,
            display_outcome=display_outcome(view),
            probe=self.probes.index(item["probe"]),
            audit=self.audits.index(item["audit"]),
            groups=[self._groups[str(value)] for value in item["labels"].values()],
            full=item["value"] is not None and self._full < MAX_FULL,
        )
        if not one.full:
            return one
        self._full += 1
        drawn = view.outcome != "passed" or html_items.has_changed(item)
        change = charts.baseline_change(view) if drawn else None
        trend = charts.trend(html_items.clean(points)) if drawn else None
        significant = is_significant(view)
        charts_of_details, rest = charts.detail_charts(view)
        facts, sheets = html_items.facts_and_sheets(rest)
        words = html_items.contributing_words(view) if significant else None
        return replace(
            one,
            change_chart=ChangeChart.of(item) if drawn else None,
            evidence=view.evidence if significant else (),
            baseline_change=None if change is None else self._figure(change),
            trend=None if trend is None else self._figure(trend),
            figures=[self._figure(chart if drawn else replace(chart, spec={})) for chart in charts_of_details],
            examples=html_items.examples_of(view.explanation.examples, words),
            facts=facts,
            sheets=sheets,
            answers=list(dict.fromkeys([*item["n"], *item["missing"]])),
            found=view.suggestions.get("found", "") if significant else "",
            to_try=view.suggestions.get("try", ()),
        )

    def _figure(self, chart: Chart) -> Figure:
        self._drawn += 1
        name = f"chart-{self._drawn}"
        shown = replace(chart, table=replace(chart.table, rows=chart.table.rows[:MAX_ROWS]))
        drawn = svg(chart, name) if chart.spec else ""
        return Figure(shown, drawn, len(chart.table.rows) - len(shown.table.rows))


WORSE = (VerdictName.REGRESSION, VerdictName.OVER_LIMIT)
"""Verdicts on items that are significantly worse than allowed."""

MAX_FINDINGS = 5
MAX_NAMES = 8
_LIST = re.compile(r"((?<= say ).*?(?= more often|; |\.))", re.DOTALL)
"""The words in a finding's sentence: `Answers for Kelly say WORDS more often than answers for Joseph`."""


def display_outcome(view: ItemView) -> str:
    """Return the outcome that selects an item's colour and shape.

    The result is `inconclusive` for an item that failed because its baseline is missing or stale.
    """
    fails = view.outcome == "failed" and view.status not in (*WORSE, UNEXPECTED_PASS)
    return "inconclusive" if fails else view.outcome


def subject(view: ItemView) -> str:
    """Return the subject of an item: its case or the values of its labels; an empty text for an item without labels."""
    labels: Mapping[str, Json] = view.item["labels"]
    return str(labels.get("case") or ", ".join(map(str, labels.values())))


def affected_groups(items: Iterable[ItemView]) -> list[str]:
    """Return the groups with items over their tolerance or limit (`WORSE`), with the numbers of these items.

    An example is `Kelly (2 checks)`. The group with most of these items comes first; groups after the first
    `MAX_NAMES` are only counted.
    """
    counts = Counter(name for view in items if view.status in WORSE and (name := subject(view)))
    return _shortened([f"{name} ({counted(number, 'check')})" for name, number in counts.most_common()])


def unaffected_groups(items: Sequence[ItemView]) -> list[str]:
    """Return the groups whose items all passed without a significant change: the first `MAX_NAMES`, then `3 more`."""
    changed = {subject(view) for view in items if view.item["verdict"] != VerdictName.PASS or is_significant(view)}
    return _shortened(sorted({subject(view) for view in items} - changed - {""}))


def group_findings(items: Iterable[tuple[str, ItemView]]) -> list[Finding]:
    """Return a finding for each of the first `MAX_FINDINGS` groups that are significantly worse than allowed.

    The finding about a group is the finding of its worst item.
    """
    by_group: dict[tuple[str, str], list[tuple[str, ItemView]]] = {}
    for anchor, view in items:
        if view.status in WORSE and is_significant(view):
            by_group.setdefault((view.item["probe"], subject(view)), []).append((anchor, view))
    return [_finding(*worse[0], _size([view for _, view in worse])) for worse in list(by_group.values())[:MAX_FINDINGS]]


def _finding(anchor: str, view: ItemView, size: str) -> Finding:
    sentence = view.suggestions.get("found", "")
    felt = f"{view.felt[:1].upper()}{view.felt[1:]}. " if sentence and view.felt else ""
    pieces = _highlighted(view, felt + sentence if sentence else view.headline)
    return Finding(anchor, view.item["probe"], pieces, size or (view.amount if sentence else ""))


def _highlighted(view: ItemView, sentence: str) -> list[html_items.Piece]:
    """Return a sentence in pieces; in its lists of words, the words that contribute to the value are highlighted."""
    # The last word of a list follows the word “and”.
    words = frozenset().union(*html_items.contributing_words(view).values()) - {"and"}
    # The parts are alternately text and a list of words.
    parts = [(part, words if place % 2 else frozenset()) for place, part in enumerate(_LIST.split(sentence))]
    return [piece for part, own in parts for piece in html_items.highlight(part, own)]


def is_significant(view: ItemView) -> bool:
    """Return whether the item's change is significant, or the item has top contributors."""
    return bool((view.item["change"] or {}).get("significant") or view.item.get("contributors"))


def _size(items: Iterable[ItemView]) -> str:
    """Return a phrase with the largest regression as a multiple of its tolerance; empty without a tolerance above 0."""
    times = [
        item["change"]["value"] / item["tolerance"]
        for item in (view.item for view in items)
        if item["verdict"] == VerdictName.REGRESSION and (item["change"] or {}).get("value") and item["tolerance"]
    ]
    return f"Up to {number(max(times))} times what is allowed" if times else ""


def _shortened(names: Sequence[str]) -> list[str]:
    more = [f"{len(names) - MAX_NAMES:,} more"] if len(names) > MAX_NAMES else []
    return [*names[:MAX_NAMES], *more]


# Rendering of HTML templates. All values are escaped, and an undefined name is an error.

REQUIRED_PACKAGES = ("jinja2", "vl_convert")
INLINED = {"style": "style.css", "script": "script.js"}


def require_extra() -> None:
    """Raise an error if a package for HTML reports is not installed; called before any request is sent."""
    # Deferred: only needed for HTML reports.
    from importlib.util import find_spec

    missing = [name for name in REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise FairnessError(
            f"HTML reports need the extra `report` ({', '.join(missing)} not found). Install it: "
            'pip install "pytest-fairness[report]"'
        )


def render(template: str, **values: Any) -> str:
    """Return the page of a template, with the style sheet and the script inlined.

    The content security policy of the page contains the hashes of the style sheet and of the script.
    """
    require_extra()
    folder = files("pytest_fairness.reports") / "templates"
    inlined = {name: (folder / file).read_text("utf-8") for name, file in INLINED.items()}
    hashes = {name: _csp_hash(text) for name, text in inlined.items()}
    return _environment().get_template(template).render(hashes=hashes, **inlined, **values)


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("pytest_fairness.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": html_items.number,
        "cell": html_items.cell,
        "duration": html_items.duration,
        "money": formatting.money,
    }
    # Used only for files of this package, and for charts, in which Vega escapes all texts.
    environment.globals["trusted"] = lambda text: Markup(text)  # noqa: S704 - see above
    return environment
