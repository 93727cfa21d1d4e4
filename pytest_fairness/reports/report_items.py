"""What reports say of several items: counts, and tables of variants, targets and intersections."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.errors import counted
from pytest_fairness.records import Json, Size, VerdictName, target_name, without_target
from pytest_fairness.reports.formatting import cut, number, printable, signed
from pytest_fairness.reports.view import (
    FOUND,
    KNOWN,
    NO_LONGER_FAILS,
    UNEXPECTED_PASS,
    UNKNOWN,
    WORDS,
    Item,
    ItemView,
    mappings_in,
)

# What is said of many items.

SHOWN_REASONS = 2
MAX_REASON = 100


def verdict_counts(items: Iterable[ItemView]) -> dict[str, int]:
    counts = Counter(view.verdict for view in items)
    return {word: counts[word] for word in dict.fromkeys(WORDS.values()) if counts[word]}


def is_measured_only(items: Iterable[ItemView]) -> bool:
    """Return whether the run measured without verdicts: an item was measured, and no item was judged."""
    return {view.outcome for view in items} in ({"measured"}, {"measured", "error"})


def served_model_changes(items: Iterable[ItemView]) -> list[str]:
    """Return a sentence for each target whose server reports another model than in the baseline."""
    changes = {view.explanation.served_change for view in items} - {""}
    return [f"served model changed: {printable(change)}" for change in sorted(changes)]


RISK_NAMES = {
    "hazard": "hazard",
    "harm": "harm",
    "groups": "groups at risk",
    "owner": "owner",
    "threshold_because": "why these thresholds",
    "mitigation": "response",
    "review_by": "review by",
}
"""Names of the keys of a probe's block `risk`, for readers."""


def risk_table(document: Mapping[str, Json]) -> tuple[list[str], list[list[str]]] | None:
    """Return columns and rows of the table of risks, a row for each probe; `None` without any."""
    risks: Mapping[str, Mapping[str, Json]] = document.get("risks", {})
    used = [key for key in RISK_NAMES if any(key in risk for risk in risks.values())]
    rows = [
        [probe, *(", ".join(value) if isinstance(value := risk.get(key, ""), list) else value for key in used)]
        for probe, risk in sorted(risks.items())
    ]
    return (["probe", *(RISK_NAMES[key] for key in used)], rows) if rows else None


def known_failures(items: Iterable[ItemView]) -> str:
    """Return the number and reasons of known failures, as `1 known regression (ticket 12)`; empty if there are none."""
    known = [view.item for view in items if view.status == KNOWN]
    if not known:
        return ""
    regressions = all(item["verdict"] == VerdictName.REGRESSION for item in known)
    reasons = list(dict.fromkeys(printable(item["expected_failure"]["reason"]) for item in known))
    more = [f"{len(reasons) - SHOWN_REASONS} more"] if len(reasons) > SHOWN_REASONS else []
    shown = "; ".join([*(cut(reason, MAX_REASON) for reason in reasons[:SHOWN_REASONS]), *more])
    return f"{counted(len(known), 'known regression' if regressions else 'known failure')} ({shown})"


PHRASES: Mapping[str, tuple[str, str]] = {
    VerdictName.REGRESSION: ("got worse", "got worse"),
    VerdictName.OVER_LIMIT: ("is over its limit", "are over their limit"),
    VerdictName.ERROR: ("could not be measured", "could not be measured"),
    VerdictName.NOT_MEASURABLE: ("had too few usable answers", "had too few usable answers"),
    UNEXPECTED_PASS: ("passes although marked xfail", "pass although marked xfail"),
    VerdictName.STALE_BASELINE: ("has a stale baseline", "have a stale baseline"),
    VerdictName.NO_BASELINE: ("has no baseline yet", "have no baseline yet"),
    VerdictName.INCONCLUSIVE: ("is inconclusive", "are inconclusive"),
}
"""Phrases for one item and for several items by status, the worst status first; passes and known failures are left out.
"""


def run_verdict(items: Sequence[ItemView], reused: str = "") -> str:
    """Return the verdict on the run: `4 of 62 checks got worse, 3 are inconclusive; 55 passed`."""
    total, counts = counted(len(items), "check"), Counter(view.status for view in items)
    if is_measured_only(items):
        return effect_size_counts(items)
    not_passed = [(counts[name], phrases[counts[name] > 1]) for name, phrases in PHRASES.items() if counts[name]]
    passed = counts[VerdictName.PASS] + counts[NO_LONGER_FAILS]
    known = known_failures(items)
    if not not_passed and known:
        return f"{known}; {reused or 'no other check got worse'}, {passed:,} passed"
    if not not_passed:
        return f"{reused or 'No check got worse'}: {'the only check' if passed == 1 else f'all {passed:,}'} passed"
    (worst, worst_phrase), *others = not_passed
    start = (
        ""
        if known or any(counts[name] for name in (VerdictName.REGRESSION, VerdictName.OVER_LIMIT))
        else "No regression found, but "
    )
    parts = [f"{start}{worst:,} of {total} {worst_phrase}", *(f"{number:,} {phrase}" for number, phrase in others)]
    if known:
        parts.append(known)
    return f"{', '.join(parts)}; {passed:,} passed{reused and f'; {reused}'}"


def effect_size_counts(items: Sequence[ItemView]) -> str:
    """Return the number of measured items by size of effect: `3 measurements: 1 large difference, …`."""
    counts = Counter(view.size for view in items if view.item["value"] is not None)
    parts = [counted(counts[size], f"{size} difference") for size in FOUND if counts[size]]
    rest = {Size.NONE: "without a difference", UNKNOWN: "of unknown size", "": "without an effect size"}
    parts += [f"{counts[size]:,} {phrase}" for size, phrase in rest.items() if counts[size]]
    unmeasured = len(items) - counts.total()
    more = f"; {counted(unmeasured, 'item')} could not be measured" if unmeasured else ""
    return f"{counted(counts.total(), 'measurement')}, without verdicts: {', '.join(parts)}{more}"


# Results of a probe's variants, read from an item's details, and sentences about the results.

Variant = Mapping[str, Json]
"""Result of one variant; see `pytest_fairness.run.variants.with_variants`."""


def variants_of(item: Item) -> dict[str, Variant]:
    """Return each variant's result by the variant's name.

    Variants with less bias come first, then variants with an unclear effect, with more bias, and with an error.
    """
    details = item["details"].get("variants")
    if not isinstance(details, Mapping):
        return {}
    variants = {str(name): part for name, part in details.items() if isinstance(part, Mapping)}
    return dict(sorted(variants.items(), key=lambda pair: (*_rank(pair[1]), pair[0])))


def variant_sentences(item: Item) -> list[str]:
    """Return a sentence for each variant: its effect on bias, and its cost in quality and unusable answers."""
    return [f"variant {name}: {_sentence(item, variant)}" for name, variant in variants_of(item).items()]


def _rank(variant: Variant) -> tuple[int, float]:
    order = ("lower", "unclear", "higher")
    effect = variant.get("effect")
    return order.index(effect) if effect in order else len(order), variant.get("change") or 0.0


def _sentence(item: Item, variant: Variant) -> str:
    if "error" in variant:
        return f"not measured: {variant['error']}"
    change, ends = variant.get("change") or 0.0, variant.get("change_interval")
    span = "" if not ends else f" [{number(min(map(abs, ends)))}, {number(max(map(abs, ends)))}]"
    match variant.get("effect"):
        case "lower":
            text = f"less bias, by {number(abs(change))}{span}"
        case "higher":
            text = f"more bias, by {number(abs(change))}{span}"
        case _:
            signed = "" if not ends else f" [{number(ends[0])}, {number(ends[1])}]"
            text = f"no significant change, {'+' if change > 0 else ''}{number(change)}{signed}"
            text += f", because {variant['unclear']}" if variant.get("unclear") else ""
    text += f"; value {number(variant.get('value'))} instead of {number(item['value'])}"
    return "; ".join([text, *_cost(variant)])


def _cost(variant: Variant) -> list[str]:
    quality, unusable = variant.get("quality"), variant.get("unusable")
    parts = []
    if isinstance(quality, Mapping):
        ends = quality.get("interval")
        span = "" if not ends else f", change [{number(ends[0])}, {number(ends[1])}]"
        parts.append(
            f"{quality.get('measure')} {number(quality.get('value'))} instead of {number(quality.get('own'))}{span}"
        )
    if isinstance(unusable, Mapping) and (unusable.get("share") or unusable.get("own")):
        parts.append(f"unusable answers {unusable['share']:.0%} instead of {unusable['own']:.0%}")
    return parts


# Table with a row for each audit item and a column for each target, for runs with several targets.


def target_table(
    document: Mapping[str, Json], items: Iterable[ItemView], cell: Callable[[ItemView], str]
) -> tuple[list[str], list[list[str]], list[str]] | None:
    """Return the headings, a row for each audit item, and the passed items of each target; `None` for one target.

    The first column has the item's id without the target's name; in a report with several probes, it begins with the
    probe's name. `cell` returns the text of a result.
    """
    by_target: Mapping[str, Json] = document["summary"].get("by_target", {})
    rows: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for view in items:
        item = view.item
        if (name := target_name(item["id"], item["labels"])) is not None and name in by_target:
            rows[item["probe"], without_target(item["id"], name)][name] = cell(view)
    if len(by_target) < 2 or not rows:
        return None
    several = len({probe for probe, _ in rows}) > 1
    return (
        [f"@{name}" for name in by_target],
        [
            [f"{probe} {name}" if several else name, *(rows[probe, name].get(target, "") for target in by_target)]
            for probe, name in sorted(rows)
        ],
        [f"{counts['passed']} of {counts['total']} passed" for counts in by_target.values()],
    )


# Tables of intersections: the measured value of each cell, and its difference from the value of the reference cell.
#
# A cell is a combination of values of several attributes, such as Black women.
#
# An item that crosses attributes (kinds `counterfactual` and `recommendation`) holds all cells of a table. In probes
# of kind `generation`, each cell is an item, whose value is the difference from the cell of the unmarked values.

SIGNIFICANT = 0.05
"""Largest p-value with which a difference gets the marks ▲ or ▼."""
INTERSECTION_LEGEND = (
    "▲ or ▼: higher or lower than the reference (p ≤ 0.05); ▲▲: by more than the tolerance; ▲▲▲: by more than twice "
    "the tolerance."
)


@dataclass(frozen=True)
class Cell:
    """Cell of a table: its text, and how far the number is from the reference.

    Attributes:
        text: number, difference and marks.
        level: number of marks, from 0 to 3; negative if the number is lower than the reference.
    """

    text: str = ""
    level: int = 0


@dataclass(frozen=True)
class CellTable:
    """Table of the cells of one item, or of the items of one audit.

    Attributes:
        title: what the table shows.
        columns: headings; the first names the attributes of the rows.
        rows: heading and cells of each row.
        failed: whether an item of the table failed or is an error.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    failed: bool


def intersection_tables(items: Iterable[ItemView]) -> list[CellTable]:
    """Return the tables of all items that compare cells, the tables with failures first."""
    cell_tables: list[CellTable] = []
    of_items: defaultdict[tuple[str, ...], list[tuple[tuple[str, ...], ItemView]]] = defaultdict(list)
    for view in items:
        item = view.item
        cell_tables += [_table_of_detail(view, detail) for detail in mappings_in(item["details"].get("intersections"))]
        names = [name for name, value in item["labels"].items() if f"{name}={value}" in item["id"]]
        if len(names) > 1:
            cell = tuple(str(item["labels"][name]) for name in names)
            _, _, target = item["id"].rpartition("]")
            others = (str(value) for name, value in item["labels"].items() if name not in names)
            audit = ", ".join([item["audit"], *others]) + target
            of_items[item["probe"], audit, *names].append((cell, view))
    cell_tables += [_table_of_items(key, cells) for key, cells in of_items.items()]
    return sorted(cell_tables, key=lambda table: not table.failed)


def _table_of_detail(view: ItemView, detail: Mapping[str, Json]) -> CellTable:
    item = view.item
    cells: dict[tuple[str, ...], Cell] = {}
    for entry in mappings_in(detail["cells"]):
        gap = entry.get("gap")
        level = _level(gap, entry.get("p_value"), item["tolerance"])
        parts = [number(entry["value"])]
        if gap is not None:
            parts += [signed(gap), _marks(level)]
        elif entry["cell"] == detail["reference"]:
            parts.append("(reference)")
        cells[tuple(entry["cell"])] = Cell(" ".join(filter(None, parts)), level)
    quantity = f", {detail['quantity']}" if detail["quantity"] else ""
    title = f"{item['probe']} {item['id']}{quantity}"
    reference = ", ".join(detail["reference"])
    return _grid(f"{title}: differences from {reference}", detail["attributes"], cells, _is_failed(view))


def _table_of_items(key: tuple[str, ...], items: Sequence[tuple[tuple[str, ...], ItemView]]) -> CellTable:
    probe, audit, *names = key
    cells = {}
    for cell, view in items:
        item = view.item
        level = _level(item["value"], item["p_value"], item["tolerance"])
        sign = "" if view.outcome == "measured" else view.verdict.partition(" ")[0]
        cells[cell] = Cell(" ".join(filter(None, [number(item["value"]), _marks(level), sign])), level)
    failed = any(_is_failed(view) for _, view in items)
    return _grid(f"{probe} {audit}: each cell compared with the unmarked values", names, cells, failed)


def _is_failed(view: ItemView) -> bool:
    return view.outcome in ("failed", "error")


def _grid(title: str, names: Sequence[str], cells: Mapping[tuple[str, ...], Cell], failed: bool) -> CellTable:
    """Return a table: a column for each value of the last attribute, a row for each combination of the other values."""
    heads = list(dict.fromkeys(cell[:-1] for cell in cells))
    columns = list(dict.fromkeys(cell[-1] for cell in cells))
    return CellTable(
        printable(title),
        (printable(", ".join(names[:-1])), *map(printable, columns)),
        [(printable(", ".join(head)), [cells.get((*head, column), Cell()) for column in columns]) for head in heads],
        failed,
    )


def _level(gap: float | None, p_value: float | None, tolerance: float | None) -> int:
    """Return the level of a gap (see `Cell`): 0 if the gap is not significant, otherwise ±1, ±2 or ±3.

    A gap larger than the tolerance has level ±2; a gap larger than twice the tolerance has level ±3.
    """
    if not gap or p_value is None or p_value > SIGNIFICANT:
        return 0
    size = abs(gap) / tolerance if tolerance else 0.0
    marks = 1 + (size > 1) + (size > 2)
    return marks if gap > 0 else -marks


def _marks(level: int) -> str:
    return "▲" * level or "▼" * -level


# Commands that accept values as new baselines, ready to be copied into a shell.

WHOLE_FILE_FROM = 9
"""Minimum number of items of one file for which a command names the file instead of the items."""

ACCEPTABLE = {VerdictName.REGRESSION, VerdictName.STALE_BASELINE, VerdictName.NO_BASELINE}
"""Verdicts of failed items that would pass with the current values as the new baseline."""


def accept_command(
    items: Iterable[ItemView],
    options: Sequence[str] = (),
    root: str = "",
    all_items: Mapping[str, Collection[str]] | None = None,
) -> list[str] | None:
    """Return the command that accepts the current values of failed items as the new baseline.

    Items over their limit are left out, because the limit also applies to new baselines. Known failures are left out,
    because they are to be fixed later; so are items for which the working tree already has a new baseline.

    Returns:
        The unquoted words of the command; `None` if no failed item would pass with a new baseline.
    """
    items = list(items)
    acceptable = [view for view in items if view.status in ACCEPTABLE and not view.relation.get("accepted")]
    # A new baseline of the whole file would accept its known failures, too.
    incomplete_files = {view.file for view in items if view.status == KNOWN}
    nodeids = (view.item["nodeid"] for view in acceptable)
    return rebaseline_command(nodeids, options, root, all_items, incomplete_files)


def rebaseline_command(
    nodeids: Iterable[str],
    options: Sequence[str] = (),
    root: str = "",
    all_items: Mapping[str, Collection[str]] | None = None,
    incomplete_files: Collection[str] = (),
) -> list[str] | None:
    """Return the command that makes new baselines of these items.

    The command names a whole file instead of its items in three cases: all items of the file are given, at least
    `WHOLE_FILE_FROM` items are given, or the name of an item cannot be printed on a terminal.

    Args:
        nodeids: node ids, relative to pytest's rootdir.
        options: options that select the same requests as this run (`["--fairness-target", "openai:gpt-5"]`).
        root: path from the user's working directory to pytest's rootdir, such as `..`.
        all_items: node ids of all items by file; some files may be left out.
        incomplete_files: files with other items that must keep their baselines. Such a file is not named as a whole
            merely because many of its items are given.

    Returns:
        The unquoted words of the command; `None` if no items are given.
    """
    by_file: dict[str, list[str]] = defaultdict(list)
    for nodeid in sorted(set(nodeids)):
        by_file[nodeid.partition("::")[0]].append(nodeid)

    def is_named_whole(file: str, own: Sequence[str]) -> bool:
        covered = all_items is not None and set(own) >= set(all_items.get(file, [file]))
        many = len(own) >= WHOLE_FILE_FROM and file not in incomplete_files
        return covered or many or any(printable(nodeid) != nodeid for nodeid in own)

    arguments = [
        name for file, own in sorted(by_file.items()) for name in ([file] if is_named_whole(file, own) else own)
    ]
    folder = f"{root.rstrip('/')}/" if root not in ("", ".") else ""
    return ["pytest", "--fairness-rebaseline", *options, *(folder + name for name in arguments)] if arguments else None
