"""Tables of the self-test (`--fairness-selftest`), from its part of the report document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.errors import counted
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import cut_ids, printable, text_table, width_of, wrap
from pytest_fairness.stats import intervals

COLUMNS = ("false red", "found 1×", "found 2×", "missed", "open", "power", "for 80 %", "item")
"""Headings of the table: false reds without a change, verdicts on changes of 1 and 2 tolerances, power at 2."""
MEANING = (
    "false red: regressions without a change. found 1× and 2×: regressions after a planted change of 1 and 2 "
    "tolerances; missed: passes, and open: inconclusive, after one of 2. The tested runs have half of the recorded "
    "answers. power: estimated chance to find 2 tolerances with runs of all answers; for 80 %: the size that gives it."
)


def rows(tests: Sequence[Mapping[str, Json]]) -> list[list[str]]:
    """Return a row for each tested item, in the order of `COLUMNS`."""
    found = []
    for test in tests:
        if not total(test["unchanged"]):
            continue
        one, two = (test["planted"].get(name) for name in ("1", "2"))
        missed, left = ("", "") if two is None else (str(two["passed"]), str(two["inconclusive"]))
        power = "" if test["power"] is None else f"{test['power']:.0%}"
        size = "" if test["needed"] is None else f"{test['needed']:,} {test['divided']}"
        several = len({test["probe"] for test in tests}) > 1
        name = f"{test['probe']}::{test['id']}" if several else test["id"]
        found.append([share(test["unchanged"]), share(one), share(two), missed, left, power, size, printable(name)])
    return found


def summary(tests: Sequence[Mapping[str, Json]]) -> str:
    """Return the false reds of all items with the 95 % confidence interval of their rate."""
    n = sum(total(test["unchanged"]) for test in tests)
    red = sum(test["unchanged"]["red"] for test in tests)
    low, high = intervals.wilson(red, n, intervals.quantile(0.975))
    return f"false reds: {red} of {counted(n, 'test')} without a change (95 % interval {low:.1%} to {high:.1%})"


def problems(tests: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return a sentence for each item that was not tested, or in which no change was planted."""
    named: dict[str, list[str]] = {}
    for test in tests:
        if test["problem"]:
            named.setdefault(test["problem"], []).append(f"{test['probe']} {test['id']}")
    return [
        printable(f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {problem}")
        for problem, names in named.items()
    ]


def lines(tests: Sequence[Mapping[str, Json]], width: int, *, verbose: bool) -> list[str]:
    """Return the self-test as lines of text; if `verbose`, with what was planted in each item."""
    table = rows(tests)
    found: list[str] = []
    if table:
        numbers = max(map(width_of, text_table([COLUMNS[:-1], *(row[:-1] for row in table)], 10**6)))
        names = cut_ids([row[-1] for row in table], max(20, width - numbers - 2))
        cut = [[*row[:-1], name] for row, name in zip(table, names, strict=True)]
        found += [*text_table([COLUMNS, *cut], max(width, numbers + 22)), "", *wrap(summary(tests), width)]
        found += wrap(MEANING, width)
    for text in problems(tests):
        found += wrap(text, width, hanging="  ")
    for test in tests if verbose else ():
        if test["how"]:
            found += wrap(printable(f"{test['probe']} {test['id']}: planted {test['how']}"), width, hanging="  ")
    return found


def total(rates: Mapping[str, int]) -> int:
    """Return the number of tests."""
    return sum(rates.values())


def share(rates: Mapping[str, int] | None) -> str:
    """Return the regressions among the tests, as `3/40`; empty without tests."""
    return "" if rates is None else f"{rates['red']}/{total(rates)}"
