"""Option `--fairness-dry-run`, which prints the requests that the selected tests would send, and runs no test."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.errors import FairnessError
from pytest_fairness.pytest_integration.configuration import without_interim_analyses
from pytest_fairness.pytest_integration.items.item_targets import (
    REQUEST_FIXTURES,
    is_from_settings,
    is_skipped,
    probe_item_of,
    target_source,
)
from pytest_fairness.reports.terminal import forecast as report
from pytest_fairness.run import Run
from pytest_fairness.run.forecast import Forecaster

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


class DryRun:
    """Hooks of a dry run, which counts requests but sends no requests."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config = config
        self._run = run
        self._lines: list[str] = []
        # pytest-xdist is switched off, because each worker would print the same forecast.
        if hasattr(config.option, "dist"):
            config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Count the requests of the selected items instead of running the items."""
        if self._config.getoption("collectonly"):
            return None
        if session.testsfailed and not self._config.getoption("continue_on_collection_errors"):
            return None  # pytest's own loop reports the errors and runs no test
        try:
            self._lines = self._forecast(session.items)
        except FairnessError as error:
            raise pytest.UsageError(str(error)) from error
        return True

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Set the exit code to 0 if no item is selected, because a dry run does not fail."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Show the forecast of the requests."""
        if self._lines:
            terminalreporter.write_sep("=", "fairness: dry run")
        for line in self._lines:
            terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Print the forecast if there is no terminal reporter."""
        if self._lines and self._config.pluginmanager.get_plugin("terminalreporter") is None:
            sys.stdout.write("\n".join([*self._lines, ""]))

    def _forecast(self, items: list[pytest.Item]) -> list[str]:
        selected: dict[tuple[str, str | None], list[pytest.Item]] = defaultdict(list)
        tests = 0
        for item in items:
            if is_skipped(item):
                continue
            if (probe_item := probe_item_of(item)) is not None:
                selected[item.nodeid.partition("::")[0], probe_item.target].append(item)
            elif not REQUEST_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
                tests += 1
        settings, targets = self._run.settings, self._run.targets
        forecaster = Forecaster(
            self._run, last_only=without_interim_analyses(self._config) or self._run.settings.in_batches
        )
        forecasts = [
            forecaster.forecast(
                file,
                [probe_item for item in of_file if (probe_item := probe_item_of(item)) is not None],
                targets.named(name) if is_from_settings(target_source(of_file[0])) else None,
            ).to_json()
            for (file, name), of_file in selected.items()
        ]
        lines = report.lines(
            forecasts,
            target=targets.description,
            tests=tests,
            max_requests=settings.max_requests,
            replay=settings.replay,
        )
        return [*lines, "no report is written"] if self._config.getoption("fairness_report") else lines
