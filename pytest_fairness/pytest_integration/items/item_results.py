"""Results on test reports: attached to an item, sent with its report between processes, shown without traceback."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

# As in pytest's own doctest items: there is no public way to show an error without a traceback.
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation
from _pytest.outcomes import Failed

from pytest_fairness.pytest_integration.items import junit
from pytest_fairness.pytest_integration.items.asked_targets import probe_item_of
from pytest_fairness.records import ItemResult, Json, VerdictName
from pytest_fairness.run import ProbeItem

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

RECORDS = pytest.StashKey[list[dict[str, Json]]]()
"""Records of an item for its next report."""

_STRICT = "[XPASS(strict)] "
"""Start of pytest's text for a test that passes although its mark `xfail` is strict."""

Record = dict[str, Json]
"""Result and further data for the controller: `result`, `baseline` (its name), `target`; for a measured item also
`complete` (whether it has all answers that a new baseline needs) and `needs_replay` (whether a later run reuses them
only with `--fairness-replay`); for an item of a probe also `siblings` (ids of all items of the baseline, and whether
each is skipped); for a new baseline also `entry` and `answers` (a key of the store). Plain JSON, as records are
sent between processes."""


class Unfair(Failed):
    """Exception for a verdict that fails a test; it is shown without a traceback.

    Args:
        finding: the finding on one line.
        text: reason and top contributors, for pytest's section FAILURES.
        without_baseline: whether the only reason for the failure is a missing baseline.
    """

    def __init__(self, finding: str, text: str, *, without_baseline: bool) -> None:
        super().__init__(text, pytrace=False)
        self.finding, self.without_baseline = finding, without_baseline


class Biased(Unfair):
    """Exception for a verdict on the bias itself, which the mark `xfail` of an audit expects.

    A missing or stale baseline is no such verdict, because nothing was compared.
    """


def attach_result(
    item: pytest.Item, result: ItemResult, probe_item: ProbeItem, target: str | None, **more: Json
) -> None:
    """Attach a result to a pytest item, for its report and its JUnit properties."""
    result = replace(result, line=(item.location[1] or 0) + 1)
    item.stash.setdefault(RECORDS, []).append(record_of(result, probe_item, target, **more))
    # A Python test may have several checks, whose properties need different names.
    prefix = "" if probe_item_of(item) is not None else f"{result.probe} {result.id} "
    item.user_properties += [(prefix + name, value) for name, value in junit.properties(result, target)]


def record_of(result: ItemResult, probe_item: ProbeItem, target: str | None, **more: Json) -> dict[str, Json]:
    """Return the record of a result: plain JSON that travels on the test report."""
    record = {"result": result.to_plain(), "baseline": probe_item.baseline_name, "target": target, **more}
    # Encoded here once: text that JSON or UTF-8 cannot hold would end the run of an xdist worker.
    text = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")
    sendable: dict[str, Json] = json.loads(text)
    return sendable


def take_records(item: pytest.Item) -> list[dict[str, Json]]:
    """Return the records of an item, and remove them from the item."""
    records, item.stash[RECORDS] = item.stash.get(RECORDS, []), []
    return records


def records_on(report: pytest.TestReport) -> Iterator[Record]:
    """Yield the records that a report carries."""
    yield from getattr(report, "fairness", ())


def undecided(report: pytest.TestReport) -> VerdictName | None:
    """Return the verdict `inconclusive`, or else `measured`, if a report carries one; otherwise `None`."""
    verdicts = {record["result"]["verdict"]["name"] for record in records_on(report)}
    return next((name for name in (VerdictName.INCONCLUSIVE, VerdictName.MEASURED) if name in verdicts), None)


def is_without_baseline(report: pytest.TestReport) -> bool:
    """Return whether the only reason for the failure of a test is a missing baseline."""
    return report.failed and getattr(report, "fairness_without_baseline", False)


def undo_xfail(report: pytest.TestReport) -> None:
    """Change the report of an undecided item marked `xfail` to passed.

    The expected bias may still exist, so the item must not count as unexpectedly passed.
    """
    report.outcome, report.longrepr = "passed", None
    if hasattr(report, "wasxfail"):
        del report.wasxfail


def record_expected_failures(report: pytest.TestReport, records: Iterable[dict[str, Json]]) -> None:
    """Record on the results of a test marked `xfail` what pytest made of the mark; see `ItemResult.expected_failure`.

    A Python test may have several checks: if the test failed as expected, only the checks that did not pass are known.
    """
    shown = report.longrepr if isinstance(report.longrepr, str) else ""
    if hasattr(report, "wasxfail"):
        text = report.wasxfail.removeprefix("reason: ")
    elif shown.startswith(_STRICT):
        text = shown.removeprefix(_STRICT)
    else:
        return
    outcome = "xfailed" if report.skipped else "xpassed" if report.passed else "failed"
    found = {"reason": " ".join(text.split()) or "no reason given", "outcome": outcome}
    for record in records:
        passed = record["result"]["verdict"]["name"] == VerdictName.PASS
        if passed != report.skipped:
            record["result"]["expected_failure"] = found


def without_traceback(excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item) -> TerminalRepr:
    """Return the text of one of the plugin's errors without the traceback, which would show only the plugin's code."""
    error = excinfo.value
    reason = error.finding if isinstance(error, Unfair) else " ".join(str(error).split())
    path, line, _ = item.location
    return ReprExceptionInfo(
        reprtraceback=excinfo.getrepr(style="value", chain=False).reprtraceback,
        reprcrash=ReprFileLocation(path, (line or 0) + 1, reason),
    )
