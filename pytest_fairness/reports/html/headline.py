"""Summary of a run in words: the verdict on the run, the findings, and the affected and unaffected groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.html import text_diff
from pytest_fairness.reports.items.effects import sizes
from pytest_fairness.reports.items.findings import amount, finding
from pytest_fairness.reports.items.report_items import (
    NO_LONGER_FAILS,
    UNEXPECTED_PASS,
    Item,
    is_measured_only,
    known_failures,
    outcome,
    status,
)

WORSE = (VerdictName.REGRESSION, VerdictName.OVER_LIMIT)
"""Verdicts on items that are significantly worse than allowed."""

MAX_FINDINGS = 5
MAX_NAMES = 8
_LIST = re.compile(r"((?<= say ).*?(?= more often|; |\.))", re.DOTALL)
"""The words in a finding's sentence: `Answers for Kelly say WORDS more often than answers for Joseph`."""

PHRASES: Mapping[str, tuple[str, str]] = {
    VerdictName.REGRESSION: ("got worse", "got worse"),
    VerdictName.OVER_LIMIT: ("is over its limit", "are over their limit"),
    VerdictName.ERROR: ("could not be measured", "could not be measured"),
    VerdictName.NOT_MEASURABLE: ("had too few usable answers", "had too few usable answers"),
    UNEXPECTED_PASS: ("passes although marked xfail", "pass although marked xfail"),
    VerdictName.STALE_BASELINE: ("has a stale baseline", "have a stale baseline"),
    VerdictName.NO_BASELINE: ("has no baseline yet", "have no baseline yet"),
    VerdictName.INCONCLUSIVE: ("is inconclusive", "are inconclusive"),
}
"""Phrases for one item and for several items by status, the worst status first; passes and known failures are left out.
"""


@dataclass(frozen=True)
class Finding:
    """Finding about one group: the finding of its worst item.

    Attributes:
        anchor, probe: HTML anchor of the item, and name of its probe.
        sentence: the finding, in which the contributing words are highlighted.
        size: largest regression of the group as a multiple of the tolerance: `Up to 3 times what is allowed`. Without a
            tolerance above 0, it is the change or value of the worst item: `3 words grew (allowed 0)`. It is empty if
            `sentence` already contains this change or value.
    """

    anchor: str
    probe: str
    sentence: Sequence[text_diff.Piece]
    size: str


@dataclass(frozen=True)
class Headline:
    """First lines of the report.

    Attributes:
        verdict: verdict on the run in words.
        outcome: outcome that selects the colour of the verdict: the worst of the items' outcomes.
        findings: one finding about each of the first `MAX_FINDINGS` groups that are significantly worse than allowed.
        affected: groups that are worse than allowed.
        unaffected: groups whose items all passed without a significant change.
    """

    verdict: str
    outcome: str
    findings: Sequence[Finding]
    affected: Sequence[str]
    unaffected: Sequence[str]


def verdict(items: Sequence[Item], reused: str = "") -> str:
    """Return the verdict on the run: `4 of 62 checks got worse, 3 are inconclusive; 55 passed`.

    Args:
        items: the items of the run.
        reused: phrase of `document.reused_answers`, which takes the place of the statement that nothing got worse.
    """
    total, counts = counted(len(items), "check"), Counter(map(status, items))
    if is_measured_only(items):
        return sizes(items)
    not_passed = [(counts[name], phrases[counts[name] > 1]) for name, phrases in PHRASES.items() if counts[name]]
    passed = counts[VerdictName.PASS] + counts[NO_LONGER_FAILS]
    known = known_failures(items)
    if not not_passed and known:
        return f"{known}; {reused or 'no other check got worse'}, {passed:,} passed"
    if not not_passed:
        return f"{reused or 'No check got worse'}: {'the only check' if passed == 1 else f'all {passed:,}'} passed"
    (worst, worst_phrase), *others = not_passed
    start = "" if known or any(counts[name] for name in WORSE) else "No regression found, but "
    parts = [f"{start}{worst:,} of {total} {worst_phrase}", *(f"{number:,} {phrase}" for number, phrase in others)]
    if known:
        parts.append(known)
    return f"{', '.join(parts)}; {passed:,} passed{reused and f'; {reused}'}"


def display_outcome(item: Item) -> str:
    """Return the outcome that selects an item's colour and shape.

    The result is `inconclusive` for an item that failed because its baseline is missing or stale.
    """
    name = outcome(item)
    return "inconclusive" if name == "failed" and status(item) not in (*WORSE, UNEXPECTED_PASS) else name


def subject(item: Item) -> str:
    """Return the subject of an item: its case or the values of its labels; an empty text for an item without labels."""
    labels: Mapping[str, Json] = item["labels"]
    return str(labels.get("case") or ", ".join(map(str, labels.values())))


def affected(items: Iterable[Item]) -> list[str]:
    """Return the groups with items over their tolerance or limit (`WORSE`), with the numbers of these items.

    An example is `Kelly (2 checks)`. The group with most of these items comes first; groups after the first
    `MAX_NAMES` are only counted.
    """
    counts = Counter(name for item in items if status(item) in WORSE and (name := subject(item)))
    return _shortened([f"{name} ({counted(number, 'check')})" for name, number in counts.most_common()])


def unaffected(items: Sequence[Item]) -> list[str]:
    """Return the groups whose items all passed without a significant change: the first `MAX_NAMES`, then `3 more`."""
    changed = {subject(item) for item in items if item["verdict"] != VerdictName.PASS or is_significant(item)}
    return _shortened(sorted({subject(item) for item in items} - changed - {""}))


def findings(items: Iterable[tuple[str, Item, Mapping[str, Json]]]) -> list[Finding]:
    """Return a finding for each of the first `MAX_FINDINGS` groups that are significantly worse than allowed.

    The finding about a group is the finding of its worst item.

    Args:
        items: for each item, its HTML anchor, the item, and the document's description of its audit; the worst item
            comes first.
    """
    by_group: dict[tuple[str, str], list[tuple[str, Item, Mapping[str, Json]]]] = {}
    for anchor, item, method in items:
        if status(item) in WORSE and is_significant(item):
            by_group.setdefault((item["probe"], subject(item)), []).append((anchor, item, method))
    return [_finding(worse[0], [item for _, item, _ in worse]) for worse in list(by_group.values())[:MAX_FINDINGS]]


def _finding(worst: tuple[str, Item, Mapping[str, Json]], items: Sequence[Item]) -> Finding:
    anchor, item, method = worst
    sentence = (item["details"].get("suggestions") or {}).get("found")
    size = _size(items) or ("" if sentence is None else amount(item, method))
    return Finding(anchor, item["probe"], _highlighted(item, sentence or finding(item, method)), size)


def _highlighted(item: Item, sentence: str) -> list[text_diff.Piece]:
    """Return a sentence in pieces; in its lists of words, the words that contribute to the value are highlighted."""
    # The last word of a list follows the word “and”.
    words = frozenset().union(*text_diff.contributing_words(item).values()) - {"and"}
    # The parts are alternately text and a list of words.
    parts = [(part, words if place % 2 else frozenset()) for place, part in enumerate(_LIST.split(sentence))]
    return [piece for part, own in parts for piece in text_diff.highlight(part, own)]


def is_significant(item: Mapping[str, Json]) -> bool:
    """Return whether the item's change is significant, or the item has top contributors."""
    return bool((item["change"] or {}).get("significant") or item.get("contributors"))


def _size(items: Iterable[Item]) -> str:
    """Return a phrase with the largest regression as a multiple of its tolerance; empty without a tolerance above 0."""
    times = [
        item["change"]["value"] / item["tolerance"]
        for item in items
        if item["verdict"] == VerdictName.REGRESSION and item["change"] and item["tolerance"]
    ]
    return f"Up to {number(max(times))} times what is allowed" if times else ""


def _shortened(names: Sequence[str]) -> list[str]:
    more = [f"{len(names) - MAX_NAMES:,} more"] if len(names) > MAX_NAMES else []
    return [*names[:MAX_NAMES], *more]
