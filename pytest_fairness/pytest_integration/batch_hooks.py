"""Hooks for batches: many requests that a provider accepts together, and answers within a day.

Batches are sent before the first test, so that the time limit of a test cannot end the wait for the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.errors import FairnessError
from pytest_fairness.pytest_integration.items.audit_service import AuditService
from pytest_fairness.pytest_integration.items.item_targets import analyses_of, is_from_settings, target_source
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.text_layout import wrap
from pytest_fairness.targets.batch_client import has_batches

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_fairness.targets.base import Target


def run_to_end(coroutine: Coroutine[None, None, None]) -> None:
    """Run a coroutine until it ends, in another thread if the current thread runs an event loop, as notebooks do.

    An interruption of the current thread cancels the coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
        return
    started, ended = Event(), Event()
    tasks: list[asyncio.Task[None]] = []
    errors: list[BaseException] = []

    async def cancellable() -> None:
        tasks.append(asyncio.create_task(coroutine))
        started.set()
        await tasks[0]

    def work() -> None:
        try:
            asyncio.run(cancellable())
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
            errors.append(error)
        finally:
            ended.set()

    try:
        Thread(target=work, name="fairness-batches", daemon=True).start()
        ended.wait()  # after an interrupted `Thread.join`, another `join` would not wait
    except BaseException:
        if started.wait(1):
            with suppress(RuntimeError):  # the event loop has ended meanwhile
                tasks[0].get_loop().call_soon_threadsafe(tasks[0].cancel)
            ended.wait()
        raise
    if errors:
        raise errors[0]


class BatchHooks:
    """Hooks that send the requests of all selected items in batches; registered in every process of the run.

    A target that a fixture of the user provides gets no batches, because the fixture runs only when the tests run.

    Args:
        config: pytest's configuration.
        service: service of the run; its planner gets the errors of batches that could not be sent or collected.
    """

    def __init__(self, config: pytest.Config, service: AuditService) -> None:
        self._config, self._service = config, service
        self._waiting = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Send the requests in batches, and wait for the answers.

        With `--fairness-batch-submit`, do not wait. With `--fairness-batch-collect`, only record the answers of batches
        that have ended; see `BatchSender.send`.
        """
        if session.testsfailed and not self._config.getoption("continue_on_collection_errors"):
            return  # pytest's own loop reports the errors and runs no test
        if any(map(self._config.getoption, ("collectonly", "setuponly"))):
            return
        by_name: dict[str | None, list[pytest.Item]] = {}
        for item in session.items:
            source = target_source(item)
            if source is not None and is_from_settings(source):
                by_name.setdefault(source if isinstance(source, str) else None, []).append(item)
        targets = [(self._service.run.targets.named(name), items) for name, items in by_name.items()]
        self._waiting = True
        run_to_end(self._send_all((target, items) for target, items in targets if has_batches(target)))
        self._waiting = False

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Show how to continue if the wait for the batches was interrupted."""
        if self._waiting:
            text = (
                "the provider continues to answer the batches. To wait for the answers, run again. To record only the "
                "answers of batches that have ended, run later with --fairness-batch-collect."
            )
            for line in wrap(text, terminalreporter._tw.fullwidth, hanging="  "):
                terminalreporter.write_line(line, bold=True)

    async def _send_all(self, targets: Iterable[tuple[Target, list[pytest.Item]]]) -> None:
        # The targets are asked at the same time, because each provider may need a day.
        await asyncio.gather(*(self._send(target, items) for target, items in targets))

    async def _send(self, target: Target, items: list[pytest.Item]) -> None:
        try:
            await self._service.run.send_in_batches(target, analyses_of(items, last_only=True), self._say)
        except FairnessError as error:
            self._service.planner.errors[id(target)] = error

    def _say(self, text: str) -> None:
        reporter: TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not hasattr(self._config, "workerinput"):
            reporter.ensure_newline()
            reporter.write_line(f"fairness: {printable(text)}")
