"""Explanation of an item's value in words: its top contributors and examples.

All details of an item are optional; an audit of another package may have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.items.report_items import Item, group_names, mappings_in, unmarked_label
from pytest_fairness.reports.shell_layout import reason_lines
from pytest_fairness.reports.text_layout import wrap

WIDTH = 80
"""Maximum width of a line of a failure's text in pytest's output."""
SHOWN_WORDS = 8
SHOWN_EXAMPLES = 2
SHOWN_SENTENCES = 4
EXAMPLE_LINES = 3


def failure_text(item: Item) -> str:
    """Return a failed item's text in pytest's output: reason, top contributors, examples, sentences with answers."""
    lines = reason_lines(item["reason"], WIDTH)
    for text in top_contributors(item):
        lines += wrap(printable(text), WIDTH, indent="  ", hanging="    ")
    examples = mappings_in(item["details"].get("examples"))[:SHOWN_EXAMPLES]
    quotes = [f"{example.get('group', 'example')}: “{example.get('text', '')}”" for example in examples]
    for text in [*quotes, *_sentences(item["details"])]:
        lines += wrap(printable(text), WIDTH, indent="  ", hanging="    ", lines=EXAMPLE_LINES)
    return "\n".join(lines)


def top_contributors(item: Item) -> list[str]:
    """Return a phrase for each kind of contributor to the item's value; the strongest words come first in a phrase."""
    details: Mapping[str, Json] = item["details"]
    return [
        *_marked_words(details, *group_names(item)),
        *_contributions(mappings_in(details.get("contributions")), *group_names(item)),
        *_top_words(details, *group_names(item)),
        *_terms(details, *group_names(item)),
        *_markers_of_cases(details),
        *_answers(item),
        *_paraphrases(details),
    ]


def sided_words(details: Mapping[str, Json]) -> dict[str, list[Mapping[str, Json]]]:
    """Return the words in an item's details, by the name of the detail.

    Each word is a mapping with `word`, `side` (`marked` or `unmarked`: the group that uses the word more) and measured
    numbers. The detail `words` is limited to significant words.
    """
    top = details.get("top_words")
    return {
        "grown": [{"side": "marked", **word} for word in mappings_in(details.get("grown"))],
        "words": [word for word in mappings_in(details.get("words")) if word.get("significant")],
        "contributions": mappings_in(details.get("contributions")),
        "top_words": [
            {**word, "side": side}
            for side, words in (top.items() if isinstance(top, Mapping) else ())
            for word in mappings_in(words)
        ],
        "terms": [{**term, "word": term.get("term")} for term in mappings_in(details.get("terms"))],
    }


def _marked_words(details: Mapping[str, Json], marked: str, unmarked: str) -> list[str]:
    if grown := mappings_in(details.get("grown")):
        sides = {
            group: _grown_word_phrases([word for word in grown if word.get("side", "marked") == side])
            for side, group in (("marked", marked), ("unmarked", unmarked_label(unmarked)))
        }
        return [f"used more for {group} since the baseline: {_listed(side)}" for group, side in sides.items() if side]
    words = [word for word in mappings_in(details.get("words")) if word.get("significant")]
    over = [_marked_word(word, "marked", "unmarked") for word in words if word.get("side") == "marked"]
    under = [_marked_word(word, "unmarked", "marked") for word in words if word.get("side") == "unmarked"]
    return [f"used more for {group}: {_listed(side)}" for group, side in ((marked, over), (unmarked, under)) if side]


def _contributions(words: Sequence[Mapping[str, Json]], marked: str, unmarked: str) -> list[str]:
    sides = {
        group: [f"{word.get('word')} {number(word.get('bits'))}" for word in words if word.get("side") == side]
        for side, group in (("marked", marked), ("unmarked", unmarked))
    }
    return [f"used more for {group} (bits): {_listed(side)}" for group, side in sides.items() if side]


def _top_words(details: Mapping[str, Json], marked: str, unmarked: str) -> list[str]:
    """Return lines that list, for each group, the content words and the function words with the largest weights."""
    share = details.get("function_word_share")
    weight = f", {share:.0%} of the weight" if isinstance(share, float) else ""
    return [
        f"{title} of {group}{weight if name == 'function_words' else ''}: {_listed(words)}"
        for name, title in (("top_words", "typical"), ("function_words", "typical function words"))
        if isinstance(top := details.get(name), Mapping)
        for side, group in (("marked", marked), ("unmarked", unmarked))
        if (words := [str(word.get("word")) for word in mappings_in(top.get(side))])
    ]


def _terms(details: Mapping[str, Json], marked: str, unmarked: str) -> list[str]:
    """Return phrases with the lexicon terms that differ most between the groups, and with the terms' odds ratio."""
    terms = mappings_in(details.get("terms"))
    phrases = [
        f"used more for {group} (per 100 words): {_listed(own)}"
        for group, side, other in ((marked, "marked", "unmarked"), (unmarked, "unmarked", "marked"))
        if (
            own := [
                f"{term.get('term')} {number(term.get(side))} against {number(term.get(other))}"
                for term in terms
                if (term.get(side) or 0) > (term.get(other) or 0)
            ]
        )
    ]
    odds = details.get("odds_ratio")
    if isinstance(odds, Mapping) and odds.get("value") is not None:
        ends = odds.get("interval")
        span = f" [{number(ends[0])}, {number(ends[1])}]" if isinstance(ends, list | tuple) and len(ends) == 2 else ""
        p_value = number(odds.get("p_value"))
        ratio = f"odds ratio of all terms {number(odds['value'])}{span}"
        phrases.append(f"{ratio}, p {p_value} (the test counts texts, not words)")
    return phrases


def _markers_of_cases(details: Mapping[str, Json]) -> list[str]:
    """Return a phrase for each case, with its markers and the number of answers that contain each marker.

    The markers of the stereotype come before the markers of the anti-stereotype.
    """
    by_case, counts = details.get("markers"), details.get("counts")
    if not isinstance(by_case, Mapping) or not isinstance(counts, Mapping):
        return []
    return [
        f"{case}, markers in {counts[case]['responses']} answers: "
        + "; ".join(
            f"{title} {_listed(f'{marker} {count}' for marker, count in markers[side].items()) or 'none'}"
            for side, title in (("stereotype", "stereotype"), ("anti_stereotype", "opposite"))
        )
        for case, markers in by_case.items()
    ]


def _answers(item: Item) -> list[str]:
    """Return phrases with the number of refused, unreadable and missing answers by group: `refused: Black 3 of 20`."""
    kinds = {kind: item["details"].get(kind) for kind in ("refused", "blocked", "unreadable")}
    kinds = {kind.replace("blocked", "refused by the provider"): counts for kind, counts in kinds.items()}
    kinds["no usable answer"] = item["missing"]
    return [
        f"{kind}: {_listed(_counts_by_group(counts, item))}"
        for kind, counts in kinds.items()
        if isinstance(counts, Mapping) and any(counts.values())
    ]


def _sentences(details: Mapping[str, Json]) -> list[str]:
    """Return a text for each sentence and its answer.

    If some answers became worse than in the baseline, return only the sentences with these answers.
    """
    changed = mappings_in(details.get("changed_sentences"))
    shown = changed or mappings_in(details.get("sentences"))
    return [
        f"“{part.get('sentence')}” → “{part.get('answer')}”"
        + (f" (baseline: “{part['before']}”)" if part.get("before") is not None else "")
        for part in shown[:SHOWN_SENTENCES]
    ]


def _paraphrases(details: Mapping[str, Json]) -> list[str]:
    """Return one phrase with the item's value for each paraphrase of the prompt; an empty list without paraphrases."""
    paraphrases = details.get("paraphrases")
    if not isinstance(paraphrases, Mapping) or not isinstance(paraphrases.get("values"), Mapping):
        return []
    values = ", ".join(f"prompt {name}: {number(value)}" for name, value in paraphrases["values"].items())
    noise = number(paraphrases.get("floor"))
    return [f"values by paraphrase: {values}; paraphrasing alone changes the value by about {noise}"]


def _counts_by_group(counts: Mapping[str, int], item: Item) -> list[str]:
    missing, n = item["missing"], item["n"]
    groups = dict.fromkeys([*n, *missing, *counts])
    return [f"{group} {counts.get(group, 0)} of {missing.get(group, 0) + n.get(group, 0)}" for group in groups]


def _grown_word_phrases(words: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return each word with the shares of texts that contain it; only the first word's shares name the groups."""
    phrases, explained = [], False
    for word in words:
        own, other = ("unmarked", "marked") if word.get("side") == "unmarked" else ("marked", "unmarked")
        shares = [_from_to(word.get(side)) for side in (own, other)]
        if not all(shares):
            phrases.append(str(word.get("word")))
            continue
        groups = ("", "") if explained else (" of this group's texts", " of the other group's texts")
        phrases.append(f"{word.get('word')} ({shares[0]}{groups[0]}, {shares[1]}{groups[1]})")
        explained = True
    return phrases


def _from_to(shares: Json) -> str | None:
    """Return the shares of texts in the baseline and in this run, as `0% → 60%`; `None` if they are unknown."""
    if not isinstance(shares, list | tuple) or len(shares) != 2 or not all(isinstance(x, int | float) for x in shares):
        return None
    return f"{shares[0]:.0%} → {shares[1]:.0%}"


def _marked_word(word: Mapping[str, Json], own: str, other: str) -> str:
    counts = word.get(own), word.get(other)
    uses = "" if None in counts else f", uses {number(counts[0])} against {number(counts[1])}"
    return f"{word.get('word')} (z {number(word['z'])}{uses})"


def _listed(parts: Iterable[str]) -> str:
    shown = list(parts)
    more = f", and {len(shown) - SHOWN_WORDS} more" if len(shown) > SHOWN_WORDS else ""
    return ", ".join(shown[:SHOWN_WORDS]) + more
