"""Hooks of pytest-xdist in the controller: they send data to the workers and receive the header from one worker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.errors import FairnessError
from pytest_fairness.pytest_integration.controller.header import Header
from pytest_fairness.run import Run
from pytest_fairness.targets import serve

if TYPE_CHECKING:
    from pytest_fairness.targets.shared_target import TargetServer


class Workers:
    """Hooks that exchange data with the workers of a run.

    Args:
        config: pytest's configuration.
        run: the run.
        announce: function that stores the header of the run.
    """

    def __init__(self, config: pytest.Config, run: Run, announce: Callable[[Header], None]) -> None:
        self._config, self._run, self._announce = config, run, announce
        self._models: dict[str, TargetServer | None] = {}
        self._header_sender: str | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the run's identifier, the addresses of the models that this process serves, and a flag.

        The flag says whether the worker must send its header.
        """
        settings = self._run.settings
        for target in settings.targets.values() or [settings.target]:
            if target not in self._models:
                self._models[target] = serve(target, settings)
        # All workers collect the same items, so that one header is enough.
        node.workerinput["fairness_header"] = self._header_sender is None
        self._header_sender = self._header_sender or node.gateway.id
        node.workerinput["fairness"] = {
            "started": self._run.started,
            "addresses": {target: model.address for target, model in self._models.items() if model is not None},
            "run": list(self._run.id),
        }

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """Show and announce the header that a worker has sent through the store."""
        if node.gateway.id != self._header_sender:
            return
        header = None
        with suppress(FairnessError):
            header = Header.receive(self._run)
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            if reporter._tw.width_of_current_line:  # pytest-xdist has shown how many workers are ready
                reporter._tw.line()
            lines = header.wrapped(reporter._tw.fullwidth) if header else ["fairness: no audit is selected"]
            for line in lines:
                reporter.write_line(line)
        self._announce(header or Header())

    def pytest_unconfigure(self) -> None:
        """Unload the models that this process serves."""
        for model in self._models.values():
            if model is not None:
                model.close()
