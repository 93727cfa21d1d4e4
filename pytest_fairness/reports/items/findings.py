"""Finding of an item as one line, the same in all reports.

An example is `woman vs man: +0.116 bits (allowed 0.02): nurse, care (more for woman)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.formatting import number, signed
from pytest_fairness.reports.items.effects import FOUND, size_of
from pytest_fairness.reports.items.report_items import (
    UNMARKED,
    Item,
    group_names,
    grown_words,
    is_tolerated_worsening,
    outcome,
    placebo_text,
    reason,
    unit_of,
)
from pytest_fairness.reports.items.top_contributors import sided_words

SHOWN_CONTRIBUTORS = 3


def finding(item: Item, method: Mapping[str, Json]) -> str:
    """Return the finding of an item: the compared groups, the change, the allowed change, contributors and remarks.

    For an item that is measured without a verdict, the text has the value and the size of the effect instead of the
    change. For an error, the text is the reason. The text contains words of models and probes unchanged, so that a
    report must escape the text.

    Args:
        item: an item of the report document.
        method: the document's description of the item's audit; may be empty.
    """
    if outcome(item) == "error":
        return reason(item)
    return "; ".join([*expectation(item), *_finding_parts(item, method)])


def expectation(item: Item) -> Iterator[str]:
    """Yield the reason of an item's mark `xfail` if the item fails, or advice to remove the mark if the item passes.

    Yield nothing for an item without the mark.
    """
    mark = item.get("expected_failure")
    if mark and outcome(item) == "known":
        yield f"known failure: {mark['reason']}"
    elif mark:
        yield f"no longer fails: remove the mark `xfail` ({mark['reason']})"


def _finding_parts(item: Item, method: Mapping[str, Json]) -> Iterator[str]:
    text = f"{_compared_groups(item, method)}: {amount(item, method)}"
    if item["verdict"] == VerdictName.MEASURED and size_of(item):
        if size_of(item) not in FOUND or item["concerns"]:
            yield f"{_compared_groups(item, method)}: {item['effect']['description']}"
            yield from _placebo(item)
            return
        text += f" ({size_of(item)})"
    elif item["verdict"] == VerdictName.MEASURED and (lacking := method.get("no_effect_size")):
        text += f"; no effect size: {lacking}"
    if item.get("contributors"):
        text += f": {_contributors(item)}"
    yield text
    yield from _remarks(item)


def _contributors(item: Item) -> str:
    """Return the first contributors; words are followed by the group that uses them more: `nurse (more for woman)`."""
    groups = dict(zip(("marked", "unmarked"), group_names(item), strict=True))
    sides = {
        str(word.get("word")): groups.get(str(word.get("side")), "")
        for words in reversed(sided_words(item["details"]).values())  # the first of these details prevails
        for word in words
    }
    by_group: dict[str, list[str]] = {}
    for name in item["contributors"][:SHOWN_CONTRIBUTORS]:
        by_group.setdefault(sides.get(name, ""), []).append(name)
    return "; ".join(
        f"{', '.join(names)} (more for {group})" if group else ", ".join(names) for group, names in by_group.items()
    )


def _remarks(item: Item) -> Iterator[str]:
    """Yield remarks: no baseline, reversed gap, placebo, tolerated worsening, concerns, why there is no decision."""
    match item["verdict"]:
        case VerdictName.NO_BASELINE:
            yield "no baseline and no limit"
        case VerdictName.REGRESSION | VerdictName.OVER_LIMIT:
            if item["verdict"] == VerdictName.REGRESSION and (sides := (item["change"] or {}).get("changed_sides")):
                yield f"the advantage changed sides: {sides}"
            yield from _placebo(item)
        case VerdictName.MEASURED:
            yield from _placebo(item)
        case VerdictName.PASS:
            if is_tolerated_worsening(item):
                yield "significantly worse, but within tolerance"
            yield from (concern["message"] for concern in item["concerns"])
    if item.get("undecided"):
        yield item["undecided"]


def _placebo(item: Item) -> Iterator[str]:
    """Yield the concern about the placebo; if there is none and the item has no verdict, yield the placebo's value."""
    messages = [concern["message"] for concern in item["concerns"] if concern["name"] == "placebo_effect"]
    if not messages and item["verdict"] == VerdictName.MEASURED and (placebo := placebo_text(item)):
        messages.append(f"placebo {placebo}")
    yield from messages


def _compared_groups(item: Item, method: Mapping[str, Json]) -> str:
    marked, unmarked = group_names(item)
    groups = list(item["n"] or item["missing"])
    if marked in groups:
        return f"{marked} vs {'the others' if unmarked == UNMARKED else unmarked}"
    if len(groups) == 2:
        return " vs ".join(groups)
    return ", ".join(map(str, item["labels"].values())) or str(method.get("title") or item["id"])


def amount(item: Item, method: Mapping[str, Json]) -> str:
    """Return the change and tolerance; for an item over its limit or without a comparison, the value and limit.

    Args:
        item: an item of the report document.
        method: the document's description of the item's audit; may be empty.
    """
    change, limit, tolerance = item["change"], item["limit"], item["tolerance"]
    unit = unit_of(item, method)
    if change and item["verdict"] != VerdictName.OVER_LIMIT:
        allowed = "" if tolerance is None else f" (allowed {number(tolerance)})"
        return f"{grown_words(item) or signed(change['value']) + _unit_text(unit, change['value'])}{allowed}"
    allowed = "" if limit is None else f" (limit {number(limit)})"
    return f"{number(item['value'])}{_unit_text(unit, item['value'])}{allowed}"


def _unit_text(unit: str, value: float | None) -> str:
    singular = value is not None and abs(value) == 1
    # The unit may be the name of a score, such as "politeness".
    return f" {unit.removesuffix('s') if singular and not unit.endswith('ss') else unit}" if unit else ""
