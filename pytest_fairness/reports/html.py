"""HTML report: one self-contained file, which needs no network access; its pages are the templates of this folder."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import timedelta
from difflib import SequenceMatcher
from functools import cache, partial
from importlib.resources import files
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness.audits.info import Direction
from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.records import Json, Quote, VerdictName
from pytest_fairness.reports import charts, formatting, report_items, selftest
from pytest_fairness.reports.charts import Chart, Table, svg, table_of
from pytest_fairness.reports.document import reused_answers
from pytest_fairness.reports.formatting import as_float, interval_of, rows_of
from pytest_fairness.reports.view import UNEXPECTED_PASS, ItemView, largest_first, status_in_words, views

if TYPE_CHECKING:
    from jinja2 import Environment

# The report: the items of a report document, the worst first, with their charts, examples and tables.

MAX_OPEN = 10
"""Maximum number of failed items whose details are unfolded; the worst items come first."""
MAX_FULL = 200
"""Maximum number of items with examples, tables and charts; the worst items come first."""
MAX_MATRIX = 60
"""Maximum number of rows of the table of groups and audits."""
MAX_ROWS = 200
"""Maximum number of rows of a table; the JSON report has all rows."""
OUTCOMES = ("failed", "error", "inconclusive", "known", "measured", "passed")
"""Outcomes of items, the worst first."""
CATEGORY_COLUMNS = ("total", "passed", "failed", "known", "inconclusive", "errors")
WORSE = (VerdictName.REGRESSION, VerdictName.OVER_LIMIT)
"""Verdicts on items that are significantly worse than allowed."""


def report(
    document: Mapping[str, Json], trends: Mapping[tuple[str, str], Sequence[Mapping[str, Json]]] | None = None
) -> str:
    """Return the HTML report of one run. Text from models and probes is escaped."""
    found = views(document)
    measured_only = report_items.is_measured_only(found)
    ordered = largest_first(found) if measured_only else found
    # The history has unescaped names: its results are looked up before the names in the document are escaped.
    points = [(trends or {}).get((view.item["probe"], view.item["id"]), ()) for view in ordered]
    document = clean({**document, "items": [view.item for view in ordered]})
    methods: Mapping[str, Mapping[str, Json]] = document.get("methods", {})
    said = [ItemView(item, methods.get(item["audit"], {})) for item in document["items"]]
    filters = {
        "verdicts": list(dict.fromkeys(view.verdict for view in said)),
        "probes": sorted({view.item["probe"] for view in said}),
        "audits": sorted({view.item["audit"] for view in said}),
        "groups": sorted({str(value) for view in said for value in view.item["labels"].values()}),
    }
    full = {id(view) for view in [view for view in said if view.item["value"] is not None][:MAX_FULL]}
    items = [
        {
            "name": f"item-{place}",
            "view": view,
            "display_outcome": display_outcome(view),
            "groups": [filters["groups"].index(str(value)) for value in view.item["labels"].values()],
            "full": id(view) in full,
            **(_content(view, own) if id(view) in full else {"strip": None, "charts": (), "facts": {}, "tables": {}}),
        }
        for place, (view, own) in enumerate(zip(said, points, strict=True), start=1)
    ]
    targets = report_items.target_table(
        document, said, lambda view: f"{number(view.item['value'])} {view.item['verdict']}"
    )
    risks = report_items.risk_table(document)
    outcomes = {one["display_outcome"] for one in items}
    return render(
        "report.html.j2",
        document=document,
        items=items,
        measured_only=measured_only,
        opened=[one["name"] for one in items if one["display_outcome"] == "failed"][:MAX_OPEN],
        verdict=report_items.run_verdict(said, reused_answers(document)),
        outcome=next((name for name in OUTCOMES if name in outcomes), "passed"),
        overview=[one for one in items if one["strip"]][:MAX_OVERVIEW],
        matrix=_matrix(items),
        forests=_forests(said) if measured_only else [],
        findings=_group_findings((one["name"], one["view"]) for one in items),
        affected=_affected_groups(said),
        unaffected=_unaffected_groups(said),
        methods={name: method for name, method in methods.items() if method.get("question")},
        categories=Table(
            ("category", *CATEGORY_COLUMNS),
            [
                [name, *(counts.get(column, 0) for column in CATEGORY_COLUMNS)]
                for name, counts in document["summary"]["by_category"].items()
            ],
        ),
        targets=targets and Table(("item", *targets[0]), [["all", *targets[2]], *targets[1]]),
        served_models=sorted({view.explanation.served for view in said} - {""}),
        risks=risks and Table(*risks),
        cell_tables=report_items.intersection_tables(said),
        cell_legend=report_items.INTERSECTION_LEGEND,
        selftest=_self_test(document.get("selftest") or ()),
        **filters,
    )


def _self_test(tests: Sequence[Mapping[str, Json]]) -> dict[str, Any]:
    """Return the parts of the section about a self-test; empty without one."""
    if not tests:
        return {}
    table = Table(("item", *selftest.COLUMNS[:-1]), [[row[-1], *row[:-1]] for row in selftest.rows(tests)])
    told = {"summary": selftest.summary(tests), "meaning": selftest.MEANING, "problems": selftest.problems(tests)}
    return {**told, "table": table}


def _content(view: ItemView, points: Sequence[Mapping[str, Json]]) -> dict[str, Any]:
    item = view.item
    drawn, significant = view.outcome != "passed" or has_changed(item), is_significant(view)
    charts_of_details, rest = charts.detail_charts(view)
    details = {plain(name): (value, rows_of(value)) for name, value in rest.items()}
    return {
        "strip": _strip(view),
        "evidence": view.evidence if significant else (),
        "small_charts": [
            chart
            for chart in (charts.baseline_change(view), charts.evidence(view), charts.trend(clean(points)))
            if chart
        ]
        if drawn
        else [],
        "charts": charts_of_details,
        "draws": drawn,
        "examples": examples_of(view.explanation.examples, contributing_words(view) if significant else None),
        "facts": {name: value for name, (value, rows) in details.items() if not rows and value not in ([], {})},
        "tables": {name: table_of(rows) for name, (_, rows) in details.items() if rows},
        "answers": list(dict.fromkeys([*item["n"], *item["missing"]])),
        "found": view.finding if significant else "",
    }


def has_changed(item: Mapping[str, Json]) -> bool:
    """Return whether the 95 % confidence interval of the change excludes 0, or the change is significant."""
    change = item["change"] or {}
    low, high = interval_of(change.get("interval")) or (0.0, 0.0)
    return bool(change.get("significant")) or low > 0 or high < 0


def is_significant(view: ItemView) -> bool:
    """Return whether the item's change is significant, or the item has top contributors."""
    return bool((view.item["change"] or {}).get("significant") or view.item.get("contributors"))


def display_outcome(view: ItemView) -> str:
    """Return the outcome that selects an item's colour and shape.

    The result is `inconclusive` for an item that failed because its baseline is missing or stale.
    """
    fails = view.outcome == "failed" and view.status not in (*WORSE, UNEXPECTED_PASS)
    return "inconclusive" if fails else view.outcome


LOWEST, HIGHEST = -1.0, 3.0
"""Ends of the scale of a small picture of a check; numbers outside of it are drawn near its ends."""
MAX_OVERVIEW = 24
"""Maximum number of checks in the picture of all checks; the worst come first."""


def _strip(view: ItemView) -> list[float] | None:
    """Return the places of a point and of the ends of its interval (low, point, high) on a scale, in percent.

    On the scale, 0 is the baseline and 1 the largest change that is allowed, or one word that grew. For an item over
    its limit or without a comparison, 0 is the value of equal groups and 1 the limit. The result is `None` without
    either.
    """
    item, change = view.item, view.item["change"] or {}
    largest = as_float(item["tolerance"]) or (1.0 if view.counts_otherwise else 0.0)
    point, ends = as_float(change.get("value")), change.get("interval")
    if (point is None or not largest or item["verdict"] == VerdictName.OVER_LIMIT) and item["limit"] is not None:
        direction, (low, high) = Direction(view.method["better"]), view.method["value_range"]
        equal = {Direction.LOWER: max(low or 0, 0), Direction.HIGHER: high, Direction.FIFTY: 50}.get(direction, 0)
        ends = list(item["interval"] or ())
        if ends and ends[0] < equal < ends[1]:
            ends.append(equal)
        point, largest, *ends = (
            direction.loss(number) - direction.loss(equal) for number in (item["value"], item["limit"], *ends)
        )
    if point is None or not largest or largest < 0:
        return None
    low, high = (min(ends), max(ends)) if ends and None not in ends else (point, point)
    shares = ((end / largest - LOWEST) / (HIGHEST - LOWEST) for end in (low, point, high))
    return [round(100 * max(0.04, min(0.96, share)), 1) for share in shares]


def _matrix(items: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return a table of the checks with a row for each group and a column for each audit; `None` for fewer than two."""
    by_group: dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]] = {}
    for one in items:
        view: ItemView = one["view"]
        row = by_group.setdefault((view.item["probe"], _group(view)), defaultdict(list))
        row[view.item["audit"]].append(one)
    audits = sorted({audit for row in by_group.values() for audit in row})
    if len(audits) < 2 or len(by_group) < 2 or len(by_group) > MAX_MATRIX:
        return None
    several = len({probe for probe, _ in by_group}) > 1
    rows = [
        (": ".join(filter(None, [probe if several else "", group])) or probe, [row.get(audit, ()) for audit in audits])
        for (probe, group), row in sorted(by_group.items())
    ]
    return {"audits": audits, "rows": rows}


def _forests(views: Iterable[ItemView]) -> list[Chart]:
    """Return a chart for each audit of a run that only measured, with a row for each of its several items."""
    by_audit: dict[str, list[ItemView]] = defaultdict(list)
    for view in views:
        if view.item["value"] is not None:
            by_audit[view.item["audit"]].append(view)
    return [charts.values_of_audit(own) for own in by_audit.values() if len(own) > 1]


# Summary of a run in words: findings about groups, and the affected and unaffected groups.

MAX_FINDINGS = 5
MAX_NAMES = 8
_LIST = re.compile(r"((?<= say ).*?(?= more often|; |\.))", re.DOTALL)
"""The words in a finding's sentence: `Answers for Kelly say WORDS more often than answers for Joseph`."""


def _group(view: ItemView) -> str:
    """Return an item's case, or the values of its labels; an empty text for an item without labels."""
    labels: Mapping[str, Json] = view.item["labels"]
    return str(labels.get("case") or ", ".join(map(str, labels.values())))


def _affected_groups(items: Iterable[ItemView]) -> list[str]:
    counts = Counter(name for view in items if view.status in WORSE and (name := _group(view)))
    return _shortened([f"{name} ({counted(number, 'check')})" for name, number in counts.most_common()])


def _unaffected_groups(items: Sequence[ItemView]) -> list[str]:
    changed = {_group(view) for view in items if view.item["verdict"] != VerdictName.PASS or is_significant(view)}
    return _shortened(sorted({_group(view) for view in items} - changed - {""}))


def _shortened(names: Sequence[str]) -> list[str]:
    return [*names[:MAX_NAMES], *([f"{len(names) - MAX_NAMES:,} more"] if len(names) > MAX_NAMES else [])]


def _group_findings(items: Iterable[tuple[str, ItemView]]) -> list[dict[str, Any]]:
    """Return the finding of the worst item of each of the first groups that are significantly worse than allowed.

    Its `size` is the group's largest regression as a multiple of the tolerance, or without a tolerance above 0 the
    change or value of the worst item, unless the sentence contains it.
    """
    by_group: dict[tuple[str, str], list[tuple[str, ItemView]]] = {}
    for anchor, view in items:
        if view.status in WORSE and is_significant(view):
            by_group.setdefault((view.item["probe"], _group(view)), []).append((anchor, view))
    findings = []
    for worse in list(by_group.values())[:MAX_FINDINGS]:
        anchor, view = worse[0]
        times = [
            item["change"]["value"] / item["tolerance"]
            for item in (each.item for _, each in worse)
            if item["verdict"] == VerdictName.REGRESSION and (item["change"] or {}).get("value") and item["tolerance"]
        ]
        sentence = view.finding
        felt = f"{view.felt[:1].upper()}{view.felt[1:]}. " if sentence and view.felt else ""
        # The last word of a list follows the word “and”. The parts are alternately text and a list of words.
        words = frozenset().union(*contributing_words(view).values()) - {"and"}
        parts = _LIST.split(felt + sentence if sentence else view.headline)
        pieces = [piece for place, part in enumerate(parts) for piece in highlight(part, words if place % 2 else set())]
        size = f"Up to {formatting.number(max(times))} times what is allowed" if times else ""
        size = size or (view.amount if sentence else "")
        findings.append({"anchor": anchor, "probe": view.item["probe"], "sentence": pieces, "size": size})
    return findings


# Examples of an item: answers side by side, in which words are highlighted.

MAX_EXAMPLES = 6
_PIECES = re.compile(r"\s+|\w[\w'’-]*|.", re.DOTALL)
MIN_LIST_LINES, MAX_LIST_LINE = 2, 60
"""A text counts as a list if it has at least `MIN_LIST_LINES` line ends and no line over `MAX_LIST_LINE` characters.
Two lists are compared line by line, other texts word by word."""
MAX_COMPARED = 1500
"""Maximum number of compared pieces of a text; the rest is not highlighted."""

Words = Mapping[str, frozenset[str]]
"""Words that contribute to a value, by group; see `contributing_words`."""


class Piece(NamedTuple):
    """Piece of a text; `highlighted` is whether the report highlights the piece."""

    text: str
    highlighted: bool


def examples_of(quotes: Sequence[Quote], words: Words | None) -> list[dict[str, Any]]:
    """Return the examples of an item; answers with the same value of `set` are shown side by side.

    Args:
        quotes: the answers.
        words: words to highlight, by group. `None`: highlight nothing, for an item without a significant change. Empty
            mapping: highlight differences between the answer and another answer. The first answer is compared with the
            second, each further answer with the first, and the baseline's answer with the current answer.
    """

    def pieces(quote: Quote, text: str, against: str) -> list[Piece]:
        if words == {}:
            return highlight_differences(text, against)
        by_group = words or {}
        return highlight(text, by_group.get(quote.group, frozenset()) | by_group.get("", frozenset()))

    sets: defaultdict[object, list[Quote]] = defaultdict(list)
    for quote in quotes:
        sets[quote.set].append(quote)
    examples = []
    for own in list(sets.values())[:MAX_EXAMPLES]:
        first = own[0]
        common = [part for part in first.labels.items() if all(part in other.labels.items() for other in own)]
        about = [f"{name}: {value}" for name, value in common]
        about += [f"trial {first.trial + 1}"] if first.prompt is not None else []
        sides = []
        for place, quote in enumerate(own):
            text, other = quote.text or "", own[1 if place == 0 and len(own) > 1 else 0]
            before = None if quote.before is None else pieces(quote, quote.before, text)
            sides.append({"quote": quote, "answer": pieces(quote, text, other.text or ""), "before": before})
        examples.append({"about": "; ".join(about), "sides": sides})
    return examples


def highlight(text: str, words: Set[str]) -> list[Piece]:
    """Return the text in pieces, in which `words` (case-folded) are highlighted."""
    pieces = _PIECES.findall(text) if words else [text]
    return _merged(Piece(piece, piece.casefold() in words) for piece in pieces if piece)


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
        Piece(part, place < MAX_COMPARED and place not in equal and any(map(str.isalnum, part)))
        for place, part in enumerate(parts)
    )


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    runs = groupby(pieces, key=lambda piece: piece.highlighted)
    return [Piece("".join(piece.text for piece in run), highlighted) for highlighted, run in runs]


def contributing_words(view: ItemView) -> dict[str, frozenset[str]]:
    """Return the case-folded words that contribute most to an item's value, by the group that uses them more.

    Words that belong to no single group are under an empty name. If the groups' use of some words differs more than in
    the baseline, only these words are returned.
    """
    by_group: defaultdict[str, set[str]] = defaultdict(set)
    for word in view.explanation.words:
        by_group[word.group].add(word.name.casefold())
    return {group: frozenset(own) for group, own in by_group.items()}


# Rendering of templates. All values are escaped, and an undefined name is an error.

REQUIRED_PACKAGES = ("jinja2", "vl_convert")
INLINED = {"style": "style.css", "script": "script.js"}
MISSING = "–"


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
    hashes = {
        name: f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
        for name, text in inlined.items()
    }
    # The ids of the charts of a page are their numbers.
    numbers = count(1)
    draw = partial(_drawn, numbers)
    return _environment().get_template(template).render(hashes=hashes, drawn=draw, **inlined, **values)


def _drawn(numbers: Iterator[int], chart: Chart, draws: bool = True) -> str:
    name = f"chart-{next(numbers)}"
    return svg(chart, name) if chart.spec and draws else ""


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
        "number": number,
        "cell": cell,
        "duration": duration,
        "money": formatting.money,
        "status": status_in_words,
    }
    # Used only for files of this package, and for charts, in which Vega escapes all texts.
    environment.globals |= {"trusted": lambda text: Markup(text), "MAX_ROWS": MAX_ROWS}  # noqa: S704 - see above
    return environment


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
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(part) for key, part in value.items()}
    return [clean(part) for part in value] if isinstance(value, Sequence) else value
