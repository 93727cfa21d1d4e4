"""Writes what `calibration` and `nulls` counted into `docs/data/trust/`, and the pages that show it.

    python -m benchmarks.trust [--add] [COUNTS.jsonl ...]
    python -m benchmarks.trust --nulls [COUNTS.jsonl]
    python -m benchmarks.trust --nights
    python -m benchmarks.trust --pages

With `--add`, the tables keep the rows of the models that are not in the counts, and the picture of planted changes
stays as it is: the counts of the other models may be on another machine. With `--nulls`, only the tables of designs of
everyday use are written, from the counts of `benchmarks.nulls`; with `--nights`, that of years with a history, from
the counts of `benchmarks.nights`. With `--pages`, the pages are written from the tables
as they are, for example after a row was added by hand.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import vl_convert

from benchmarks import nights, nulls, samples
from benchmarks.calibration import CHANGED, COUNTS, FAILED, UNCHANGED, WHOLE
from pytest_fairness.records import VerdictName
from pytest_fairness.stats.intervals import wilson

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DATA = DOCS / "data" / "trust"
"""One CSV file a table, named as in `Tables`, with `-` for blanks."""
PAGE = DOCS / "explanation" / "trust.md"
APPENDIX = DOCS / "data" / "trust.md"
OVERVIEW = DOCS / "images" / "trust.svg"
PICTURE = DOCS / "images" / "trust-found.svg"
QUOTING = (ROOT / "README.md", DOCS / "faq.md", PAGE)
"""Pages that quote the share of unchanged probes that failed."""
QUOTED = re.compile(r"[\d.]+ % of [\d,]+(?=\s+probes)")
MARKED = re.compile(r"<!-- (?!end)(.+?) -->\n.*?<!-- end -->", re.DOTALL)
Table = Sequence[Sequence[str]]
"""The heading and the rows of a table."""
Tables = Mapping[str, Table]
POINT = "value > baseline + tolerance"
UNMOVED = {("lists", "uncertainty"), ("lists", "shortfall")}
"""Audits of a model in which nothing is planted for them."""
USUAL = 0.8
"""Share of runs in which a verdict is called usual: a pass where nothing changed, a failure at twice the tolerance."""
ABOUT = 0.35
"""How far a change that came about may be from one tolerance, or from two, to stand for it; in tolerances."""


@dataclass
class Cell:
    """Everything counted of one audit, in one pretended model of one size, at one planted change."""

    counts: Counter[str] = field(default_factory=Counter)
    moved: list[float] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Items judged."""
        return self.counts["n"]

    @property
    def failed(self) -> int:
        """Items that failed."""
        return sum(self.counts[name.value] for name in FAILED)

    def share(self, name: str) -> float:
        """Share of the items."""
        return self.counts[name] / self.n

    def rule(self, name: str) -> str:
        """Share of alarms by a naive rule, where it was tried."""
        known = self.counts[f"rule: {name}"]
        return f"{self.counts[f'naive: {name}'] / known:.0%}" if known else "–"


Key = tuple[str, str, float, str, bool]


def main() -> None:
    """Read the counts, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="*", type=Path, default=[COUNTS], metavar="COUNTS.jsonl")
    parser.add_argument("--add", action="store_true", help="keep the rows of other models")
    parser.add_argument("--nulls", action="store_true", help="write the tables of designs of everyday use")
    parser.add_argument("--nights", action="store_true", help="write the table of years with a history")
    parser.add_argument("--samples", action="store_true", help="write the table of names, prompts and near-copies")
    parser.add_argument("--pages", action="store_true", help="write the pages from the tables as they are")
    given = parser.parse_args()
    if given.nights:
        write({"nights": nights.table()})
    elif given.samples:
        write({"samples": samples.table()})
    elif given.nulls:
        write(nulls_tables(nulls.read(nulls.COUNTS if given.counts == [COUNTS] else given.counts[0])))
    elif not given.pages:
        cells = read(given.counts)
        counted = tables_of(cells)
        write(added(stored(), counted, {key[0] for key in cells}) if given.add else counted)
        if not given.add:
            PICTURE.write_text(picture(cells), "utf-8")
    tables = stored()
    OVERVIEW.write_text(overview(tables), "utf-8")
    for path, text in pages(tables).items():
        path.write_text(text, "utf-8")


def stored() -> dict[str, list[list[str]]]:
    """Return the tables of the files in `DATA` by name."""
    tables = {}
    for path in sorted(DATA.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.stem.replace("-", " ")] = list(csv.reader(file))
    return tables


def write(tables: Tables) -> None:
    """Replace these tables in `DATA`."""
    for name, table in tables.items():
        with (DATA / f"{name.replace(' ', '-')}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table)


def pages(tables: Tables) -> dict[Path, str]:
    """Return the text of each page that shows or quotes the tables."""
    shown = {**tables, "both errors": both_errors(tables)}
    texts = {path: path.read_text("utf-8") for path in (APPENDIX, *QUOTING)}
    for path in (APPENDIX, PAGE):
        texts[path] = MARKED.sub(lambda m: f"<!-- {m[1]} -->\n{_markdown(shown[m[1]])}\n<!-- end -->", texts[path])
    return {path: QUOTED.sub(false_alarms(tables), text) if path in QUOTING else text for path, text in texts.items()}


def false_alarms(tables: Tables) -> str:
    """Return the share of unchanged probes that failed, as the pages quote it: `0.8 % of 6,720`."""
    (row,) = [row for row in tables["by audit"] if row[0] == WHOLE]
    return f"{row[2].partition('%')[0]} % of {int(row[1]):,}"


def both_errors(tables: Tables) -> Table:
    """Return a table with both errors of each audit: unchanged items that fail, and worse items that pass."""
    everyday = {audit: f"{_share(failed)} of {n}" for audit, n, failed, *_ in tables["nulls by audit"][1:]}
    worse: dict[str, Counter[str]] = defaultdict(Counter)
    for _, _, audit, runs, change, _, _, passed in tables["found"][1:]:
        if abs(float(change) - 2) <= ABOUT:
            for whose in (audit, "all items"):
                worse[whose].update({"n": int(runs), "passed": _hits(passed, runs)})
    missed = {audit: f"{counts['passed'] / counts['n']:.1%} of {counts['n']}" for audit, counts in worse.items()}
    rows = [
        [
            audit if audit == WHOLE else f"`{audit}`",
            f"{_share(failed)} of {n}",
            everyday.get(audit, ""),
            missed.get(audit, ""),
        ]
        for audit, n, failed, *_ in tables["by audit"][1:]
    ]
    head = ["audit", "unchanged items that fail", "in designs of everyday use", "twice the tolerance worse, and pass"]
    return [head, *rows, ["all items", "", "", missed["all items"]]]


def _share(rate: str) -> str:
    """Return the share of a rate with its interval."""
    return rate.partition(" ")[0]


def _hits(rate: str, n: str) -> int:
    return round(int(n) * float(rate.partition("%")[0]) / 100)


def tables_of(cells: dict[Key, Cell]) -> dict[str, Table]:
    """Return the tables of simulated models by name."""
    return {
        "by audit": by_audit(cells),
        "enough": enough(cells),
        "boundary": boundary(cells),
        "errors": errors(cells),
        "alarms": alarms(cells),
        "found": found(cells),
        "requests": requests(cells),
    }


KNOWN = ("near-copies", "one name a group", "other topics, undeclared")
"""Designs for which the audits have no method yet, or which are wrong as they are declared."""


def nulls_tables(cells: Mapping[nulls.Key, nulls.Cell]) -> dict[str, Table]:
    """Return the tables of designs of everyday use: by design, by audit, and all counts."""
    goals = {key: cell for key, cell in cells.items() if key[0] not in KNOWN}
    sizes = {key: f"{key[0]}; {key[1]}" for key in cells}
    return {
        "nulls by design": _nulls_table("design", goals, lambda key: sizes[key]),
        "nulls by audit": _nulls_table("audit", goals, lambda key: key[2]),
        "nulls known": _nulls_table(
            "design, audit",
            {key: cell for key, cell in cells.items() if key[0] in KNOWN},
            lambda key: f"{key[0]}; {key[2]}",
        ),
        "nulls all": _nulls_table("design, audit", goals, lambda key: f"{sizes[key]}; {key[2]}"),
    }


def _nulls_table(label: str, cells: Mapping[nulls.Key, nulls.Cell], name: Callable[[nulls.Key], str]) -> Table:
    """Return a table with a row for each name: shares of wrong verdicts, coverage, and new effects that are found."""
    total: dict[str, dict[str, nulls.Cell]] = defaultdict(lambda: defaultdict(nulls.Cell))
    for key, cell in cells.items():
        total[name(key)][key[3]].add(cell)
    rows = []
    for text, states in sorted(total.items()):
        nothing, effect, new = (states[state] for state in nulls.STATES)
        same = nulls.Cell()
        same.add(nothing)
        same.add(effect)
        rows.append(
            [
                *(text, str(same.judged), _rate(same.red, same.judged), _rate(same.over, same.limited)),
                *(_percent(cell.covers, cell.intervals) for cell in (nothing, effect)),
                *(_percent(cell.change_covers, cell.change_intervals) for cell in (nothing, effect, new)),
                _percent(new.red, new.judged),
            ]
        )
    head = [label, "unchanged pairs", "regression", "over-limit", "value covered: nothing differs", "effect"]
    head += ["change covered: nothing differs", "same effect", "new effect", "new effect found"]
    return [head, *rows]


def _percent(hits: int, n: int) -> str:
    return f"{hits / n:.0%}" if n else "–"


MODEL = {"enough": 1, "boundary": 1, "errors": 1, "alarms": 0, "found": 0}
"""Column with the name of the model, by table."""


def added(old: Tables, tables: Tables, models: set[str]) -> dict[str, Table]:
    """Return the old tables with the rows of these models replaced by those of the new tables."""
    result: dict[str, Table] = {}
    for name, column in MODEL.items():
        head, *known = old[name]
        kept = [row for row in known if row[column] not in models]
        new = [row for row in tables[name][1:] if row[column] in models]
        rows = sorted([*kept, *new], key=lambda row: (row[0], row[1]) if column == 0 else (row[0], row[1], row[2]))
        if name in ("boundary", "errors"):
            rows.sort(key=lambda row: (row[1], row[2]))
        result[name] = [head, *rows]
    result["by audit"] = _by_audit_of(result["alarms"][1:])
    return result


def _by_audit_of(alarms: Table) -> Table:
    """Return the table of `by_audit`, from the rows of `alarms`, whose shares of naive rules are whole percents."""
    total: dict[str, Counter[str]] = defaultdict(Counter)
    for _, _, audit, runs, failed, point, published, *_ in alarms:
        n = int(runs)
        total[audit].update({"n": n, VerdictName.REGRESSION.value: _hits(failed, runs)})
        for share, rule in [(point, POINT), *re.findall(r"(\d+%) \((.*?)\)(?:, |$)", published)]:
            if share != "–":
                total[audit].update({f"rule: {rule}": n, f"naive: {rule}": _hits(share, runs)})
    return by_audit({("", "", 0.0, audit, False): Cell(counts) for audit, counts in total.items()})


def read(paths: Iterable[Path]) -> dict[Key, Cell]:
    """All counts of these files together."""
    cells: dict[Key, Cell] = defaultdict(Cell)
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            cell = cells[row["scenario"], row["size"], row["change"], row["audit"], row["planted"]]
            cell.counts.update(row["counts"])
            if row["moved"] is not None:
                cell.moved.append(row["moved"])
    return dict(cells)


def by_audit(cells: dict[Key, Cell]) -> Table:
    """What fails where nothing changed, whatever the model and size."""
    unchanged: dict[str, Cell] = defaultdict(Cell)
    for (_, _, change, audit, _), cell in cells.items():
        if change == 0:
            unchanged[audit].counts.update(cell.counts)
    rows = []
    for audit, cell in sorted(unchanged.items(), key=lambda item: (item[0] == WHOLE, item[0])):
        goal = "5%" if audit == WHOLE else "1%"
        rows.append([audit, str(cell.n), _rate(cell.failed, cell.n), goal, cell.rule(POINT), _published(cell)])
    return [["audit", "judged", "false alarms", "goal", "point rule", "published rule"], *rows]


def enough(cells: dict[Key, Cell]) -> Table:
    """By audit the smallest size at which unchanged runs usually pass, and at which twice the tolerance is found."""
    rows = []
    for audit in sorted({key[3] for key in cells} - {WHOLE}):
        for scenario in sorted({key[0] for key in cells if key[3] == audit}):
            own = {key: cell for key, cell in cells.items() if key[0] == scenario and key[3] == audit}
            sizes = sorted({key[1] for key in own if " to " not in key[1]}, key=_number)
            passing = next(
                ((size, cell) for size in sizes if (cell := _unchanged(own, size)) and cell.share("pass") >= USUAL),
                None,
            )
            finding = next(
                ((size, cell) for size in sizes if (cell := _moved_by(own, size, 2)) and cell.failed >= USUAL * cell.n),
                None,
            )
            if passing or finding:
                row = [audit, scenario]
                row += [passing[0], _rate(passing[1].counts["pass"], passing[1].n)] if passing else ["–", ""]
                row += [finding[0], f"{_moved(finding[1]):.1f}", *_found(finding[1])] if finding else ["–", "", "", ""]
                rows.append(row)
    head = ["audit", "model", "passes at", "unchanged runs that pass", "finds at", "change, in tolerances"]
    return [[*head, "found", "missed (pass)"], *rows]


def boundary(cells: dict[Key, Cell]) -> Table:
    """Return the table of verdicts on changes by about one tolerance."""
    rows = []
    for scenario, size, audit in sorted({(key[0], key[1], key[3]) for key in cells if key[3] != WHOLE}):
        own = {key: cell for key, cell in cells.items() if (key[0], key[1], key[3]) == (scenario, size, audit)}
        if (cell := _moved_by(own, size, 1)) is not None:
            rows.append([audit, scenario, size, str(cell.n), f"{_moved(cell):.1f}", *_found(cell)])
    return [["audit", "model", "size", "runs", "change, in tolerances", "fails", "passes"], *rows]


def errors(cells: dict[Key, Cell]) -> Table:
    """How well the standard error of the change is known, and how often its 95 % interval covers no change."""
    rows = []
    for (scenario, size, change, audit, planted), cell in sorted(cells.items(), key=_whole_last):
        n = cell.counts["errors"]
        if audit == WHOLE or n < FEWEST_ERRORS or (change and not planted) or " to " in size:
            continue
        if change and cell.n > cells[scenario, size, change, WHOLE, True].n:
            continue  # several items of the audit moved by different amounts
        mean = cell.counts["change"] / n
        deviation = math.sqrt(max(0.0, (cell.counts["change squared"] / n - mean**2) * n / (n - 1)))
        ratio = f"{math.sqrt(cell.counts['error squared'] / n) / deviation:.2f}" if deviation else "–"
        moved = f"{_moved(cell):.1f}" if change else "0"
        rows.append([audit, scenario, size, moved, str(n), ratio, "" if change else _rate(cell.counts["covers 0"], n)])
    head = [
        "audit",
        "model",
        "size",
        "change, in tolerances",
        "runs",
        "standard error / true SD",
        "95 % interval covers",
    ]
    return [head, *rows]


FEWEST_ERRORS = 20
"""Runs below which a standard deviation says little."""


def _unchanged(cells: dict[Key, Cell], size: str) -> Cell | None:
    """The unchanged runs of one size."""
    return next((cell for key, cell in cells.items() if key[1] == size and key[2] == 0), None)


def _moved_by(cells: dict[Key, Cell], size: str, tolerances: float) -> Cell | None:
    """The runs of one size whose change came about as nearly so many tolerances; `None` where none did."""
    planted = [cell for key, cell in cells.items() if key[1] == size and key[2] and key[4] and cell.moved]
    near = [cell for cell in planted if abs(_moved(cell) - tolerances) <= ABOUT]
    return min(near, key=lambda cell: abs(_moved(cell) - tolerances), default=None)


def _found(cell: Cell) -> list[str]:
    return [_rate(cell.failed, cell.n), _rate(cell.counts["pass"], cell.n)]


def alarms(cells: dict[Key, Cell]) -> Table:
    """What fails where nothing changed, by model and size."""
    rows = []
    for (scenario, size, change, audit, _), cell in sorted(cells.items(), key=_whole_last):
        if change == 0:
            told = audit != WHOLE
            rows.append(
                [
                    *(scenario, size, audit, str(cell.n), _rate(cell.failed, cell.n), cell.rule(POINT)),
                    _published(cell),
                    *([f"{cell.share('pass'):.0%}", f"{cell.share('inconclusive'):.0%}"] if told else ["", ""]),
                ]
            )
    return [
        ["model", "size", "audit", "runs", "false alarms", "point rule", "published rule", "pass", "inconclusive"],
        *rows,
    ]


def found(cells: dict[Key, Cell]) -> Table:
    """What fails where a change is planted."""
    rows = []
    for (scenario, size, change, audit, planted), cell in sorted(cells.items()):
        if change and planted and audit != WHOLE and cell.moved and _moved(cell) >= 1:
            rows.append(
                [
                    *(scenario, size, audit, str(cell.n), f"{_moved(cell):.1f}", _rate(cell.failed, cell.n)),
                    *(f"{cell.share('inconclusive'):.0%}", f"{cell.share('pass'):.0%}"),
                ]
            )
    return [
        ["model", "size", "audit", "runs", "change, in tolerances", "found", "inconclusive", "missed (pass)"],
        *rows,
    ]


def requests(cells: dict[Key, Cell]) -> Table:
    """What growing runs ask, beside runs of full size."""
    pairs = {("texts", "8 to 60 trials"): "60 trials", ("lists", "50 to 300 entities"): "300 entities"}
    rows = []
    for (scenario, size), full in pairs.items():
        shares = []
        for change in sorted({key[2] for key in cells if key[:2] == (scenario, size)}):
            key, other = ((scenario, which, change, WHOLE, change > 0) for which in (size, full))
            if key in cells and other in cells:
                growing, whole = cells[key], cells[other]
                share = growing.counts["asked"] / growing.n / (whole.counts["asked"] / whole.n)
                shares.append((share, CHANGED if change else UNCHANGED))
                failed = [_rate(cell.failed, cell.n) for cell in (growing, whole)]
                worst = max(
                    (_moved(cell) for known, cell in cells.items() if known[:3] == key[:3] and known[4] and cell.moved),
                    default=0.0,
                )
                rows.append(
                    [scenario, size, f"{worst:.1f}" if change else "0", str(growing.n), f"{share:.0%}", *failed]
                )
        if shares:
            mean = sum(share * weight for share, weight in shares) / sum(weight for _, weight in shares)
            rows.append([scenario, size, "all of these", "", f"{mean:.0%}", "", ""])
    return [
        ["model", "size", "change, in tolerances", "runs", "requests of the full size", "probe fails", "at full size"],
        *rows,
    ]


def overview(tables: Tables) -> str:
    """Return a picture of the share of unchanged items that fail, by audit and rule, as SVG."""
    rules = {
        "verdicts, simulated models": [(row[0], row[2]) for row in tables["by audit"][1:]],
        "verdicts, designs of everyday use": [(row[0], row[2]) for row in tables["nulls by audit"][1:]],
        "estimate against a fixed tolerance": [(row[0], row[4]) for row in tables["by audit"][1:]],
    }
    values = []
    for rule, rows in rules.items():
        for audit, rate in rows:
            if audit != WHOLE and rate != "–":
                share, *ends = [float(number) / 100 for number in re.findall(r"[\d.]+(?=%)", rate)]
                values.append({"audit": audit, "rule": rule, "share": share, "ends": ends or [share, share]})
    x = {"field": "share", "type": "quantitative", "axis": {"format": "%", "orient": "top"}, "scale": {"zero": True}}
    y = {"field": "audit", "type": "nominal", "title": None}
    kind = {"field": "rule", "type": "nominal", "title": None, "sort": [*rules]}
    legend = {"orient": "top", "direction": "vertical", "labelLimit": 300}
    spec = {
        "width": 420,
        "height": {"step": 15},
        "data": {"values": values},
        "layer": [
            {
                "data": {"values": [{"goal": 0.01}]},
                "mark": {"type": "rule", "strokeDash": [4, 3]},
                "encoding": {"x": {"field": "goal", "type": "quantitative"}},
            },
            {
                "mark": {"type": "rule", "opacity": 0.5},
                "encoding": {
                    "x": {
                        "field": "ends[0]",
                        "type": "quantitative",
                        "title": "unchanged items that fail (dashed: goal of 1 %)",
                    },
                    "x2": {"field": "ends[1]"},
                    "y": y,
                    "color": {**kind, "legend": legend},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 55},
                "encoding": {
                    "x": x | {"title": "unchanged items that fail (dashed: goal of 1 %)"},
                    "y": y,
                    "color": {**kind, "legend": legend},
                    "shape": {**kind, "legend": legend},
                },
            },
        ],
        "config": {"background": "white"},
    }
    return str(vl_convert.vegalite_to_svg(spec))


def picture(cells: dict[Key, Cell]) -> str:
    """Share found by how large the change is, one line an audit and size."""
    values: list[dict[str, Any]] = [
        {
            "audit": audit,
            "line": f"{scenario}, {size}",
            "moved": _moved(cell) if change else 0.0,
            "found": cell.failed / cell.n,
            "low": wilson(cell.failed, cell.n, 1.96)[0],
            "high": wilson(cell.failed, cell.n, 1.96)[1],
        }
        for (scenario, size, change, audit, planted), cell in sorted(cells.items())
        if audit != WHOLE and (planted or change == 0) and cell.moved and (scenario, audit) not in UNMOVED
    ]
    x = {
        "field": "moved",
        "type": "quantitative",
        "title": "planted change, in tolerances",
        "scale": {"domain": [0, 5], "clamp": True},
    }
    y = {"field": "found", "type": "quantitative", "title": None, "scale": {"domain": [0, 1]}, "axis": {"format": "%"}}
    line = {"field": "line", "type": "nominal", "title": None, "legend": {"orient": "bottom", "direction": "vertical"}}
    layer = [
        {"mark": {"type": "line", "point": True}, "encoding": {"x": x, "y": y, "color": line}},
        {
            "mark": {"type": "rule", "opacity": 0.4},
            "encoding": {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}, "color": line},
        },
    ]
    spec = {
        "columns": 3,
        "concat": [
            {
                "title": audit,
                "data": {"values": [value for value in values if value["audit"] == audit]},
                "layer": layer,
                "width": 200,
                "height": 150,
            }
            for audit in dict.fromkeys(value["audit"] for value in sorted(values, key=lambda value: value["audit"]))
        ],
        "resolve": {"scale": {"color": "independent"}},
        "config": {"background": "white"},
    }
    return str(vl_convert.vegalite_to_svg(spec))


def _published(cell: Cell) -> str:
    rules = [name.removeprefix("rule: ") for name in sorted(cell.counts) if name.startswith("rule: ")]
    return ", ".join(f"{cell.rule(name)} ({name})" for name in rules if name != POINT) or "–"


def _number(size: str) -> int:
    """How many answers, to put sizes in order: `15 items × 24` is 360."""
    return math.prod(int(part) for part in re.findall(r"\d+", size))


def _whole_last(item: tuple[Key, Cell]) -> tuple[str, str, bool, str]:
    scenario, size, _, audit, _ = item[0]
    return scenario, size, audit == WHOLE, audit


def _moved(cell: Cell) -> float:
    return sum(cell.moved) / len(cell.moved)


def _rate(hits: int, n: int) -> str:
    if not n:
        return "–"
    low, high = wilson(hits, n, 1.96)
    return f"{hits / n:.1%} [{low:.1%}, {high:.1%}]"


def _markdown(table: Table) -> str:
    head, *rows = table
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
