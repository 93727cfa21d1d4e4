"""Session of one process of a run: all hooks that run in every process."""

from __future__ import annotations

import asyncio
import atexit
import gc
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Generator, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# pytest-forked calls the same function; pytest has no public one.
from _pytest.runner import runtestprotocol

from pytest_fairness.asking.limits import DEFAULT_TIMING
from pytest_fairness.asking.tracker import total_counts
from pytest_fairness.backends import require_package
from pytest_fairness.baselines.changes import commit_description
from pytest_fairness.errors import FairnessError, StoreError, counted
from pytest_fairness.options import RunSettings
from pytest_fairness.pytest_integration import item_results, planning
from pytest_fairness.pytest_integration.configuration import (
    folder_in_repository,
    place,
    relative_path,
    require_known_names,
    settings_from,
)
from pytest_fairness.pytest_integration.item_results import RECORDS, Unfair
from pytest_fairness.pytest_integration.items import (
    FAILURES,
    PROBE_SUFFIXES,
    FairnessItem,
    ProbeFile,
    attach_error,
    items_of_id,
    raise_failures,
    require_ids,
)
from pytest_fairness.pytest_integration.planning import REQUEST_FIXTURES, TARGET_FIXTURE, AuditSession, Header
from pytest_fairness.pytest_integration.terminal import GuardedFile, ProgressLine
from pytest_fairness.records import VerdictName
from pytest_fairness.reports.formatting import printable, wrap
from pytest_fairness.resources import rare_collections
from pytest_fairness.run import Run, error_result, open_judge
from pytest_fairness.targets import open_target
from pytest_fairness.targets.base import has_batches
from pytest_fairness.targets.secrets import environment_redactor, removed_from_logs
from pytest_fairness.version import __version__

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_fairness.pytest_integration.controller import Controller
    from pytest_fairness.targets.base import Target


NAME = "fairness-session"
EXPECTED = (pytest.skip.Exception, pytest.xfail.Exception)
"""Exceptions by which a fixture or test skips an item, or declares that the item's failure is expected."""


def start(config: pytest.Config) -> None:
    """Check every setting, and register the hooks of the run."""
    cleanup = ExitStack()
    cleanup.enter_context(rare_collections())
    cleanup.callback(gc.unfreeze)
    atexit.register(gc.freeze)  # the search for garbage before Python exits would take a tenth of a cached run
    config.add_cleanup(cleanup.close)
    controller: Controller | None = None
    worker = getattr(config, "workerinput", None)
    if worker is None:
        require_known_names(config)
    settings = settings_from(config)
    cleanup.enter_context(removed_from_logs(environment_redactor(settings=settings)))
    progress = ProgressLine(config)
    if worker is not None:
        run = Run(settings, **worker["fairness"])
    else:
        # Deferred, as workers of pytest-xdist write no reports.
        from pytest_fairness.pytest_integration.controller import Controller

        _require_targets(settings)
        try:
            run = Run(settings)
            run.nights.check()
        except FairnessError as error:
            raise pytest.UsageError(str(error)) from error
        if not config.getoption("fairness_dry_run"):
            controller = Controller(config, run, progress)
            config.pluginmanager.register(controller, "fairness-controller")
        elif hasattr(config.option, "dist"):
            # pytest-xdist is switched off, because each worker would print the same forecast.
            config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None
    if str(settings.root) not in sys.path:
        # `python:` targets are imported from this folder, also by conftest files.
        sys.path.insert(0, str(settings.root))
    _collect_probes(config, settings)
    session = FairnessSession(config, run, progress, controller)
    if worker is None:
        require_ids(session)
    config.pluginmanager.register(session, NAME)


def _require_targets(settings: RunSettings) -> None:
    """Raise `pytest.UsageError` if the settings name a target, judge model or backend that cannot be used.

    The error is also raised if requests are to be sent in batches, but no target accepts batches.
    """
    try:
        targets = [open_target(target, settings) for target in settings.targets.values() or [settings.target]]
        open_judge(settings)
        require_package(settings.backend)
    except FairnessError as error:
        raise pytest.UsageError(environment_redactor(settings=settings)(str(error))) from error
    if settings.in_batches and not any(map(has_batches, targets)):
        raise pytest.UsageError(
            f"{targets[0].name} cannot be asked in batches. Name an openai: or anthropic: target, or run without "
            "batches (fairness_batch)."
        )


def _collect_probes(config: pytest.Config, settings: RunSettings) -> None:
    """Add the probe folders to the paths that pytest collects.

    Add nothing if the command line or pytest-picked selects the paths.
    """
    if config.args_source is pytest.Config.ArgsSource.ARGS or picks(config):
        return
    here = config.invocation_params.dir
    ignored = {(here / path).resolve() for path in config.getoption("ignore", None) or ()}
    given = [(here / arg).resolve() for arg in config.args]
    for path in settings.probes:
        if not path.exists():
            if config.getini("fairness_probes"):
                raise pytest.UsageError(
                    f"{place(config, 'fairness_probes')}: {path} does not exist. Correct the path, which is relative "
                    f"to {settings.root}."
                )
        elif path.resolve() not in ignored and not any(map(path.resolve().is_relative_to, given)):
            config.args.append(str(path))


class FairnessSession(AuditSession):
    """Hooks of one process of a run."""

    def __init__(self, config: pytest.Config, run: Run, progress: ProgressLine, controller: Controller | None) -> None:
        super().__init__(config, run, progress)
        self._controller = controller
        self._is_worker = hasattr(config, "workerinput")
        self._without_secrets = environment_redactor(settings=run.settings)
        self._found_probes = self._handles_sigterm = self._waits_for_batches = False
        self._header: Header | None = None
        self._dry_run_lines: list[str] = []

    # Start

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Guard the terminal, install the handler of SIGTERM, and adapt the run to other plugins.

        SIGTERM ends the run like Ctrl-C, unless another handler is set.
        """
        _adapt_to_selection(self.config, self.run.settings.probes)
        reporter: TerminalReporter | None = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not isinstance(reporter._tw._file, GuardedFile):
            reporter._tw._file = GuardedFile(reporter._tw._file)
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # Not SIG_IGN, which processes that a test starts would inherit.
            signal.signal(signal.SIGTERM, _ignore if self._is_worker else _interrupt)
            self._handles_sigterm = True

    # Collection

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Return a collector for a probe file in a probe folder or on the command line; `None` for other files."""
        if file_path.suffix.lower() not in PROBE_SUFFIXES:
            return None
        if not (parent.session.isinitpath(file_path) or any(map(file_path.is_relative_to, self.run.settings.probes))):
            return None
        self._found_probes = True
        outside = not file_path.is_relative_to(self.config.rootpath)
        # pytest would use only the last part of the path as the node id of a file outside of the rootdir.
        nodeid = relative_path(file_path, self.config.rootpath).as_posix() if outside else None
        file: pytest.Collector = ProbeFile.from_parent(parent, path=file_path, fairness=self, nodeid=nodeid)
        return file

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect or skip items that this process must not run, and put the items of a probe file together again.

        After an error in a probe file, all items of a worker are deselected, because pytest itself stops only the main
        process. A run of one shard, or a run that submits batches, sends requests of probes only; it skips Python tests
        with the mark `fairness`.
        """
        if self.config.getoption("randomly_reorganize", False):
            items[:] = _with_whole_probes(items)
        if self._is_worker and self.faulty and not self.config.getoption("continue_on_collection_errors"):
            items.clear()
        settings = self.run.settings
        if settings.shard is not None or settings.batch_submit:
            work = (
                "submits the probes' requests in batches"
                if settings.batch_submit
                else f"sends the probes' requests in shard {settings.shard}"
            )
            for item in items:
                if item.get_closest_marker("fairness") and not isinstance(item, FairnessItem):
                    item.add_marker(pytest.mark.skip(reason=f"not run: this run only {work}"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Create the header; under pytest-xdist, one worker sends its header to the controller."""
        gc.freeze()  # the collected items exist until the end of the run, so Python need not search them for garbage
        if session.testsfailed and not self.config.getoption("continue_on_collection_errors"):
            return  # pytest runs no test
        if not self._is_worker:
            self._header = planning.header(self.config, self.run, session.items)
            if self._controller is not None:
                self._controller.announce(self._header)
        elif self.config.workerinput["fairness_header"]:  # type: ignore[attr-defined] # set by pytest-xdist
            own = planning.header(self.config, self.run, session.items)
            with suppress(StoreError):  # the items that need the store report the error
                if own.lines or own.audits:
                    own.send(self.run)

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Return the lines of the header or, if no audit is selected, a line that says so.

        If no probe file was found, this line names the folders that were searched.
        """
        if self._header is None or (self.config.getoption("collectonly") and self.config.getoption("verbose", 0) < 0):
            return []  # programs read the output of `--co -q`, which lists node ids only
        if self._header.lines:
            return self._header.wrapped(self.config.get_terminal_writer().fullwidth)
        if not all(Path(argument.partition("::")[0]).exists() for argument in self.config.args):
            return []  # pytest reports the missing path
        if items or self._found_probes or picks(self.config):
            return ["fairness: no audit is selected"]
        folders = ", ".join(str(relative_path(path, Path.cwd())) for path in self.run.settings.probes)
        return wrap(
            f"fairness: no probes in {folders} (ini fairness_probes). Name a probe file on the command line, or write "
            "a first probe with `python -m pytest_fairness init`",
            self.config.get_terminal_writer().fullwidth,
            hanging="  ",
        )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Repeat each Python test that sends requests, once per named target; not if a conftest provides the target."""
        names = self.run.settings.targets
        if (
            names
            and not REQUEST_FIXTURES.isdisjoint(metafunc.fixturenames)
            and not planning.is_overridden(metafunc.definition)
        ):
            if TARGET_FIXTURE not in metafunc.fixturenames:
                metafunc.fixturenames.append(TARGET_FIXTURE)
            ids = [f"@{name}" for name in names]
            metafunc.parametrize(TARGET_FIXTURE, list(names), ids=ids, indirect=True, scope="session")

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Mark Python tests with the name of their target, so that `-m "fairness(target='NAME')"` selects them too."""
        name = planning.target_name_of(item)
        if name is not None and item.get_closest_marker("fairness") and not isinstance(item, FairnessItem):
            item.add_marker(pytest.mark.fairness(target=name))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a Python test at its end if any of its checks failed; an exception of the test itself has priority."""
        item.stash[FAILURES] = []
        yield
        raise_failures(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Send the requests in batches before the first test, so that no test's time limit ends the wait for them.

        In a dry run, count the requests of the selected items instead of running the items.
        """
        config, run = self.config, self.run
        if config.getoption("collectonly") or (
            session.testsfailed and not config.getoption("continue_on_collection_errors")
        ):
            return None  # pytest's own loop reports the errors and runs no test
        if config.getoption("fairness_dry_run"):
            try:
                if config.getoption("fairness_selftest"):
                    self._dry_run_lines = self._self_test(session.items)
                else:
                    self._dry_run_lines = planning.dry_run_lines(config, run, session.items)
            except FairnessError as error:
                raise pytest.UsageError(str(error)) from error
            return True
        if run.settings.in_batches and not config.getoption("setuponly", False):
            self._waits_for_batches = True
            run_to_end(self._send_batches(session.items))
            self._waits_for_batches = False
        return None

    def _self_test(self, items: Iterable[pytest.Item]) -> list[str]:
        """Return the lines of the self-test of the selected items, and write its reports."""
        # Deferred, as few runs need them.
        from pytest_fairness.pytest_integration.controller import report_paths
        from pytest_fairness.reports import files, selftest
        from pytest_fairness.reports.document import report_document
        from pytest_fairness.run.selftest import self_tests

        config, run = self.config, self.run
        paths = report_paths(config)
        for path in paths:
            if path.suffix.lower() not in (".json", ".html"):
                raise FairnessError(f"--fairness-report {path.name}: a self-test is written to .json and .html only.")
        selected = [item for item in map(planning.probe_item_of, items) if item is not None]
        tests = [found.to_json() for found in self_tests(run.settings, selected, run.started)]
        document = report_document(
            [],
            tool_version=__version__,
            target=run.targets.description,
            commit=commit_description(run.settings.root),
            started=run.started,
            seconds=time.time() - run.started,
            requests={},
        )
        for path in paths:
            files.write({**document, "selftest": tests}, path, {}, folder_in_repository(config))
        reporter: TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
        width = 80 if reporter is None else reporter._tw.fullwidth
        return selftest.lines(tests, width, verbose=config.get_verbosity() > 0) or ["no audit is selected"]

    async def _send_batches(self, items: Iterable[pytest.Item]) -> None:
        """Send the requests of the items in batches, and wait for the answers.

        With `--fairness-batch=submit`, do not wait. With `--fairness-batch=collect`, only record the answers of batches
        that have ended; see `BatchSender.send`. A target that a fixture of the user provides gets no batches, because
        the fixture runs only when the tests run.
        """
        by_name: dict[str | None, list[pytest.Item]] = {}
        for item in items:
            source = planning.target_source(item)
            if source is not None and planning.is_from_settings(source):
                by_name.setdefault(source if isinstance(source, str) else None, []).append(item)

        async def send(target: Target, own: list[pytest.Item]) -> None:
            try:
                await self.run.send_in_batches(target, planning.analyses_of(own, last_only=True), self._say)
            except FairnessError as error:
                self.batch_errors[id(target)] = error

        targets = [(self.run.targets.named(name), own) for name, own in by_name.items()]
        # The targets are asked at the same time, because each provider may need a day.
        await asyncio.gather(*(send(target, own) for target, own in targets if has_batches(target)))

    def _say(self, text: str) -> None:
        reporter: TerminalReporter | None = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not self._is_worker:
            reporter.ensure_newline()
            reporter.write_line(f"fairness: {printable(text)}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run audits in this process, although pytest-forked would fork it for each test."""
        # A fork has no copy of the threads that send the requests, and must not use the store's connections.
        forks = self.config.pluginmanager.has_plugin("pytest_forked")
        if not (forks and planning.is_audit(item) and (self.config.option.forked or item.get_closest_marker("forked"))):
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
        if isinstance(item, FairnessItem) and (result := _allure_result(self.config)) is not None:
            from allure_commons.model2 import Parameter

            result.parameters.append(Parameter(name="item", value=item.name))
        yield

    # Reports of items

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the item's records to its report, and show errors of this plugin without a traceback.

        What the item and its target wrote and logged loses its secrets.
        """
        error = call.excinfo.value if call.excinfo else None
        failure = None if isinstance(error, EXPECTED) else error
        if isinstance(item, FairnessItem) and call.when == "setup" and failure:
            attach_error(item, failure)
        report = yield
        report.sections = [(title, self._without_secrets(text)) for title, text in report.sections]
        if call.excinfo and isinstance(error, FairnessError | Unfair) and not self.config.getoption("fulltrace", False):
            if not isinstance(item, FairnessItem):
                report.longrepr = item_results.without_traceback(call.excinfo, item)
            if isinstance(error, FairnessError):
                report.fairness_error = str(error)  # type: ignore[attr-defined] # sent by pytest-xdist
        if isinstance(error, Unfair):
            report.fairness_without_baseline = error.without_baseline  # type: ignore[attr-defined] # sent by pytest-xdist
        if isinstance(error, FairnessError | Unfair) and self.config.getoption("verbose", 0) <= 0:
            has_no_output = isinstance(error, Unfair) and not report.sections
            if isinstance(item, FairnessItem) or has_no_output:
                # The summary shows the finding. pytest leaves reports with this attribute out of its section FAILURES.
                report._pdbshown = True  # type: ignore[attr-defined] # as pytest's own debugger does
        if call.when == "call" or error:
            # pytest-xdist sends all attributes of a report to the controller.
            planned = self.run.engines.newly_planned() if self._is_worker else {}
            ran = (
                planning.unrepeated_id(item)
                if call.when == "call" and failure is error and planning.is_audit(item)
                else None
            )
            records, item.stash[RECORDS] = item.stash.get(RECORDS, []), []
            vars(report).update(fairness=records, fairness_planned=planned, fairness_ran=ran)
            if call.excinfo is None and (verdict := item_results.undecided(report)):
                item_results.show_undecided(report, item, verdict)
                report.fairness_undecided = verdict.value  # type: ignore[attr-defined] # sent by pytest-xdist
            item_results.record_expected_failures(report, item_results.records_on(report))
            if self.config.getoption("xmlpath", None):
                item_results.add_junit_properties(item, report)
        return report

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Return the outcome that pytest shows for an inconclusive result, a missing verdict or a missing baseline.

        The outcome consists of a category, which pytest counts in its last line, a letter, and a word with its colour.
        For other reports, return `None`.
        """
        if report.failed and getattr(report, "fairness_without_baseline", False):
            return "no-baseline", "n", ("NO-BASELINE", {"yellow": True})
        name = getattr(report, "fairness_undecided", None)
        if name is None:
            return None
        colour = "yellow" if name == VerdictName.INCONCLUSIVE else "cyan"
        return name, name[0], (name.upper(), {colour: True})

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Add an error result to the report of a probe item that crashed its xdist worker; called in the controller."""
        file, _, name = crashitem.partition("::")
        path = self.config.rootpath / file
        if path.suffix.lower() in PROBE_SUFFIXES:
            for item in items_of_id(self, path, name):
                crash = "the xdist worker that measured the item crashed; run the item with `-n 0` to see why"
                result = error_result(item, FairnessError(crash), crashitem)
                vars(report).update(fairness=[item_results.record_of(result.to_plain(), item, None)])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Change the status of an inconclusive item in Allure to skipped, with the finding as its message."""
        reason, result = report.longrepr, _allure_result(self.config)
        if hasattr(report, "fairness_undecided") and isinstance(reason, tuple) and result is not None:
            from allure_commons.model2 import Status, StatusDetails

            result.status, result.statusDetails = Status.SKIPPED, StatusDetails(message=reason[2])

    # End

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remove traceback entries without a line number, which a signal can cause and pytest cannot show."""
        excinfo.traceback = excinfo.traceback.filter(_has_line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Stop sending requests; in the main process, also stop all workers from sending.

        A dry run does not fail if no item is selected.
        """
        if self._is_worker:
            interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
            self.run.stop(DEFAULT_TIMING.stop_grace if interrupted else self.stop_grace)
            return
        with suppress(FairnessError):  # the items that need the store have reported the error
            self.run.stop_all()
        if self.config.getoption("fairness_dry_run") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter, exitstatus: int) -> None:
        """Show the tables, and how to continue after an interruption; of a dry run, show the forecast."""
        if self._dry_run_lines:
            title = "self-test" if self.config.getoption("fairness_selftest") else "dry run"
            terminalreporter.write_sep("=", f"fairness: {title}")
        for line in self._dry_run_lines:
            terminalreporter.write_line(line)
        if self._controller is not None:
            self._controller.write_summary(terminalreporter)
        texts = [self._recorded_text()] if exitstatus == pytest.ExitCode.INTERRUPTED else []
        if self._waits_for_batches:
            texts.append(
                "the provider continues to answer the batches. To wait for the answers, run again. To record only the "
                "answers of batches that have ended, run later with --fairness-batch=collect."
            )
        for text in texts:
            for line in wrap(text, terminalreporter._tw.fullwidth, hanging="  ") if text else ():
                terminalreporter.write_line(line, bold=True)

    def pytest_unconfigure(self) -> None:
        """Close the store and the targets, and restore the handling of SIGTERM.

        Without a terminal reporter, print the forecast of a dry run.
        """
        if self._dry_run_lines and self.config.pluginmanager.get_plugin("terminalreporter") is None:
            sys.stdout.write("\n".join([*self._dry_run_lines, ""]))
        self.run.close()
        if self._handles_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _recorded_text(self) -> str | None:
        total = total_counts(self.run.engines.counts_by_owner())
        recorded = int(total.get("reused", 0) + total.get("answered", 0))
        if not total.get("planned"):
            return None
        text = f"{counted(recorded, 'answer')} recorded"
        again = int(total.get("asked_again", 0))
        if not again:
            return f"{text}; run again to continue."
        which = ("it" if recorded == 1 else "them") if again >= recorded else f"{again:,} of them"
        why = "because of --fairness-fresh" if self.run.settings.fresh else "because the target's code may change"
        cure = "" if self.run.settings.fresh else ". To reuse answers, set `fairness_target_version`"
        return f"{text}; the next run requests {which} again, {why}{cure}."


def _has_line(entry: Any) -> bool:
    try:
        return entry.lineno is not None
    except TypeError:
        return False


def _interrupt(*_: Any) -> None:
    # A second signal, for example passed on by a parent process, must not interrupt the end of the run.
    signal.signal(signal.SIGTERM, _ignore)
    raise KeyboardInterrupt("ended by SIGTERM")


def _ignore(*_: Any) -> None:
    """Ignore the signal; the controller ends the workers itself, after their last answers are recorded."""


def run_to_end(coroutine: Coroutine[None, None, None]) -> None:
    """Run a coroutine until it ends, in another thread if the current thread runs an event loop, as notebooks do.

    An interruption of the current thread cancels the coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
        return
    from anyio.from_thread import start_blocking_portal

    async def run() -> None:
        await coroutine

    with start_blocking_portal() as portal:
        portal.call(run)


# Adaptation to other pytest plugins; the modules of a plugin are imported only if the plugin is active.


def picks(config: pytest.Config) -> bool:
    return bool(config.getoption("picked", None) == "only")


def _adapt_to_selection(config: pytest.Config, folders: Iterable[Path]) -> None:
    if config.pluginmanager.has_plugin("TestmonSelect") and getattr(config, "testmon_config").select:  # noqa: B009 - unknown to mypy
        raise pytest.UsageError(
            "--testmon deselects audits although they may fail now: the target, recorded answers and baselines are "
            "not among the Python files that pytest-testmon compares. Run audits with --testmon-noselect."
        )
    if picks(config):
        from pytest_picked.modes import Branch, Unstaged

        mode = Branch if config.getoption("picked_mode") == "branch" else Unstaged
        changed, _ = mode([f"*{suffix}" for suffix in PROBE_SUFFIXES], **vars(config.option)).affected_tests()
        config.args += [file for file in changed if any(map(Path(file).resolve().is_relative_to, folders))]


def _with_whole_probes(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the items, with the items of a probe file together again, after pytest-randomly has shuffled all items.

    Consecutive items of a probe share the answers that are read from the store. pytest-randomly keeps the tests of a
    module together, but items of probes belong to no module.
    """
    own = [item for item in items if isinstance(item, FairnessItem)]
    first = {path: place for place, path in enumerate(dict.fromkeys(item.path for item in own))}
    ordered = iter(sorted(own, key=lambda item: first[item.path]))
    return [next(ordered) if isinstance(item, FairnessItem) else item for item in items]


def _allure_result(config: pytest.Config) -> Any:
    listener = config.pluginmanager.get_plugin("allure_listener")
    return None if listener is None else listener.allure_logger.get_test(None)
