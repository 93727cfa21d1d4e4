"""Terminal output of `history`: values of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.items.report_items import WORDS
from pytest_fairness.reports.text_layout import cut_ids, pad, table, width_of

VALUES = "values, newest first"
VALUES_WIDTH = 20
"""Number of terminal columns that are reserved for the values."""
LEAST_NAME = 20
"""Minimum width of an item's name in columns."""
_GAP = "  "

Point = Mapping[str, Json]
"""One item in one run: `probe`, `id`, `started`, `target`, `value`, `interval`, `verdict`; for an item with a mark
`xfail`, also `status`."""


def history(points: Sequence[Point], last: int, width: int = 100) -> str:
    """Return a table with a row for each item or, if there is only one item, a row for each run.

    If several items were measured with several targets, there is a table for each target.

    Args:
        points: values of the runs, the oldest first.
        last: maximum number of runs shown for an item.
        width: maximum width of a line.
    """
    items: dict[tuple[str, str, str], list[Point]] = {}
    for point in points:
        items.setdefault((point["probe"], point["id"], point["target"]), []).append(point)
    if len({key[:2] for key in items}) == 1:
        return _runs(points[-last:], width)
    several_probes, targets = len({probe for probe, _, _ in items}) > 1, sorted({target for _, _, target in items})
    lines: list[str] = []
    for target in targets:
        rows = [
            (
                _word(own[-1]),
                str(len(own)),
                own[-1]["started"][:10],
                printable(f"{probe} {item}" if several_probes else item),
                [number(point["value"]) for point in reversed(own[-last:])],
            )
            for (probe, item, of), own in sorted(items.items())
            if of == target
        ]
        heading = [*([""] if lines else []), printable(target)] if len(targets) > 1 else []
        lines += [*heading, *_fitting(rows, width)]
    return "\n".join(lines) + "\n"


def _fitting(rows: Sequence[tuple[str, str, str, str, Sequence[str]]], width: int) -> list[str]:
    """Return the rows as lines that fit the width: long names are cut, and the oldest values are left out."""
    fixed = table([("verdict", "runs", "last run"), *(row[:3] for row in rows)], width, right=(1,))
    fixed_width = max(map(width_of, fixed))
    name_width = max(LEAST_NAME, width - fixed_width - 2 * len(_GAP) - VALUES_WIDTH)
    names = ["item", *cut_ids([row[3] for row in rows], name_width)]
    name_width = max(map(width_of, names))
    lines = []
    for cells, name, values in zip(fixed, names, ([VALUES], *(row[4] for row in rows)), strict=True):
        line = f"{pad(cells, fixed_width)}{_GAP}{pad(name, name_width)}"
        for value in values:
            if width_of(line) + len(_GAP) + len(value) > width:
                break
            line += _GAP + value
        lines.append(line)
    return lines


def _runs(points: Sequence[Point], width: int) -> str:
    rows = [
        (
            _word(point),
            point["started"].replace("T", " ").rstrip("Z"),
            number(point["value"]),
            f"[{number(point['interval'][0])}, {number(point['interval'][1])}]" if point["interval"] else "",
            point["target"],
        )
        for point in points
    ]
    first = points[0]
    head = ("verdict", "run (UTC)", "value", "95 % interval", "target")
    title = printable(f"{first['probe']} {first['id']}")
    return "\n".join([title, *table([head, *(tuple(map(printable, row)) for row in rows)], width, right=(2,))]) + "\n"


def _word(point: Point) -> str:
    return WORDS[point.get("status", point["verdict"])]
