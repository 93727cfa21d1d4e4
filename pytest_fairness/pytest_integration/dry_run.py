"""`--fairness-dry-run`: collect as usual, and say what would be sent in place of running anything."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.errors import FairnessError
from pytest_fairness.pytest_integration.items import ASKING, FairnessItem, is_ours
from pytest_fairness.reports.terminal import forecast as report
from pytest_fairness.run import Run
from pytest_fairness.run.forecast import Forecaster

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


class DryRun:
    """pytest's hooks for a run that sends nothing."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config = config
        self._run = run
        self._lines: list[str] = []
        # Workers would each say the same.
        if hasattr(config.option, "dist"):
            config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Count what the selected items would send."""
        if self._config.getoption("collectonly"):
            return None
        if session.testsfailed and not self._config.getoption("continue_on_collection_errors"):
            return None  # pytest's own loop says so, and runs nothing
        try:
            self._lines = self._forecast(session.items)
        except FairnessError as error:
            raise pytest.UsageError(str(error)) from error
        return True

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """That nothing was selected is no failure of a question."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Show the forecast."""
        if self._lines:
            terminalreporter.write_sep("=", "fairness: dry run")
        for line in self._lines:
            terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Show it without a terminal reporter too."""
        if self._lines and self._config.pluginmanager.get_plugin("terminalreporter") is None:
            sys.stdout.write("\n".join([*self._lines, ""]))

    def _forecast(self, items: list[pytest.Item]) -> list[str]:
        selected: dict[tuple[str, str | None], list[FairnessItem]] = defaultdict(list)
        tests = 0
        for item in items:
            if item.get_closest_marker("skip") is not None:
                continue
            if isinstance(item, FairnessItem):
                selected[item.nodeid.partition("::")[0], item.probe_item.target].append(item)
            elif not ASKING.isdisjoint(getattr(item, "fixturenames", ())):
                tests += 1
        settings = self._run.settings
        forecaster = Forecaster(self._run, rebaseline=self._config.getoption("fairness_rebaseline"))
        forecasts = [
            forecaster.forecast(
                file,
                [item.probe_item for item in of_file],
                self._run.targets.named(name) if is_ours(of_file[0].target_fixture) else None,
            ).to_json()
            for (file, name), of_file in selected.items()
        ]
        told = report.lines(
            forecasts,
            target=self._run.targets.description,
            tests=tests,
            max_requests=settings.max_requests,
            replay=settings.replay,
        )
        return [*told, "no report is written"] if self._config.getoption("fairness_report") else told
