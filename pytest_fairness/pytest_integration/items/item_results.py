"""Results of items in pytest's test reports, which pytest-xdist sends from a worker to the controller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

# Private classes, as in pytest's own doctest items: no public class shows an error without a traceback.
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation
from _pytest.outcomes import Failed

from pytest_fairness.errors import on_one_line
from pytest_fairness.pytest_integration.items import junit
from pytest_fairness.pytest_integration.items.item_targets import probe_item_of
from pytest_fairness.records import ItemResult, Json, VerdictName
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.items.findings import finding
from pytest_fairness.run import ProbeItem

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

_STRICT = "[XPASS(strict)] "
"""Start of pytest's text for a test that passes although its mark `xfail` is strict."""

Record = dict[str, Json]
"""Result of an item, with further data for the controller, as plain JSON that can be sent between processes.

- In all records: `result`, `baseline` (name of the baseline), `target` (name of the target or of the file with the
  answers; `None` if an error left the target unknown).
- In records of measured items: `complete` (whether the run has all answers that a new baseline needs), `needs_replay`
  (whether a later run reuses the answers only with `--fairness-replay`).
- In records of probe items: `siblings` (see `FairnessItem`).
- In records with a new baseline: `entry`, `answers` (key of the answers in the store).
"""


RECORDS = pytest.StashKey[list[Record]]()
"""Key of the records for an item's next report, in the stash of the item."""


class Unfair(Failed):
    """Exception for a verdict that fails a test; it is shown without a traceback.

    Args:
        finding: the finding as one line, for pytest's short summary.
        text: reason and top contributors, for pytest's section FAILURES.
        without_baseline: whether the only reason for the failure is a missing baseline.
    """

    def __init__(self, finding: str, text: str, *, without_baseline: bool) -> None:
        super().__init__(text, pytrace=False)
        self.finding, self.without_baseline = finding, without_baseline


class Biased(Unfair):
    """Exception for a verdict that shows bias; the mark `xfail` of an audit expects this exception.

    A missing or stale baseline raises only `Unfair`, because nothing was compared.
    """


def attach_result(
    item: pytest.Item, result: ItemResult, probe_item: ProbeItem, target: str | None, **more: Json
) -> Record:
    """Attach a result to a pytest item, so that the item's report includes the result; return the result's record.

    `more` holds further fields of the record.
    """
    record = record_of(replace(result, line=_line_of(item)).to_plain(), probe_item, target, **more)
    item.stash.setdefault(RECORDS, []).append(record)
    return record


def attach_earlier(item: pytest.Item, result: Record, probe_item: ProbeItem, target: str, **more: Json) -> None:
    """Attach a result of an earlier run to a pytest item, with the item's current line number.

    Args:
        item: the pytest item.
        result: the result, which is the value of the key `result` in the earlier run's record.
        probe_item: the probe item.
        target: name of the target.
        **more: further fields of the new record.
    """
    record = record_of({**result, "line": _line_of(item)}, probe_item, target, **more)
    item.stash.setdefault(RECORDS, []).append(record)


def _line_of(item: pytest.Item) -> int:
    return (item.location[1] or 0) + 1


def add_junit_properties(item: pytest.Item, report: pytest.TestReport) -> None:
    """Copy the results on a report to JUnit properties of this report and of the item's later reports."""
    properties: list[tuple[str, object]] = []
    for record in records_on(report):
        result = ItemResult.from_plain(record["result"])
        # A Python test may have several checks, whose properties need different names.
        prefix = "" if probe_item_of(item) is not None else f"{result.probe} {result.id} "
        properties += [(prefix + name, value) for name, value in junit.properties(result, record["target"])]
    report.user_properties += properties
    item.user_properties += properties


def record_of(result: Json, probe_item: ProbeItem, target: str | None, **more: Json) -> Record:
    """Return the record of a result, which must be as `ItemResult.to_plain` returns it; see `Record`.

    Every record is made here, so that all of them can be sent: an xdist worker crashes on an enum, on numbers of numpy,
    and on text that JSON or UTF-8 cannot hold, which is replaced.
    """
    record = {"result": result, "baseline": probe_item.baseline_name, "target": target, **more}
    text = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")
    sendable: Record = json.loads(text)
    return sendable


def take_records(item: pytest.Item) -> list[Record]:
    """Return the records of an item, and remove them from the item."""
    records, item.stash[RECORDS] = item.stash.get(RECORDS, []), []
    return records


def records_on(report: pytest.TestReport) -> Iterator[Record]:
    """Yield the records that a report carries."""
    yield from getattr(report, "fairness", ())


def drop_records(report: pytest.TestReport) -> None:
    """Remove the records from a report, which pytest keeps until the end of the run."""
    vars(report).pop("fairness", None)


def undecided(report: pytest.TestReport) -> VerdictName | None:
    """Return the first of the verdicts `INCONCLUSIVE` and `MEASURED` that a result on the report has, else `None`."""
    verdicts = {record["result"]["verdict"]["name"] for record in records_on(report)}
    return next((name for name in (VerdictName.INCONCLUSIVE, VerdictName.MEASURED) if name in verdicts), None)


def is_without_baseline(report: pytest.TestReport) -> bool:
    """Return whether the only reason for the failure of a test is a missing baseline."""
    return report.failed and getattr(report, "fairness_without_baseline", False)


def undo_xfail(report: pytest.TestReport) -> None:
    """Change the report of an inconclusive or only measured item to passed, even if the item is marked `xfail`.

    pytest would report a marked item as unexpectedly passed (XPASS), although the run does not show that the expected
    bias is gone.
    """
    report.outcome, report.longrepr = "passed", None
    if hasattr(report, "wasxfail"):
        del report.wasxfail


def skip_inconclusive(report: pytest.TestReport, item: pytest.Item) -> None:
    """Change the report of an inconclusive item to skipped, with the findings as the reason.

    Other plugins know pytest's outcomes only, and would show a passed report as a pass.
    """
    path, line, _ = item.location
    report.outcome = "skipped"
    report.longrepr = (path, (line or 0) + 1, printable(f"inconclusive: {inconclusive_findings(report)}"))


def inconclusive_findings(report: pytest.TestReport) -> str:
    """Return the findings of all inconclusive results on a report."""
    results = (ItemResult.from_plain(record["result"]) for record in records_on(report))
    return "; ".join(
        finding(result.to_json(), result.method)
        for result in results
        if result.verdict.name is VerdictName.INCONCLUSIVE
    )


def record_expected_failures(report: pytest.TestReport, records: Iterable[Record]) -> None:
    """Set `expected_failure` in the results of a test marked `xfail`; see `ItemResult.expected_failure`.

    A Python test may have several results. If the test failed as expected, only the results that did not pass are
    changed; if the test passed, only the results that passed are changed.
    """
    longrepr = report.longrepr if isinstance(report.longrepr, str) else ""
    if hasattr(report, "wasxfail"):
        text = report.wasxfail.removeprefix("reason: ")
    elif longrepr.startswith(_STRICT):
        text = longrepr.removeprefix(_STRICT)
    else:
        return
    outcome = "xfailed" if report.skipped else "xpassed" if report.passed else "failed"
    expected_failure = {"reason": " ".join(text.split()) or "no reason given", "outcome": outcome}
    for record in records:
        passed = record["result"]["verdict"]["name"] == VerdictName.PASS
        if passed != report.skipped:
            record["result"]["expected_failure"] = expected_failure


def without_traceback(excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item) -> TerminalRepr:
    """Return the text of an error of this plugin without its traceback, which would show only the plugin's code."""
    error = excinfo.value
    reason = error.finding if isinstance(error, Unfair) else on_one_line(error)
    path, line, _ = item.location
    return ReprExceptionInfo(
        reprtraceback=excinfo.getrepr(style="value", chain=False).reprtraceback,
        reprcrash=ReprFileLocation(path, (line or 0) + 1, reason),
    )
