"""Hooks that run in every process of a run: collection, test reports, and the end of the run.

`controller/` holds the hooks that run only once in a run: baselines, reports, summary.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Generator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.asking.garbage_collection import rare_collections
from pytest_fairness.asking.secrets import environment_redactor
from pytest_fairness.asking.timing import DEFAULT_TIMING
from pytest_fairness.backends import require_package
from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.options import RunSettings
from pytest_fairness.pytest_integration.configuration import settings_from
from pytest_fairness.pytest_integration.controller.header import Header, header
from pytest_fairness.pytest_integration.guarded_terminal import TerminalGuard
from pytest_fairness.pytest_integration.ini import place, require_known_names
from pytest_fairness.pytest_integration.interruption import Interruption
from pytest_fairness.pytest_integration.items.audit_service import FAILURES, AuditService
from pytest_fairness.pytest_integration.items.item_results import (
    Unfair,
    add_junit_properties,
    is_without_baseline,
    record_expected_failures,
    record_of,
    records_on,
    skip_inconclusive,
    take_records,
    undecided,
    undo_xfail,
    without_traceback,
)
from pytest_fairness.pytest_integration.items.item_targets import (
    REQUEST_FIXTURES,
    TARGET_FIXTURE,
    is_audit,
    is_overridden,
    target_name_of,
    unrepeated_id,
)
from pytest_fairness.pytest_integration.items.items import FairnessItem, ProbeFile
from pytest_fairness.pytest_integration.items.probe_files import PROBE_SUFFIXES
from pytest_fairness.pytest_integration.other_plugins import OtherPlugins, picks
from pytest_fairness.pytest_integration.relative_paths import relative_path
from pytest_fairness.records import VerdictName
from pytest_fairness.reports.text_layout import wrap
from pytest_fairness.run import Run, error_result, open_judge
from pytest_fairness.targets import open_target
from pytest_fairness.targets.batch_client import has_batches

if TYPE_CHECKING:
    from pytest_fairness.pytest_integration.controller.controller import Controller

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
        from pytest_fairness.pytest_integration.controller.controller import Controller
        from pytest_fairness.pytest_integration.dry_run import DryRun

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
        from pytest_fairness.pytest_integration.batch_hooks import BatchHooks

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
            self._header = header(self._config, self._run, session.items)
            if self._controller is not None:
                self._controller.announce(self._header)
        elif self._config.workerinput["fairness_header"]:  # type: ignore[attr-defined] # set by pytest-xdist
            own = header(self._config, self._run, session.items)
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
        if names and not REQUEST_FIXTURES.isdisjoint(metafunc.fixturenames) and not is_overridden(metafunc.definition):
            if TARGET_FIXTURE not in metafunc.fixturenames:
                metafunc.fixturenames.append(TARGET_FIXTURE)
            ids = [f"@{name}" for name in names]
            metafunc.parametrize(TARGET_FIXTURE, list(names), ids=ids, indirect=True, scope="session")

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Mark Python tests with the name of their target, so that `-m "fairness(target='NAME')"` selects them too."""
        name = target_name_of(item)
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
                report.longrepr = without_traceback(call.excinfo, item)
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
            ran = unrepeated_id(item) if call.when == "call" and failure is error and is_audit(item) else None
            vars(report).update(fairness=take_records(item), fairness_planned=planned, fairness_ran=ran)
            if call.excinfo is None and (verdict := undecided(report)):
                undo_xfail(report)
                report.fairness_undecided = verdict.value  # type: ignore[attr-defined] # sent by pytest-xdist
                if verdict is VerdictName.INCONCLUSIVE:
                    skip_inconclusive(report, item)
            record_expected_failures(report, records_on(report))
            if self._config.getoption("xmlpath", None):
                add_junit_properties(item, report)
        return report

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Return the outcome that pytest shows for an inconclusive result, a missing verdict or a missing baseline.

        The outcome consists of a category, which pytest counts in its last line, a letter, and a word with its colour.
        For other reports, return `None`.
        """
        if is_without_baseline(report):
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
                vars(report).update(fairness=[record_of(result.to_plain(), item, None)])

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
