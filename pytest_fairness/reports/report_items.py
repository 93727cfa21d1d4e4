"""Items of the report document: their fields, effect sizes, variants, and tables of targets and intersections."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.errors import counted
from pytest_fairness.records import Json, Size, VerdictName, outcome_of, target_name, without_target
from pytest_fairness.reports.formatting import cut, number, printable, signed

# Functions that read and sort the items of the report document.

Item = Mapping[str, Json]
"""An item of the report document."""

SHOWN_REASONS = 2
MAX_REASON = 100
UNMARKED = "the unmarked group"

UNEXPECTED_PASS, KNOWN, NO_LONGER_FAILS = "unexpected-pass", "known", "no-longer-fails"

WORDS: Mapping[str, str] = {
    VerdictName.ERROR: "! error",
    VerdictName.NOT_MEASURABLE: "! error",
    VerdictName.REGRESSION: "✗ regression",
    VerdictName.OVER_LIMIT: "✗ over-limit",
    UNEXPECTED_PASS: "✗ passes now",
    VerdictName.STALE_BASELINE: "! stale",
    VerdictName.NO_BASELINE: "· no-baseline",
    VerdictName.INCONCLUSIVE: "? inconclusive",
    KNOWN: "~ known",
    VerdictName.MEASURED: "= measured",
    NO_LONGER_FAILS: "✓ passes now",
    VerdictName.PASS: "✓ pass",
}
"""Symbol and word of each status, the worst status first."""

WORST_FIRST = list(WORDS)


def unit_of(item: Item, method: Mapping[str, Json]) -> str:
    """Return the unit of an item's value: the unit in its details, else its audit's unit; empty without a unit.

    Args:
        item: an item of the report document.
        method: description of the item's audit in the report document.
    """
    return str((item["details"] or {}).get("unit") or method.get("unit") or "")


def severity(item: Item) -> tuple[int, float, str]:
    """Return a sort key: status (worst first), change as a multiple of the tolerance (largest first), node id."""
    change, tolerance = item["change"], item["tolerance"]
    worse = (change["value"] or 0.0) / (tolerance or 1.0) if change else 0.0
    return WORST_FIRST.index(status(item)), -worse, item["nodeid"]


def status(item: Item) -> str:
    """Return the status of an item: its verdict, if no mark `xfail` changed pytest's outcome.

    If a mark did, the status is `KNOWN` (failed as expected), `NO_LONGER_FAILS` (passed) or `UNEXPECTED_PASS` (passed,
    which the strict mark counts as a failure).
    """
    match (item.get("expected_failure") or {}).get("outcome"):
        case "xfailed":
            return KNOWN
        case "xpassed":
            return NO_LONGER_FAILS
        case "failed":
            return UNEXPECTED_PASS
    return VerdictName(item["verdict"])


def verdict_word(item: Item) -> str:
    """Return the symbol and the word of the item's status, as `✗ regression`."""
    return WORDS[status(item)]


def verdict_counts(items: Iterable[Item]) -> dict[str, int]:
    """Return the number of items for each `verdict_word`, the worst status first."""
    counts = Counter(map(verdict_word, items))
    return {word: counts[word] for word in dict.fromkeys(WORDS.values()) if counts[word]}


def outcome(item: Item) -> str:
    """Return the outcome of an item: `passed`, `failed`, `known`, `inconclusive`, `measured` or `error`."""
    return outcome_of(VerdictName(item["verdict"]), item.get("expected_failure"))


def is_measured_only(items: Sequence[Item]) -> bool:
    """Return whether the run measured without verdicts: an item was measured, and no item was judged."""
    return {outcome(item) for item in items} in ({"measured"}, {"measured", "error"})


def placebo_text(item: Item) -> str:
    """Return the value of the item's placebo swap; `unknown` if it was not measured, empty without a placebo."""
    placebo = item["details"].get("placebo")
    return "" if not placebo else number(placebo["value"]) if "value" in placebo else "unknown"


def shown_reason(item: Item) -> str:
    """Return the verdict's reason without the item id that may precede it."""
    text: str = item["reason"]
    return text.removeprefix(f"{item['id']}: ")


def served_model_changes(items: Iterable[Item]) -> list[str]:
    """Return a sentence for each target whose server reports another model than in the baseline."""
    changes = {item["details"].get("served_model_changed") for item in items} - {None}
    return [f"served model changed: {printable(change)}" for change in sorted(map(str, changes))]


def tolerated_worsenings(items: Iterable[Item]) -> list[str]:
    """Return a sentence for each passed item that is significantly worse than its baseline."""
    return [
        f"{printable(item['id'])}: significantly worse than the baseline, but within tolerance "
        f"({_worse_by(item)}, allowed {number(item['tolerance'])})"
        for item in items
        if is_tolerated_worsening(item)
    ]


def _worse_by(item: Item) -> str:
    return grown_words(item) or f"worse by {number(item['change']['value'])}"


def known_failures(items: Iterable[Item]) -> str:
    """Return the number and reasons of known failures, as `1 known regression (ticket 12)`; empty if there are none."""
    known = [item for item in items if status(item) == KNOWN]
    if not known:
        return ""
    regressions = all(item["verdict"] == VerdictName.REGRESSION for item in known)
    reasons = list(dict.fromkeys(printable(item["expected_failure"]["reason"]) for item in known))
    more = [f"{len(reasons) - SHOWN_REASONS} more"] if len(reasons) > SHOWN_REASONS else []
    listed = "; ".join([*(cut(reason, MAX_REASON) for reason in reasons[:SHOWN_REASONS]), *more])
    return f"{counted(len(known), 'known regression' if regressions else 'known failure')} ({listed})"


def grown_words(item: Item) -> str:
    """Return the change of an item that counts grown words (see the glossary) as `3 words grew`; empty for other items.

    The number of grown words is not the difference between the item's value and its baseline, so the change needs this
    wording.
    """
    change = item["change"]
    return f"{counted(int(change['value']), 'word')} grew" if change and "grown" in item["details"] else ""


SAME_ANSWERS = "same answers"
"""Text in place of the change of a run that was compared with itself."""


def change_suffix(item: Item) -> str:
    """Return a note that follows a change of stored values only; empty if answers were compared."""
    return "" if item["change"].get("from_answers", True) else " (no answers)"


def is_same_answers(item: Item) -> bool:
    """Return whether the item's answers are those of its baseline."""
    return bool((item["change"] or {}).get("same_answers"))


def is_tolerated_worsening(item: Item) -> bool:
    """Return whether an item passed although it is significantly worse than its baseline."""
    change = item["change"]
    return bool(item["verdict"] == VerdictName.PASS and change and change.get("significant") and change["value"] > 0)


def group_names(item: Item) -> tuple[str, str]:
    """Return the names of the marked and the unmarked group; an unknown name is `the marked group` or `UNMARKED`."""
    groups: Sequence[str] = list(item["n"]) or list(item["missing"])
    values = list(item["labels"].values())
    # The name of a cell consists of its values, such as "Black woman".
    names = [" ".join(map(str, values[:count])) for count in range(len(values), 1, -1)]
    marked = next((name for name in [*names, *values] if name in groups), None)
    others = [group for group in groups if group != marked]
    return marked or "the marked group", others[0] if marked and len(others) == 1 else UNMARKED


def unmarked_label(name: str) -> str:
    """Return the name of the unmarked group in a phrase: `the unmarked group (White)`."""
    return name if name == UNMARKED else f"{UNMARKED} ({name})"


def answer_status(answer: Mapping[str, Json]) -> str:
    """Return the status of an answer that the report document shows, in words; empty if it could be measured."""
    status = str(answer.get("status", "ok"))
    return {"ok": "", "blocked": "refused by the provider"}.get(status, status)


def mappings_in(value: Json) -> list[Mapping[str, Json]]:
    """Return those elements of a list that are mappings; an empty list if the value is not a list."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list | tuple) else []


# Effect sizes and p-values of the report document's items, as short texts.

UNKNOWN = "unknown"
"""Word for the size of an effect that cannot be determined, for example with too few answers."""
FOUND = (Size.LARGE, Size.MODERATE, Size.SMALL)
"""Sizes of effects that count as differences."""
_ORDER = (*FOUND, UNKNOWN, Size.NONE, "")


def size_of(item: Item) -> str:
    """Return the size of an item's effect as a word: `none` to `large`, or `UNKNOWN`; empty without an effect size."""
    effect = item.get("effect")
    return "" if effect is None else effect["size"] or UNKNOWN


def largest_first(items: Sequence[Item]) -> list[Item]:
    """Return the items sorted by the size of the effect in words: large to small, unknown, none, no effect size."""
    return sorted(items, key=lambda item: (_ORDER.index(size_of(item)), item["nodeid"]))


def effect_text(item: Item) -> str:
    """Return the effect size with its symbol, as `h 0.62`; an empty text if the item has no effect size."""
    effect = item.get("effect")
    if effect is None:
        return ""
    value = "infinite" if effect["value"] is None else number(effect["value"])
    return f"{effect['name'].removeprefix('Cohen’s ')} {value}"


def p_text(item: Item) -> str:
    """Return the p-value as text; an empty text if the item has no test."""
    p_value = item["p_value"]
    return "" if p_value is None else "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def effect_size_counts(items: Sequence[Item]) -> str:
    """Return the number of measured items by size of effect: `3 measurements, without verdicts: 1 large difference, …`.

    Args:
        items: items that were measured without verdicts, or could not be measured.
    """
    counts = Counter(size_of(item) for item in items if item["value"] is not None)
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

Cells = Mapping[str, Item]
"""The results of one audit item, by name of the target."""


def items_by_target(document: Mapping[str, Json]) -> tuple[list[str], list[tuple[str, Cells]]]:
    """Return the names of the targets, and a row for each audit item; two empty lists if the run's target has no name.

    A row has a name and the item's results by target. The name is the item's id without the target's name; in a report
    with several probes, the name begins with the probe's name.
    """
    names: list[str] = list(document["summary"].get("by_target", ()))
    rows: defaultdict[tuple[str, str], dict[str, Item]] = defaultdict(dict)
    for item in document["items"]:
        if (name := target_name(item["id"], item["labels"])) is not None and name in names:
            rows[item["probe"], without_target(item["id"], name)][name] = item
    several = len({probe for probe, _ in rows}) > 1
    return names, [(f"{probe} {name}" if several else name, rows[probe, name]) for probe, name in sorted(rows)]


def passed_items(document: Mapping[str, Json], name: str) -> str:
    """Return the number of a target's passed items: `3 of 4 passed`."""
    counts = document["summary"]["by_target"][name]
    return f"{counts['passed']} of {counts['total']} passed"


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


def intersection_tables(items: Iterable[Item]) -> list[CellTable]:
    """Return the tables of all items that compare cells, the tables with failures first."""
    cell_tables: list[CellTable] = []
    of_items: defaultdict[tuple[str, ...], list[tuple[tuple[str, ...], Item]]] = defaultdict(list)
    for item in items:
        cell_tables += [_table_of_detail(item, detail) for detail in mappings_in(item["details"].get("intersections"))]
        names = [name for name, value in item["labels"].items() if f"{name}={value}" in item["id"]]
        if len(names) > 1:
            cell = tuple(str(item["labels"][name]) for name in names)
            _, _, target = item["id"].rpartition("]")
            others = (str(value) for name, value in item["labels"].items() if name not in names)
            audit = ", ".join([item["audit"], *others]) + target
            of_items[item["probe"], audit, *names].append((cell, item))
    cell_tables += [_table_of_items(key, cells) for key, cells in of_items.items()]
    return sorted(cell_tables, key=lambda table: not table.failed)


def _table_of_detail(item: Item, detail: Mapping[str, Json]) -> CellTable:
    """Return the table of one item whose details list the cells that it compares."""
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
    return _grid(f"{title}: differences from {reference}", detail["attributes"], cells, _is_failed(item))


def _table_of_items(key: tuple[str, ...], items: Sequence[tuple[tuple[str, ...], Item]]) -> CellTable:
    """Return the table of an audit whose items each compare one cell with the unmarked values."""
    probe, audit, *names = key
    cells = {}
    for cell, item in items:
        level = _level(item["value"], item["p_value"], item["tolerance"])
        sign = "" if outcome(item) == "measured" else verdict_word(item).partition(" ")[0]
        cells[cell] = Cell(" ".join(filter(None, [number(item["value"]), _marks(level), sign])), level)
    failed = any(_is_failed(item) for _, item in items)
    return _grid(f"{probe} {audit}: each cell compared with the unmarked values", names, cells, failed)


def _is_failed(item: Item) -> bool:
    return outcome(item) in ("failed", "error")


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
