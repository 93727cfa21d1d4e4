"""Tables of intersections in the reports: from one item that has all cells, and from one item for each cell."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_fairness.records import Json, Measurement, VerdictName
from pytest_fairness.reports import html, markdown, report_items
from pytest_fairness.reports import terminal as summary
from pytest_fairness.reports.formatting import width_of
from pytest_fairness.reports.view import ItemView, views
from tests.support.results import report, result

CELLS = [
    {"cell": ["Male", "White"], "value": 0.4},
    {"cell": ["Male", "Black"], "value": 0.36, "gap": -0.04, "interval": [-0.1, 0.02], "p_value": 0.2},
    {"cell": ["Female", "White"], "value": 0.43, "gap": 0.03, "interval": [0.01, 0.05], "p_value": 0.01},
    {"cell": ["Female", "Black"], "value": 0.1, "gap": -0.3, "interval": [-0.4, -0.2], "p_value": 0.0001},
]


def crossed(cells: list[dict[str, Json]] = CELLS, names: tuple[str, ...] = ("sex", "race")) -> dict[str, Json]:
    """Return the report of a failed item with a table of cells; the tolerance is 0.05."""
    table = {"quantity": "", "attributes": list(names), "reference": cells[0]["cell"], "cells": cells}
    measurement = Measurement(0.3, (0.2, 0.4), 0.03, 0.001, {"Male; White": 50}, {}, {"intersections": [table]})
    item = result(VerdictName.REGRESSION, audit="demographic_parity", measurement=measurement, tolerance=0.05)
    name = f"demographic_parity[{'+'.join(names)}]"
    return report(replace(item, id=name, labels={"attribute": "+".join(names)}))


def terminal(document: dict[str, Json], width: int = 80, *, verbose: bool = False) -> list[str]:
    return [line.text for line in summary.summary(document, width, verbose=verbose)]


def test_the_table_of_an_item_with_all_cells() -> None:
    (table,) = report_items.intersection_tables(views(crossed()))
    assert table.title == "products demographic_parity[sex+race]: differences from Male, White"
    assert table.columns == ("sex", "White", "Black")
    assert [(head, [cell.text for cell in cells]) for head, cells in table.rows] == [
        ("Male", ["0.4 (reference)", "0.36 -0.04"]),
        ("Female", ["0.43 +0.03 ▲", "0.1 -0.3 ▼▼▼"]),
    ]
    assert [[cell.level for cell in cells] for _, cells in table.rows] == [[0, 0], [1, -3]]


@pytest.mark.parametrize(
    ("gap", "p_value", "tolerance", "level"),
    [
        (0.04, 0.06, 0.05, 0),
        (0.04, 0.05, 0.05, 1),
        (0.06, 0.01, 0.05, 2),
        (-0.11, 0.01, 0.05, -3),
        (0.5, 0.01, None, 1),
    ],
)
def test_marks_need_significance_and_count_tolerances(
    gap: float, p_value: float, tolerance: float | None, level: int
) -> None:
    cells = [CELLS[0], {"cell": ["Male", "Black"], "value": 0.4 + gap, "gap": gap, "p_value": p_value}]
    document = crossed(cells)
    item = {**document["items"][0], "tolerance": tolerance}
    ((_, row),) = report_items.intersection_tables([ItemView(item, {})])[0].rows
    assert row[1].level == level


def test_items_of_one_cell_each_share_a_table() -> None:
    items = []
    for verdict, race, value, p_value in (
        (VerdictName.REGRESSION, "Black", 0.05, 0.001),
        (VerdictName.PASS, "Asian", 0.01, 0.4),
    ):
        found = result(verdict, measurement=Measurement(value, (0.0, 0.1), 0.01, p_value, {}, {}))
        items.append(replace(found, id=f"jsd[race={race},gender=woman]", labels={"race": race, "gender": "woman"}))
    lexicon = replace(result(), id="lexicon[race=Black,home]", labels={"race": "Black", "lexicon": "home"})
    (table,) = report_items.intersection_tables(views(report(*items, lexicon)))
    assert table.title == "products jsd: each cell compared with the unmarked values"
    assert table.columns == ("race", "woman")
    assert {head: [cell.text for cell in cells] for head, cells in table.rows} == {
        "Black": ["0.05 ▲▲▲ ✗"],
        "Asian": ["0.01 ✓"],
    }


def test_the_terminal_shows_the_table_of_a_failed_item_within_its_width() -> None:
    lines = terminal(crossed())
    start = lines.index("products demographic_parity[sex+race]: differences from Male, White")
    assert lines[start + 1 : start + 4] == [
        "    sex     White            Black",
        "    Male    0.4 (reference)  0.36 -0.04",
        "    Female  0.43 +0.03 ▲     0.1 -0.3 ▼▼▼",
    ]
    assert max(map(width_of, lines)) <= 80


def test_a_measurement_without_verdicts_shows_every_table() -> None:
    document = crossed()
    item = {**document["items"][0], "verdict": "measured", "change": None, "baseline": None}
    assert "    Female  0.43 +0.03 ▲     0.1 -0.3 ▼▼▼" in terminal({**document, "items": [item]})


def test_a_table_that_is_too_wide_has_a_line_for_each_cell() -> None:
    races = [f"Race {number} with a long name" for number in range(6)]
    cells = [
        {"cell": [sex, race], "value": 0.4, **({"gap": -0.3, "p_value": 0.001} if number else {})}
        for number, (sex, race) in enumerate((sex, race) for sex in ("Male", "Female") for race in races)
    ]
    lines = terminal(crossed(cells))
    assert "    Female, Race 5 with a long name  0.4 -0.3 ▼▼▼" in lines
    assert max(map(width_of, lines)) <= 80


def test_three_attributes_have_rows_of_two() -> None:
    cells = [
        {"cell": [sex, race, age], "value": 0.4}
        for sex in ("M", "F")
        for race in ("W", "B")
        for age in ("young", "old")
    ]
    (table,) = report_items.intersection_tables(views(crossed(cells, ("sex", "race", "age"))))
    assert table.columns == ("sex, race", "young", "old")
    assert [head for head, _ in table.rows] == ["M, W", "M, B", "F, W", "F, B"]


def test_markdown_has_the_table_in_a_collapsed_section() -> None:
    text = markdown.report(crossed())
    assert "<summary>Intersections</summary>" in text
    assert "| Female | 0.43 +0.03 ▲ | 0.1 -0.3 ▼▼▼ |" in text


def test_the_page_shades_cells_and_keeps_their_marks_and_numbers() -> None:
    page = html.report(crossed())
    assert '<td data-label="Black" class="lower level-3">0.1 -0.3 ▼▼▼</td>' in page
    assert '<td data-label="White">0.4 (reference)</td>' in page
    assert '<a href="#intersections">Intersections</a>' in page
    # Browsers print no backgrounds unless a page asks for them.
    assert re.search(r"@media print.*\.cells td \{ print-color-adjust: exact; \}", page, re.DOTALL)


def test_reports_without_intersections_have_no_section() -> None:
    document = report(result(VerdictName.REGRESSION))
    assert report_items.intersection_tables(views(document)) == []
    assert "Intersections" not in markdown.report(document)
    assert 'id="intersections"' not in html.report(document)
    assert not any("reference" in line for line in terminal(document, verbose=True))


def test_names_cannot_add_markup() -> None:
    cells = [{"cell": ["<b>M</b>", "a|b\x1b[31m"], "value": 0.4}]
    document = crossed(cells)
    assert "<b>M</b>" not in html.report(document)
    assert "a\\|b" in markdown.report(document)
    assert "\x1b" not in "".join(terminal(document))
