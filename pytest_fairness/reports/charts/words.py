"""Pictures of words: which of them one group gets more than the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import SHOWN, Picture, Table, bars, finite, listed
from pytest_fairness.reports.report_items import Item, as_unmarked, mappings, sides


def marked(item: Item, detail: Json) -> Picture | None:
    """Words by z, those that are significant filled."""
    found = [word for word in mappings(detail) if finite(word.get("z")) is not None]
    if not found:
        return None
    columns = ("word", "z", "log_odds", "marked", "unmarked", "documents", "significant")
    heads = ("word", "z", "log-odds", *(f"uses in {name}" for name in sides(item)), "documents", "significant")
    return _picture(
        item,
        "Words by z, the standardised log-odds ratio; filled where significant",
        [(str(word.get("word")), finite(word.get("z")) or 0.0, bool(word.get("significant"))) for word in found],
        axis="z",
        table=Table(heads, [[word.get(column) for column in columns] for word in found]),
    )


def grown(item: Item, detail: Json) -> Picture | None:
    """Words whose difference between the groups grew since the baseline."""
    found = mappings(detail)
    if not found:
        return None
    names = dict(zip(("marked", "unmarked"), sides(item), strict=True))
    heads = (
        "word",
        "grew for",
        "growth of the difference",
        *(f"share of the texts about {name}, {run}" for name in names.values() for run in ("baseline", "now")),
    )
    rows = [
        [word.get("word"), names.get(str(word.get("side")), word.get("side")), finite(word.get("growth"))]
        + [share for side in names for share in _two(word.get(side))]
        for word in found
    ]
    text = "; ".join(
        f"grew for {as_unmarked(name) if side == 'unmarked' else name}: {listed(own)}"
        for side, name in names.items()
        if (own := [str(word.get("word")) for word in found if word.get("side", "marked") == side])
    )
    return Picture("Words that grew since the baseline", f"{text}.", Table(heads, rows))


def _two(shares: Json) -> list[float | None]:
    """Return the shares in the baseline and in this run; `None` for what is not known."""
    known = list(shares)[:2] if isinstance(shares, list | tuple) else []
    return [finite(share) for share in [*known, None, None][:2]]


def contributions(item: Item, detail: Json) -> Picture | None:
    """Each word's share of the divergence, to the side of the group that uses it more."""
    found = [word for word in mappings(detail) if finite(word.get("bits")) is not None]
    if not found:
        return None
    signed = [
        (str(word.get("word")), (finite(word.get("bits")) or 0.0) * (-1 if word.get("side") == "unmarked" else 1), True)
        for word in found
    ]
    names = dict(zip(("marked", "unmarked"), sides(item), strict=True))
    rows = [
        [word.get("word"), word.get("bits"), word.get("share"), names.get(str(word.get("side")), word.get("side"))]
        for word in found
    ]
    return _picture(
        item,
        "Words by their part of the Jensen-Shannon divergence",
        signed,
        axis="bits",
        table=Table(("word", "bits", "share of all", "more in"), rows),
    )


def typical(item: Item, detail: Json) -> Picture | None:
    """The words by which the groups are told apart: by a classifier, or by their mean weights."""
    if not isinstance(detail, Mapping):
        return None
    weights: dict[str, float] = {}
    for side, sign in (("marked", 1.0), ("unmarked", -1.0)):
        for word in mappings(detail.get(side)):
            weight = finite(word.get("weight"))
            if weight is not None:
                weights[str(word.get("word"))] = sign * abs(weight)
    if not weights:
        return None
    marked_name, unmarked_name = sides(item)
    rows = [[word, abs(weight), marked_name if weight > 0 else unmarked_name] for word, weight in weights.items()]
    return _picture(
        item,
        "Words by which the groups are told apart",
        [(word, weight, True) for word, weight in weights.items()],
        axis="weight",
        table=Table(("word", "weight", "typical of"), rows),
    )


def terms(item: Item, detail: Json) -> Picture | None:
    """The terms of a lexicon by the difference between the groups' rates."""
    found = [term for term in mappings(detail) if finite(term.get("gap")) is not None]
    columns = ("term", "marked", "unmarked", "gap", "documents")
    heads = ("term", *(f"per 100 words in {name}" for name in sides(item)), "difference", "documents")
    return _picture(
        item,
        "Terms of the lexicon by the difference between the groups, per 100 words",
        [(str(term.get("term")), finite(term.get("gap")) or 0.0, True) for term in found],
        axis="difference",
        table=Table(heads, [[term.get(column) for column in columns] for term in found]),
    )


def _picture(
    item: Item, title: str, words: Sequence[tuple[str, float, bool]], *, axis: str, table: Table
) -> Picture | None:
    """Bars to the right for the marked group, to the left for the other, the strongest outermost."""
    marked_name, unmarked_name = sides(item)
    right = sorted((word for word in words if word[1] > 0), key=lambda word: -word[1])[:SHOWN]
    left = sorted((word for word in words if word[1] < 0), key=lambda word: word[1])[:SHOWN]
    shown = [*right, *reversed(left)]
    if not shown:
        return None
    text = "; ".join(
        f"more in {name}: {listed([word for word, _, _ in side])}"
        for name, side in ((marked_name, right), (unmarked_name, left))
        if side
    )
    rows = [{"name": word, "amount": amount, "strong": strong} for word, amount, strong in shown]
    ends = (f"← more in {unmarked_name}" if left else "", axis, f"more in {marked_name} →" if right else "")
    return Picture(title, f"{text}.", table, bars(rows, " · ".join(end for end in ends if end)))
