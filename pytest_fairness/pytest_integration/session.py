"""One run under pytest, in one process: what is collected, asked, measured and judged there.

What is done once for the whole run (baselines, reports, the summary) is in `controller.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.asking.timing import DEFAULT_TIMING
from pytest_fairness.errors import BaselineError, FairnessError, NotMeasurable, ProbeError, StoreError, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.pytest_integration import junit
from pytest_fairness.pytest_integration.accept_options import accept_options
from pytest_fairness.pytest_integration.configuration import root_from_here, settings_from
from pytest_fairness.pytest_integration.controller import Controller
from pytest_fairness.pytest_integration.dry_run import DryRun
from pytest_fairness.pytest_integration.guarded_terminal import TerminalGuard
from pytest_fairness.pytest_integration.header import Header, header
from pytest_fairness.pytest_integration.ini import place, require_known_names
from pytest_fairness.pytest_integration.interruption import Ending
from pytest_fairness.pytest_integration.items import (
    ASKING,
    TARGET_FIXTURE,
    FairnessItem,
    ProbeFile,
    Unfair,
    asks_default,
    is_audit,
    is_overridden,
    name_asked,
    relative,
    shown_alone,
)
from pytest_fairness.pytest_integration.request_planner import Asking
from pytest_fairness.records import ItemResult, Json, VerdictName
from pytest_fairness.reports.shell_commands import rebaseline_command
from pytest_fairness.reports.terminal.summary import failure_text
from pytest_fairness.run import (
    BaselineComparison,
    ItemMeasurement,
    ProbeItem,
    Run,
    error_result,
    items_of,
    judge,
    open_judge,
    variants,
)
from pytest_fairness.targets import open_target

if TYPE_CHECKING:
    from pytest_fairness.probes import Probe

NAME = "fairness-session"
PROBE_SUFFIXES = frozenset({".yaml", ".yml"})
EXPECTED = (pytest.skip.Exception, pytest.xfail.Exception)
"""What a fixture raises to say that an item is not to be measured."""
RECORDS = pytest.StashKey[list[dict[str, Json]]]()
"""What an item's report is to carry; plain JSON, as it travels between processes."""


def start(config: pytest.Config) -> None:
    """Begin a run: check every setting, and take probe_item in what pytest does from now on.

    Args:
        config: pytest's.

    Raises:
        pytest.UsageError: a setting is wrong.
    """
    controller: Controller | None = None
    worker = getattr(config, "workerinput", None)
    if worker is None:
        require_known_names(config)
    settings = settings_from(config)
    if worker is None:
        try:
            for target in settings.targets.values() or [settings.target]:
                open_target(target, settings)
            open_judge(settings)
        except TargetError as error:
            raise pytest.UsageError(str(error)) from error
        run = Run(settings)
        controller = None if config.getoption("fairness_dry_run") else Controller(config, run)
        config.pluginmanager.register(controller or DryRun(config, run), "fairness-controller")
    else:
        run = Run(settings, **worker["fairness"])
    if str(settings.root) not in sys.path:
        # Where users have their `python:` targets, and import them from in a conftest.
        sys.path.insert(0, str(settings.root))
    _collect_probes(config, settings)
    config.pluginmanager.register(TerminalGuard(config), "fairness-terminal-guard")
    config.pluginmanager.register(Ending(config, run), "fairness-ending")
    config.pluginmanager.register(FairnessSession(config, run, controller), NAME)


def _collect_probes(config: pytest.Config, settings: RunSettings) -> None:
    """Have the probe folders collected too, unless the command line says what is to be."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    here = config.invocation_params.dir
    ignored = {(here / path).resolve() for path in config.getoption("ignore", None) or ()}
    given = [(here / arg).resolve() for arg in config.args]
    for path in settings.probes:
        if not path.exists():
            if config.getini("fairness_probes"):
                raise pytest.UsageError(
                    f"{place(config, 'fairness_probes')}: there is no {path}; paths are relative to {settings.root}."
                )
        elif path.resolve() not in ignored and not any(map(path.resolve().is_relative_to, given)):
            config.args.append(str(path))


class FairnessSession:
    """pytest's hooks in one process of a run, and what its items and fixtures are served with."""

    def __init__(self, config: pytest.Config, run: Run, controller: Controller | None) -> None:
        self.config = config
        self.run = run
        self._controller = controller
        self._rebaseline: bool = config.getoption("fairness_rebaseline")
        self.asking = Asking(config, run)
        self._probes: dict[str, Path] = {}
        self._found = False
        self._header: Header | None = None
        self.faulty = False
        self._checked: dict[tuple[str, str], str] = {}

    # Collecting

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Probe files: those in the probe folders, and those that were asked for by name."""
        if file_path.suffix.lower() not in PROBE_SUFFIXES:
            return None
        if parent.session.isinitpath(file_path) or any(map(file_path.is_relative_to, self.run.settings.probes)):
            self._found = True
            outside = not file_path.is_relative_to(self.config.rootpath)
            # pytest names files outside of the rootdir by their last probe_item, which leads nowhere.
            nodeid = Path(os.path.relpath(file_path, self.config.rootpath)).as_posix() if outside else None
            collector: pytest.Collector = ProbeFile.from_parent(parent, path=file_path, fairness=self, nodeid=nodeid)
            return collector
        return None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """A faulty probe stops workers too: pytest runs on there, after what stops it in one process."""
        is_worker = hasattr(self.config, "workerinput")
        if is_worker and self.faulty and not self.config.getoption("continue_on_collection_errors"):
            items.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Find out whom the selected items ask, for the process that the user started."""
        if session.testsfailed and not self.config.getoption("continue_on_collection_errors"):
            return  # pytest runs nothing
        worker = getattr(self.config, "workerinput", None)
        if worker is None:
            self._header = header(self.config, self.run, session.items)
            if self._controller is not None:
                self._controller.announce(self._header)
        elif worker["fairness_header"]:
            found = header(self.config, self.run, session.items)
            with suppress(StoreError):  # whoever wants something of the store says so
                if found.lines or found.audits:
                    found.send(self.run)

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Say who is audited; where probes are looked for, when there are none."""
        if self._header is None or (self.config.getoption("collectonly") and self.config.get_verbosity() < 0):
            return []  # `--co -q` lists node ids for programs
        if self._header.lines:
            return list(self._header.lines)
        if items or self._found:
            return ["fairness: no audit is selected"]
        folders = ", ".join(os.path.relpath(path) for path in self.run.settings.probes)
        return [f"fairness: no probes in {folders} (ini fairness_probes); a file that is elsewhere must be named"]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a Python test that asks once for each of several targets, unless a conftest says who is asked."""
        names = self.run.settings.targets
        if names and not ASKING.isdisjoint(metafunc.fixturenames) and not is_overridden(metafunc.definition):
            if TARGET_FIXTURE not in metafunc.fixturenames:
                metafunc.fixturenames.append(TARGET_FIXTURE)
            ids = [f"@{name}" for name in names]
            metafunc.parametrize(TARGET_FIXTURE, list(names), ids=ids, indirect=True, scope="session")

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Let `-m "fairness(target='NAME')"` find Python tests as it finds audits."""
        name = name_asked(item)
        if name is not None and item.get_closest_marker("fairness") and not isinstance(item, FairnessItem):
            item.add_marker(pytest.mark.fairness(target=name))

    def probe_items(self, path: Path, file: pytest.Collector) -> list[ProbeItem]:
        """The audit items of a probe file, for each of several targets.

        Args:
            path: the file.
            file: its node, to see whether a conftest says who is asked, which goes before the settings.

        Raises:
            ProbeError: the file has faults, or its name is taken.
        """
        probe = self.run.load(path)
        self.run.targets.require_judge(probe)
        other = self._probes.setdefault(probe.name, path)
        if other != path:
            raise ProbeError(
                f"{self._shown(path)}: there is a probe named {probe.name!r} already, {self._shown(other)}. "
                f"Give one of them another `name:`, as baselines are kept by name."
            )
        return self._of_file(probe, named=not is_overridden(file))

    def _of_file(self, probe: Probe, *, named: bool = True) -> list[ProbeItem]:
        probe_items = items_of(probe, self.run.settings.trials)
        targets = self.run.settings.targets
        if not targets or not named or probe.responses is not None:
            return probe_items
        # One item after the other, so that all targets are busy from the beginning.
        return [probe_item.for_target(name) for probe_item in probe_items for name in targets]

    def _shown(self, path: Path) -> str:
        return relative(path, self.config.rootpath)

    # What an item goes through

    def measure(self, item: FairnessItem) -> tuple[ItemMeasurement, BaselineComparison]:
        """Ask for what all items of the same target need, wait for what this one needs, measure and compare it."""
        try:
            return self._measure(item)
        except NotMeasurable as error:
            if not error.unusable:
                raise
            raise NotMeasurable(f"{error} To read them: {self._export(item.path)}") from error
        except BaselineError as error:
            if not error.remade:
                raise
            raise BaselineError(f"{error} That is: {self._accept(item, item.nodeid.partition('::')[0])}") from error

    def _measure(self, item: FairnessItem) -> tuple[ItemMeasurement, BaselineComparison]:
        asked = item.asked
        item.probe_item.require_models()
        if asked is None:
            return self.run.measure_and_compare(item.probe_item, None, rebaseline=self._rebaseline)
        target = self.asking.target_of(item, asked)
        with self.asking.progress(target):
            measured, before = self.run.measure_and_compare(item.probe_item, target, rebaseline=self._rebaseline)
            return variants.with_variants(self.run.measurer, measured, target), before

    def before(self, measured: ItemMeasurement) -> BaselineComparison:
        """The baseline that the measurement is judged by: the one in the repository, or the one that it will be."""
        return self.run.baselines.new_baseline(measured) if self._rebaseline else self.run.baselines.compare(measured)

    def judge(
        self,
        item: pytest.Item,
        measured: ItemMeasurement,
        before: BaselineComparison,
        siblings: dict[str, bool] | None = None,
    ) -> ItemResult:
        """The verdict, kept for the item's report; `siblings` is as in `FairnessItem`."""
        item.ihook.pytest_fairness_measured(item=item, measurement=measured.measurement)
        result = judge(measured, before, item.nodeid, self._accept(item, item.nodeid))
        more: dict[str, Json] = {"siblings": siblings}
        if self._rebaseline and before.entry is not None and measured.measurement.judgeable:
            rows = ([dict(row.labels), row.trial, row.text, row.judged, row.refused] for row in measured.rows())
            more |= {"entry": before.entry.to_json(), "answers": self.run.store.cache.put_answers(rows)}
        self.attach_result(item, result, measured.item, measured.target, **more)
        return result

    def raise_on_failure(self, result: ItemResult) -> None:
        """Raise `Unfair` where a verdict is a failure; with nothing at hand that a traceback would keep alive."""
        failing = ["failed", "inconclusive"] if self.run.settings.inconclusive == "fail" else ["failed"]
        if result.verdict.name.outcome in failing:
            raise Unfair(result.verdict.reason, failure_text(result.to_json()))

    def _accept(self, item: pytest.Item, nodeid: str) -> str:
        settings = self.run.settings
        options = accept_options(self.config, settings, asks_default=asks_default(item, settings))
        return shlex.join(rebaseline_command([nodeid], options, root_from_here(self.config)) or ())

    def _export(self, path: Path) -> str:
        here, store = self.config.invocation_params.dir, self.run.settings.store
        command = ["python", "-m", "pytest_fairness", "export", os.path.relpath(path, here)]
        if store != here / RunSettings(here).store:
            command += ["--store", os.path.relpath(store, here)]
        return shlex.join(command)

    def check(self, item: pytest.Item, measured: ItemMeasurement) -> ItemResult:
        """The verdict on what a Python test measured.

        Raises:
            Unfair: the verdict is a failure.
            FairnessError: the name is another's, or the baseline cannot be read.
        """
        probe_item, name = measured.item, measured.item.probe.name
        if name in self._probes:
            raise FairnessError(f"fairness_check: {name!r} is the name of the probe {self._shown(self._probes[name])}.")
        other = self._checked.setdefault((name, probe_item.id), item.nodeid)
        if other != item.nodeid:
            raise FairnessError(
                f"fairness_check: {probe_item.id} of {name!r} is checked by {other} already: take another name."
            )
        result = self.judge(item, measured, self.before(measured))
        self.raise_on_failure(result)
        return result

    def attach_result(
        self, item: pytest.Item, result: ItemResult, probe_item: ProbeItem, target: str | None, **more: Json
    ) -> None:
        """Have a result travel on the item's report."""
        item.stash.setdefault(RECORDS, []).append(_record(result, probe_item, target, **more))
        # The checks of one Python test must be told apart.
        prefix = "" if isinstance(item, FairnessItem) else f"{result.probe} {result.id} "
        item.user_properties += [(prefix + name, value) for name, value in junit.properties(result.to_json())]

    # Reporting

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Errors as their message alone, and everything that is known of the item on its report."""
        error = call.excinfo.value if call.excinfo else None
        erred = None if isinstance(error, EXPECTED) else error
        if isinstance(item, FairnessItem) and call.when == "setup" and erred:
            self.attach_result(
                item, error_result(item.probe_item, erred, item.nodeid), item.probe_item, None, siblings=item.siblings
            )
        report = yield
        # Of a time limit's failure too a probe item has no code of the user's to show.
        ours = (FairnessError, pytest.fail.Exception) if isinstance(item, FairnessItem) else (FairnessError, Unfair)
        if call.excinfo and isinstance(error, ours) and not self.config.getoption("fulltrace", False):
            report.longrepr = shown_alone(call.excinfo, item)
        records = item.stash.get(RECORDS, [])
        if call.when == "call" or error:
            # A report holds whatever is put on it, and takes it along to xdist's controller.
            planned = self.run.engines.newly_planned() if hasattr(self.config, "workerinput") else {}
            ran = call.when == "call" and erred is error and is_audit(item)
            vars(report).update(fairness=records, fairness_planned=planned, fairness_ran=ran)
            item.stash[RECORDS] = []
            if call.excinfo is None and _inconclusive(report):
                _neither_passed_nor_failed(report)
        return report

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """A category of its own for what could not be told."""
        if report.when == "call" and report.passed and _inconclusive(report):
            return "inconclusive", "i", ("INCONCLUSIVE", {"yellow": True})
        return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Have an item that took its xdist worker along be reported like any that erred; called on the controller."""
        file, _, name = crashitem.partition("::")
        path = self.config.rootpath / file
        if path.suffix.lower() not in PROBE_SUFFIXES:
            return
        probe = self.run.load(path)
        for probe_item in [*self._of_file(probe), *self._of_file(probe, named=False)]:
            if probe_item.id == name:
                result = error_result(probe_item, FairnessError("the worker that measured it crashed"), crashitem)
                vars(report).update(fairness=[_record(result, probe_item, None)])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Send nothing more, whatever ended the run; the controller's end is that of all workers."""
        if hasattr(self.config, "workerinput"):
            self.run.stop(
                DEFAULT_TIMING.stop_grace if exitstatus == pytest.ExitCode.INTERRUPTED else self.asking.patience
            )
        else:
            with suppress(FairnessError):  # the store is broken: those who wanted something of it have said so
                self.run.stop_all()

    def pytest_unconfigure(self) -> None:
        """Give back what was opened."""
        self.run.close()


def _record(result: ItemResult, probe_item: ProbeItem, target: str | None, **more: Json) -> dict[str, Json]:
    # Through JSON and UTF-8 once: what does not survive these ends the run of an xdist worker.
    record = {"result": result.to_plain(), "baseline": probe_item.baseline_name, "target": target, **more}
    text = json.dumps(record, ensure_ascii=False)
    sendable: dict[str, Json] = json.loads(text.encode("utf-8", "replace"))
    return sendable


def _inconclusive(report: pytest.TestReport) -> bool:
    verdicts = [record["result"]["verdict"]["name"] for record in getattr(report, "fairness", ())]
    return VerdictName.INCONCLUSIVE in verdicts


def _neither_passed_nor_failed(report: pytest.TestReport) -> None:
    """Undo what `xfail` makes of an inconclusive item: that a known bias was not seen does not say that it has gone."""
    report.outcome, report.longrepr = "passed", None
    if hasattr(report, "wasxfail"):
        del report.wasxfail
