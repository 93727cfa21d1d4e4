"""Adaptation to other pytest plugins; the modules of a plugin are imported only if the plugin is active."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

# pytest-forked calls the same function; pytest has no public one.
from _pytest.runner import runtestprotocol

from pytest_fairness.pytest_integration.items.item_targets import is_audit
from pytest_fairness.pytest_integration.items.items import FairnessItem
from pytest_fairness.pytest_integration.items.probe_files import PROBE_SUFFIXES


def picks(config: pytest.Config) -> bool:
    """Return whether pytest-picked chooses the files that pytest collects."""
    return bool(config.getoption("picked", None) == "only")


class OtherPlugins:
    """Hooks for allure-pytest, pytest-forked, pytest-picked, pytest-randomly and pytest-testmon.

    Args:
        config: pytest's configuration.
        folders: the probe folders.
    """

    def __init__(self, config: pytest.Config, folders: Iterable[Path]) -> None:
        self._config, self._folders = config, tuple(folders)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Add the changed probe files to the files that pytest-picked selects, which are only Python files.

        Raises:
            pytest.UsageError: pytest-testmon selects tests.
        """
        config = self._config
        if config.pluginmanager.has_plugin("TestmonSelect") and getattr(config, "testmon_config").select:  # noqa: B009 - unknown to mypy
            raise pytest.UsageError(
                "--testmon deselects audits although they may fail now: the target, recorded answers and baselines are "
                "not among the Python files that pytest-testmon compares. Run audits with --testmon-noselect."
            )
        if picks(config):
            from pytest_picked.modes import Branch, Unstaged

            mode = Branch if config.getoption("picked_mode") == "branch" else Unstaged
            changed, _ = mode([f"*{suffix}" for suffix in PROBE_SUFFIXES], **vars(config.option)).affected_tests()
            config.args += [file for file in changed if any(map(Path(file).resolve().is_relative_to, self._folders))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the items of a probe file together again, after pytest-randomly has shuffled all items.

        Consecutive items of a probe share the answers that are read from the store. pytest-randomly keeps the tests of
        a module together, but items of probes belong to no module.
        """
        if not self._config.getoption("randomly_reorganize", False):
            return
        own = [item for item in items if isinstance(item, FairnessItem)]
        first = {path: place for place, path in enumerate(dict.fromkeys(item.path for item in own))}
        ordered = iter(sorted(own, key=lambda item: first[item.path]))
        items[:] = [next(ordered) if isinstance(item, FairnessItem) else item for item in items]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run audits in this process, although pytest-forked would fork it for each test.

        A fork has no copy of the threads that send the requests, and must not use the store's connections.
        """
        forks = self._config.pluginmanager.has_plugin("pytest_forked")
        if not (forks and is_audit(item) and (self._config.option.forked or item.get_closest_marker("forked"))):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        runtestprotocol(item, nextitem=nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Give Allure the item's name as a parameter.

        Allure cuts node ids at `[`, and shows items with the same id and parameters as retries of one item.
        """
        if isinstance(item, FairnessItem) and (result := self._allure_result()) is not None:
            from allure_commons.model2 import Parameter

            result.parameters.append(Parameter(name="item", value=item.name))
        yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Change the status of an inconclusive item in Allure to skipped, with the finding as its message."""
        reason, result = report.longrepr, self._allure_result()
        if hasattr(report, "fairness_undecided") and isinstance(reason, tuple) and result is not None:
            from allure_commons.model2 import Status, StatusDetails

            result.status, result.statusDetails = Status.SKIPPED, StatusDetails(message=reason[2])

    def _allure_result(self) -> Any:
        listener = self._config.pluginmanager.get_plugin("allure_listener")
        return None if listener is None else listener.allure_logger.get_test(None)
