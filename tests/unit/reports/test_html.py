"""The HTML report: content, accessibility and escaping."""

import base64
import hashlib
import re
import sys
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Comparison, ItemResult, Json, Measurement, Quote, VerdictName
from pytest_fairness.reports import html
from pytest_fairness.reports.report_items import verdict_counts
from pytest_fairness.reports.view import views
from tests.support.pages import Element, Page
from tests.support.results import DETAILS, explained, report, result, with_finding

HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=document.title='owned'>",
    "</style></title></textarea></script><svg onload=document.title='owned'>",
    '"><a href="javascript:alert(1)">x</a><base href=//evil.example>',
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--",
    "\x00\x1b[31m\ud800 \u202eback\u202c",
    "' style='position:fixed' x='",
)
LISTS: dict[str, Json] = {
    "similarity": {
        "a young": {"mean": 0.4, "sd": 0.1, "entities": 9, "interval": [0.3, 0.5]},
        "an old": {"mean": 0.7, "sd": 0.1, "entities": 9, "interval": [0.6, 0.8]},
    },
    "noise_floor": {"mean": 0.8, "entities": 9},
    "by_entity": {"baking": {"a young": 0.2, "an old": 0.9}},
    "measure": "jaccard",
}
CELLS: dict[str, Json] = {
    "cells": {
        "she, feminine first": {"stereotypical": 5, "anti_stereotypical": 1, "ambiguous": 2, "unparsed": 0},
        "he, feminine first": {"stereotypical": 4, "anti_stereotypical": 3, "ambiguous": 0, "unparsed": 1},
    }
}
FLIPS: dict[str, Json] = {"flips": [{"record": "12", "education": "school", "Male": "yes", "Female": "no"}]}
RATIOS: dict[str, Json] = {"ratio": {"nurse": 0.9, "ceo": 0.4}}


def with_details(audit: str, details: Json, verdict: VerdictName = VerdictName.REGRESSION, **more: Any) -> Any:
    measurement = Measurement(0.5, (0.4, 0.6), 0.05, 0.001, {"Black": 45, "White": 44}, {"White": 1}, details)
    return result(verdict, audit=audit, measurement=measurement, **more)


def example(group: str, text: str | None, **more: Any) -> Quote:
    return Quote(group, text, prompt=f"Recommend something to a {group} person.", labels={"race": group}, **more)


EXAMPLES = [
    example("Black", "A rich hair oil.", before="A lamp."),
    example("White", "A silk tie.", status="refused"),
]
TREND = [
    {"started": f"2026-01-0{day}T00:00:00Z", "tool": "t", "value": value, "interval": None, "verdict": verdict}
    for day, value, verdict in ((1, 0.1, "pass"), (2, 0.2, "regression"), (3, None, "error"))
]
RUN = report(
    *(result(verdict, value=verdict.value) for verdict in VerdictName if verdict is not VerdictName.MEASURED),
    *(with_details(audit, DETAILS[audit], value="Black") for audit in ("svm", "marked_words")),
    explained(result(VerdictName.REGRESSION, probe="letters", category="hiring"), examples=EXAMPLES),
    with_details("snsr", LISTS),
    with_details("coreference", CELLS),
    with_details("flip_rate", FLIPS),
    with_details("markers", RATIOS),
    with_details("of a stranger", {"x": [{"a": 1, "b": None}], "y": 3, "z": {"k": [1, 2]}}),
)


@pytest.fixture(scope="module")
def text() -> str:
    return html.report(RUN, {("letters", "jsd[race=Black]"): TREND})


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_has_one_script_of_its_own_and_no_external_resources(page: Page) -> None:
    (script,) = page.all("script")
    assert script.text == (files("pytest_fairness.reports") / "templates" / "script.js").read_text("utf-8")
    assert not page.all("iframe", "object", "embed", "link", "base", "img", "foreignobject", "use")
    for element in page.elements:
        for name, value in element.attributes.items():
            assert not name.startswith("on"), element
            assert name != "style", element
            if name in ("href", "src", "xlink:href", "action"):
                assert value is not None
                assert value.startswith("#"), element


def test_the_security_policy_allows_only_style_sheet_and_script(page: Page) -> None:
    (policy,) = [
        str(meta.attributes["content"])
        for meta in page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,), (script,) = page.all("style"), page.all("script")
    hashes = [base64.b64encode(hashlib.sha256(each.text.encode()).digest()).decode() for each in (style, script)]
    assert policy == (
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'"
    ).format(*hashes)
    assert "url(" not in style.text
    assert "@import" not in style.text


def test_the_page_structure_suits_screen_readers(page: Page) -> None:
    (root,) = page.all("html")
    assert root.attributes["lang"] == "en"
    for tag in ("h1", "main", "header", "footer", "nav", "title"):
        assert len([element for element in page.all(tag) if "svg" not in element.inside]) == 1, tag
    levels = [int(heading.tag[1]) for heading in page.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    named = [
        str(element.attributes[name])
        for element in page.elements
        for name in ("aria-labelledby", "href")
        if element.attributes.get(name)
    ]
    assert {part.lstrip("#") for value in named for part in value.split()} <= set(ids)


def test_tables_have_captions_and_headings(page: Page) -> None:
    tables = page.all("table")
    assert len(tables) > 20
    assert all(table.children[0] == "caption" for table in tables)
    assert all(head.attributes["scope"] in ("row", "col") and head.text for head in page.all("th"))


def test_every_chart_has_a_description_and_a_table(page: Page, text: str) -> None:
    charts = [each for each in page.all("svg") if "figure" in each.inside]
    assert len(charts) > 10
    assert all(each in charts or each.attributes["aria-hidden"] == "true" for each in page.all("svg"))
    for chart in charts:
        assert chart.attributes["role"] == "img"
        assert chart.children[:2] == ["title", "desc"]
    assert text.count("<figure") == len(charts)
    assert all("details" in figure.children for figure in page.all("figure"))


def items_of(page: Page) -> list[Element]:
    return [each for each in page.all("details") if str(each.attributes.get("class")).startswith("item ")]


def test_the_worst_outcome_comes_first_and_failures_are_open(page: Page) -> None:
    places = [int(str(item.attributes["data-verdict"])) for item in items_of(page)]
    assert len(places) == len(RUN["items"])
    assert places == sorted(places)
    opened = [str(item.attributes["class"]).split()[1] for item in items_of(page) if "open" in item.attributes]
    assert opened == ["failed"] * 10


def test_filters_name_what_the_items_have(page: Page) -> None:
    (form,) = page.all("form")
    assert "hidden" in form.attributes  # shown by the script, without which it could do nothing
    verdicts = list(verdict_counts(views(RUN)))
    assert [each.text for each in page.all("option")][: len(verdicts) + 4] == [
        "all",
        *verdicts,
        "all",
        "letters",
        "products",
    ]
    found = {(item.attributes["data-verdict"], item.attributes["data-group"]) for item in items_of(page)}
    assert {verdict for verdict, _ in found} == {str(place) for place in range(len(verdicts))}


def test_the_summary_says_what_was_audited_and_what_was_found(page: Page) -> None:
    (header,) = page.all("header")
    about = " ".join(header.text.split())
    assert "Audited: openai:model, 2026-01-02 03:04 UTC, by pytest-fairness 1.2.3, with 225 answers." in about
    assert "2 probes: letters, products." in about
    (banner,) = [each for each in page.all("div") if str(each.attributes.get("class")).startswith("banner")]
    said = " ".join(banner.text.split())
    assert said.startswith("✗ 9 of 16 checks got worse, 1 is over its limit, 1 could not be measured,")


def moved(verdict: VerdictName, value: str, *, significant: bool, audit: str = "jsd") -> ItemResult:
    one = result(verdict, value=value, audit=audit)
    contributors = ("hair", "oil") if significant else ()
    return replace(one, verdict=replace(one.verdict, significant=significant, contributors=contributors))


def test_the_summary_names_the_affected_their_words_and_who_is_not() -> None:
    run = report(
        moved(VerdictName.REGRESSION, "Black", significant=True),
        moved(VerdictName.REGRESSION, "Black", significant=True, audit="svm"),
        moved(VerdictName.INCONCLUSIVE, "Asian", significant=False),
        moved(VerdictName.PASS, "Latino", significant=True),
        moved(VerdictName.PASS, "age", significant=False),
    )
    page = Page(html.report(run))
    (banner,) = [each for each in page.all("div") if str(each.attributes.get("class")).startswith("banner")]
    assert " ".join(banner.text.split()) == "✗ 2 of 5 checks got worse, 1 is inconclusive; 2 passed."
    (found,) = [each for each in page.all("div") if each.attributes.get("class") == "findings"]
    assert " ".join(found.text.split()) == (
        "products: Answers for Black say hair and oil more often than answers for White; answers for White say tie "
        "more often than answers for Black. "
        "Up to 2.17 times what is allowed. Most affected: Black (2 checks). No significant change: age."
    )
    assert [each.text for each in page.all("em")] == ["hair", "oil", "tie"]


def test_the_and_of_a_list_of_words_is_not_highlighted() -> None:
    found = moved(VerdictName.REGRESSION, "Black", significant=True)
    assert found.measurement is not None
    words = [{"word": word, "bits": 0.01, "side": "marked"} for word in ("hair", "and", "oil")]
    measurement = replace(found.measurement, details={**found.measurement.details, "contributions": words})
    told = explained(replace(found, measurement=measurement), finding=found.explanation.finding)
    page = Page(html.report(report(told)))
    assert [each.text for each in page.all("em")] == ["hair", "oil"]


@pytest.mark.parametrize(
    ("verdict", "more", "amount"),
    [
        (VerdictName.OVER_LIMIT, {"limit": 0.0, "comparison": None}, "0.0612 bits (limit 0)."),
        (VerdictName.REGRESSION, {"tolerance": 0.0}, "worse by 0.0434 bits (allowed 0)."),
    ],
)
def test_the_summary_says_how_much_even_if_nothing_is_allowed(
    verdict: VerdictName, more: dict[str, Any], amount: str
) -> None:
    found = result(verdict, **more)
    found = with_finding(found)
    page = Page(html.report(report(replace(found, verdict=replace(found.verdict, contributors=("hair",))))))
    (said,) = [each for each in page.all("div") if each.attributes.get("class") == "findings"]
    assert f"more often than answers for Black. {amount} Most affected" in " ".join(said.text.split())


def test_a_word_of_the_list_is_plain_elsewhere_in_the_sentence() -> None:
    one = moved(VerdictName.REGRESSION, "Black", significant=True)
    assert one.measurement is not None
    words = [{"word": word, "bits": 0.01, "share": 0.1, "side": "marked"} for word in ("answers", "say", "oil")]
    one = replace(one, measurement=replace(one.measurement, details={"contributions": words}))
    one = with_finding(one)
    page = Page(html.report(report(one)))
    assert [each.text for each in page.all("em")] == ["answers", "say", "oil"]


def test_a_first_run_is_not_red() -> None:
    page = Page(html.report(report(*(result(VerdictName.NO_BASELINE, value=value) for value in "ab"))))
    (banner,) = [each for each in page.all("div") if str(each.attributes.get("class")).startswith("banner")]
    assert banner.attributes["class"] == "banner inconclusive"
    assert banner.text.split(" ", 1)[1].strip() == (
        "No regression found, but 2 of 2 checks have no baseline yet; 0 passed."
    )
    assert not any("open" in item.attributes for item in items_of(page))


def test_measurements_without_verdict_begin_with_the_largest_effect() -> None:
    run = report(*(result(VerdictName.MEASURED, value=value) for value in "abc"))
    for item, size in zip(run["items"], ("none", "small", "large"), strict=True):
        item["effect"] = {**(item.get("effect") or {}), "size": size, "description": size}
    shown = [str(item.text) for item in items_of(Page(html.report(run)))]
    assert [next(value for value in "abc" if f"jsd[race={value}]" in text) for text in shown] == ["c", "b", "a"]


def test_noise_is_no_cause() -> None:
    one = explained(moved(VerdictName.INCONCLUSIVE, "Black", significant=False), examples=EXAMPLES)
    page = Page(html.report(report(one)))
    assert "Evidence" not in items_of(page)[0].text
    assert not page.all("mark")
    one = explained(moved(VerdictName.REGRESSION, "Black", significant=True), examples=EXAMPLES)
    page = Page(html.report(report(one)))
    assert "Evidence" in items_of(page)[0].text
    assert [each.text for each in page.all("mark")] == ["hair", "oil", "tie"], "each in the answer of its group"


def marks(*items: ItemResult) -> list[float]:
    """Places of the marks in the picture of all checks, in percent of its width, in the order of the rows."""
    page = Page(html.report(report(*items)))
    shapes = [each for each in page.all("path") if each.attributes.get("class") == "shape" and "li" in each.inside]
    return [float(str(each.attributes["transform"]).removeprefix("translate(").split()[0]) / 2 for each in shapes]


def test_the_picture_of_all_checks_shows_each_in_units_of_what_is_allowed() -> None:
    def changed(change: float, verdict: VerdictName) -> ItemResult:
        return result(verdict, value=f"by {change}", comparison=Comparison(change, (change, change), 0.02, 0.2))

    # The scale goes from -1 to 3 times the tolerance, which is 0.02: the baseline is at 25, the tolerance at 50.
    items = [changed(0.02, VerdictName.REGRESSION), changed(0.0, VerdictName.PASS), changed(-0.01, VerdictName.PASS)]
    assert marks(*items) == [50, 25, 12.5]
    assert marks(changed(7.0, VerdictName.REGRESSION)) == [96], "beyond the end, it is drawn near the end"
    alone = replace(result(VerdictName.OVER_LIMIT), comparison=None, limit=0.0612345 / 2)
    assert marks(alone) == [75], "0 is at 25, and the limit of half the value at 50"
    assert marks(replace(alone, limit=None)) == []


def test_groups_and_audits_are_a_table_if_there_are_several() -> None:
    several = [result(VerdictName.PASS, value=value, audit=audit) for value in "ab" for audit in ("jsd", "svm")]
    page = Page(html.report(report(*several)))
    cells = [each.text for each in page.all("th", "td")][: 3 * 3]
    assert cells == ["", "jsd", "svm", *("a", "✓ pass", "✓ pass"), *("b", "✓ pass", "✓ pass")]
    assert "Groups and audits" not in html.report(report(*several[:2]))


def test_measurements_begin_with_a_picture_for_each_audit() -> None:
    run = report(*(result(VerdictName.MEASURED, value=value) for value in "abc"))
    page = Page(html.report(run))
    first = page.all("figure")[0]
    assert first.text.split()[0] == page.all("figcaption")[0].text.split()[0] == "Different"
    assert all(f"jsd[race={value}]" in first.text for value in "abc")


def test_pictures_only_of_what_failed_or_changed() -> None:
    def drawn(verdict: VerdictName, interval: tuple[float, float]) -> int:
        one = result(verdict, comparison=Comparison(0.01, interval, 0.02, 0.2))
        return html.report(report(one)).count("<figure")

    assert drawn(VerdictName.PASS, (-0.01, 0.02)) == 0
    assert drawn(VerdictName.PASS, (0.001, 0.02)) == drawn(VerdictName.REGRESSION, (-0.01, 0.02)) == 2


def test_thousands_of_items_give_a_small_page() -> None:
    same = Comparison(0.0, (-0.01, 0.01), 0.005, 0.5)
    run = report(*(result(VerdictName.PASS, value=f"group {number}", comparison=same) for number in range(250)))
    fewer = {**run, "items": run["items"][:230]}
    assert len(items_of(Page(written := html.report(run)))) == 250
    assert (len(written) - len(html.report(fewer))) / 20 * 5000 < 10_000_000
    assert (
        "This page has no charts, examples and tables of the other checks; the JSON report has their data." in written
    )


@pytest.mark.parametrize(
    "shown",
    [
        "Words by contribution to the Jensen-Shannon divergence",
        "Words that distinguish the groups",
        "Words by z, the standardised log-odds ratio; filled bars are significant",
        "Similarity to the neutral list, by value of the attribute, with 95 % confidence intervals",
        "Kinds of answers, by type of sentence or question",
        "Records whose answer changes when the attribute is flipped",
        "Stereotype ratio by case",
        "Current value and baseline; shaded: within tolerance",
        "Value in the last 2 runs with new answers",
        "A rich hair oil.",
        "The baseline’s answer",
        "(refused)",
        "By category",
        "no prices are configured",
        "of a stranger[race=Black]",
    ],
)
def test_the_page_shows(page: Page, shown: str) -> None:
    (body,) = page.all("body")
    assert shown in " ".join(body.text.split())


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_text(hostile: str, page: Page) -> None:
    details: Json = {
        "contributions": [{"word": hostile, "bits": 0.1, "share": 0.2, "side": "marked"}],
        "similarity": {hostile: {"mean": 0.5, "interval": [0.4, 0.6], hostile: hostile}},
        hostile: {hostile: hostile, "more": [hostile]},
        "examples": [example(hostile, hostile, before=hostile, status=hostile), example("x", "y")],
    }
    one = with_details("jsd", details, probe=hostile, reason=hostile)
    run = report(replace(one, id=hostile, labels={hostile: hostile}, audit=hostile))
    run["target"] = run["tool"] = hostile
    trend = {(hostile, hostile): [{**point, "tool": hostile} for point in TREND]}
    written = html.report(run, trend)
    assert written.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", written)
    found = Page(written)
    tags = {element.tag for element in found.elements}
    assert tags <= {element.tag for element in page.elements}
    assert not any(name.startswith("on") or name == "style" for each in found.elements for name in each.attributes)
    assert {str(each.attributes["href"])[0] for each in found.all("a")} == {"#"}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text("aé<\n", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["mean", "word", "z", "x"]), inner),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["words", "grown", "contributions", "top_words", "cells", "flips", "ratio", "shares", "similarity", "examples", "q"]
)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(NAMES, ANYTHING, max_size=3))
def test_any_details_give_a_page(details: dict[str, Json]) -> None:
    Page(html.report(report(with_details("of a stranger", details)), {}))


def test_a_run_without_items_gives_a_page() -> None:
    page_without_items = html.report(report(), {})
    assert "No audit ran" in page_without_items
    assert 'href="#checks"' not in page_without_items, "there are no checks to skip to"


def luminance(colour: str) -> float:
    """Return the relative luminance by WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_have_enough_contrast_in_light_dark_and_print(page: Page) -> None:
    (style,) = page.all("style")
    palettes = [
        dict(re.findall(r"--([a-z]+): (#\w{6})", part))
        for part in re.findall(r":root \{(.*?)\}", style.text, re.DOTALL)
    ]
    assert len(palettes) == 3
    for palette in palettes:
        for text in ("text", "muted", "link", "passed", "failed", "inconclusive", "error"):
            for under in ("page", "raised"):
                assert contrast(palette[text], palette[under]) >= 4.5, (text, under, palette)
        assert contrast(palette["text"], palette["mark"]) >= 4.5
        for shape in ("first", "second", "quiet"):
            assert contrast(palette[shape], palette["page"]) >= 3, (shape, palette)
        for outcome in ("passed", "failed", "inconclusive", "error"):
            assert contrast(palette[outcome], palette["band"]) >= 3, (outcome, palette)


def test_long_tables_are_cut_with_a_note() -> None:
    details = {
        "by_entity": {f"entity {number}": {"a": 1.0} for number in range(1000)},
        "words": [{"word": f"word {number}", "z": 2.0} for number in range(1200)],
    }
    written = html.report(report(with_details("snsr", details)), {})
    assert "Further rows in the JSON report: 800." in written
    assert "Further rows in the JSON report: 1000." in written
    assert len(written) < 200_000


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    expected = r"\(jinja2 not found\)\. Install it: pip install \"pytest-fairness\[report\]\""
    with pytest.raises(FairnessError, match=expected):
        html.require_extra()


def test_the_run_names_the_models_that_the_server_reported() -> None:
    document = report(result(), result(value="Asian"))
    for item in document["items"]:
        item["details"]["served_model"] = "gpt-x-2026-05"
    assert "<dt>served model</dt><dd>gpt-x-2026-05</dd>" in html.report(document, {})
    assert "<dt>served model</dt>" not in html.report(report(result()), {})
