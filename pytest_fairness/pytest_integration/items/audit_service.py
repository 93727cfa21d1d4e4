"""Service that decides the verdicts on probe items and on measurements of Python tests.

The service measures probe items, and compares all measurements with their baselines.
"""

from __future__ import annotations

import pytest

from pytest_fairness.errors import BaselineError, FairnessError, NotMeasurable
from pytest_fairness.pytest_integration.items.item_results import Biased, Unfair, attach_earlier, attach_result
from pytest_fairness.pytest_integration.items.item_targets import probe_item_of, unrepeated_id, uses_default_target
from pytest_fairness.pytest_integration.items.probe_files import ProbeFiles
from pytest_fairness.pytest_integration.items.request_planner import RequestPlanner
from pytest_fairness.pytest_integration.suggested_commands import accept_command, export_command
from pytest_fairness.records import ItemResult, Json, VerdictName
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.items.findings import finding
from pytest_fairness.reports.items.top_contributors import failure_text
from pytest_fairness.run import (
    BaselineComparison,
    ItemMeasurement,
    ProbeItem,
    Run,
    error_result,
    measured_only,
    result_of,
)
from pytest_fairness.run.comparing.baseline_rows import row_from
from pytest_fairness.run.earlier_results import EarlierResult
from pytest_fairness.targets.base import Target

FAILURES = pytest.StashKey[list[Unfair]]()
"""Key of the failed checks in the stash of a Python test."""


class AuditService:
    """Service that gives items and fixtures access to the run in this process.

    Attributes:
        run: the run.
        planner: planner of the requests to all targets.
        probe_files: the collected probe files.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config = config
        self.run = run
        self.planner = RequestPlanner(config, run)
        self.probe_files = ProbeFiles(config, run)
        self._rebaseline: bool = config.getoption("fairness_rebaseline")
        self._measure_only: bool = config.getoption("fairness_measure")

    def measure(
        self, item: pytest.Item, probe_item: ProbeItem
    ) -> tuple[ItemMeasurement, BaselineComparison] | EarlierResult:
        """Return the measurement of a probe item and its comparison with the baseline, or the result of an earlier run.

        The call sends the requests that have no recorded answer, and waits for the answers. If nothing that determines
        the result has changed since an earlier run, the item is not measured again.

        With `--fairness-measure`, the comparison is empty and no baseline is read.

        Raises:
            NotMeasurable: there are too few usable answers.
            FairnessError: answers are missing, or the baseline cannot be read.
        """
        try:
            probe_item.models.require()
            target = self.planner.target_of_probe_item(item)
            if target is None:
                return self._measured(probe_item, None)
            if not (self._measure_only or self._rebaseline):
                earlier = self.run.earlier_results.find(probe_item, target, unrepeated_id(item))
                if earlier is not None:
                    return earlier
            with self.planner.progress(target):
                return self._measured(probe_item, target)
        except NotMeasurable as error:
            if not error.unusable:
                raise
            command = export_command(self._config, self.run.settings, item.path)
            raise NotMeasurable(f"{error} To read the answers: {command}") from error
        except BaselineError as error:
            if not error.fixed_by_rebaseline:
                raise
            raise BaselineError(f"{error} Command: {self._accept(item, item.nodeid.partition('::')[0])}") from error

    def ask_shard(self, item: pytest.Item, probe_item: ProbeItem) -> None:
        """Send the requests of the run's shard for a probe item, and wait for the responses; see `Run.ask_shard`.

        Raises:
            FairnessError: a request failed.
        """
        target = self.planner.target_of_probe_item(item)
        if target is not None:
            with self.planner.progress(target):
                self.run.ask_shard(target, probe_item)

    def _measured(self, probe_item: ProbeItem, target: Target | None) -> tuple[ItemMeasurement, BaselineComparison]:
        if self._measure_only:
            return self.run.measure(probe_item, target), BaselineComparison()
        return self.run.measure_and_compare(probe_item, target, rebaseline=self._rebaseline)

    def decide(
        self,
        item: pytest.Item,
        measured: ItemMeasurement,
        compared: BaselineComparison,
        siblings: dict[str, bool] | None = None,
    ) -> ItemResult:
        """Return the result of an item, and attach it to the item.

        Args:
            item: the pytest item.
            measured: the measurement.
            compared: the comparison with the baseline.
            siblings: see `FairnessItem`; `None` for a Python test.
        """
        item.ihook.pytest_fairness_measured(item=item, measurement=measured.measurement)
        # A new baseline needs all trials. If an interim analysis gave the verdict, further trials were not requested.
        nodeid = unrepeated_id(item)
        complete, needs_replay = measured.item.final_analysis, self.run.engines.reuse_needs_replay
        if self._measure_only:
            result = measured_only(measured, nodeid)
        else:
            replay = complete and needs_replay
            accept = self._accept(item, nodeid, replay=replay, replaces=compared.entry is not None)
            result = result_of(measured, compared, nodeid, accept)
        more: dict[str, Json] = {"siblings": siblings, "complete": complete, "needs_replay": needs_replay}
        if self._rebaseline and compared.entry is not None and measured.measurement.judgeable:
            rows = (row_from(answer, measured.item.probe) for answer in measured.answers)
            plain = ([dict(row.labels), row.trial, row.text, row.judged, row.refused] for row in rows)
            more |= {"entry": compared.entry.to_json(), "answers": self.run.store.cache.put_answers(plain)}
        record = attach_result(item, result, measured.item, measured.target, **more)
        self.run.earlier_results.keep(record["result"])
        return result

    def attach_earlier(self, item: pytest.Item, earlier: EarlierResult, siblings: dict[str, bool]) -> ItemResult:
        """Attach the result of an earlier run to an item of a probe, and return the result."""
        result = ItemResult.from_plain(earlier.plain)
        item.ihook.pytest_fairness_measured(item=item, measurement=result.measurement)
        # The result of an earlier run is reused only if all responses of the item are recorded.
        more = {"siblings": siblings, "complete": True, "needs_replay": self.run.engines.reuse_needs_replay}
        attach_earlier(item, earlier.plain, earlier.item, earlier.target.name, **more)
        return result

    def attach_error(self, item: pytest.Item, error: BaseException, siblings: dict[str, bool]) -> None:
        """Attach the error of a probe item that could not be measured; do nothing for a Python test."""
        probe_item = probe_item_of(item)
        if probe_item is not None:
            recorded = probe_item.probe.responses
            file = None if recorded is None else recorded.file.name
            attach_result(item, error_result(probe_item, error, item.nodeid), probe_item, file, siblings=siblings)

    def raise_on_failure(self, result: ItemResult) -> None:
        """Raise `Unfair` if the verdict fails the test.

        The error is raised here, and not where the item is measured, so that the error's traceback keeps no answers in
        memory.
        """
        if (failure := self._failure(result)) is not None:
            raise failure

    def _failure(self, result: ItemResult) -> Unfair | None:
        failing = ["failed", "inconclusive"] if self.run.settings.inconclusive == "fail" else ["failed"]
        if result.verdict.name.outcome not in failing:
            return None
        document_item = result.to_json()
        compared = result.verdict.name not in (VerdictName.NO_BASELINE, VerdictName.STALE_BASELINE)
        return (Biased if compared else Unfair)(
            printable(finding(document_item, result.method)),
            failure_text(document_item),
            without_baseline=result.verdict.name is VerdictName.NO_BASELINE,
        )

    def check(self, item: pytest.Item, measured: ItemMeasurement) -> ItemResult:
        """Return the result of a measurement in a Python test; a failing verdict fails the test when the test ends.

        Raises:
            FairnessError: the name is that of a probe, or the baseline cannot be read.
        """
        name = measured.item.probe.name
        if (path := self.probe_files.shown_path_of(name)) is not None:
            raise FairnessError(
                f"fairness_check: {name!r} is the name of the probe {path}. Choose another name for the check."
            )
        result = self.decide(item, measured, self._compared(measured))
        if (failure := self._failure(result)) is not None:
            item.stash.setdefault(FAILURES, []).append(failure)
        return result

    def _compared(self, measured: ItemMeasurement) -> BaselineComparison:
        if self._measure_only:
            return BaselineComparison()
        baselines = self.run.baselines
        return baselines.new_baseline(measured) if self._rebaseline else baselines.compare(measured)

    def raise_failures(self, item: pytest.Item) -> None:
        """Raise `Unfair` with the texts of all failed checks of a Python test, if there are any.

        A failed check does not end its test immediately, because a review of baselines needs the verdicts of all
        checks.
        """
        failures = item.stash.get(FAILURES, [])
        if failures:
            more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
            raise Unfair(
                f"{failures[0].finding}{more}",
                "\n".join(failure.msg or "" for failure in failures),
                without_baseline=all(failure.without_baseline for failure in failures),
            )

    def _accept(self, item: pytest.Item, nodeid: str, *, replay: bool = False, replaces: bool = True) -> str:
        settings = self.run.settings
        default = uses_default_target(item, settings)
        return accept_command(
            self._config, settings, nodeid, uses_default_target=default, replay=replay, replaces=replaces
        )
