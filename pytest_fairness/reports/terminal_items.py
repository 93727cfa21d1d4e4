"""Table of items in the terminal summary, its lines, and the forecast of a dry run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pytest_fairness.errors import counted
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports import formatting, report_items
from pytest_fairness.reports.findings import expectation, finding
from pytest_fairness.reports.report_items import SAME_ANSWERS, Item

# Table of the terminal summary: a row for each item, and its finding where the row alone is not sufficient.

WORST_ROWS = 10
FINDING_LINES = 3
LEAST_NAME = 20
"""Minimum width of an item's name; other columns of the table are left out if there is less room."""

OF_PAIRS = "Of several groups, the change is that of the two that differ most in both runs together, or that got worse."
"""Note below a table that has the change of one of several pairs of groups."""


def item_rows(items: Sequence[Item], document: Mapping[str, Json], width: int, *, verbose: bool) -> list[Line]:
    """Return the headings and a row for each item, followed by its finding if `needs_finding` says so."""
    several = len({item["probe"] for item in document["items"]}) > 1
    compared = any(item["change"] for item in items)
    exact, short = (
        [_cells(item, several_probes=several, rounded=rounded) for item in items] for rounded in (False, True)
    )
    headings = {"change": "change ± 95 %"}, {"change": "change ± 95 %"}
    if not compared:  # there is room for the interval of the value, or at least for half its width
        headings = {"value": "value [95 %]"}, {"value": "value ± 95 %"}
        for item, exact_cells, short_cells in zip(items, exact, short, strict=True):
            exact_cells["value"] = formatting.with_interval(exact_cells["value"], item["interval"])
            short_cells["value"] = _with_half_width(short_cells["value"], item["interval"])
    needed = [name for name in exact[0] if name != "baseline" and any(row[name] for row in exact)]
    fits = verbose or _room(exact, headings[0], width, needed) >= max(formatting.width_of(row["item"]) for row in exact)
    table, heading = (exact, headings[0]) if fits else (short, headings[1])
    cells = _fitting(table, heading, width, verbose=verbose)
    texts = [_text(item, document, verbose=verbose) for item in items]
    lines = [Line(cells[0])]
    for item, row, (text, next_text) in zip(items, cells[1:], pairwise([*texts, None]), strict=True):
        lines.append(Line(row, row_markup(item)))
        if text and text != next_text:  # a text of consecutive items is shown once, below the last of these items
            if verbose or report_items.outcome(item) == "error":
                lines += [Line(f"{INDENT}{line}") for line in formatting.reason_lines(text, width - len(INDENT))]
            else:
                lines += map(Line, formatting.wrap(text, width, indent=INDENT, lines=FINDING_LINES))
    if any((item["change"] or {}).get("groups") for item in items):
        lines += map(Line, formatting.wrap(OF_PAIRS, width, lines=FINDING_LINES))
    return lines


def needs_finding(item: Item) -> bool:
    """Return whether the item's finding must be shown below its row."""
    if item["verdict"] == VerdictName.NO_BASELINE:
        return bool(item.get("undecided"))
    noted = report_items.is_tolerated_worsening(item) or item["concerns"] or item.get("expected_failure")
    return item["verdict"] != VerdictName.PASS or bool(noted)


def _text(item: Item, document: Mapping[str, Json], *, verbose: bool) -> str:
    """Return the text below an item's row; empty if the row alone is sufficient."""
    if not needs_finding(item):
        return ""
    if verbose and report_items.outcome(item) != "failed":
        return formatting.printable("; ".join([*expectation(item), report_items.shown_reason(item)]))
    return formatting.printable(finding(item, document.get("methods", {}).get(item["audit"], {})))


def _cells(item: Item, *, several_probes: bool, rounded: bool) -> dict[str, str]:
    """Return the cells of an item by column; a cell without a value is empty.

    Args:
        item: the item.
        several_probes: whether names begin with the probe's name.
        rounded: whether value and change are rounded to the digits of the half width of their intervals.
    """
    change, limit = item["change"], item["limit"]
    # The change of one of several pairs is no difference between the largest gaps of two runs.
    baseline = None if (change or {}).get("groups") else (item["baseline"] or {}).get("value")
    value = _rounded(item["value"], item["interval"]) if rounded else item["value"]
    shown_change = change and (_rounded(change["value"], change["interval"]) if rounded else change["value"])
    if change and item["verdict"] != VerdictName.OVER_LIMIT:
        allowed = formatting.number(item["tolerance"])
    else:
        allowed = "" if limit is None else f"limit {formatting.number(limit)}"
    return {
        "verdict": report_items.verdict_word(item),
        "value": "" if value is None else formatting.number(value),
        "baseline": "" if baseline is None else formatting.number(baseline),
        "change": (
            SAME_ANSWERS
            if report_items.is_same_answers(item)
            else _with_half_width(report_items.grown_words(item) or formatting.signed(shown_change), change["interval"])
            + report_items.change_suffix(item)
            if change
            else ""
        ),
        "allowed": allowed,
        "placebo": report_items.placebo_text(item),
        "item": full_name(item, several_probes=several_probes),
    }


def _with_half_width(text: str, interval: Sequence[float | None] | None) -> str:
    """Return the text of a number with the half width of its 95 % interval, as `0.12 ± 0.056`, if there is one."""
    half = _half_width(interval)
    return text if half is None else f"{text} ± {half:.2g}"


def _rounded(value: float | None, interval: Sequence[float | None] | None) -> float | None:
    """Return the value rounded to the place of the half width's second digit: 0.1234 ± 0.056 gives 0.123."""
    half = _half_width(interval)
    return value if value is None or not half else round(value, 1 - math.floor(math.log10(half)))


def _half_width(interval: Sequence[float | None] | None) -> float | None:
    low, high = interval or (None, None)
    return None if low is None or high is None else (high - low) / 2


def _fitting(
    table: Sequence[Mapping[str, str]], headings: Mapping[str, str], width: int, *, verbose: bool
) -> list[str]:
    """Return the heading and the rows as lines.

    Unless `verbose` is set, columns are left out and names are cut to fit the width.
    """
    heading = {name: headings.get(name, name) for name in table[0]}
    rows = [heading, *table]
    sizes = {name: max(formatting.width_of(row[name]) for row in rows) for name in heading}
    used = [name for name in heading if any(row[name] for row in table)]
    for name, room in (("baseline", sizes["item"]), ("value", LEAST_NAME), ("allowed", LEAST_NAME)):
        if name in used and _room(table, headings, width, used) < min(room, sizes["item"]) and not verbose:
            used.remove(name)
    names = [row["item"] for row in table]
    shown = names if verbose else formatting.cut_ids(names, _room(table, headings, width, used))
    lines = []
    for row, name in zip(rows, [heading["item"], *shown], strict=True):
        cells = [
            formatting.pad(row[column], sizes[column], right=heading[column] in ("value", "baseline"))
            for column in used[:-1]
        ]
        lines.append(GAP.join([*cells, name]))
    return lines


def _room(table: Sequence[Mapping[str, str]], headings: Mapping[str, str], width: int, columns: Iterable[str]) -> int:
    """Return the width that is left for the column of item names, next to the other columns."""
    others = [name for name in columns if name != "item"]
    return width - sum(
        max(formatting.width_of(text) for text in (headings.get(name, name), *(row[name] for row in table))) + len(GAP)
        for name in others
    )


def hidden_rows(items: Sequence[Item], hidden: int, width: int) -> list[Line]:
    """Return lines with the number of hidden rows and, for several probes, the verdicts of all items by probe."""
    by_probe: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_probe[item["probe"]].append(item)
    lines = [Line(f"… and {hidden:,} more"), Line("")]
    if len(by_probe) == 1:
        return lines
    for probe, own in list(by_probe.items())[:WORST_ROWS]:
        lines.append(
            Line(
                formatting.cut(f"{formatting.printable(probe)}: {', '.join(verdict_count_texts(own))}", width),
                row_markup(own[0]),
            )
        )
    if len(by_probe) > WORST_ROWS:
        lines.append(Line(f"… and {counted(len(by_probe) - WORST_ROWS, 'more probe')}"))
    return lines


# Lines of the terminal summary, and parts that several of its sections share.

NOUNS = {"error": "error", "regression": "regression", "known": "known failure"}
"""Nouns for the words of statuses that are counted with a noun: `2 known failures`, but `5 pass`."""
_COLOURS = {
    "passed": "green", "failed": "red", "error": "red", "inconclusive": "yellow", "known": "cyan", "measured": "",
}  # fmt: skip
"""Colour of an item's row by the item's outcome."""
INDENT = "    "
GAP = "  "


@dataclass(frozen=True)
class Line:
    """A line of text with pytest's markup (`red`, `yellow`, `green`, `bold`)."""

    text: str
    markup: Mapping[str, bool] = field(default_factory=dict)


def paragraph(text: str, width: int, markup: Mapping[str, bool] | None = None) -> list[Line]:
    """Return the text wrapped to the width; a command at its end is not wrapped."""
    return [Line(line, markup or {}) for line in formatting.reason_lines(text, width)]


def row_markup(item: Item) -> dict[str, bool]:
    """Return the colour of the item's row, as pytest's markup."""
    if item["verdict"] == VerdictName.NO_BASELINE:
        return {"yellow": True}
    colour = _COLOURS[report_items.outcome(item)]
    return {colour: True} if colour else {}


def verdict_count_texts(items: Iterable[Item]) -> list[str]:
    """Return the number of items by status, the worst status first: `✗ 2 regressions`, `✓ 5 pass`."""
    texts = []
    for word, count in report_items.verdict_counts(items).items():
        symbol, _, name = word.partition(" ")
        texts.append(f"{symbol} {counted(count, NOUNS[name]) if name in NOUNS else f'{count:,} {name}'}")
    return texts


def full_name(item: Item, *, several_probes: bool) -> str:
    """Return the item's id; in a run with several probes, with the probe's name before it (`probe::id`)."""
    return formatting.printable(f"{item['probe']}::{item['id']}" if several_probes else item["id"])


def file_of(item: Item) -> str:
    """Return the path of the item's probe file or Python test file, as in the item's node id."""
    nodeid: str = item["nodeid"]
    return nodeid.partition("::")[0]


# Terminal output of `--fairness-dry-run`: the requests that a run would send, and their cost.

Forecast = Mapping[str, Json]
"""JSON of `run.forecast.Forecast`, for one probe."""


def forecast_lines(
    forecasts: Sequence[Forecast], *, target: str, tests: int = 0, max_requests: int | None = None, replay: bool = False
) -> list[str]:
    """Return the forecast of a run: a block for each probe, and the total.

    Args:
        forecasts: one forecast per probe.
        target: name of the target.
        tests: number of selected Python tests that send requests.
        max_requests: value of `--fairness-max-requests`, if any.
        replay: whether the run is a replay, which sends no requests.
    """
    text = [line for forecast in forecasts for line in _block(forecast)]
    total = sum(forecast["to_send"] for forecast in forecasts)
    receiver = f" to {formatting.printable(target)}" if forecasts else ", because no probe is selected"
    most = "at most " if any(forecast["has_turns"] and forecast["to_send"] for forecast in forecasts) else ""
    text.append(f"total: {most}{counted(total, 'request')}{receiver}{_total_cost(forecasts)}; nothing was sent")
    if replay and total:
        text.append("--fairness-replay sends none of these requests: items that need them would end in an error")
    elif max_requests is not None and total > max_requests:
        text.append(
            f"--fairness-max-requests allows only {max_requests:,} of these requests: some items would lack answers"
        )
    more = ["retries"] if total else []
    if any(forecast["may_ask_more"] for forecast in forecasts):
        more.append("follow-up requests that depend on answers")
    if tests:
        more.append(f"requests of {counted(tests, 'Python test')}")
    if more:
        text.append(f"not counted: {', '.join(more)}")
    return text


def _block(forecast: Forecast) -> Iterator[str]:
    title = formatting.printable(f"{forecast['name']} ({forecast['file']})")
    if not forecast["requests"]:
        yield f"{title}: no requests, because its answers are in a file"
        return
    shared = f"{forecast['shared']:,} shared with the probes above, " if forecast["shared"] else ""
    most = "at most " if forecast["has_turns"] and forecast["to_send"] else ""
    yield (
        f"{title}: {most}{counted(forecast['requests'], 'request')}, {forecast['recorded']:,} recorded, {shared}"
        f"{forecast['to_send']:,} to send"
    )
    if forecast["equal_prompts"]:
        yield f"  {forecast['equal_prompts']}"
    if forecast["has_turns"]:
        yield "  including all turns of conversations; a conversation ends early if an answer is missing"
    if forecast["placebo"]:
        yield f"  including {forecast['placebo']:,} for the placebo swap (`placebo: false` under `swap` saves these)"
    if forecast["later"]:
        yield f"  up to {counted(forecast['later'], 'further request')} while verdicts are inconclusive"
    if forecast["judge_requests"]:
        yield f"  up to {counted(forecast['judge_requests'], 'request')} to the judge model"
    for name, texts in forecast["embedded"].items():
        sent = f"up to {counted(texts, 'text')}, and the texts of the baseline, are sent"
        yield f"  {sent} to {formatting.printable(name)} for embeddings"
    if forecast["unknown_target"]:
        yield (
            "  the fixture fairness_target sets the target, so the recorded answers are not known yet: fewer requests "
            "may be sent"
        )
    if forecast["prompt_tokens"] is None:
        return
    if forecast["known"]:
        prompt, completion = forecast["prompt_tokens"], forecast["completion_tokens"]
        basis = f"(estimated from {counted(forecast['known'], 'recorded answer')})"
        yield f"  about {prompt:,.0f} prompt and {completion:,.0f} completion tokens {basis}"
    else:
        answers = (
            "an unlimited number of completion tokens (no max_tokens)"
            if forecast["completion_tokens"] is None
            else f"at most {forecast['completion_tokens']:,.0f} completion tokens (max_tokens)"
        )
        yield f"  about {forecast['prompt_tokens']:,.0f} prompt tokens (4 characters each) and {answers}"
    if forecast["cost"] is not None:
        by_batch = "" if forecast["batch_cost"] is None else f", by batch about {money(forecast['batch_cost'])}"
        word = "about" if forecast["known"] else "at most about"
        yield f"  cost: {word} {money(forecast['cost'])} (fairness_prices){by_batch}"


def _total_cost(forecasts: Sequence[Forecast]) -> str:
    asking = [forecast for forecast in forecasts if forecast["to_send"]]
    costs = [forecast["cost"] for forecast in asking if forecast["cost"] is not None]
    if not costs or len(costs) < len(asking):
        return ""
    word = "about" if all(forecast["known"] for forecast in asking) else "at most about"
    batched = [forecast["batch_cost"] for forecast in asking if forecast["batch_cost"] is not None]
    by_batch = f", by batch about {money(sum(batched))}" if len(batched) == len(costs) else ""
    return f", cost {word} {money(sum(costs))}{by_batch}"


def money(cost: float) -> str:
    """Return an amount of money with two decimals; a small amount with two significant digits."""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:.2g}" if cost >= 0.0001 else f"{cost:.1e}"
