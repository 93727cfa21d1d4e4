"""Hooks that run in every process of a run; interruption; batches; adaptation to other pytest plugins."""

from __future__ import annotations

import asyncio
import atexit
import gc
import signal
import sys
import threading
from collections.abc import Coroutine, Generator, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

# pytest-forked calls the same function; pytest has no public one.
from _pytest.runner import runtestprotocol

from pytest_fairness.asking.engine import environment_redactor, rare_collections
from pytest_fairness.asking.limits import DEFAULT_TIMING
from pytest_fairness.asking.requests import total_counts
from pytest_fairness.backends import require_package
from pytest_fairness.errors import FairnessError, StoreError, counted
from pytest_fairness.options import RunSettings
from pytest_fairness.pytest_integration import item_results, planning
from pytest_fairness.pytest_integration.configuration import place, relative_path, require_known_names, settings_from
from pytest_fairness.pytest_integration.item_results import Unfair
from pytest_fairness.pytest_integration.items import FAILURES, PROBE_SUFFIXES, AuditService, FairnessItem, ProbeFile
from pytest_fairness.pytest_integration.planning import REQUEST_FIXTURES, TARGET_FIXTURE, DryRun, Header
from pytest_fairness.pytest_integration.terminal import TerminalGuard
from pytest_fairness.records import VerdictName
from pytest_fairness.reports.formatting import printable, wrap
from pytest_fairness.run import Run, error_result, open_judge
from pytest_fairness.targets import open_target
from pytest_fairness.targets.base import has_batches

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_fairness.pytest_integration.controller import Controller
    from pytest_fairness.targets.base import Target


# Hooks that run in every process of a run: collection, test reports, and the end of the run.
#
# `controller/` holds the hooks that run only once in a run: baselines, reports, summary.

NAME = "fairness-session"
EXPECTED = (pytest.skip.Exception, pytest.xfail.Exception)
"""Exceptions by which a fixture or test skips an item, or declares that the item's failure is expected."""


def start(config: pytest.Config) -> None:
    """Check every setting, and register the hooks of the run.

    Raises:
        pytest.UsageError: a setting is invalid.
    """
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
    if worker is None:
        # Deferred, as workers of pytest-xdist write no reports.
        from pytest_fairness.pytest_integration.controller import Controller

        _require_targets(settings)
        run = Run(settings)
        controller = None if config.getoption("fairness_dry_run") else Controller(config, run)
        config.pluginmanager.register(controller or DryRun(config, run), "fairness-controller")
    else:
        run = Run(settings, **worker["fairness"])
    if str(settings.root) not in sys.path:
        # `python:` targets are imported from this folder, also by conftest files.
        sys.path.insert(0, str(settings.root))
    _collect_probes(config, settings)
    session = FairnessSession(config, run, controller)
    if worker is None:
        session.service.probe_files.require_ids(config)
    config.pluginmanager.register(TerminalGuard(), "fairness-terminal-guard")
    config.pluginmanager.register(OtherPlugins(config, settings.probes), "fairness-other-plugins")
    config.pluginmanager.register(Interruption(config, run), "fairness-ending")
    config.pluginmanager.register(session, NAME)
    if settings.in_batches and not config.getoption("fairness_dry_run"):
        config.pluginmanager.register(BatchHooks(config, session.service), "fairness-batches")


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
            "batches (fairness_batch, --fairness-batch-submit, --fairness-batch-collect)."
        )


def _collect_probes(config: pytest.Config, settings: RunSettings) -> None:
    """Add the probe folders to the paths that pytest collects.

    Add nothing if the command line or pytest-picked selects the paths.

    Raises:
        pytest.UsageError: a path in the ini option `fairness_probes` does not exist.
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


class FairnessSession:
    """Hooks of one process of a run.

    Attributes:
        service: service that gives the fixtures access to the run.
    """

    def __init__(self, config: pytest.Config, run: Run, controller: Controller | None) -> None:
        self._config, self._run, self._controller = config, run, controller
        self.service = AuditService(config, run)
        self._is_worker = hasattr(config, "workerinput")
        self._found_probes = False
        self._header: Header | None = None

    # Collection

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Return a collector for a probe file in a probe folder or on the command line; `None` for other files."""
        if file_path.suffix.lower() not in PROBE_SUFFIXES:
            return None
        if not (parent.session.isinitpath(file_path) or any(map(file_path.is_relative_to, self._run.settings.probes))):
            return None
        self._found_probes = True
        outside = not file_path.is_relative_to(self._config.rootpath)
        # pytest would use only the last part of the path as the node id of a file outside of the rootdir.
        nodeid = relative_path(file_path, self._config.rootpath).as_posix() if outside else None
        file: pytest.Collector = ProbeFile.from_parent(parent, path=file_path, service=self.service, nodeid=nodeid)
        return file

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect or skip items that this process must not run.

        After an error in a probe file, all items of a worker are deselected, because pytest itself stops only the main
        process. A run of one shard, or a run that submits batches, sends requests of probes only; it skips Python tests
        with the mark `fairness`.
        """
        goes_on = self._config.getoption("continue_on_collection_errors")
        if self._is_worker and self.service.probe_files.faulty and not goes_on:
            items.clear()
        settings = self._run.settings
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
        if session.testsfailed and not self._config.getoption("continue_on_collection_errors"):
            return  # pytest runs no test
        if not self._is_worker:
            self._header = planning.header(self._config, self._run, session.items)
            if self._controller is not None:
                self._controller.announce(self._header)
        elif self._config.workerinput["fairness_header"]:  # type: ignore[attr-defined] # set by pytest-xdist
            own = planning.header(self._config, self._run, session.items)
            with suppress(StoreError):  # the items that need the store report the error
                if own.lines or own.audits:
                    own.send(self._run)

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Return the lines of the header or, if no audit is selected, a line that says so.

        If no probe file was found, this line names the folders that were searched.
        """
        if self._header is None or (self._config.getoption("collectonly") and self._config.getoption("verbose", 0) < 0):
            return []  # programs read the output of `--co -q`, which lists node ids only
        if self._header.lines:
            return self._header.wrapped(self._config.get_terminal_writer().fullwidth)
        if not all(Path(argument.partition("::")[0]).exists() for argument in self._config.args):
            return []  # pytest reports the missing path
        if items or self._found_probes or picks(self._config):
            return ["fairness: no audit is selected"]
        folders = ", ".join(str(relative_path(path, Path.cwd())) for path in self._run.settings.probes)
        return wrap(
            f"fairness: no probes in {folders} (ini fairness_probes). Name a probe file on the command line, or write "
            "a first probe with `python -m pytest_fairness init`",
            self._config.get_terminal_writer().fullwidth,
            hanging="  ",
        )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Repeat each Python test that sends requests, once per named target; not if a conftest provides the target."""
        names = self._run.settings.targets
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
        self.service.raise_failures(item)

    # Reports of items

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the item's records to its report, and show errors of this plugin without a traceback."""
        error = call.excinfo.value if call.excinfo else None
        failure = None if isinstance(error, EXPECTED) else error
        if isinstance(item, FairnessItem) and call.when == "setup" and failure:
            self.service.attach_error(item, failure, item.siblings)
        report = yield
        if (
            call.excinfo
            and isinstance(error, FairnessError | Unfair)
            and not self._config.getoption("fulltrace", False)
        ):
            if not isinstance(item, FairnessItem):
                report.longrepr = item_results.without_traceback(call.excinfo, item)
            if isinstance(error, FairnessError):
                report.fairness_error = str(error)  # type: ignore[attr-defined] # sent by pytest-xdist
        if isinstance(error, Unfair):
            report.fairness_without_baseline = error.without_baseline  # type: ignore[attr-defined] # sent by pytest-xdist
        if isinstance(error, FairnessError | Unfair) and self._config.getoption("verbose", 0) <= 0:
            has_no_output = isinstance(error, Unfair) and not report.sections
            if isinstance(item, FairnessItem) or has_no_output:
                # The summary shows the finding. pytest leaves reports with this attribute out of its section FAILURES.
                report._pdbshown = True  # type: ignore[attr-defined] # as pytest's own debugger does
        if call.when == "call" or error:
            # pytest-xdist sends all attributes of a report to the controller.
            planned = self._run.engines.newly_planned() if self._is_worker else {}
            ran = (
                planning.unrepeated_id(item)
                if call.when == "call" and failure is error and planning.is_audit(item)
                else None
            )
            vars(report).update(fairness=item_results.take_records(item), fairness_planned=planned, fairness_ran=ran)
            if call.excinfo is None and (verdict := item_results.undecided(report)):
                item_results.undo_xfail(report)
                report.fairness_undecided = verdict.value  # type: ignore[attr-defined] # sent by pytest-xdist
                if verdict is VerdictName.INCONCLUSIVE:
                    item_results.skip_inconclusive(report, item)
            item_results.record_expected_failures(report, item_results.records_on(report))
            if self._config.getoption("xmlpath", None):
                item_results.add_junit_properties(item, report)
        return report

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Return the outcome that pytest shows for an inconclusive result, a missing verdict or a missing baseline.

        The outcome consists of a category, which pytest counts in its last line, a letter, and a word with its colour.
        For other reports, return `None`.
        """
        if item_results.is_without_baseline(report):
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
        path = self._config.rootpath / file
        if path.suffix.lower() in PROBE_SUFFIXES:
            for item in self.service.probe_files.items_of_id(path, name):
                crash = "the xdist worker that measured the item crashed; run the item with `-n 0` to see why"
                result = error_result(item, FairnessError(crash), crashitem)
                vars(report).update(fairness=[item_results.record_of(result.to_plain(), item, None)])

    # End

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Stop sending requests; in the main process, also stop all workers from sending."""
        if self._is_worker:
            interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
            self._run.stop(DEFAULT_TIMING.stop_grace if interrupted else self.service.planner.stop_grace)
        else:
            with suppress(FairnessError):  # the items that need the store have reported the error
                self._run.stop_all()

    def pytest_unconfigure(self) -> None:
        """Close the store and the targets."""
        self._run.close()


# Interruption of a run: SIGTERM ends the run like Ctrl-C, and the summary says how many answers are recorded.


class Interruption:
    """Hooks for a run that may be interrupted; registered in every process of the run.

    Args:
        config: pytest's configuration.
        run: the run in this process.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._run = run
        self._is_worker = hasattr(config, "workerinput")
        self._handled = False

    def pytest_sessionstart(self) -> None:
        """Install the handler of SIGTERM, unless another handler is set."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # Not SIG_IGN, which processes that a test starts would inherit.
            signal.signal(signal.SIGTERM, _ignore if self._is_worker else _interrupt)
            self._handled = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remove traceback entries without a line number, which a signal can cause and pytest cannot show."""
        excinfo.traceback = excinfo.traceback.filter(_has_line)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter, exitstatus: int) -> None:
        """Show the number of recorded answers, and whether the next run reuses them."""
        if exitstatus == pytest.ExitCode.INTERRUPTED and (text := self._text()):
            for line in wrap(text, terminalreporter._tw.fullwidth, hanging="  "):
                terminalreporter.write_line(line, bold=True)

    def pytest_unconfigure(self) -> None:
        """Restore the default handling of SIGTERM."""
        if self._handled:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _text(self) -> str | None:
        """Return a sentence on the number of recorded answers and their reuse; `None` if no request was planned."""
        total: dict[str, float] = {}
        with suppress(FairnessError):  # the items that need the store have reported the error
            if self._run.settings.store.exists():
                total = total_counts(self._run.store.runs.request_counts(self._run.id))
        recorded = int(total.get("reused", 0) + total.get("answered", 0))
        if not total.get("planned"):
            return None
        text = f"{counted(recorded, 'answer')} recorded"
        again = int(total.get("asked_again", 0))
        if not again:
            return f"{text}; run again to continue."
        which = ("it" if recorded == 1 else "them") if again >= recorded else f"{again:,} of them"
        why = "because of --fairness-fresh" if self._run.settings.fresh else "because the target's code may change"
        cure = "" if self._run.settings.fresh else ". To reuse answers, set `fairness_target_version`"
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


# Hooks for batches: many requests that a provider accepts together, and answers within a day.
#
# Batches are sent before the first test, so that the time limit of a test cannot end the wait for the answers.


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
            source = planning.target_source(item)
            if source is not None and planning.is_from_settings(source):
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
            await self._service.run.send_in_batches(target, planning.analyses_of(items, last_only=True), self._say)
        except FairnessError as error:
            self._service.planner.errors[id(target)] = error

    def _say(self, text: str) -> None:
        reporter: TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not hasattr(self._config, "workerinput"):
            reporter.ensure_newline()
            reporter.write_line(f"fairness: {printable(text)}")


# Adaptation to other pytest plugins; the modules of a plugin are imported only if the plugin is active.


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
        if not (
            forks and planning.is_audit(item) and (self._config.option.forked or item.get_closest_marker("forked"))
        ):
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
