"""Functions that read and sort the items of the report document."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json, VerdictName, outcome_of
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.text_layout import cut

Item = Mapping[str, Json]
"""An item of the report document."""

SHOWN_REASONS = 2
MAX_REASON = 100
UNMARKED = "the unmarked group"

UNEXPECTED_PASS, KNOWN, NO_LONGER_FAILS = "unexpected-pass", "known", "no-longer-fails"

WORDS: Mapping[str, str] = {
    VerdictName.ERROR: "! error",
    VerdictName.NOT_MEASURABLE: "! error",
    VerdictName.REGRESSION: "✗ regression",
    VerdictName.OVER_LIMIT: "✗ over-limit",
    UNEXPECTED_PASS: "✗ passes now",
    VerdictName.STALE_BASELINE: "! stale",
    VerdictName.NO_BASELINE: "· no-baseline",
    VerdictName.INCONCLUSIVE: "? inconclusive",
    KNOWN: "~ known",
    VerdictName.MEASURED: "= measured",
    NO_LONGER_FAILS: "✓ passes now",
    VerdictName.PASS: "✓ pass",
}
"""Symbol and word of each status, the worst status first."""

WORST_FIRST = list(WORDS)


def unit_of(item: Item, method: Mapping[str, Json]) -> str:
    """Return the unit of an item's value: the unit in its details, else its audit's unit; empty without a unit.

    Args:
        item: an item of the report document.
        method: description of the item's audit in the report document.
    """
    return str((item["details"] or {}).get("unit") or method.get("unit") or "")


def severity(item: Item) -> tuple[int, float, str]:
    """Return a sort key: status (worst first), change as a multiple of the tolerance (largest first), node id."""
    change, tolerance = item["change"], item["tolerance"]
    worse = (change["value"] or 0.0) / (tolerance or 1.0) if change else 0.0
    return WORST_FIRST.index(status(item)), -worse, item["nodeid"]


def status(item: Item) -> str:
    """Return the status of an item: its verdict, if no mark `xfail` changed pytest's outcome.

    If a mark did, the status is `KNOWN` (failed as expected), `NO_LONGER_FAILS` (passed) or `UNEXPECTED_PASS` (passed,
    which the strict mark counts as a failure).
    """
    match (item.get("expected_failure") or {}).get("outcome"):
        case "xfailed":
            return KNOWN
        case "xpassed":
            return NO_LONGER_FAILS
        case "failed":
            return UNEXPECTED_PASS
    return VerdictName(item["verdict"])


def verdict_word(item: Item) -> str:
    """Return the symbol and the word of the item's status, as `✗ regression`."""
    return WORDS[status(item)]


def verdict_counts(items: Iterable[Item]) -> dict[str, int]:
    """Return the number of items for each `verdict_word`, the worst status first."""
    counts = Counter(map(verdict_word, items))
    return {word: counts[word] for word in dict.fromkeys(WORDS.values()) if counts[word]}


def outcome(item: Item) -> str:
    """Return the outcome of an item: `passed`, `failed`, `known`, `inconclusive`, `measured` or `error`."""
    return outcome_of(VerdictName(item["verdict"]), item.get("expected_failure"))


def is_measured_only(items: Sequence[Item]) -> bool:
    """Return whether the run measured without verdicts: an item was measured, and no item was judged."""
    return {outcome(item) for item in items} in ({"measured"}, {"measured", "error"})


def placebo_text(item: Item) -> str:
    """Return the value of the item's placebo swap; `unknown` if it was not measured, empty without a placebo."""
    placebo = item["details"].get("placebo")
    return "" if not placebo else number(placebo["value"]) if "value" in placebo else "unknown"


def reason(item: Item) -> str:
    """Return the verdict's reason without the item id that may precede it."""
    text: str = item["reason"]
    return text.removeprefix(f"{item['id']}: ")


def served_model_changes(items: Iterable[Item]) -> list[str]:
    """Return a sentence for each target whose server reports another model than in the baseline."""
    changes = {item["details"].get("served_model_changed") for item in items} - {None}
    return [f"served model changed: {printable(change)}" for change in sorted(map(str, changes))]


def tolerated_worsenings(items: Iterable[Item]) -> list[str]:
    """Return a sentence for each passed item that is significantly worse than its baseline."""
    return [
        f"{printable(item['id'])}: significantly worse than the baseline, but within tolerance "
        f"({_worse_by(item)}, allowed {number(item['tolerance'])})"
        for item in items
        if is_tolerated_worsening(item)
    ]


def _worse_by(item: Item) -> str:
    return grown_words(item) or f"worse by {number(item['change']['value'])}"


def known_failures(items: Iterable[Item]) -> str:
    """Return the number and reasons of known failures, as `1 known regression (ticket 12)`; empty if there are none."""
    known = [item for item in items if status(item) == KNOWN]
    if not known:
        return ""
    regressions = all(item["verdict"] == VerdictName.REGRESSION for item in known)
    reasons = list(dict.fromkeys(printable(item["expected_failure"]["reason"]) for item in known))
    more = [f"{len(reasons) - SHOWN_REASONS} more"] if len(reasons) > SHOWN_REASONS else []
    listed = "; ".join([*(cut(reason, MAX_REASON) for reason in reasons[:SHOWN_REASONS]), *more])
    return f"{counted(len(known), 'known regression' if regressions else 'known failure')} ({listed})"


class Acceptance(NamedTuple):
    """Baselines that the same person accepted on the same date and for the same reason.

    Attributes:
        date: the date, ISO 8601.
        by, reason: the person and the reason, or the words `unknown` and `no reason given`.
        ids: ids of the items.
    """

    date: str
    by: str
    reason: str
    ids: Sequence[str]


def grown_words(item: Item) -> str:
    """Return the change of an item that counts grown words (see the glossary) as `3 words grew`; empty for other items.

    The number of grown words is not the difference between the item's value and its baseline, so the change needs this
    wording.
    """
    change = item["change"]
    return f"{counted(int(change['value']), 'word')} grew" if change and "grown" in item["details"] else ""


SAME_ANSWERS = "same answers"
"""Text in place of the change of a run that was compared with itself."""


def change_suffix(item: Item) -> str:
    """Return a note that follows a change of stored values only; empty if answers were compared."""
    return "" if item["change"].get("from_answers", True) else " (no answers)"


def is_same_answers(item: Item) -> bool:
    """Return whether the item's answers are those of its baseline."""
    return bool((item["change"] or {}).get("same_answers"))


def acceptances(items: Iterable[Item]) -> list[Acceptance]:
    """Return the acceptances of the items' baselines, the latest first.

    The list is empty if no acceptance states a person or reason.
    """
    ids: dict[tuple[str, str | None, str | None], list[str]] = defaultdict(list)
    for item in sorted((item for item in items if item["baseline"]), key=_baseline_date, reverse=True):
        baseline = item["baseline"]
        ids[_baseline_date(item)[:10], baseline.get("accepted_by"), baseline.get("reason")].append(item["id"])
    if not any(by or reason for _, by, reason in ids):
        return []
    return [
        Acceptance(date, by or "unknown", reason or "no reason given", own) for (date, by, reason), own in ids.items()
    ]


def _baseline_date(item: Item) -> str:
    return str(item["baseline"]["date"])


def is_tolerated_worsening(item: Item) -> bool:
    """Return whether an item passed although it is significantly worse than its baseline."""
    change = item["change"]
    return bool(item["verdict"] == VerdictName.PASS and change and change.get("significant") and change["value"] > 0)


def target_name(name: str) -> str | None:
    """Return the target's name at the end of an item id; `None` if the id has no target's name."""
    head, at, target = name.rpartition("@")
    # An `@` inside brackets belongs to a label.
    return target if head and at and "]" not in target else None


def group_names(item: Item) -> tuple[str, str]:
    """Return the names of the marked and the unmarked group; an unknown name is `the marked group` or `UNMARKED`."""
    groups: Sequence[str] = list(item["n"]) or list(item["missing"])
    values = list(item["labels"].values())
    # The name of a cell consists of its values, such as "Black woman".
    names = [" ".join(map(str, values[:count])) for count in range(len(values), 1, -1)]
    marked = next((name for name in [*names, *values] if name in groups), None)
    others = [group for group in groups if group != marked]
    return marked or "the marked group", others[0] if marked and len(others) == 1 else UNMARKED


def unmarked_label(name: str) -> str:
    """Return the name of the unmarked group in a phrase: `the unmarked group (White)`."""
    return name if name == UNMARKED else f"{UNMARKED} ({name})"


def mappings_in(value: Json) -> list[Mapping[str, Json]]:
    """Return those elements of a list that are mappings; an empty list if the value is not a list."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list | tuple) else []
