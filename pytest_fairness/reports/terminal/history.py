"""Terminal output of `history`: values of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.text_layout import table

Point = Mapping[str, Json]
"""One item in one run: `probe`, `id`, `started`, `target`, `value`, `interval`, `verdict`."""


def history(points: Sequence[Point], last: int, width: int = 100) -> str:
    """Return a table with a row for each item; for a single item, a row for each run.

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
    several = len({target for _, _, target in items}) > 1
    rows = [
        (
            f"{probe} {item}" + (f", {target}" if several else ""),
            str(len(own)),
            own[-1]["started"][:10],
            own[-1]["verdict"],
            "  ".join(number(point["value"]) for point in reversed(own[-last:])),
        )
        for (probe, item, target), own in sorted(items.items())
    ]
    head = ("item", "runs", "last run", "verdict", "values, newest first")
    return "\n".join(table([head, *_printable(rows)], width, right=(1,))) + "\n"


def _runs(points: Sequence[Point], width: int) -> str:
    rows = [
        (
            point["started"].replace("T", " ").rstrip("Z"),
            point["target"],
            number(point["value"]),
            f"[{number(point['interval'][0])}, {number(point['interval'][1])}]" if point["interval"] else "",
            point["verdict"],
        )
        for point in points
    ]
    first = points[0]
    head = ("run (UTC)", "target", "value", "95 % interval", "verdict")
    title = printable(f"{first['probe']} {first['id']}")
    return "\n".join([title, *table([head, *_printable(rows)], width, right=(2,))]) + "\n"


def _printable(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[printable(cell) for cell in row] for row in rows]
