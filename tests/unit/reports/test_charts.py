"""Charts: content, order and description."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports import charts, html
from pytest_fairness.reports.charts import MARKS, Chart, svg
from pytest_fairness.reports.document import explanation_of
from pytest_fairness.reports.view import ItemView, views
from tests.support.results import report, result


def item(**more: Any) -> dict[str, Json]:
    (found,) = report(result(VerdictName.REGRESSION, **more))["items"]
    return dict(found)


CHARTS = {
    "words": "marked_words",
    "contributions": "word_contributions",
    "cells": "answer_counts",
    "shares": "shares",
    "grown": "grown_words",
}
"""Names of drawings by detail, as audits declare them."""


def view(details: Json, method: Json) -> ItemView:
    return ItemView({**item(), "details": details}, method)


def chart(name: str, detail: Json) -> Chart:
    found, rest = charts.detail_charts(view({name: detail}, {"charts": CHARTS}))
    assert not rest
    (one,) = found
    return one


def names(one: Chart) -> list[str]:
    return [row["name"] for row in one.spec["data"]["values"]]


def test_words_are_sorted_by_group_and_strength() -> None:
    words = [("a", 2.0, False), ("b", 6.0, True), ("c", -3.0, True), ("d", -2.5, False)]
    one = chart("words", [{"word": word, "z": z, "significant": sure} for word, z, sure in words])
    assert names(one) == ["b", "a", "d", "c"]
    assert [row["strong"] for row in one.spec["data"]["values"]] == [True, False, False, True]
    assert one.text == "more in Black: b, a; more in White: c, d."
    assert list(one.table.columns) == ["word", "z", "significant"]
    counts = [{"word": "a", "z": 2.0, "marked": 3, "unmarked": 1}]
    assert list(chart("words", counts).table.columns) == ["word", "z", "uses in Black", "uses in White"]


def test_contributions_of_the_unmarked_group_are_negative() -> None:
    parts = [("tie", 0.1, "unmarked"), ("oil", 0.3, "marked")]
    one = chart("contributions", [{"word": word, "bits": bits, "side": side} for word, bits, side in parts])
    assert [(row["name"], row["amount"]) for row in one.spec["data"]["values"]] == [("oil", 0.3), ("tie", -0.1)]
    assert [row[-1] for row in one.table.rows] == ["White", "Black"]


def test_the_chart_shows_15_words_and_the_table_all() -> None:
    one = chart("words", [{"word": f"w{number}", "z": 50.0 - number} for number in range(40)])
    assert names(one) == [f"w{number}" for number in range(15)]
    assert len(one.table.rows) == 40


def test_any_mapping_of_names_to_means_gets_a_chart() -> None:
    detail = {"old": {"mean": 0.2, "interval": [0.1, 0.3]}, "young": {"mean": 0.1, "interval": None}}
    one = chart("whatever_it_is", detail)
    assert names(one) == ["young", "old"]
    assert one.title == "Whatever it is, by name, with 95 % confidence intervals"
    found, rest = charts.detail_charts(view({"other": {"old": {"mean": 0.2}, "young": 3}}, {}))
    assert not found
    assert set(rest) == {"other"}


def test_the_similarity_of_neutral_lists_is_drawn() -> None:
    details = {"similarity": {"old": {"mean": 0.2}}, "noise_floor": {"mean": 0.625}}
    (one,), rest = charts.detail_charts(view(details, {}))
    assert one.text == "Lowest first: old 0.2. Dashed line: two neutral lists 0.625."
    assert len(one.spec["layer"]) == 4
    assert set(rest) == {"noise_floor"}


def test_an_audit_names_the_chart_of_its_detail() -> None:
    details = {"typical": {"marked": [{"word": "oil", "weight": 0.2}], "unmarked": []}, "old": {"old": 0.4}}
    method = AuditInfo(
        name="", title="", better=Direction.LOWER, tolerance=0.1, value_range=(0, 1), charts={"typical": "word_weights"}
    )
    (one,), rest = charts.detail_charts(view(details, method.to_json()))
    assert (one.title, names(one)) == ("Words that distinguish the groups", ["oil"])
    assert set(rest) == {"old"}


def test_kinds_of_answers_have_a_fixed_order() -> None:
    one = chart("cells", {"she": {"unparsed": 1, "stereotypical": 3}, "he": {"ambiguous": 2, "anti_stereotypical": 0}})
    assert list(one.table.columns) == ["type", "stereotypical", "anti-stereotypical", "ambiguous", "unparsed"]
    assert [list(row) for row in one.table.rows] == [["she", 3, None, None, 1], ["he", None, 0, 2, None]]
    bars = {(row["name"], row["part"]): row["amount"] for row in one.spec["data"]["values"]}
    assert (bars["she", "stereotypical"], bars["he", "stereotypical"], bars["she", "unparsed"]) == (3, 0, 1)


def test_flips_show_the_changed_fields_and_both_answers() -> None:
    flip = {"record": "7", "fields": {"sex": ["Male", "Female"]}, "answers": ["yes", "no"], "texts": ["Yes.", "No!"]}
    one = chart("flips", [flip])
    assert (one.spec, list(one.table.columns)) == ({}, ["record", "fields", "answers"])
    assert [list(row) for row in one.table.rows] == [["7", "sex: Male → Female", "yes → no"]]


@pytest.mark.parametrize(
    ("audit", "allowed"),
    [("jsd", (None, 0.0378)), ("pafs", (-0.0022, None)), ("refusals", (-0.0378, 0.0378)), ("marked_words", None)],
)
def test_the_range_within_tolerance_depends_on_the_direction(
    audit: str, allowed: tuple[float | None, ...] | None
) -> None:
    one = charts.baseline_change(ItemView(item(audit=audit), result(audit=audit).method))
    assert one is not None
    bands = [layer for layer in one.spec["layer"] if layer["mark"]["type"] == "rect"]
    if allowed is None:
        assert not bands
        return
    (band,) = bands[0]["data"]["values"]
    domain = bands[0]["encoding"]["x"]["scale"]["domain"]
    low, high = (end if edge is None else edge for edge, end in zip(allowed, domain, strict=True))
    assert (band["start"], band["end"]) == pytest.approx((low, high))


def test_the_limit_is_drawn_and_an_item_without_value_has_no_chart() -> None:
    one = charts.baseline_change(ItemView(item(limit=0.3), {}))
    assert one is not None
    assert "limit 0.3" in one.text
    assert charts.baseline_change(ItemView({**item(), "value": None}, {})) is None


def test_a_verdict_has_colour_and_shape() -> None:
    marks = set()
    for verdict in (VerdictName.REGRESSION, VerdictName.INCONCLUSIVE, VerdictName.PASS):
        (measured,) = views(report(result(verdict)))
        one = charts.baseline_change(measured)
        assert one is not None
        current = one.spec["data"]["values"][-1]
        marks.add((current["colour"], current["shape"]))
    assert len({colour for colour, _ in marks}) == len({shape for _, shape in marks}) == 3


def test_a_trend_has_one_date_a_day() -> None:
    runs = [
        {"started": f"2026-01-{day}T0{hour}:00:00Z", "value": 0.1, "interval": None, "verdict": "pass"}
        for day, hour in (("01", 1), ("01", 5), ("09", 1))
    ]
    one = charts.trend(runs)
    assert one is not None
    assert sorted(one.spec["layer"][0]["encoding"]["x"]["axis"]["values"]) == [runs[0]["started"], runs[2]["started"]]


def test_a_run_in_a_trend_is_marked_by_its_own_verdict() -> None:
    runs = [
        {"started": f"2026-01-0{day}T01:00:00Z", "value": 0.1, "interval": None, "verdict": verdict, **more}
        for day, (verdict, more) in enumerate(
            [
                ("no-baseline", {}),
                ("stale-baseline", {}),
                ("pass", {}),
                ("inconclusive", {}),
                ("regression", {"status": "known"}),
                ("regression", {}),
            ],
            start=1,
        )
    ]
    one = charts.trend(runs)
    assert one is not None
    shown = [(row["colour"], row["shape"]) for row in one.spec["data"]["values"]]
    outcomes = ("measured", "measured", "passed", "inconclusive", "known", "failed")
    assert shown == [MARKS[outcome] for outcome in outcomes]


def test_any_word_is_drawn_in_the_order_of_the_rows() -> None:
    words = ("zebra", "if", "apple", "datum", "it's")
    found = [{"word": word, "bits": 0.02 - place / 1000, "share": 0.1} for place, word in enumerate(words)]
    drawn = svg(chart("contributions", [{**word, "side": "marked"} for word in found]), "words")
    places = [drawn.index(f">{word}<") for word in words]
    assert places == sorted(places)


def test_an_svg_is_escaped_and_has_title_and_description() -> None:
    drawn = svg(chart("words", [{"word": "<b>&\"'", "z": 2.0}]), "chart-7")
    assert "<b>" not in drawn
    assert 'aria-labelledby="chart-7-title chart-7-text"' in drawn
    assert drawn.index('<title id="chart-7-title">') < drawn.index('<desc id="chart-7-text">')
    assert "&lt;b&gt;" in drawn


TEXTS = st.text(alphabet="ab Ä,.\n-<", max_size=60)


@given(TEXTS, TEXTS)
def test_joined_pieces_are_the_original_texts(first: str, second: str) -> None:
    left, right = html.highlight_differences(first, second), html.highlight_differences(second, first)
    assert "".join(piece.text for piece in left) == first
    assert "".join(piece.text for piece in right) == second
    assert "".join(piece.text for piece in html.highlight(first, {"a", "ab"})) == first
    if first == second:
        assert not any(piece.highlighted for piece in [*left, *right])


def test_pieces_mark_words_or_what_differs() -> None:
    expected = [("Try a ", False), ("hair", True), (" oil.", False)]
    pieces = html.highlight_differences("Try a hair oil.", "Try a silk oil.")
    assert [(piece.text, piece.highlighted) for piece in pieces] == expected
    assert [(piece.text, piece.highlighted) for piece in html.highlight("Try a hair oil.", {"hair"})] == expected


def contributing_words(details: Json) -> html.Words:
    told = {**item(), "details": details}
    return html.contributing_words(ItemView({**told, "explanation": explanation_of(told).to_json()}, {}))


def test_contributing_words_belong_to_the_group_that_uses_them_more() -> None:
    words = [
        {"word": "Hair", "z": 4.0, "significant": True, "side": "marked"},
        {"word": "nice", "z": 2.0, "significant": False},
    ]
    contributions = [{"word": "oil", "bits": 0.4, "side": "marked"}, {"word": "tie", "bits": 0.2, "side": "unmarked"}]
    found = contributing_words({"words": words, "contributions": contributions})
    assert found == {"Black": {"hair"}}
    weak = {"word": "and", "bits": 0.01, "side": "marked"}
    found = contributing_words({"contributions": [*contributions, weak]})
    assert found == {"Black": {"oil"}, "White": {"tie"}}


def test_lists_are_compared_line_by_line() -> None:
    pieces = html.highlight_differences("Red River\nLast Winter\nOld Song", "Last Winter\nRed Song\nOld Song")
    assert [piece.text for piece in pieces if piece.highlighted] == ["Red River\n"]


def test_grown_words_are_drawn_with_the_shares_of_both_runs() -> None:
    word = {"word": "gentle", "side": "unmarked", "growth": 0.4, "marked": [0.0, 0.0], "unmarked": [0.1, 0.5]}
    one = chart("grown", [word])
    assert [(row["name"], row["amount"]) for row in one.spec["data"]["values"]] == [("gentle", -0.4)]
    assert list(one.table.columns)[-2:] == ["share of the texts about Black", "share of the texts about White"]
    assert list(one.table.rows[0]) == ["gentle", "White", 0.4, "0 → 0", "0.1 → 0.5"]


def test_all_drawings_are_of_three_kinds() -> None:
    details = {
        "words": [{"word": "oil", "z": 3.0, "significant": True}],
        "cells": {"she": {"stereotypical": 3}},
        "shares": {"old": 0.4},
        "mean": {"old": {"mean": 51.0, "interval": [50.0, 52.0]}, "young": {"mean": 53.0, "interval": [52.5, 54.0]}},
        "distribution": {"old": [1.0, 2.0, 4.0], "young": [1.0, 3.0, 4.0]},
        "variants": {"plain": {"effect": "lower", "change": -0.1, "change_interval": [-0.2, -0.05]}},
    }
    found, rest = charts.detail_charts(view(details, {"charts": CHARTS}))
    assert not rest
    assert len(found) == len(details)
    assert all(svg(one, "x").startswith("<svg") for one in found)
    marks = {layer["mark"]["type"] for one in found for layer in one.spec.get("layer", [one.spec])}
    assert marks == {"bar", "rule", "point", "text", "line"}


def test_an_axis_begins_at_0_unless_large_numbers_are_close() -> None:
    def axis(*means: float) -> dict[str, Json]:
        one = chart("any", {str(place): {"mean": mean} for place, mean in enumerate(means)})
        scale: dict[str, Json] = one.spec["layer"][-1]["encoding"]["x"]["scale"]
        return scale

    assert axis(0.2, 0.3)["domain"] == [0, 1]
    assert axis(2.0, 40.0) == {"zero": True}
    low, high = axis(52.0, 55.0)["domain"]
    assert 51 < low < 52
    assert 55 < high < 56
