"""Table of items that are measured without a verdict, with their estimates, p-values and effect sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable, with_interval
from pytest_fairness.reports.items.effects import FOUND, UNKNOWN, effect_text, largest_first, p_text, size_of
from pytest_fairness.reports.items.findings import finding
from pytest_fairness.reports.items.report_items import Item
from pytest_fairness.reports.text_layout import cut_ids, table, width_of, wrap

SHOWN = 10
"""Maximum number of groups above the table, and of explanations below it."""
_HEADER = ("size", "value [95 % interval]", "p", "effect", "item")
_GAP = 2
_CHANCE = 0.05


def table_lines(items: Sequence[Item], width: int) -> list[str]:
    """Return the table of measured items; each item has one line, in which a long name is cut.

    Args:
        items: items of one probe that were measured.
        width: maximum width of a line.
    """
    rows = [_row(item) for item in largest_first(items)]
    numbers = sum(max(width_of(row[place]) for row in (_HEADER, *rows)) + _GAP for place in range(len(_HEADER) - 1))
    names = cut_ids([row[-1] for row in rows], max(width - numbers, len(_HEADER[-1])))
    return table([_HEADER, *((*row[:-1], name) for row, name in zip(rows, names, strict=True))], width)


def answer_lines(items: Sequence[Item], width: int) -> list[str]:
    """Return the number of usable and of missing answers by group, as lines of text.

    Refused answers count as missing, although the audit `refusals` uses them. If the items have different numbers of
    answers of a group, the smallest and the largest number are shown.

    Args:
        items: items of one probe that were measured.
        width: maximum width of a line.
    """
    groups: dict[str, dict[int, int]] = {}  # the most missing answers, by group and number of answers
    for item in items:
        for group in dict.fromkeys((*item["n"], *item["missing"])):
            missing = item["missing"].get(group, 0)
            lost, answers = groups.setdefault(group, {}), item["n"].get(group, 0) + missing
            lost[answers] = max(missing, lost.get(answers, 0))
    texts = []
    for group, lost in groups.items():
        missing_text = f" ({_range_text(lost.values())} missing)" if any(lost.values()) else ""
        texts.append(f"{printable(group)} {_range_text(answers - lost[answers] for answers in lost)}{missing_text}")
    more = [counted(len(texts) - SHOWN, "more group")] if len(texts) > SHOWN else []
    return wrap(f"usable answers: {', '.join([*texts[:SHOWN], *more])}", width, hanging="  ") if texts else []


def _range_text(counts: Iterable[int]) -> str:
    numbers = sorted(counts)
    low, high = numbers[0], numbers[-1]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def explanation_lines(items: Sequence[Item], methods: Mapping[str, Mapping[str, Json]], width: int) -> list[str]:
    """Return a sentence for each item, and a sentence about the number of differences that chance alone would give.

    An item's sentence states the finding or, if no difference was found, the smallest difference that would have been
    found. Equal sentences appear once, with the number of their items.

    Args:
        items: items that were measured.
        methods: descriptions of the audits, by name.
        width: maximum width of a line.
    """
    explained = [item for item in largest_first(items) if size_of(item) or _method(item, methods).get("no_effect_size")]
    by_sentence: dict[str, list[Item]] = {}
    for item in explained:
        by_sentence.setdefault(finding(item, _method(item, methods)), []).append(item)
    lines: list[str] = []
    for text, (first, *others) in list(by_sentence.items())[:SHOWN]:
        title = _method(first, methods).get("title")
        name = (
            f"{first['id']} and {len(others)} more" if others else f"{title} ({first['id']})" if title else first["id"]
        )
        lines += wrap(printable(f"{name}: {text}"), width, hanging="  ")
    if len(by_sentence) > SHOWN:
        lines.append(f"… and {len(by_sentence) - SHOWN} more")
    known = [item for item in explained if size_of(item) not in ("", UNKNOWN)]
    if known:
        differing = sum(size_of(item) in FOUND for item in known)
        lines += wrap(
            f"{differing} of {counted(len(known), 'item')} show a difference; if the groups did not differ at all, "
            f"about {number(len(known) * _CHANCE)} would still show a difference by chance.",
            width,
        )
    return lines


def _method(item: Item, methods: Mapping[str, Mapping[str, Json]]) -> Mapping[str, Json]:
    return methods.get(item["audit"], {})


def _row(item: Item) -> tuple[str, ...]:
    value = with_interval(number(item["value"]), item["interval"])
    return size_of(item) or "-", value, p_text(item), effect_text(item), printable(item["id"])
