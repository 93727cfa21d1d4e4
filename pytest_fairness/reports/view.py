"""What reports say of an item: one record of all its texts, from which every report is rendered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_fairness.errors import counted
from pytest_fairness.records import Contributor, Explanation, Json, Size, VerdictName, outcome_of
from pytest_fairness.reports.formatting import number, plus_minus, printable, signed

# One item of the report document, and what is said of it.

Item = Mapping[str, Json]
"""An item of the report document."""

SHOWN_CONTRIBUTORS = 3
SHOWN_RATES = 2
SHOWN_WORDS = 8
UNMARKED = "the unmarked group"
SAME_ANSWERS = "same answers"
"""Text in place of the change of a run whose answers are those of the baseline."""
CHANGED_SIDES = "changed sides"
"""Text in place of the change of a gap whose size did not grow, but which now favours the other group."""
SHARES = ("share", "share of texts")
"""Units of numbers that are shown as percentages."""

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


UNKNOWN = "unknown"
"""Word for the size of an effect that cannot be determined, for example with too few answers."""
FOUND = (Size.LARGE, Size.MODERATE, Size.SMALL)
"""Sizes of effects that count as differences."""
_SIZES = (*FOUND, UNKNOWN, Size.NONE, "")


@dataclass(frozen=True)
class ItemView:
    """All that is said of one item. Its texts hold words of models and probes unchanged: a report must escape them."""

    item: Item
    method: Mapping[str, Json]

    @cached_property
    def explanation(self) -> Explanation:
        """Return what the audit says of the value and of its change."""
        return Explanation.from_json(self.item["explanation"])

    @cached_property
    def status(self) -> str:
        """Return the verdict, if no mark `xfail` changed pytest's outcome.

        If a mark did, the status is `KNOWN` (failed as expected), `NO_LONGER_FAILS` (passed) or `UNEXPECTED_PASS`
        (passed, which the strict mark counts as a failure).
        """
        return status_of(self.item)

    @cached_property
    def outcome(self) -> str:
        """Return the outcome: `passed`, `failed`, `known`, `inconclusive`, `measured` or `error`."""
        return outcome_of(VerdictName(self.item["verdict"]), self.item.get("expected_failure"))

    @property
    def verdict(self) -> str:
        """Return the symbol and the word of the status, as `✗ regression`."""
        return WORDS[self.status]

    @property
    def is_new(self) -> bool:
        """Return whether the item has neither baseline nor limit."""
        return bool(self.item["verdict"] == VerdictName.NO_BASELINE)

    @property
    def severity(self) -> tuple[int, float, str]:
        """Return a sort key: status (worst first), change in tolerances (largest first), node id."""
        change, tolerance = self.item["change"], self.item["tolerance"]
        worse = (change["value"] or 0.0) / (tolerance or 1.0) if change else 0.0
        return WORST_FIRST.index(self.status), -worse, self.item["nodeid"]

    # Names.

    @property
    def title(self) -> str:
        """Return the audit in plain words and by name, as `Different vocabulary (jsd)`."""
        audit, title = str(self.item["audit"]), self.method.get("title")
        return f"{title} ({audit})" if title else audit

    @property
    def file(self) -> str:
        """Return the path of the probe file or Python test file, as in the node id."""
        return str(self.item["nodeid"]).partition("::")[0]

    def name(self, *, with_probe: bool, separator: str = "::") -> str:
        """Return the item's id, in a run with several probes after the probe's name."""
        return printable(f"{self.item['probe']}{separator}{self.item['id']}" if with_probe else self.item["id"])

    @cached_property
    def subject(self) -> str:
        """Return the compared groups, such as `woman vs man`."""
        return subject_of(self.item, str(self.method.get("title") or self.item["id"]))

    # Numbers in words.

    @property
    def unit(self) -> str:
        """Return the unit of the value; empty for a share or a score."""
        return unit_of(self.item, self.method)

    @property
    def counts_otherwise(self) -> bool:
        """Return whether the change counts other things than the value, so that both must not stand side by side."""
        return bool(self.item["change"] and self.explanation.amount)

    @property
    def shown_baseline(self) -> float | None:
        """Return the baseline's value, if the change is the difference of both values; else `None`."""
        of_pair = (self.item["change"] or {}).get("groups")
        return None if of_pair or self.counts_otherwise else (self.item["baseline"] or {}).get("value")

    @property
    def shown_value(self) -> float | None:
        """Return the value, unless `counts_otherwise`."""
        return None if self.counts_otherwise else self.item["value"]

    @property
    def is_same_answers(self) -> bool:
        """Return whether the answers are those of the baseline."""
        return bool((self.item["change"] or {}).get("same_answers"))

    @property
    def changed_sides(self) -> str:
        """Return how the gap of a regression changed sides; empty if it did not."""
        change = self.item["change"] or {}
        return str(change.get("changed_sides") or "") if self.item["verdict"] == VerdictName.REGRESSION else ""

    @property
    def only_changed_sides(self) -> bool:
        """Return whether a regression is one only because its gap changed sides, which its size does not show."""
        return bool(self.changed_sides) and (self.item["change"]["value"] or 0.0) <= (self.item["tolerance"] or 0.0)

    def worse_by(self, *, value: float | None = None) -> str:
        """Return the change for a column in which a positive number is worse; empty without a comparison.

        Args:
            value: the rounded change; `None` to show it with three digits.
        """
        change = self.item["change"]
        if not change or self.is_same_answers:
            return SAME_ANSWERS if change else ""
        if self.only_changed_sides:
            return CHANGED_SIDES
        return self.explanation.amount or signed(change["value"] if value is None else value)

    @property
    def change_interval(self) -> Sequence[float | None] | None:
        """Return the interval of the number in `worse_by`; `None` if `worse_by` is no number."""
        is_number = not self.is_same_answers and not self.only_changed_sides
        return self.item["change"]["interval"] if self.item["change"] and is_number else None

    @property
    def change_suffix(self) -> str:
        """Return a note that follows a change of stored values only; empty if answers were compared."""
        return "" if (self.item["change"] or {}).get("from_answers", True) else " (no answers)"

    @property
    def allowed(self) -> str:
        """Return the largest allowed change; for an item over its limit or without a comparison, its limit."""
        if self.item["change"] and self.item["verdict"] != VerdictName.OVER_LIMIT:
            return number(self.item["tolerance"])
        return "" if self.item["limit"] is None else f"limit {number(self.item['limit'])}"

    @cached_property
    def amount(self) -> str:
        """Return the change and what is allowed, as `worse by 0.04 bits (allowed 0.02)`.

        For an item over its limit or without a comparison, return the value and the limit; empty without a value.
        """
        item, change = self.item, self.item["change"]
        if not change or item["verdict"] == VerdictName.OVER_LIMIT:
            limit = "" if item["limit"] is None else f" (limit {number(item['limit'])})"
            return "" if item["value"] is None else f"{with_unit(item['value'], self.unit)}{limit}"
        if self.is_same_answers:
            return f"{SAME_ANSWERS} as in the baseline"
        text = self.explanation.amount or worse_by(change["value"], self.unit)
        if self.only_changed_sides:
            text = f"the advantage changed sides: {self.changed_sides}"
        return text if item["tolerance"] is None else f"{text} (allowed {number(item['tolerance'])})"

    @cached_property
    def felt(self) -> str:
        """Return the change as a person feels it, as `refusals of women 18%, before 0%`; empty without such numbers."""
        change, item = self.item["change"] or {}, self.item
        if not (change.get("significant") or item["verdict"] in (VerdictName.REGRESSION, VerdictName.OVER_LIMIT)):
            return ""
        rates = [rate for rate in self.explanation.rates if rate.now is not None]
        words = [word for word in self.explanation.words if word.unit == "share of texts" and word.before is not None]
        if not rates and words:
            now, before = _shown(words[0])
            return f"“{words[0].name}” in {now} of the texts for {words[0].group}, before {before}"
        moved = [rate for rate in rates if rate.before not in (None, rate.now)]
        moved.sort(key=lambda rate: -abs((rate.now or 0.0) - (rate.before or 0.0)))
        shown = moved or [rate for rate in rates if rate.before is None]
        return "; ".join(f"{rate.name} {', before '.join(_shown(rate))}" for rate in shown[:SHOWN_RATES])

    # Sentences.

    @cached_property
    def headline(self) -> str:
        """Return the finding as one line: groups, change in words a person feels, change, contributors, and remarks.

        For an item without a verdict, the line has the size of the effect; for an error, it is the reason.
        """
        if self.outcome == "error":
            return self.reason
        return "; ".join([*self.expectation, *self._finding()])

    @property
    def expectation(self) -> list[str]:
        """Return the reason of a mark `xfail` if the item fails, or advice to remove the mark if it passes."""
        mark = self.item.get("expected_failure")
        if not mark:
            return []
        if self.outcome == "known":
            return [f"known failure: {mark['reason']}"]
        return [f"no longer fails: remove the mark `xfail` ({mark['reason']})"]

    def _finding(self) -> list[str]:
        is_measured = self.item["verdict"] == VerdictName.MEASURED
        doubted = any(concern["withholds"] != "nothing" for concern in self.item["concerns"])
        if is_measured and self.size and (self.size not in FOUND or doubted):
            return [f"{self.subject}: {self.item['effect']['description']}", *self._placebo()]
        said = "; ".join(filter(None, [self.felt, self.amount]))
        if is_measured and self.size:
            said += f" ({self.size})"
        elif is_measured and (lacking := self.method.get("no_effect_size")):
            said += f"; no effect size: {lacking}"
        if said and (names := self._contributors()):
            said += f": {names}"
        first, *more = [*filter(None, [said]), *self.remarks] or [self.reason]
        return [f"{self.subject}: {first}", *more]

    def _contributors(self) -> str:
        """Return the first contributors; words are followed by the group that uses them more: `nurse (more for woman)`.

        Contributors whose rates `felt` has are left out.
        """
        explanation = self.explanation
        parts = [*explanation.words, *(part for own in explanation.lists for part in own.parts)]
        sides = {part.name: part.group for part in reversed(parts)}  # the first of several parts prevails
        told = tuple(rate.name for rate in explanation.rates) if self.felt else ()
        names = [name for name in self.item.get("contributors") or () if not (told and name.startswith(told))]
        by_group: dict[str, list[str]] = {}
        for name in names[:SHOWN_CONTRIBUTORS]:
            by_group.setdefault(sides.get(name, ""), []).append(name)
        return "; ".join(
            f"{', '.join(own)} (more for {group})" if group else ", ".join(own) for group, own in by_group.items()
        )

    @cached_property
    def remarks(self) -> list[str]:
        """Return remarks: no baseline, changed sides, placebo, blocked answers, worsening, concerns, indecision."""
        item, remarks = self.item, list(self.relation.get("phrases", ()))
        match item["verdict"]:
            case VerdictName.NO_BASELINE:
                remarks.append("no baseline and no limit")
            case VerdictName.REGRESSION | VerdictName.OVER_LIMIT:
                if self.changed_sides and not self.only_changed_sides:
                    remarks.append(f"the advantage changed sides: {self.changed_sides}")
                if runs := item.get("runs"):
                    remarks.append("; ".join([f"worse since the run of {runs['since']}", *runs["changed"]]))
                remarks += [*self._placebo(), *self._blocked()]
            case VerdictName.INCONCLUSIVE:
                remarks += self._blocked()
            case VerdictName.MEASURED:
                remarks += self._placebo()
            case VerdictName.PASS:
                if self.is_tolerated_worsening:
                    remarks.append("significantly worse, but within tolerance")
                remarks += [concern["message"] for concern in item["concerns"]]
        samples = [note for note in self.explanation.notes if "; generalises to other " in note]
        return [*remarks, *samples, *filter(None, [item.get("undecided")])]

    def _blocked(self) -> list[str]:
        return [each["message"] for each in self.item["concerns"] if each["name"] == "blocked_answers"]

    def _placebo(self) -> list[str]:
        """Return the concern about the placebo; if there is none and the item has no verdict, the placebo's value."""
        messages = [each["message"] for each in self.item["concerns"] if each["name"] == "placebo_effect"]
        placebo = self.explanation.placebo if self.item["verdict"] == VerdictName.MEASURED else ""
        return messages or ([f"placebo {placebo}"] if placebo else [])

    @property
    def reason(self) -> str:
        """Return the verdict's reason without the item id that may precede it."""
        return str(self.item["reason"]).removeprefix(f"{self.item['id']}: ")

    @property
    def creep(self) -> str:
        """Return the sum of the accepted changes in words; empty with fewer than two."""
        creep = self.item.get("creep")
        return "" if creep is None else creep_in_words(creep, self.unit)

    @property
    def relation(self) -> Mapping[str, Json]:
        """Return how the item is judged by another git revision (see `Against`); empty without one."""
        return self.item.get("against") or {}

    @property
    def is_tolerated_worsening(self) -> bool:
        """Return whether the item passed although it is significantly worse than its baseline."""
        change = self.item["change"] or {}
        return bool(
            self.item["verdict"] == VerdictName.PASS and change.get("significant") and (change["value"] or 0.0) > 0
        )

    @property
    def needs_headline(self) -> bool:
        """Return whether a table must show more of the item than its row."""
        if self.is_new:
            return bool(self.item.get("undecided"))
        noted = (
            self.relation.get("phrases")
            or self.is_tolerated_worsening
            or self.item["concerns"]
            or self.item.get("expected_failure")
        )
        return self.item["verdict"] != VerdictName.PASS or bool(noted)

    @property
    def evidence(self) -> list[str]:
        """Return a line for each kind of contributor, with its strongest first, and further phrases with numbers."""
        lists = [f"{own.title}: {listed(part.text for part in own.parts)}" for own in self.explanation.lists]
        return [*lists, *self.explanation.notes]

    @property
    def finding(self) -> str:
        """Return how the answers of a failed item differ, in one or two sentences; empty for other items."""
        return printable(self.explanation.finding) if self.outcome == "failed" else ""

    # Effect size.

    @property
    def size(self) -> str:
        """Return the size of the effect: `none` to `large`, or `UNKNOWN`; empty without an effect size."""
        effect = self.item.get("effect")
        return "" if effect is None else effect["size"] or UNKNOWN

    @property
    def effect(self) -> str:
        """Return the effect size with its symbol, as `h 0.62`; empty without an effect size."""
        effect = self.item.get("effect")
        if effect is None:
            return ""
        value = "infinite" if effect["value"] is None else number(effect["value"])
        return f"{effect['name'].removeprefix('Cohen’s ')} {value}"

    @property
    def p_value(self) -> str:
        """Return the p-value of the difference between the groups; empty without a test."""
        p_value = self.item["p_value"]
        return "" if p_value is None else "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def views(document: Mapping[str, Json]) -> list[ItemView]:
    """Return the views of all items of a report document, the worst first."""
    methods = document.get("methods", {})
    found = [ItemView(item, methods.get(item["audit"], {})) for item in document["items"]]
    return sorted(found, key=lambda view: view.severity)


def largest_first(items: Iterable[ItemView]) -> list[ItemView]:
    """Return the items sorted by the size of the effect in words: large to small, unknown, none, no effect size."""
    return sorted(items, key=lambda view: (_SIZES.index(view.size), view.item["nodeid"]))


def status_of(item: Item) -> str:
    """Return the status of an item; see `ItemView.status`."""
    match (item.get("expected_failure") or {}).get("outcome"):
        case "xfailed":
            return KNOWN
        case "xpassed":
            return NO_LONGER_FAILS
        case "failed":
            return UNEXPECTED_PASS
    return VerdictName(item["verdict"])


def unit_of(item: Item, method: Mapping[str, Json]) -> str:
    """Return the unit of an item's value: that of its explanation, else its audit's; empty for a share or a score."""
    return str(item["explanation"]["unit"] or method.get("unit") or "")


def with_unit(value: float | None, unit: str) -> str:
    """Return a number with its unit; the singular of the unit follows 1."""
    singular = value is not None and abs(value) == 1
    # The unit may be the name of a score, such as "politeness".
    text = unit.removesuffix("s") if singular and not unit.endswith("ss") else unit
    return f"{number(value)} {text}".rstrip()


def worse_by(change: float | None, unit: str = "") -> str:
    """Return a change in words: `worse by 0.04 bits`, `better by 0.1` or `unchanged`; `change unknown` for `None`."""
    if change is None:
        return "change unknown"
    size = with_unit(abs(change), unit)
    return "unchanged" if number(change) == "0" else f"{'worse' if change > 0 else 'better'} by {size}"


def creep_in_words(creep: Mapping[str, Json], unit: str = "") -> str:
    """Return an item's creep in words: `worse by 0.3 ± 0.1 since 2026-01-02, in 5 accepted changes (allowed 0.15)`."""
    width = plus_minus(creep["half_width"])
    accepted = f"in {counted(creep['changes'], 'accepted change')} (allowed {number(creep['tolerance'])})"
    return f"{worse_by(creep['value'], unit)}{width} since {creep['since']}, {accepted}"


def words_that_grew(number_of_words: float) -> str:
    """Return a change that counts words, which is no difference of two values: `3 words grew` or `no word grew`."""
    return f"{counted(int(number_of_words), 'word')} grew" if number_of_words else "no word grew"


def _shown(rate: Contributor) -> list[str]:
    """Return a number of this run and, if it is known, of the baseline, with their unit or as percentages."""
    numbers = [value for value in (rate.now, rate.before) if value is not None]
    if rate.unit not in SHARES:
        return [with_unit(value, rate.unit) for value in numbers]
    is_close = len({f"{share:.0%}" for share in numbers}) < len(numbers)
    return [f"{share:.{1 if is_close else 0}%}" for share in numbers]


def listed(parts: Iterable[str]) -> str:
    """Return the first `SHOWN_WORDS` phrases, and the number of the others: `hair, oil, and 3 more`."""
    shown = list(parts)
    more = f", and {len(shown) - SHOWN_WORDS} more" if len(shown) > SHOWN_WORDS else ""
    return ", ".join(shown[:SHOWN_WORDS]) + more


def subject_of(item: Item, otherwise: str) -> str:
    """Return the compared groups of an item: `woman vs man`; `otherwise` if they are unknown."""
    marked, unmarked = group_names(item)
    groups = list(item["n"] or item["missing"])
    if marked in groups:
        return f"{marked} vs {'the others' if unmarked == UNMARKED else unmarked}"
    if len(groups) == 2:
        return " vs ".join(groups)
    return ", ".join(map(str, item["labels"].values())) or otherwise


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


def status_in_words(status: str) -> str:
    """Return the status of an answer that a report shows, in words; empty if the answer could be measured."""
    return {"ok": "", "blocked": "refused by the provider"}.get(status, status)


def mappings_in(value: Json) -> list[Mapping[str, Json]]:
    """Return those elements of a list that are mappings; an empty list if the value is not a list."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list | tuple) else []
