"""Charts of an item's details: words, shares, means, distributions, lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from pytest_fairness.errors import joined
from pytest_fairness.records import Json
from pytest_fairness.reports import charts, report_items
from pytest_fairness.reports.charts import FIRST, LINE, QUIET, SECOND, SHOWN, Chart, Spec, Table
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.report_items import Item, group_names, mappings_in, unmarked_label

# Charts of words that the texts of one group contain more often than the texts of the other group.


def marked_words(item: Item, detail: Json) -> Chart | None:
    """Return a chart of words' z-scores, with filled bars for significant words; `None` without words."""
    words = [word for word in mappings_in(detail) if charts.as_float(word.get("z")) is not None]
    if not words:
        return None
    columns = ("word", "z", "log_odds", "marked", "unmarked", "documents", "significant")
    heads = ("word", "z", "log-odds", *(f"uses in {name}" for name in group_names(item)), "documents", "significant")
    return _word_chart(
        item,
        "Words by z, the standardised log-odds ratio; filled bars are significant",
        [
            (str(word.get("word")), charts.as_float(word.get("z")) or 0.0, bool(word.get("significant")))
            for word in words
        ],
        axis="z",
        table=Table(heads, [[word.get(column) for column in columns] for word in words]),
    )


def grown_words(item: Item, detail: Json) -> Chart | None:
    """Return a table of the words whose difference between the groups grew since the baseline; `None` without words.

    A word's difference is the share of one group's texts that contain it, minus the share of the other group's texts.
    """
    words = mappings_in(detail)
    if not words:
        return None
    names = dict(zip(("marked", "unmarked"), group_names(item), strict=True))
    heads = (
        "word",
        "grew for",
        "growth of the difference",
        *(f"share of the texts about {name}, {run}" for name in names.values() for run in ("baseline", "current")),
    )
    rows = [
        [word.get("word"), names.get(str(word.get("side")), word.get("side")), charts.as_float(word.get("growth"))]
        + [share for side in names for share in _baseline_and_current_share(word.get(side))]
        for word in words
    ]
    text = "; ".join(
        f"grew for {unmarked_label(name) if side == 'unmarked' else name}: {joined(own)}"
        for side, name in names.items()
        if (own := [str(word.get("word")) for word in words if word.get("side", "marked") == side])
    )
    return Chart("Words whose difference between the groups grew since the baseline", f"{text}.", Table(heads, rows))


def _baseline_and_current_share(shares: Json) -> list[float | None]:
    """Return the share of texts that contain a word, in the baseline and in this run; `None` for an unknown share."""
    known = list(shares)[:2] if isinstance(shares, list | tuple) else []
    return [charts.as_float(share) for share in [*known, None, None][:2]]


def word_contributions(item: Item, detail: Json) -> Chart | None:
    """Return a chart of the words' contributions to the divergence; `None` without words.

    Each bar points to the group that uses the word more.
    """
    words = [word for word in mappings_in(detail) if charts.as_float(word.get("bits")) is not None]
    if not words:
        return None
    signed = [
        (
            str(word.get("word")),
            (charts.as_float(word.get("bits")) or 0.0) * (-1 if word.get("side") == "unmarked" else 1),
            True,
        )
        for word in words
    ]
    names = dict(zip(("marked", "unmarked"), group_names(item), strict=True))
    rows = [
        [word.get("word"), word.get("bits"), word.get("share"), names.get(str(word.get("side")), word.get("side"))]
        for word in words
    ]
    return _word_chart(
        item,
        "Words by contribution to the Jensen-Shannon divergence",
        signed,
        axis="bits",
        table=Table(("word", "bits", "share of total", "more in"), rows),
    )


def function_words(item: Item, detail: Json) -> Chart | None:
    """Return the chart of `distinguishing` for function words, such as "the"."""
    return distinguishing_words(item, detail, "Function words that distinguish the groups")


def distinguishing_words(item: Item, detail: Json, title: str = "Words that distinguish the groups") -> Chart | None:
    """Return a chart of the words with the largest weights; `None` without weights.

    The weight of a word is its weight in a classifier, or the difference between its mean TF-IDF in the two groups.
    """
    if not isinstance(detail, Mapping):
        return None
    weights: dict[str, float] = {}
    for side, sign in (("marked", 1.0), ("unmarked", -1.0)):
        for word in mappings_in(detail.get(side)):
            weight = charts.as_float(word.get("weight"))
            if weight is not None:
                weights[str(word.get("word"))] = sign * abs(weight)
    if not weights:
        return None
    marked_name, unmarked_name = group_names(item)
    rows = [[word, abs(weight), marked_name if weight > 0 else unmarked_name] for word, weight in weights.items()]
    return _word_chart(
        item,
        title,
        [(word, weight, True) for word, weight in weights.items()],
        axis="weight",
        table=Table(("word", "weight", "typical of"), rows),
    )


def term_rates(item: Item, detail: Json) -> Chart | None:
    """Return a chart of the terms of a lexicon, with the difference between the two groups' rates of each term.

    The rates are uses per 100 words. The result is `None` without terms.
    """
    shown_terms = [term for term in mappings_in(detail) if charts.as_float(term.get("gap")) is not None]
    columns = ("term", "marked", "unmarked", "gap", "documents")
    heads = ("term", *(f"per 100 words in {name}" for name in group_names(item)), "difference", "documents")
    return _word_chart(
        item,
        "Terms of the lexicon by difference between the groups, in uses per 100 words",
        [(str(term.get("term")), charts.as_float(term.get("gap")) or 0.0, True) for term in shown_terms],
        axis="difference",
        table=Table(heads, [[term.get(column) for column in columns] for term in shown_terms]),
    )


def _word_chart(
    item: Item, title: str, words: Sequence[tuple[str, float, bool]], *, axis: str, table: Table
) -> Chart | None:
    """Return a chart with a bar for each word; bars for amounts above 0 point to the right.

    Args:
        item: item of the report document.
        title: caption of the chart.
        words: for each word, the word, its amount, and whether its bar is filled.
        axis: title of the axis.
        table: the numbers of the chart.
    """
    marked_name, unmarked_name = group_names(item)
    right = sorted((word for word in words if word[1] > 0), key=lambda word: -word[1])[:SHOWN]
    left = sorted((word for word in words if word[1] < 0), key=lambda word: word[1])[:SHOWN]
    shown = [*right, *reversed(left)]
    if not shown:
        return None
    text = "; ".join(
        f"more in {name}: {joined([word for word, _, _ in side])}"
        for name, side in ((marked_name, right), (unmarked_name, left))
        if side
    )
    rows = [{"name": word, "amount": amount, "strong": strong} for word, amount, strong in shown]
    ends = (f"← more in {unmarked_name}" if left else "", axis, f"more in {marked_name} →" if right else "")
    return Chart(title, f"{text}.", table, charts.diverging_bars(rows, " · ".join(end for end in ends if end)))


# Charts with one number per name: stereotype ratios by case, shares by group, impact ratios.


def ratio_by_case(item: Item, detail: Json) -> Chart | None:
    """Return a chart of each case's stereotype ratio, with a line at 0.5 (balance); `None` without ratios."""
    return _rates(item, detail, "ratio", "Stereotype ratio by case", balance=0.5)


def share_by_group(item: Item, detail: Json) -> Chart | None:
    """Return a chart with a share for each group, such as its share of refused answers; `None` without shares."""
    return _rates(item, detail, "share", "Share by group")


def impact_ratios(item: Item, detail: Json) -> Chart | None:
    """Return a chart of each group's impact ratio, with a line at the limit, if there is one; `None` without groups."""
    groups = mappings_in(detail)
    if not groups:
        return None
    rows: list[dict[str, Json]] = []
    table: list[list[Json]] = []
    highest = 1.0
    for group in groups:
        name, ratio, ends = (
            str(group["group"]),
            charts.as_float(group["ratio"]),
            charts.interval_of(group["ratio_interval"]),
        )
        if ratio is not None:
            rows.append({"name": name, "mean": ratio, **({"low": ends[0], "high": ends[1]} if ends else {})})
        highest = max(highest, ends[1] if ends else 1.0)
        note = f"left out: {group['left_out']}" if group["left_out"] else "" if ends else "most selected"
        table.append([name, *(group[key] for key in ("records", "hits", "rate", "ratio", "ratio_interval")), note])
    spec = charts.interval_plot(rows[: 2 * SHOWN], "impact ratio", domain=(0, highest))
    if (limit := charts.as_float(item["limit"])) is not None:
        spec["layer"] += charts.reference_line(limit, "limit")
    ratios = joined([f"{row['name']} {number(row['mean'])}" for row in sorted(rows, key=lambda row: row["mean"])])
    return Chart(
        "Impact ratio by group, with 95 % confidence intervals",
        f"Lowest first: {ratios}.",
        Table(("group", "records", "selected", "selection rate", "impact ratio", "95 % interval", "note"), table),
        spec,
    )


def _rates(item: Item, detail: Json, key: str, title: str, *, balance: float | None = None) -> Chart | None:
    if not isinstance(detail, Mapping) or not detail:
        return None
    known: dict[str, float] = {}
    for name, part in detail.items():
        value = charts.as_float(part.get(key, part.get("mean"))) if isinstance(part, Mapping) else charts.as_float(part)
        if value is not None:
            known[str(name)] = value
    if len(known) < len(detail):
        return means(item, key, detail)
    order = sorted(known, key=lambda name: -known[name])
    domain = (0, 1) if all(0 <= value <= 1 for value in known.values()) else None
    spec = charts.interval_plot(
        [{"name": name, "mean": known[name]} for name in order[: 2 * SHOWN]], key, domain=domain
    )
    if balance is not None:
        spec["layer"] += charts.reference_line(balance, "balance")
    parts = [part for part in detail.values() if isinstance(part, Mapping)]
    columns = list(dict.fromkeys(column for part in parts for column in part))
    rows = [
        [name, *(detail[name].get(column) for column in columns)]
        if isinstance(detail.get(name), Mapping)
        else [name, known[name]]
        for name in order
    ]
    return Chart(
        title,
        f"Highest first: {joined([f'{name} {number(known[name])}' for name in order])}.",
        Table(("", *columns) if parts else ("", key), rows),
        spec,
    )


# Charts of means with confidence intervals, by name.

TITLES = {
    "similarity": "Similarity to the neutral list, by value of the attribute",
    "entropy": "Entropy in bits",
    "missing": "Share of missing items, by value of the attribute",
    "ndcg": "NDCG, by value of the attribute",
    "scores": "Mean score, by group",
    "mean": "Mean of the numbers, by value of the attribute",
    "quantile": "Quantile of the numbers, by value of the attribute",
    "rank": "Mean rank as a share of the ranking's length, by value of the attribute",
}
NUMBERS = ("mean", "quantile")
"""Names of details whose numbers may have any unit; the axes of their charts need not include 0."""


def means(item: Item, name: str, detail: Json) -> Chart | None:
    """Return a chart of the means in a detail, with 95 % confidence intervals; `None` if the detail has other content.

    The lowest mean comes first.

    Args:
        item: item of the report document.
        name: name of the detail, such as `similarity`.
        detail: by name, such as the name of a group, a mapping with the mean and its interval.
    """
    if not isinstance(detail, Mapping) or not detail:
        return None
    parts = {str(key): part for key, part in detail.items() if isinstance(part, Mapping)}
    known = {
        key: value
        for key, part in parts.items()
        if (value := charts.as_float(part.get("mean", part.get(name)))) is not None
    }
    if len(parts) < len(detail) or not known or len(known) < len(parts):
        return None
    order = sorted(known, key=lambda key: known[key])
    rows: list[dict[str, Json]] = []
    for key in order[: 2 * SHOWN]:
        ends = charts.interval_of(parts[key].get("interval"))
        rows.append({"name": key, "mean": known[key], **({"low": ends[0], "high": ends[1]} if ends else {})})
    spec = charts.interval_plot(rows, name.replace("_", " "), domain=_range(rows) if name in NUMBERS else None)
    floor = item["details"].get("noise_floor") if name == "similarity" else None
    between = charts.as_float(floor.get("mean")) if isinstance(floor, Mapping) else None
    neutral = ""
    if between is not None:
        spec["layer"] += charts.reference_line(between, "two neutral lists")
        neutral = f" Similarity of two neutral lists: {number(between)}."
    columns = list(dict.fromkeys(column for part in parts.values() for column in part))
    title = TITLES.get(name, f"{name.replace('_', ' ').capitalize()}, by name")
    return Chart(
        f"{title}, with 95 % confidence intervals",
        f"Lowest first: {joined([f'{key} {number(known[key])}' for key in order])}.{neutral}",
        Table(("", *columns), [[key, *(parts[key].get(column) for column in columns)] for key in order]),
        spec,
    )


def _range(rows: Sequence[Mapping[str, Json]]) -> tuple[float, float]:
    """Return the range of the means and intervals, with a margin of 5 % on either side."""
    ends = [row[name] for row in rows for name in ("mean", "low", "high") if name in row]
    margin = 0.05 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin


# Chart of the distribution of answers that are numbers, by group.

HEIGHT = 200
"""Height of the chart in pixels before scaling."""
GROUP_COLOURS = (FIRST, SECOND)
DASHES: tuple[list[int], list[int]] = ([], [6, 3])
"""Dashes of the lines for the two compared groups, in the order of `COLOURS`; lines for other groups are grey."""


def distribution_by_group(item: Item, detail: Json) -> Chart | None:
    """Return a chart with a line of quantiles for each group; where two lines lie apart, the groups differ.

    The result is `None` if a group lacks quantiles, or if the groups have different numbers of quantiles.

    Args:
        item: item of the report document.
        detail: by group, the quantiles of its numbers at equally spaced probabilities from 0 to 1.
    """
    if not isinstance(detail, Mapping) or not detail:
        return None
    groups = {
        str(name): [charts.as_float(value) for value in values]
        for name, values in detail.items()
        if isinstance(values, list)
    }
    sizes = {len(values) for values in groups.values()}
    if len(groups) < len(detail) or len(sizes) != 1 or min(sizes) < 2 or None in chain.from_iterable(groups.values()):
        return None
    compared = [str(name) for name in item["details"].get("values", [])][:2]
    order = [*(name for name in compared if name in groups), *(name for name in groups if name not in compared)]
    shares = [place / (min(sizes) - 1) for place in range(min(sizes))]
    rows = [
        {"group": name, "share": share, "number": value}
        for name in order
        for share, value in zip(shares, groups[name], strict=True)
    ]
    unit = str(item["details"].get("unit") or "number")
    others = len(order) - len(compared)
    legend = {"orient": "top", "title": None, "columnPadding": 22, "columns": 3, "symbolType": "stroke"}
    by_name = {"field": "group", "type": "nominal", "sort": None, "legend": legend}
    colours, dashes = (
        [*GROUP_COLOURS[: len(compared)], *[QUIET] * others],
        [*DASHES[: len(compared)], *[[2, 2]] * others],
    )
    spec = {
        "height": HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2, "interpolate": "monotone"},
        "encoding": {
            "x": {
                "field": "share",
                "type": "quantitative",
                "axis": {"title": "share of records with a smaller number", "format": "%", "tickCount": 6},
            },
            "y": {
                "field": "number",
                "type": "quantitative",
                "scale": {"zero": False},
                "axis": {"title": unit, "tickCount": 5},
            },
            "color": {**by_name, "scale": {"domain": order, "range": colours}},
            "strokeDash": {**by_name, "scale": {"domain": order, "range": dashes}},
        },
    }
    middle = min(sizes) // 2
    medians = ", ".join(f"{name} {number(groups[name][middle] or 0.0)}" for name in order)
    return Chart(
        "Distribution of the numbers, by value of the attribute",
        f"Medians: {medians}.",
        Table(
            ("share of records with a smaller number", *order),
            [[share, *(groups[name][place] for name in order)] for place, share in enumerate(shares)],
        ),
        spec,
    )


# Chart of the answers by kind (such as `stereotypical`), for each type of sentence or question.

ORDER = ("stereotypical", "anti_stereotypical", "ambiguous", "unknown", "person", "refused", "unparsed")
"""Kinds of answers in the order of the stacked bars; other kinds follow."""
ANSWER_COLOURS = {"stereotypical": FIRST, "ambiguous": QUIET, "unknown": QUIET, "refused": LINE, "unparsed": LINE}


def answer_counts(_item: Item, detail: Json) -> Chart | None:
    """Return a chart with a stacked bar for each type of sentence or question; `None` if the detail has other content.

    The detail has the number of answers of each kind, either for each type of sentence or question or for all answers.
    """
    if not isinstance(detail, Mapping) or not detail:
        return None
    cells = {str(cell): kinds for cell, kinds in detail.items() if isinstance(kinds, Mapping)}
    if not cells:
        cells = {"all": detail}
    elif len(cells) < len(detail):
        return None
    numbers = {
        cell: {str(kind): count for kind, value in kinds.items() if (count := charts.as_float(value)) is not None}
        for cell, kinds in cells.items()
    }
    used = {kind for count in numbers.values() for kind in count}
    kinds = [*(kind for kind in ORDER if kind in used), *sorted(used - {*ORDER})]
    if not kinds or any(len(numbers[cell]) < len(cells[cell]) for cell in cells):
        return None
    plain = {kind: kind.replace("_", "-") for kind in kinds}
    rows = [
        {"name": cell, "kind": plain[kind], "place": place, "amount": numbers[cell].get(kind, 0.0)}
        for cell in numbers
        for place, kind in enumerate(kinds)
    ]
    spec = {
        "data": {"values": rows},
        "encoding": {
            "y": charts.names_axis(rows),
            "x": {
                "field": "amount",
                "type": "quantitative",
                "stack": "zero",
                "axis": {"title": "answers", "tickCount": 6},
            },
            "order": {"field": "place"},
        },
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.72}, "stroke": "var(--page)", "strokeWidth": 1},
                "encoding": {
                    "color": {
                        "field": "kind",
                        "type": "nominal",
                        "sort": None,
                        "scale": {
                            "domain": list(plain.values()),
                            "range": [ANSWER_COLOURS.get(kind, SECOND) for kind in kinds],
                        },
                        "legend": {"orient": "top", "title": None, "columnPadding": 22, "columns": 3},
                    }
                },
            }
        ],
    }
    totals = {kind: sum(count.get(kind, 0.0) for count in numbers.values()) for kind in kinds}
    return Chart(
        "Kinds of answers, by type of sentence or question",
        "Total: " + ", ".join(f"{number(total)} {plain[kind]}" for kind, total in totals.items()) + ".",
        Table(
            ("type", *plain.values()),
            [[cell, *(count.get(kind, 0.0) for kind in kinds)] for cell, count in numbers.items()],
        ),
        spec,
    )


# Chart of a probe's variants: how each variant changes the bias, the unusable answers and the quality.

HEADINGS = ("variant", "effect", "value", "change", "from", "to", "p", "unusable", "quality", "change in quality")


def compared_variants(item: Item, _detail: Json) -> Chart | None:
    """Return a chart of the change of bias from the original prompt to each variant; `None` without variants."""
    variants = report_items.variants_of(item)
    if not variants:
        return None
    text = " ".join(f"{sentence.removeprefix('variant ')}." for sentence in report_items.variant_sentences(item))
    return Chart(
        "Variants compared with the original prompt; below 0 is less bias",
        text,
        Table(HEADINGS, [_row(name, variant) for name, variant in variants.items()]),
        _spec(variants),
    )


def _row(name: str, variant: Mapping[str, Json]) -> list[Json]:
    if "error" in variant:
        return [name, f"not measured: {variant['error']}", *[None] * (len(HEADINGS) - 2)]
    quality, unusable = (
        detail if isinstance(detail := variant.get(key), Mapping) else {} for key in ("quality", "unusable")
    )
    low, high = charts.interval_of(variant.get("change_interval")) or (None, None)
    numbers = (variant.get("change"), low, high, variant.get("p_value"), unusable.get("share"))
    return [name, variant.get("effect"), variant.get("value"), *numbers, quality.get("value"), quality.get("change")]


def _spec(variants: Mapping[str, Mapping[str, Json]]) -> Spec:
    rows: list[Spec] = []
    for name, variant in variants.items():
        change, ends = charts.as_float(variant.get("change")), charts.interval_of(variant.get("change_interval"))
        if change is not None:
            rows.append({"name": name, "mean": change, **({"low": ends[0], "high": ends[1]} if ends else {})})
    if not rows:
        return {}
    spec = charts.interval_plot(rows[:SHOWN], "change")
    spec["layer"] += charts.reference_line(0, "original prompt")
    return spec


# Charts that consist of a table only: records, sentences and questions.


def flips(_item: Item, detail: Json) -> Chart | None:
    """Return a table of the records whose answer changes with a flip, with the two answers; `None` without records."""
    rows: list[dict[str, Json]] = []
    for record in mappings_in(detail):
        row = dict(record)
        fields, answers = row.get("fields"), row.get("answers")
        if isinstance(fields, Mapping):
            row["fields"] = "; ".join(f"{name}: {_with_arrow(ends)}" for name, ends in fields.items())
        if isinstance(answers, list):
            row["answers"] = _with_arrow(answers)
        # The examples show the full answers.
        row.pop("texts", None)
        rows.append(row)
    return _listing(rows, "Records whose answer changes when the attribute is flipped")


def _with_arrow(ends: Json) -> str:
    return " → ".join(map(str, ends)) if isinstance(ends, list) else str(ends)


def changed_sentences(_item: Item, detail: Json) -> Chart | None:
    """Return a table of the sentences whose answers became worse than in the baseline; `None` without sentences."""
    return _listing(detail, "Sentences whose answers became worse than in the baseline")


def changed_questions(_item: Item, detail: Json) -> Chart | None:
    """Return a table of the questions whose answers became worse than in the baseline; `None` without questions."""
    return _listing(detail, "Questions whose answers became worse than in the baseline")


def _listing(detail: Json, title: str) -> Chart | None:
    records = mappings_in(detail)
    if not records:
        return None
    columns = list(dict.fromkeys(column for record in records for column in record))
    heads = [column.replace("_", " ") for column in columns]
    rows = [[record.get(column) for column in columns] for record in records]
    return Chart(title, f"{title}: {len(records)}.", Table(heads, rows))


CHARTS: dict[str, Callable[[Item, Json], Chart | None]] = {
    "variants": compared_variants,
    "marked_words": marked_words,
    "grown_words": grown_words,
    "word_contributions": word_contributions,
    "word_weights": distinguishing_words,
    "function_words": function_words,
    "term_rates": term_rates,
    "answer_counts": answer_counts,
    "flips": flips,
    "changed_sentences": changed_sentences,
    "changed_questions": changed_questions,
    "stereotype_ratios": ratio_by_case,
    "shares": share_by_group,
    "impact_ratios": impact_ratios,
    "distribution": distribution_by_group,
}
"""Function of each chart, by the chart's name in `AuditInfo.charts`; the function returns `None` for a detail that it
cannot draw."""

CHARTS_OF_OLD_REPORTS = {
    "words": "marked_words",
    "grown": "grown_words",
    "contributions": "word_contributions",
    "top_words": "word_weights",
    "terms": "term_rates",
    "cells": "answer_counts",
    "flips": "flips",
    "changed_sentences": "changed_sentences",
    "ratio": "stereotype_ratios",
    "shares": "shares",
    "groups": "shares",
}
"""Names of charts by the name of a detail, for report documents of earlier versions, whose audits name no charts."""

SHOWN_ELSEWHERE = ("examples", "intersections", "placebo", "suggestions")
"""Details without a chart, because reports show them elsewhere."""


def detail_charts(item: Item, method: Mapping[str, Json]) -> tuple[list[Chart], dict[str, Json]]:
    """Return the charts of an item's details, and the details that no chart shows.

    A detail that maps names to means gets a chart of the means, even if the audit names no chart for the detail.

    Args:
        item: item of the report document.
        method: description of the item's audit in the report document.
    """
    # Items of every audit may have the detail `variants`.
    names = {"variants": "variants", **method.get("charts", CHARTS_OF_OLD_REPORTS)}
    details = {name: detail for name, detail in item["details"].items() if name not in SHOWN_ELSEWHERE}
    order = [*(name for name in names if name in details), *(name for name in details if name not in names)]
    drawn = {
        name: CHARTS[names[name]](item, details[name])
        if names.get(name) in CHARTS
        else means(item, name, details[name])
        for name in order
    }
    return (
        [chart for chart in drawn.values() if chart is not None],
        {name: detail for name, detail in details.items() if drawn[name] is None},
    )
