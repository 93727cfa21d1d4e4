"""Records of the items of a run, collected from the test reports of all processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

# A private class, as in pytest's own doctest items: no public class shows an error without a traceback.
from _pytest._code.code import ReprFileLocation

from pytest_fairness.options import RunSettings
from pytest_fairness.pytest_integration.controller.identical_errors import Message
from pytest_fairness.pytest_integration.items.item_results import Record, records_on
from pytest_fairness.records import ItemResult, VerdictName
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.items.report_items import target_name
from pytest_fairness.reports.suggestions.shell_commands import ACCEPTABLE, rebaseline_command


class CollectedRecords:
    """Records of the items, in the order of their arrival, and facts about the rebaseline command to suggest.

    Args:
        settings: the settings of the run.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._named_targets = settings.targets
        self._records: dict[tuple[str, str, str], Record] = {}
        self._owners: dict[tuple[str, str], Record] = {}
        """First record of each entry of a baseline, by probe and item id."""

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

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
        """Return the results of the items."""
        return [ItemResult.from_plain(record["result"]) for record in self]

    def target_names(self, described: str) -> str:
        """Return the names of all targets of the run as one text.

        If the targets in the settings have names, the text is `described`, followed by the items' other targets. If
        not, the text lists the items' targets, or is `described` if no item has a target.

        Args:
            described: description of the targets in the settings.
        """
        names = self._named_targets
        others = {record["target"] for record in self if target_name(record["result"]["id"]) not in names} - {None}
        return ", ".join([described, *sorted(others)]) if names else ", ".join(sorted(others)) or described

    @property
    def targets(self) -> dict[tuple[str, str], str]:
        """Return the name of each item's target by probe and item id; items without a target are left out."""
        return {
            (probe, item): record["target"]
            for (_, probe, item), record in self._records.items()
            if record["target"] is not None
        }

    def accepting_needs_replay(self) -> bool:
        """Return whether the suggested rebaseline command needs `--fairness-replay`.

        The option is needed if this run has all answers for new baselines, but a later run would reuse them only with
        the option.
        """
        records = self._records_to_accept()
        return _are_complete(records) and any(record.get("needs_replay") for record in records)

    def rebaseline_requests(self) -> str:
        """Return a sentence about the requests of the suggested rebaseline command; empty if there are no requests."""
        records = self._records_to_accept()
        if _are_complete(records):
            return ""
        which = "all" if any(record.get("needs_replay") for record in records) else "the missing"
        return (
            "Some verdicts come from an interim analysis, but a baseline needs all trials: the command below sends "
            f"{which} requests. To count them first, add --fairness-dry-run."
        )

    def _records_to_accept(self) -> list[Record]:
        """Return the records of the items that the suggested rebaseline command would measure."""
        failed = [nodeid for (nodeid, _, _), record in self._records.items() if _is_acceptable(record)]
        command = rebaseline_command(failed, all_items=self.all_items()) or ()
        return [
            record
            for (nodeid, _, _), record in self._records.items()
            if nodeid in command or nodeid.partition("::")[0] in command
        ]

    def all_items(self) -> dict[str, list[str]]:
        """Return the node ids of all items that are not skipped, by probe file; an empty dict if targets have names."""
        by_file: dict[str, list[str]] = {}
        if self._named_targets:
            return by_file
        for (nodeid, _, _), record in self._records.items():
            file = nodeid.partition("::")[0]
            if file not in by_file and record.get("siblings"):
                by_file[file] = [f"{file}::{item}" for item, skipped in record["siblings"].items() if not skipped]
        return by_file


def _fail_shared(report: pytest.TestReport, record: Record, owner: str) -> None:
    """Make a report fail whose check has the baseline's entry of another check."""
    result = record["result"]
    other = f"{owner}, too" if owner != result["nodeid"] else "this test twice"
    message = (
        f"fairness_check: {result['id']} of {result['probe']!r} is checked by {other}, so that both would have one "
        "baseline. Give each check a name of its own; of a parametrized test, with the parameter in it: "
        f'fairness_check(f"{result["probe"]}_{{parameter}}", …).'
    )
    verdict = {**result["verdict"], "name": VerdictName.ERROR.value, "reason": message}
    result |= {"verdict": verdict, "measurement": None, "comparison": None, "finding": None, "effect": None}
    path, line, _ = report.location
    report.outcome = "failed"
    report.longrepr = Message(printable(message), ReprFileLocation(path, (line or 0) + 1, printable(message)))


def _are_complete(records: Sequence[Record]) -> bool:
    """Return whether the run has all answers that new baselines of these items need."""
    return all(record.get("complete", True) for record in records)


def _is_acceptable(record: Record) -> bool:
    result = record["result"]
    return result["verdict"]["name"] in ACCEPTABLE and not result["expected_failure"]
