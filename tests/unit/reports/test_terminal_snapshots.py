"""The terminal summary as a whole, at 80 and at 120 columns; `pytest --snapshot-update` accepts a change."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pytest_fairness.pytest_integration.terminal import GuardedFile
from pytest_fairness.records import Comparison, ItemResult, VerdictName
from pytest_fairness.reports.formatting import width_of
from pytest_fairness.reports.terminal import summary
from tests.support.results import report, result


def decided(verdict: VerdictName, change: float = 0.01, half_width: float = 0.012, **more: Any) -> ItemResult:
    """Return a result with a change of its own, and with words or the reason for no decision, as the verdict needs."""
    found = result(verdict, **more)
    said: dict[str, Any] = {}
    if verdict in (VerdictName.REGRESSION, VerdictName.OVER_LIMIT):
        said = {"contributors": ["torque", "wrench", "drill", "hammer"], "significant": True}
    elif verdict is VerdictName.INCONCLUSIVE:
        said = {"undecided": "needs p ≤ 0.01, has 0.03; about 60 trials would decide"}
    elif verdict is VerdictName.STALE_BASELINE:
        said = {"undecided": "changed since the baseline was made: prompt"}
    interval = (change - half_width, change + half_width)
    comparison = found.comparison and Comparison(change, interval, half_width / 2, 0.01)
    return replace(found, comparison=comparison, verdict=replace(found.verdict, **said))


def first_run() -> list[ItemResult]:
    return [
        result(VerdictName.NO_BASELINE, audit=audit, value=value, probe=probe)
        for probe in ("gifts", "letters")
        for audit in ("jsd", "svm", "marked_words")
        for value in ("woman", "nonbinary person")
    ]


def regressions() -> list[ItemResult]:
    return [
        decided(VerdictName.REGRESSION, 0.116, 0.05, value="woman"),
        decided(VerdictName.REGRESSION, 0.0434, 0.014, audit="svm", value="woman"),
        decided(VerdictName.OVER_LIMIT, limit=0.05, audit="refusals", value="woman"),
        decided(VerdictName.STALE_BASELINE, probe="letters", value="man"),
        decided(VerdictName.INCONCLUSIVE, 0.05, 0.02, probe="letters", value="woman"),
        decided(VerdictName.PASS, probe="letters", audit="svm", value="woman"),
        result(VerdictName.NOT_MEASURABLE, reason="only 3 of 40 answers are usable", probe="letters", audit="refusals"),
    ]


def inconclusive() -> list[ItemResult]:
    values = ("woman", "nonbinary person", "old man")
    return [decided(VerdictName.INCONCLUSIVE, 0.5, 0.3, value=value, tolerance=0.1) for value in values]


def passes() -> list[ItemResult]:
    worse = decided(VerdictName.PASS, 0.018, 0.006)
    return [
        replace(worse, verdict=replace(worse.verdict, significant=True)),
        *(decided(VerdictName.PASS, -0.001 * number, value=f"group {number}") for number in range(4)),
    ]


def errors() -> list[ItemResult]:
    reason = "the target does not answer: HTTP 401, no valid key. Set OPENAI_API_KEY, then run again."
    return [result(VerdictName.ERROR, value=f"group {number}", reason=reason) for number in range(5)]


def thousands() -> list[ItemResult]:
    verdicts = [VerdictName.REGRESSION] * 3 + [VerdictName.INCONCLUSIVE] * 40 + [VerdictName.PASS] * 4957
    return [
        decided(verdict, 0.2 - number * 0.00004, value=f"group {number}", probe=f"probe_{number % 14}")
        for number, verdict in enumerate(verdicts)
    ]


def long_names() -> list[ItemResult]:
    value = "a person with a very long description that nobody would write into a table"
    return [
        decided(VerdictName.REGRESSION, 0.116, 0.05, audit="marked_words", value=value, probe="recommendations"),
        decided(VerdictName.PASS, audit="marked_words", value=f"{value}, either", probe="recommendations_of_products"),
    ]


def wide_characters() -> list[ItemResult]:
    return [
        decided(VerdictName.REGRESSION, 0.116, 0.05, value="東京の人々", probe="推薦"),
        decided(VerdictName.INCONCLUSIVE, 0.05, 0.02, value="東京の人々と大阪の人々と京都の人々と名古屋の人々"),
        decided(VerdictName.PASS, value="👩\u200d🔬", probe="推薦"),
    ]


RUNS = [first_run, regressions, inconclusive, passes, errors, thousands, long_names, wide_characters]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("run", RUNS)
def test_summary(run: Callable[[], Sequence[ItemResult]], width: int, snapshot: SnapshotAssertion) -> None:
    lines = [line.text for line in summary(report(*run()), width)]
    assert all(width_of(line) <= width or "probes/" in line for line in lines), "a command's words are not broken"
    assert lines == snapshot


@pytest.mark.parametrize("run", [regressions, first_run])
def test_verbose_summary(run: Callable[[], Sequence[ItemResult]], snapshot: SnapshotAssertion) -> None:
    assert [line.text for line in summary(report(*run()), 80, verbose=True)] == snapshot


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_summary_for_a_terminal_without_symbols(encoding: str, snapshot: SnapshotAssertion) -> None:
    file = io.BytesIO()
    terminal = GuardedFile(io.TextIOWrapper(file, encoding=encoding, write_through=True, newline="\n"))
    for line in summary(report(*regressions()), 80):
        terminal.write(f"{line.text}\n")
    assert file.getvalue().decode(encoding).splitlines() == snapshot
