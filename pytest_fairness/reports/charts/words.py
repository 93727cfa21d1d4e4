"""Charts of words that the texts of one group contain more often than the texts of the other group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.plurals import joined
from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import SHOWN, Chart, Table, as_float, diverging_bars
from pytest_fairness.reports.items.report_items import Item, group_names, mappings_in, unmarked_label


def marked(item: Item, detail: Json) -> Chart | None:
    """Return a chart of words' z-scores, with filled bars for significant words; `None` without words."""
    words = [word for word in mappings_in(detail) if as_float(word.get("z")) is not None]
    if not words:
        return None
    columns = ("word", "z", "log_odds", "marked", "unmarked", "documents", "significant")
    heads = ("word", "z", "log-odds", *(f"uses in {name}" for name in group_names(item)), "documents", "significant")
    return _word_chart(
        item,
        "Words by z, the standardised log-odds ratio; filled bars are significant",
        [(str(word.get("word")), as_float(word.get("z")) or 0.0, bool(word.get("significant"))) for word in words],
        axis="z",
        table=Table(heads, [[word.get(column) for column in columns] for word in words]),
    )


def grown(item: Item, detail: Json) -> Chart | None:
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
        [word.get("word"), names.get(str(word.get("side")), word.get("side")), as_float(word.get("growth"))]
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
    return [as_float(share) for share in [*known, None, None][:2]]


def contributions(item: Item, detail: Json) -> Chart | None:
    """Return a chart of the words' contributions to the divergence; `None` without words.

    Each bar points to the group that uses the word more.
    """
    words = [word for word in mappings_in(detail) if as_float(word.get("bits")) is not None]
    if not words:
        return None
    signed = [
        (
            str(word.get("word")),
            (as_float(word.get("bits")) or 0.0) * (-1 if word.get("side") == "unmarked" else 1),
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
    return distinguishing(item, detail, "Function words that distinguish the groups")


def distinguishing(item: Item, detail: Json, title: str = "Words that distinguish the groups") -> Chart | None:
    """Return a chart of the words with the largest weights; `None` without weights.

    The weight of a word is its weight in a classifier, or the difference between its mean TF-IDF in the two groups.
    """
    if not isinstance(detail, Mapping):
        return None
    weights: dict[str, float] = {}
    for side, sign in (("marked", 1.0), ("unmarked", -1.0)):
        for word in mappings_in(detail.get(side)):
            weight = as_float(word.get("weight"))
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


def terms(item: Item, detail: Json) -> Chart | None:
    """Return a chart of the terms of a lexicon, with the difference between the two groups' rates of each term.

    The rates are uses per 100 words. The result is `None` without terms.
    """
    shown_terms = [term for term in mappings_in(detail) if as_float(term.get("gap")) is not None]
    columns = ("term", "marked", "unmarked", "gap", "documents")
    heads = ("term", *(f"per 100 words in {name}" for name in group_names(item)), "difference", "documents")
    return _word_chart(
        item,
        "Terms of the lexicon by difference between the groups, in uses per 100 words",
        [(str(term.get("term")), as_float(term.get("gap")) or 0.0, True) for term in shown_terms],
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
    return Chart(title, f"{text}.", table, diverging_bars(rows, " · ".join(end for end in ends if end)))
