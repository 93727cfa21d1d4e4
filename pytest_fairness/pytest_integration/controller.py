"""What is done once for a whole run, by the process that the user started: baselines, reports, the summary."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.asking.request_counts import RequestCounts, failure_counts, total_counts
from pytest_fairness.baselines import files
from pytest_fairness.baselines.answers import Row
from pytest_fairness.errors import BaselineError, FairnessError
from pytest_fairness.pytest_integration.accept_options import accept_options
from pytest_fairness.pytest_integration.configuration import report_paths, root_from_here
from pytest_fairness.pytest_integration.header import DEFAULT, Header
from pytest_fairness.pytest_integration.items import name_in_junit, show_names_as_they_are
from pytest_fairness.pytest_integration.progress import ProgressLine, WorkersProgress
from pytest_fairness.records import ItemResult, Json, VerdictName
from pytest_fairness.reports import files as reports
from pytest_fairness.reports import run_notes, step_summary
from pytest_fairness.reports.document import report_document
from pytest_fairness.reports.formatting import number, printable, without_commands
from pytest_fairness.reports.report_items import target_name
from pytest_fairness.reports.run_notes import RunNote
from pytest_fairness.reports.shell_commands import rebaseline_command
from pytest_fairness.reports.terminal import summary
from pytest_fairness.run import Run
from pytest_fairness.run.history import History
from pytest_fairness.targets import serve
from pytest_fairness.version import __version__

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_fairness.targets.shared_target import TargetServer

Record = Mapping[str, Json]
"""One result with what the controller needs to know beyond it; see `FairnessSession.keep`."""


class Controller:
    """Collects every item's record, and finishes the run."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._run = run
        self._config = config
        self._settings = run.settings
        self._reports = report_paths(config)
        if self._settings.targets:
            show_names_as_they_are(config)
        self._header = Header()
        self._tests_ran: set[str] = set()
        self._records: dict[tuple[str, str, str], Record] = {}
        self._planned: dict[str, bool] = {}
        self._retried = 0.0
        self._document: dict[str, Json] | None = None
        self._notes: list[summary.Line] = []
        self._models: dict[str, TargetServer | None] = {}
        self._informant: str | None = None
        if hasattr(config.option, "dist") and config.option.dist != "no":
            workers = WorkersProgress(ProgressLine(config), self._tallied)
            config.pluginmanager.register(workers, "fairness-workers-progress")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the records off a report, whichever process made it."""
        if self._settings.targets and hasattr(report, "fairness"):
            name_in_junit(self._config, report)
        for record in getattr(report, "fairness", ()):
            result = record["result"]
            self._records[result["nodeid"], result["probe"], result["id"]] = record
        if getattr(report, "fairness_ran", False):
            self._tests_ran.add(report.nodeid)
        self._note_planned(getattr(report, "fairness_planned", {}))

    def _note_planned(self, planned: Mapping[str, bool]) -> None:
        for key, recorded in planned.items():
            # Workers find recorded what another one has just asked.
            self._planned[key] = recorded and self._planned.get(key, True)

    def announce(self, header: Header) -> None:
        """Take note of whom the selected items ask.

        Raises:
            pytest.UsageError: a baseline would be made of a target that nobody named.
        """
        self._header = header
        sends = not (self._config.getoption("collectonly") or self._config.getoption("setuponly", False))
        if sends and header.asks_default and self._config.getoption("fairness_rebaseline"):
            raise pytest.UsageError(
                "--fairness-rebaseline: no `fairness_target` is set, and a baseline of the bundled demonstration model "
                "says nothing of yours. Name who is audited, in the ini or by an option: --fairness-target "
                f"{self._settings.target} for that model, --fairness-target openai:MODEL and the like for another."
            )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write baselines and reports."""
        if self._config.getoption("collectonly") or self._config.getoption("setuponly", False):
            return
        by_baseline: dict[str, list[Record]] = defaultdict(list)
        for record in self._records.values():
            by_baseline[record["baseline"]].append(record)
        for baseline in sorted(by_baseline):
            self._attempt(session, self._finish_probe, baseline, by_baseline[baseline])
        counts = self._counts()
        self._retried = counts.get("retried") or 0
        results = [ItemResult.from_plain(record["result"]) for record in self._records.values()]
        self._document = report_document(
            results,
            tool_version=__version__,
            target=self._asked(),
            targets={name: self._run.targets.named(name).name for name in self._settings.targets},
            started=self._run.started,
            seconds=time.time() - self._run.started,
            requests=counts,
            failures=failure_counts(self._request_counts()),
            oldest_reused=self._oldest_reused(),
            notes=self._notes_on(session, results),
        )
        if not self._settings.replay:
            self._attempt(session, self._keep, self._document)
        for path in self._reports:
            self._attempt(session, self._write, self._document, path)
        self._attempt(session, step_summary.append, self._document)
        self._config.hook.pytest_fairness_report(report=self._document, config=self._config)

    # The header and its counts

    def _notes_on(self, session: pytest.Session, results: Sequence[ItemResult]) -> list[RunNote]:
        """Return what must be known of the run, and set the exit code by it where nothing has failed."""
        asked_default = self._header.asks_default and bool(results or self._tests_ran)
        found = [RunNote("default-target", f"{DEFAULT.format('audited')}.")] if asked_default else []
        judged = [result for result in results if result.verdict.name.outcome != "error"]
        by_test = self._tests_ran - {result.nodeid for result in results}
        ran = len(judged) + len(by_test)
        number = run_notes.on_number_of_audits(
            ran,
            selected=self._header.audits,
            errors=len(results) - len(judged),
            min_audits=self._settings.min_audits,
            folders=", ".join(
                os.path.relpath(path, self._config.invocation_params.dir) for path in self._settings.probes
            ),
            ended_early=session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED),
        )
        found += [number] if number else []
        found += self._on_inconclusive_runs(
            [result for result in judged if result.verdict.name is VerdictName.INCONCLUSIVE]
        )
        if session.exitstatus == pytest.ExitCode.OK:
            if not ran and session.testscollected <= self._header.audits:
                session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
            elif any(note.fails for note in found):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return found

    def _on_inconclusive_runs(self, results: Sequence[ItemResult]) -> list[RunNote]:
        if not results:
            return []
        settings, targets = self._settings, self._targets()
        asked = {(result.probe, result.id): targets[result.probe, result.id] for result in results}
        with suppress(FairnessError):  # a broken store: whoever wanted something of it has said so
            # This run is the last of them, and is not kept yet.
            open_items = History(self._run.store).always_inconclusive(asked, settings.inconclusive_history - 1)
            return run_notes.on_inconclusive_runs(
                [result for result in results if (result.probe, result.id) in open_items],
                settings.inconclusive_history,
                fails=settings.inconclusive_runs == "fail",
            )
        return []

    def _oldest_reused(self) -> float | None:
        with suppress(FairnessError):
            return self._run.engines.oldest_of(key for key, recorded in self._planned.items() if recorded)
        return None

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """The tables, what drove the failures, and the command that accepts the changes."""
        lines = list(self._notes)
        if self._document is not None:
            lines += summary.summary(
                self._document,
                terminalreporter._tw.fullwidth,
                options=self._accept_options(),
                root=root_from_here(self._config),
                retried=self._retried,
            )
        if lines:
            terminalreporter.write_sep("=", "fairness")
        for line in lines:
            terminalreporter.write_line(line.text, **line.markup)

    def _attempt(self, session: pytest.Session, action: Any, *arguments: Any) -> None:
        """Do what can fail on a full disk or a broken file, so that the rest is done all the same."""
        try:
            action(*arguments)
        except FairnessError as error:
            self._notes.append(summary.Line(str(error), {"red": True}))
            if self._config.pluginmanager.get_plugin("terminalreporter") is None:
                sys.stderr.write(without_commands(f"{error}\n"))
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _keep(self, document: Mapping[str, Json]) -> None:
        if document["items"]:
            History(self._run.store).add(document, self._targets())

    def _write(self, document: Mapping[str, Json], path: Path) -> None:
        trends: reports.Trends = {}
        if path.suffix.lower() == ".html" and self._settings.store.exists():
            trends = History(self._run.store).trends(self._targets())
        reports.write(document, path, trends)

    def _asked(self) -> str:
        """Who was asked: targets by their names, and whoever else a conftest named."""
        names = self._settings.targets
        others = {
            record["target"] for record in self._records.values() if target_name(record["result"]["id"]) not in names
        }
        found = sorted(others - {None})
        return (
            ", ".join([self._run.targets.description, *found])
            if names
            else ", ".join(found) or self._run.targets.description
        )

    def _targets(self) -> dict[tuple[str, str], str]:
        """Who was asked for each item that got so far."""
        return {
            (probe, item): record["target"]
            for (_, probe, item), record in self._records.items()
            if record["target"] is not None
        }

    def _accept_options(self) -> list[str]:
        return accept_options(self._config, self._settings, asks_default=self._header.asks_default)

    def _counts(self) -> dict[str, float | None]:
        """The requests of all processes: each plans the same, but for what its Python tests ask, and sends a part."""
        # Without workers, of this process; their keys are kept by nobody else meanwhile.
        self._note_planned(self._run.engines.newly_planned())
        total = self._tallied()
        planned, reused = len(self._planned), sum(self._planned.values())
        if total["planned"] > planned:
            # A run that is cut short ends before most reports that say what was planned.
            planned, reused = int(total["planned"]), int(total["reused"])
        cost = total["cost"] if "cost" in total and not total["uncounted"] else None
        return {**total, "planned": planned, "reused": reused, "cost": cost}

    def _tallied(self) -> dict[str, float]:
        """What all processes have counted so far."""
        return total_counts(self._request_counts())

    def _request_counts(self) -> dict[str, RequestCounts]:
        if self._settings.store.exists():
            with suppress(FairnessError):  # a broken store: whoever wanted something of it has said so
                return self._run.store.runs.request_counts(self._run.id)
        return {}

    # Baselines

    def _finish_probe(self, probe: str, records: Sequence[Record]) -> None:
        folder = self._settings.baselines
        siblings: Mapping[str, bool] = next((record["siblings"] for record in records if record.get("siblings")), {})
        rebaselined = {record["result"]["id"]: record for record in records if record.get("entry")}
        try:
            old = files.read(folder, probe)
        except BaselineError:
            if rebaselined:
                raise
            return  # each of the probe's items has said so already
        gone = sorted(set(old.items) - set(siblings)) if old and siblings else []
        whole = bool(siblings) and all(skipped or item in rebaselined for item, skipped in siblings.items())
        if rebaselined:
            # Items that stand on the same answers hand them over once.
            rows = [
                Row(labels, trial, text, judged, refused)
                for digest in sorted({record["answers"] for record in rebaselined.values()})
                for labels, trial, text, judged, refused in self._run.store.cache.get_answers(digest)
            ]
            files.update(
                folder,
                probe,
                {item: files.Entry.from_json(record["entry"]) for item, record in rebaselined.items()},
                rows,
                remove=gone if whole else (),
                keep_answers=self._settings.baseline_responses,
            )
            self._notes += _written(probe, rebaselined, old)
        if self._config.getoption("fairness_rebaseline"):
            self._notes += _not_written(probe, [record for record in records if not record.get("entry")])
        file = records[0]["result"]["nodeid"].partition("::")[0]
        cure = None if whole else rebaseline_command([file], self._accept_options(), root_from_here(self._config))
        self._notes += _gone(probe, gone, cure)

    # xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what must be the same in all of them, and where the models of this machine are."""
        for target in self._settings.targets.values() or [self._settings.target]:
            if target not in self._models:
                self._models[target] = serve(target, self._settings)
        # Any one of them can tell what all of them have collected.
        node.workerinput["fairness_header"] = self._informant is None
        self._informant = self._informant or node.gateway.id
        node.workerinput["fairness"] = {
            "started": self._run.started,
            "addresses": {target: model.address for target, model in self._models.items() if model is not None},
            "run": list(self._run.id),
        }

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """Show the header that a worker has sent."""
        if node.gateway.id != self._informant:
            return
        found = None
        with suppress(FairnessError):
            found = Header.receive(self._run)
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            for line in found.lines if found else ["fairness: no audit is selected"]:
                reporter.write_line(line)
        self.announce(found or Header())

    def pytest_unconfigure(self) -> None:
        """Unload the models."""
        for model in self._models.values():
            if model is not None:
                model.close()


def _written(probe: str, records: Mapping[str, Record], old: files.Baseline | None) -> list[summary.Line]:
    lines = [summary.Line(f"new baselines of {printable(probe)}:")]
    for item, record in sorted(records.items()):
        before = old.items.get(item) if old else None
        was = number(before.value) if before else "none"
        lines.append(summary.Line(f"  {printable(item)}: {was} -> {number(record['entry']['value'])}{_spread(record)}"))
    return lines


def _not_written(probe: str, records: Sequence[Record]) -> list[summary.Line]:
    """Return lines on the items that were measured, but from answers that no verdict can rest on."""
    results = [ItemResult.from_plain(record["result"]) for record in records]
    return [
        summary.Line(
            f"no baseline written for {printable(result.id)} of {printable(probe)}: "
            f"{printable(result.measurement.concerns[0].message)}",
            {"yellow": True},
        )
        for result in results
        if result.measurement is not None and not result.measurement.judgeable
    ]


def _spread(record: Record) -> str:
    """How far the value moves by itself, where enough trials were asked for to know."""
    spread = record["entry"].get("run_to_run")
    if spread is None:
        return ""
    least, tolerance = 2 * spread["sd"], record["result"]["tolerance"]
    advice = "" if tolerance >= least else f"; a tolerance of {number(tolerance)} is too narrow, {number(least)} is not"
    return f" (run to run {number(spread['sd'])}, over {spread['runs']} runs{advice})"


def _gone(probe: str, items: Sequence[str], cure: Sequence[str] | None) -> list[summary.Line]:
    """Entries that no item has any more, and the command that removes them, where they are not removed."""
    if not items:
        return []
    text = f"baselines of {printable(probe)} without an item: {', '.join(map(printable, items))}"
    if cure is None:
        return [summary.Line(f"{text} (removed)", {"yellow": True})]
    return [
        summary.Line(f"{text}. To remove them, rebaseline the whole probe:", {"yellow": True}),
        summary.Line(shlex.join(cure)),
    ]
