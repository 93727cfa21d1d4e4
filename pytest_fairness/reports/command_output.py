"""Output of the commands `diff`, `history`, `calibrate` and `swaps`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_fairness.audits import registry
from pytest_fairness.baselines.changes import ORDER, SAME_VALUE, ItemChange
from pytest_fairness.baselines.entries import MOST_CONTRIBUTIONS, Entry
from pytest_fairness.baselines.files import NOT_SET, changed_parts, changed_sampling
from pytest_fairness.errors import counted
from pytest_fairness.probes.identity_terms import PLACEBO, SwappedPrompts, listed_reasons
from pytest_fairness.records import Creep, Json
from pytest_fairness.reports import markdown, tables
from pytest_fairness.reports.formatting import (
    cut,
    cut_ids,
    number,
    pad,
    plus_minus,
    printable,
    signed,
    text_table,
    width_of,
    wrap,
)
from pytest_fairness.reports.markdown import MAX_LENGTH, MarkdownText, escaped, escaped_html
from pytest_fairness.reports.markdown import table as markdown_table
from pytest_fairness.reports.view import (
    WORDS,
    creep_in_words,
    group_names,
    subject_of,
    with_unit,
    words_that_grew,
    worse_by,
)
from pytest_fairness.stats.gaps import FALSE_NEGATIVES, FALSE_POSITIVES

# Output of the command `diff`: changes of baselines as terminal text and as Markdown.

HEADINGS = ("change", "old", "new", "worse by", "allowed", "item")
DIFFERENCE_WORDS = {"rules": "other limits", "same value": "no worse"}
"""Phrases for states of `ItemChange` whose names alone would be unclear."""
SHOWN_ROWS = 50
SHOWN_DETAILS = 10
SHOWN_CONTRIBUTIONS = 6
EXAMPLE_LINES = 3
INDENT = "  "
LONGEST_EXAMPLE = 300


def changes_headline(changes: Sequence[ItemChange], old: str, new: str, unchanged: int) -> str:
    if not changes:
        return f"No baseline changed between {old} and {new} ({counted(unchanged, 'item')} compared)."
    counts = [(sum(change.state == state for change in changes), DIFFERENCE_WORDS.get(state, state)) for state in ORDER]
    parts = ", ".join(f"{count} {word}" for count, word in counts if count)
    return f"{counted(len(changes), 'item')} changed from {old} to {new}: {parts}. {unchanged:,} unchanged."


def changes_text(changes: Sequence[ItemChange], title: str, problems: Sequence[str], width: int = 80) -> str:
    lines = [*wrap(printable(title), width), *(line for text in problems for line in wrap(printable(text), width))]
    if changes:
        lines += ["", *_table([tuple(map(printable, _cells(change))) for change in changes[:SHOWN_ROWS]], width)]
        lines += _more(len(changes) - SHOWN_ROWS)
    for change in changes[:SHOWN_DETAILS]:
        lines += ["", cut(printable(f"{_name(change)}: {DIFFERENCE_WORDS.get(change.state, change.state)}"), width)]
        for indent, text in _told(change):
            most = EXAMPLE_LINES if indent else None
            lines += wrap(printable(text), width, indent=f"  {indent}", hanging=f"    {indent}", lines=most)
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    numbers = text_table([HEADINGS[:-1], *(row[:-1] for row in rows)], width - len(INDENT), right=(1, 2, 3, 4))
    room = width - max(map(width_of, numbers)) - len(INDENT)
    names = [row[-1] for row in rows]
    if all(width_of(name) <= room for name in names):
        return text_table([HEADINGS, *rows], width, right=(1, 2, 3, 4))
    lines = [INDENT + numbers[0]]
    for name, line in zip(cut_ids(names, width), numbers[1:], strict=True):
        lines += [name, INDENT + line]
    return lines


def changes_markdown(changes: Sequence[ItemChange], title: str, problems: Sequence[str]) -> str:
    """Return the changes as Markdown that fits into one comment on GitHub; arguments as in `terminal`."""
    text = MarkdownText(MAX_LENGTH)
    text.add("## Fairness: changed baselines", "", escaped(title), "")
    if problems:
        text.add_rows([*(f"- {escaped(problem)}" for problem in problems), ""], 1)
    if changes:
        lines = markdown_table(
            HEADINGS, ([escaped(cell) for cell in _cells(change)] for change in changes[:SHOWN_ROWS])
        )
        text.add_rows([*lines, *_more(len(changes) - SHOWN_ROWS)], 2)
        text.add("")
    for change in changes[:SHOWN_DETAILS]:
        name = f"{escaped_html(_name(change))}: {DIFFERENCE_WORDS.get(change.state, change.state)}"
        told = (f"{indent}- {escaped(line)}" for indent, line in _told(change))
        text.add_rows(["<details>", f"<summary>{name}</summary>", "", *told], 3)
        text.add("", "</details>", "")
    return str(text)


def creep_warnings(creep: Mapping[tuple[str, str], Creep]) -> list[str]:
    """Return a sentence for each item whose accepted changes add up beyond its tolerance, by baseline and id."""
    return [
        f"creep beyond the tolerance: {' '.join(key)} {creep_in_words(of.to_json())}"
        for key, of in creep.items()
        if of.is_large
    ]


def _more(count: int) -> list[str]:
    return [f"… and {count} more"] if count > 0 else []


def _name(change: ItemChange) -> str:
    return f"{change.baseline} {change.id}"


def _cells(change: ItemChange) -> tuple[str, ...]:
    old, new = (number(None if entry is None else entry.value) for entry in (change.old, change.new))
    if _words_that_grew(change):
        old = new = ""  # a number of significant words, which are other words
    return (
        DIFFERENCE_WORDS.get(change.state, change.state),
        old,
        new,
        _worse_by(change),
        number(change.tolerance),
        _name(change),
    )


def _worse_by(change: ItemChange) -> str:
    if change.difference is None or change.state in ("renamed", "rules"):
        return ""
    return (_words_that_grew(change) or signed(change.difference)) + plus_minus(change.half_width)


def _words_that_grew(change: ItemChange) -> str:
    if change.comparison is None or change.info is None or change.info.tolerance_of_value:
        return ""
    return words_that_grew(change.comparison.value)


def _told(change: ItemChange) -> Iterator[tuple[str, str]]:
    """Yield lines about a change and its examples, each after its indentation."""
    yield from (("", line) for line in _details(change))
    for example in change.examples:
        yield "", f"answers for {example.labels}"
        if example.old is not None:
            yield "  ", f"before: {_quoted(example.old)}"
        yield "  ", f"now: {_quoted(example.new)}"


def _details(change: ItemChange) -> Iterator[str]:
    entry = change.new or change.old
    if entry is None:
        return
    yield _finding(change, entry)
    if change.difference is not None and change.half_width and not change.beyond_chance and change.state == "worse":
        yield "the change may be due to chance: its 95 % confidence interval includes 0"
    if change.changed_contributions:
        yield f"contributions: {_contributions(change, entry)}"
    yield from _words(change)
    if change.creep is not None:
        unit = "" if change.info is None else change.info.unit
        yield f"all accepted changes: {creep_in_words(change.creep.to_json(), unit)}"
    if entry.file is not None:
        yield f"in {entry.file}"
    if change.old_key is not None:
        yield f"renamed from {' '.join(change.old_key)}"
    if change.old is not None and change.new is not None:
        yield from _other_changes(change.old, change.new)


def _words(change: ItemChange) -> Iterator[str]:
    """Yield lines about significant words: the change, and the words that are now, or no longer, significant.

    If the change was not measured from the answers of both baselines, a note says how it was computed.

    Yield nothing for an item that is new, removed or unchanged in value, or whose audit does not count words.
    """
    old, new = change.old, change.new
    if old is None or new is None or old.value == new.value or change.info is None or change.info.tolerance_of_value:
        return
    if change.comparison is not None and change.comparison.explanation.change:
        yield change.comparison.explanation.change
    before, after = ((entry.contributions or {}).keys() for entry in (old, new))
    parts = [
        f"{title}: {', '.join(sorted(words))}"
        for title, words in (("now significant", after - before), ("no longer significant", before - after))
        if words
    ]
    few = max(old.value, new.value) <= MOST_CONTRIBUTIONS
    if parts:
        yield f"{'' if few else 'of the strongest words, '}{'; '.join(parts)}"
    if change.comparison is None:
        yield (
            "the change is the difference between the numbers of significant words. To count the words that became "
            "more typical of a group, as a run does, `diff` needs the answers of both baselines and an unchanged probe"
        )


def _finding(change: ItemChange, entry: Entry) -> str:
    title, unit = ("", "") if change.info is None else (change.info.title, change.info.unit)
    item = {"n": entry.n, "missing": entry.missing, "labels": entry.labels or {}}
    if change.new is None or change.difference is None or change.state in SAME_VALUE:
        text = with_unit(entry.value, unit) + ("" if entry.limit is None else f" (limit {number(entry.limit)})")
    else:
        allowed = "" if change.tolerance is None else f" (allowed {number(change.tolerance)})"
        text = (_words_that_grew(change) or worse_by(change.difference, unit)) + allowed
    return f"{subject_of(item, title or change.id)}: {text}"


def _other_changes(old: Entry, new: Entry) -> Iterator[str]:
    for name in ("tolerance", "limit"):
        was, now = getattr(old, name), getattr(new, name)
        # Files of earlier versions hold neither tolerance nor limit.
        if was != now and old.tolerance is not None:
            yield f"{name} {_from_to(was, now)}"
    if old.target != new.target:
        yield f"target {old.target} → {new.target}"
    if old.served != new.served and old.served and new.served:
        yield f"served model {', '.join(old.served)} → {', '.join(new.served)}"
    if old.fingerprint != new.fingerprint:
        yield f"changed inputs: {', '.join(changed_parts(new.fingerprint, old.fingerprint))}"
    if sampling := changed_sampling(old, new.sampling):
        yield f"sampling: {', '.join(sampling)}"
    if (answers := sum(old.n.values())) != (now := sum(new.n.values())):
        yield f"usable answers {answers:,} → {now:,}"
    if old.tool_version != new.tool_version:
        yield f"pytest-fairness {old.tool_version} → {new.tool_version}"


def _contributions(change: ItemChange, entry: Entry) -> str:
    shown = change.changed_contributions[:SHOWN_CONTRIBUTIONS]
    numbers = [number for _, was, now in change.changed_contributions for number in (was, now) if number is not None]
    # Contributions below 0 belong to words that the unmarked group uses more.
    if not change.info or change.info.name not in registry.AUDITS["generation"] or min(numbers, default=0.0) >= 0:
        return ", ".join(_contribution(change, *part) for part in shown)
    marked, unmarked = group_names({"n": entry.n, "missing": entry.missing, "labels": entry.labels or {}})
    sides: dict[str, list[str]] = {}
    for name, was, now in shown:
        # The sign shows the group.
        last = now if now is not None else was or 0.0
        side, sign = (unmarked, -1) if last < 0 else (marked, 1)
        amounts = (None if number is None else sign * number for number in (was, now))
        sides.setdefault(side, []).append(_contribution(change, name, *amounts))
    return "; ".join(f"more for {side}: {', '.join(parts)}" for side, parts in sides.items())


def _contribution(change: ItemChange, name: str, was: float | None, now: float | None) -> str:
    """Return a phrase with the name of a contribution and its old and new number."""
    if was is None:
        return f"{name} {number(now)}{' (new)' if change.old and change.old.contributions else ''}"
    return f"{name} (was {number(was)})" if now is None else f"{name} {_from_to(was, now)}"


def _from_to(old: float | None, new: float | None) -> str:
    return f"{NOT_SET if old is None else number(old)} → {NOT_SET if new is None else number(new)}"


def _quoted(text: str | None) -> str:
    if text is None:
        return "no answer"
    return f"“{text}”" if len(text) <= LONGEST_EXAMPLE else f"“{text[:LONGEST_EXAMPLE]}…”"


# Terminal output of `history`: values of earlier runs.

VALUES = "values, newest first"
VALUES_WIDTH = 20
"""Number of terminal columns that are reserved for the values."""
LEAST_NAME = 20
"""Minimum width of an item's name in columns."""
_GAP = "  "

Point = Mapping[str, Json]
"""One item in one run: `probe`, `id`, `started`, `target`, `value`, `interval`, `verdict`; for an item with a mark
`xfail`, also `status`."""


def history_table(points: Sequence[Point], last: int, width: int = 100) -> str:
    """Return a table with a row for each item or, if there is only one item, a row for each run.

    If several items were measured with several targets, there is a table for each target.
    """
    items: dict[tuple[str, str, str], list[Point]] = {}
    for point in points:
        items.setdefault((point["probe"], point["id"], point["target"]), []).append(point)
    if len({key[:2] for key in items}) == 1:
        return _runs(points[-last:], width)
    several_probes, targets = len({probe for probe, _, _ in items}) > 1, sorted({target for _, _, target in items})
    lines: list[str] = []
    for target in targets:
        rows = [
            (
                _word(own[-1]),
                str(len(own)),
                own[-1]["started"][:10],
                printable(f"{probe} {item}" if several_probes else item),
                [number(point["value"]) for point in reversed(own[-last:])],
            )
            for (probe, item, of), own in sorted(items.items())
            if of == target
        ]
        heading = [*([""] if lines else []), printable(target)] if len(targets) > 1 else []
        lines += [*heading, *_fitting(rows, width)]
    return "\n".join(lines) + "\n"


def _fitting(rows: Sequence[tuple[str, str, str, str, Sequence[str]]], width: int) -> list[str]:
    fixed = text_table([("verdict", "runs", "last run"), *(row[:3] for row in rows)], width, right=(1,))
    fixed_width = max(map(width_of, fixed))
    name_width = max(LEAST_NAME, width - fixed_width - 2 * len(_GAP) - VALUES_WIDTH)
    names = ["item", *cut_ids([row[3] for row in rows], name_width)]
    name_width = max(map(width_of, names))
    lines = []
    for cells, name, values in zip(fixed, names, ([VALUES], *(row[4] for row in rows)), strict=True):
        line = f"{pad(cells, fixed_width)}{_GAP}{pad(name, name_width)}"
        for value in values:
            if width_of(line) + len(_GAP) + len(value) > width:
                break
            line += _GAP + value
        lines.append(line)
    return lines


def _runs(points: Sequence[Point], width: int) -> str:
    rows = [
        (
            _word(point),
            point["started"].replace("T", " ").rstrip("Z"),
            number(point["value"]),
            f"[{number(point['interval'][0])}, {number(point['interval'][1])}]" if point["interval"] else "",
            point["target"],
        )
        for point in points
    ]
    first = points[0]
    head = ("verdict", "run (UTC)", "value", "95 % interval", "target")
    title = printable(f"{first['probe']} {first['id']}")
    return (
        "\n".join([title, *text_table([head, *(tuple(map(printable, row)) for row in rows)], width, right=(2,))]) + "\n"
    )


def _word(point: Point) -> str:
    return WORDS[point.get("status", point["verdict"])]


# Terminal output of `calibrate`: error rates of limits on labelled outputs.

SHOWN_LIMITS = 12
WIDTH = 100
"""Maximum width of a line of the table, in columns."""

CalibrationJson = Mapping[str, Json]


def calibration_text(calibrations: Sequence[CalibrationJson]) -> str:
    """Return a section for each audit: error rates of several limits, including the current and the best limit."""
    return "\n\n".join("\n".join(_section(calibration)) for calibration in calibrations)


def _section(calibration: CalibrationJson) -> list[str]:
    cases = calibration["cases"]
    unmeasured = f"; {calibration['unmeasured']} more could not be measured" if calibration["unmeasured"] else ""
    counts = f"{cases['acceptable']} acceptable and {cases['problematic']} problematic outputs"
    lines = [f"{printable(calibration['audit'])}: {counts}{unmeasured}"]
    if not calibration["curve"]:
        advice = "Add outputs until outputs of both labels are measured, and not all values are equal."
        return [*lines, f"  No limit can be chosen. {advice}"]
    current, best = calibration["present"], calibration["best"]
    points = {
        number(point["limit"]): point for point in (*_sample(calibration["curve"]), current, best) if point is not None
    }
    rows = [("limit", "false positives", "false negatives", "")]
    for point in sorted(points.values(), key=lambda point: float(point["limit"])):
        marks = [name for name, marked in (("current", current), ("best", best)) if point == marked]
        rows.append((number(point["limit"]), _rate(point, "false_positive"), _rate(point, "missed"), ", ".join(marks)))
    return [*lines, *(f"  {line}" for line in text_table(rows, WIDTH)), *_advice(best)]


def _advice(best: CalibrationJson | None) -> list[str]:
    goal = f"under {FALSE_POSITIVES:.0%} false positives and under {FALSE_NEGATIVES:.0%} false negatives"
    if best is None:
        return [f"  No limit gives {goal} on these outputs."]
    lines = [f"  The limit {number(best['limit'])} gives {goal}."]
    highest = best["false_positive_interval"][1], best["missed_interval"][1]
    if highest[0] > FALSE_POSITIVES or highest[1] > FALSE_NEGATIVES:
        lines.append(
            f"  The sample is small: the 95 % confidence intervals reach {highest[0]:.0%} false positives and "
            f"{highest[1]:.0%} false negatives."
        )
    return lines


def _sample(curve: Sequence[CalibrationJson]) -> list[CalibrationJson]:
    if len(curve) <= SHOWN_LIMITS:
        return list(curve)
    places = {round(place * (len(curve) - 1) / (SHOWN_LIMITS - 1)) for place in range(SHOWN_LIMITS)}
    return [curve[place] for place in sorted(places)]


def _rate(point: CalibrationJson, name: str) -> str:
    low, high = point[f"{name}_interval"]
    return f"{point[name]:.0%} [{low:.0%}, {high:.0%}]"


# Listing of swapped prompts: each prompt with its text for every group, and the prompts that cannot be swapped.

SHOWN_TEXT = 3
"""Maximum number of lines that are shown of a prompt that cannot be swapped."""


def swaps_as_text(listing: SwappedPrompts, groups: Sequence[str], width: int) -> Iterator[str]:
    names = [*groups, PLACEBO]
    room = max(width_of(printable(name)) for name in names) + 4
    for prompt in listing.prompts:
        written = f", original: {prompt.group}" if prompt.group in groups else ""
        yield f"line {prompt.row.line}{printable(written)}"
        for name in names:
            if name in prompt.versions:
                indent = f"  {pad(printable(name), room - 2)}"
                yield from wrap(printable(prompt.versions[name]), width, indent=indent, hanging=" " * room)
        for warning in prompt.warnings:
            yield from wrap(printable(f"! {warning}"), width, indent="  ", hanging="    ")
        yield ""
    for omitted in listing.left_out:
        yield from wrap(printable(f"line {omitted.row.line} left out: {omitted.reason}"), width, hanging="  ")
        yield from wrap(printable(omitted.row.text), width, indent="  ", lines=SHOWN_TEXT)
    if listing.left_out:
        yield ""
    for sentence in swaps_summary(listing):
        yield from wrap(printable(sentence), width, hanging="  ")


def swaps_as_markdown(listing: SwappedPrompts, groups: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the listing as Markdown tables; see `as_text` for the arguments."""
    names = [*groups, PLACEBO]
    yield from (f"{markdown.escaped(sentence)}\n" for sentence in swaps_summary(listing))
    rows = [
        [
            str(prompt.row.line),
            *(markdown.escaped(prompt.versions.get(name, "")) for name in names),
            markdown.escaped("; ".join(prompt.warnings)),
        ]
        for prompt in listing.prompts
    ]
    yield from markdown.table(["line", *map(markdown.escaped, names), "flagged"], rows)
    if omitted := listing.left_out:
        yield ""
        rows = [[str(prompt.row.line), *map(markdown.escaped, (prompt.row.text, prompt.reason))] for prompt in omitted]
        yield from markdown.table(["line", "left out", "reason"], rows)


def swaps_as_csv(listing: SwappedPrompts, groups: Sequence[str]) -> str:
    """Return the listing as CSV with a row for each prompt, in the order of the file; arguments as in `as_text`."""
    names = [*groups, PLACEBO]
    rows: list[tuple[int, list[str | None]]] = [
        (swap.row.line, [swap.row.text, swap.group, *map(swap.versions.get, names), "; ".join(swap.warnings), ""])
        for swap in listing.prompts
    ]
    rows += [(left.row.line, [left.row.text, "", *("" for _ in names), "", left.reason]) for left in listing.left_out]
    heads = ["line", "text", "original", *names, "flagged", "left_out"]
    return tables.as_csv(heads, [[line, *cells] for line, cells in sorted(rows, key=lambda row: row[0])])


def swaps_summary(listing: SwappedPrompts) -> list[str]:
    flagged = sum(bool(prompt.warnings) for prompt in listing.prompts)
    placebos = sum(PLACEBO in prompt.versions for prompt in listing.prompts)
    swapped = f"{counted(len(listing.prompts), 'prompt')} can be swapped: {placebos} with a placebo, {flagged} flagged"
    sentences = [swapped]
    if listing.left_out:
        sentences.append(f"{counted(len(listing.left_out), 'prompt')} left out: {listed_reasons(listing)}")
    if listing.not_examined:
        sentences.append(
            f"{counted(listing.not_examined, 'further prompt')} of the file not examined: the sample is complete"
        )
    return sentences
