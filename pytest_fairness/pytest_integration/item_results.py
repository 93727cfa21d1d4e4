"""Results of items in pytest's test reports and JUnit file, and their collection from all processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

# Private classes, as in pytest's own doctest items: no public class shows an error without a traceback.
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation
from _pytest.junitxml import xml_key
from _pytest.outcomes import Failed

from pytest_fairness.errors import on_one_line
from pytest_fairness.options import RunSettings
from pytest_fairness.pytest_integration.planning import probe_item_of
from pytest_fairness.pytest_integration.terminal import Message
from pytest_fairness.records import Explanation, ItemResult, Json, VerdictName, target_name
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.report_items import ACCEPTABLE, rebaseline_command
from pytest_fairness.reports.view import ItemView
from pytest_fairness.run import ProbeItem

if TYPE_CHECKING:
    # A private class, as in pytest's own doctest items: no public class shows an error without a traceback.
    from _pytest._code.code import TerminalRepr


# Results of items in pytest's test reports, which pytest-xdist sends from a worker to the controller.

_STRICT = "[XPASS(strict)] "
"""Start of pytest's text for a test that passes although its mark `xfail` is strict."""

Record = dict[str, Json]
"""Result of an item, with further data for the controller, as plain JSON that can be sent between processes.

- In all records: `result`, `baseline` (name of the baseline), `target` (name of the target or of the file with the
  answers; `None` if an error left the target unknown).
- In records of measured items: `complete` (whether the run has all answers that a new baseline needs), `needs_replay`
  (whether a later run reuses the answers only with `--fairness-replay`).
- In records of probe items: `siblings` (see `FairnessItem`); `identity` (of the target that was asked).
- In records of compared items of a run with `fairness_history`: `night` (see `run.nights.Line`).
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


def attach(item: pytest.Item, result: Json, probe_item: ProbeItem, target: str | None, **more: Json) -> None:
    """Attach a result to a pytest item, so that the item's report includes the result's record."""
    record = record_of({**result, "line": (item.location[1] or 0) + 1}, probe_item, target, **more)
    item.stash.setdefault(RECORDS, []).append(record)


def add_junit_properties(item: pytest.Item, report: pytest.TestReport) -> None:
    properties: list[tuple[str, object]] = []
    for record in records_on(report):
        result = ItemResult.from_json(record["result"])
        # A Python test may have several checks, whose properties need different names.
        prefix = "" if probe_item_of(item) is not None else f"{result.probe} {result.id} "
        properties += [(prefix + name, value) for name, value in junit_properties(result, record["target"])]
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


def records_on(report: pytest.TestReport) -> Iterator[Record]:
    yield from getattr(report, "fairness", ())


def undecided(report: pytest.TestReport) -> VerdictName | None:
    """Return the first of the verdicts `INCONCLUSIVE` and `MEASURED` that a result on the report has, else `None`."""
    verdicts = {record["result"]["verdict"]["name"] for record in records_on(report)}
    return next((name for name in (VerdictName.INCONCLUSIVE, VerdictName.MEASURED) if name in verdicts), None)


def show_undecided(report: pytest.TestReport, item: pytest.Item, verdict: VerdictName) -> None:
    """Change the report of an inconclusive item to skipped, and of an only measured item to passed.

    pytest would report an item marked `xfail` as unexpectedly passed (XPASS), although the run does not show that the
    expected bias is gone. Other plugins know pytest's outcomes only, and would show a passed report of an inconclusive
    item as a pass; the reason for which it is skipped are its findings.
    """
    report.outcome, report.longrepr = "passed", None
    if hasattr(report, "wasxfail"):
        del report.wasxfail
    if verdict is VerdictName.INCONCLUSIVE:
        path, line, _ = item.location
        report.outcome = "skipped"
        report.longrepr = (path, (line or 0) + 1, printable(f"inconclusive: {inconclusive_findings(report)}"))


def inconclusive_findings(report: pytest.TestReport) -> str:
    results = (ItemResult.from_json(record["result"]) for record in records_on(report))
    return "; ".join(
        ItemView(result.to_json(), result.method).headline
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


# Entries of items in pytest's JUnit report: properties of a test case, and inconclusive test cases.


def count_inconclusive(config: pytest.Config, report: pytest.TestReport) -> None:
    """Count an inconclusive test case, which pytest has counted as skipped, as passed."""
    xml = config.stash.get(xml_key, None)
    if xml is None:
        return
    nodes = xml.node_reporter(report).nodes
    [skipped] = (node for node in nodes if node.tag == "skipped")
    nodes.remove(skipped)
    xml.stats["skipped"] -= 1
    xml.stats["passed"] += 1


def note_reused_answers(config: pytest.Config, text: str) -> None:
    """Add the phrase of `document.reused_answers`, unless it is empty, as a property `requests` of the test suite."""
    xml = config.stash.get(xml_key, None)
    if xml is not None and text:
        xml.add_global_property("requests", text)


def junit_properties(result: ItemResult, target: str | None) -> list[tuple[str, str | float]]:
    """Return the JUnit properties of a result as (name, value) pairs; pytest writes values with `str`."""
    item = result.to_json()
    low, high = item["interval"] or (None, None)
    effect = item["effect"] or {}
    values = {
        "value": item["value"],
        "interval_low": low,
        "interval_high": high,
        "effect": effect.get("value"),
        "size": effect.get("size"),
        "baseline": (item["baseline"] or {}).get("value"),
        "limit": item["limit"],
        "verdict": item["verdict"],
        "finding": ItemView(item, result.method).headline,
        "reason": item["reason"],
        "target": target,
    }
    return [
        (name, printable(value) if isinstance(value, str) else value)
        for name, value in values.items()
        if value is not None
    ]


# Records of the items of a run, collected from the test reports of all processes.


class CollectedRecords:
    """Records of the items, in the order of their arrival, and facts about the rebaseline command to suggest."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self._records: dict[tuple[str, str, str], Record] = {}
        self._owners: dict[tuple[str, str], Record] = {}
        """First record of each entry of a baseline, by probe and item id."""

    @property
    def records(self) -> Iterable[Record]:
        return self._records.values()

    def add(self, report: pytest.TestReport) -> None:
        """Add the records of a test report; a later record of an item replaces the earlier record.

        Checks of Python tests that share an entry of a baseline fail the report, in whatever order and from whatever
        process they arrive; none of them becomes a baseline.
        """
        added: set[tuple[str, str]] = set()
        for record in records_on(report):
            result = record["result"]
            entry = result["probe"], result["id"]
            owner = self._owners.setdefault(entry, record)
            if owner["result"]["nodeid"] != result["nodeid"] or entry in added:
                for shared in (owner, record):
                    shared.pop("entry", None)
                _fail_shared(report, record, owner["result"]["nodeid"])
            added.add(entry)
            self._records[result["nodeid"], *entry] = record

    @property
    def results(self) -> list[ItemResult]:
        return [ItemResult.from_json(record["result"]) for record in self.records]

    def target_names(self, described: str) -> str:
        """Return the names of all targets of the run as one text.

        If the targets in the settings have names, the text is `described`, followed by the items' other targets. If
        not, the text lists the items' targets, or is `described` if no item has a target.
        """
        names = self._settings.targets
        others = {
            record["target"]
            for record in self.records
            if target_name(record["result"]["id"], record["result"]["labels"]) not in names
        } - {None}
        return ", ".join([described, *sorted(others)]) if names else ", ".join(sorted(others)) or described

    @property
    def targets(self) -> dict[tuple[str, str], str]:
        """Return the name of each item's target by probe and item id; items without a target are left out."""
        return {
            (probe, item): record["target"]
            for (_, probe, item), record in self._records.items()
            if record["target"] is not None
        }

    def answers_to_accept(self) -> tuple[bool, str]:
        """Return whether the suggested rebaseline command needs `--fairness-replay`, and a sentence about its requests.

        The option is needed if this run has all answers for new baselines, but a later run would reuse them only with
        the option. The sentence is empty if the command sends no requests.
        """
        failed = [
            nodeid
            for (nodeid, _, _), record in self._records.items()
            if record["result"]["verdict"]["name"] in ACCEPTABLE and not record["result"]["expected_failure"]
        ]
        command = rebaseline_command(failed, all_items=self.all_items()) or ()
        accepted = [
            record
            for (nodeid, _, _), record in self._records.items()
            if nodeid in command or nodeid.partition("::")[0] in command
        ]
        needs_replay = any(record.get("needs_replay") for record in accepted)
        if all(record.get("complete", True) for record in accepted):
            return needs_replay, ""
        return False, (
            "Some verdicts come from an interim analysis, but a baseline needs all trials: the command below sends "
            f"{'all' if needs_replay else 'the missing'} requests. To count them first, add --fairness-dry-run."
        )

    def all_items(self) -> dict[str, list[str]]:
        """Return the node ids of all items that are not skipped, by probe file; an empty dict if targets have names."""
        by_file: dict[str, list[str]] = {}
        if self._settings.targets:
            return by_file
        for (nodeid, _, _), record in self._records.items():
            file = nodeid.partition("::")[0]
            if file not in by_file and record.get("siblings"):
                by_file[file] = [f"{file}::{item}" for item, skipped in record["siblings"].items() if not skipped]
        return by_file


def _fail_shared(report: pytest.TestReport, record: Record, owner: str) -> None:
    result = record["result"]
    other = f"{owner}, too" if owner != result["nodeid"] else "this test twice"
    message = (
        f"fairness_check: {result['id']} of {result['probe']!r} is checked by {other}, so that both would have one "
        "baseline. Give each check a name of its own; of a parametrized test, with the parameter in it: "
        f'fairness_check(f"{result["probe"]}_{{parameter}}", …).'
    )
    verdict = {**result["verdict"], "name": VerdictName.ERROR.value, "reason": message}
    result |= {"verdict": verdict, "measurement": None, "comparison": None, "effect": None}
    result["explanation"] = Explanation().to_json()
    path, line, _ = report.location
    report.outcome = "failed"
    report.longrepr = Message(printable(message), ReprFileLocation(path, (line or 0) + 1, printable(message)))
