"""Hooks that run only once in a run, in the process that the user started: baselines, reports, terminal summary."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.asking.tracker import failure_counts, total_counts
from pytest_fairness.baselines.changes import commit_description, ignoring_pattern
from pytest_fairness.baselines.creep import creep_of, is_shallow
from pytest_fairness.baselines.entries import Entry, Row
from pytest_fairness.baselines.files import Baseline, read_baseline, update_baseline
from pytest_fairness.errors import BaselineError, FairnessError, counted
from pytest_fairness.pytest_integration import item_results
from pytest_fairness.pytest_integration.configuration import (
    accept_options,
    folder_in_repository,
    relative_path,
    root_from_here,
)
from pytest_fairness.pytest_integration.item_results import CollectedRecords, Record
from pytest_fairness.pytest_integration.items import PROBE_SUFFIXES
from pytest_fairness.pytest_integration.planning import DEFAULT, Header
from pytest_fairness.pytest_integration.terminal import GuardedFile, ProgressLine, merged
from pytest_fairness.records import ItemResult, Json, VerdictName
from pytest_fairness.reports import document, files, markdown, terminal
from pytest_fairness.reports.document import RunNote, report_document, reused_answers
from pytest_fairness.reports.formatting import number, printable, without_commands
from pytest_fairness.reports.markdown import github_commands
from pytest_fairness.reports.report_items import rebaseline_command
from pytest_fairness.reports.terminal import Line
from pytest_fairness.run import Run, history
from pytest_fairness.run.history import History
from pytest_fairness.run.nights import expected_failures
from pytest_fairness.targets import serve
from pytest_fairness.version import __version__

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_fairness.targets.shared import TargetServer


INCONCLUSIVE_RUNS = 5
"""Number of runs in a row, this run included, after which a note says that an item stays inconclusive."""
ANNOTATING_PLUGIN = "pytest_github_actions_annotate_failures"
"""Other plugin that annotates the failures of all tests on GitHub."""


class Controller(CollectedRecords):
    """Hooks that collect the records of all items and finish the run; with pytest-xdist, also hooks for its workers.

    Each process plans the requests of all items, but sends only a part of them.
    """

    def __init__(self, config: pytest.Config, run: Run, progress: ProgressLine) -> None:
        super().__init__(run.settings)
        self._config, self._run, self._progress = config, run, progress
        self._reports, self._bundle = report_paths(config), _bundle_path(config)
        self._header = Header()
        self._planned: dict[str, bool] = {}
        """Planned requests of all processes, by key: whether a response was already recorded."""
        self._tests_ran: set[str] = set()
        self._retried = 0.0
        self._document: dict[str, Json] | None = None
        self._lines: list[Line] = []
        self._models: dict[str, TargetServer | None] = {}
        self._header_sender: str | None = None

    def announce(self, header: Header) -> None:
        """Store the header of the run; raise an error if the run must not start."""
        self._header = header
        if header.uses_default_target and self._config.getoption("fairness_rebaseline") and not self._only_collects:
            raise pytest.UsageError(
                "--fairness-rebaseline: no `fairness_target` is set, so the baseline would be made with the bundled "
                "demonstration model. Name the target in the ini file or on the command line, such as "
                f"--fairness-target openai:MODEL, or --fairness-target {self._settings.target} for the demonstration "
                "model."
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, bool | None, bool | None]:
        """Show the progress of all workers while tests run."""
        distributes = getattr(self._config.option, "dist", "no") != "no"
        with self._progress.shown(self._counts_so_far) if distributes else nullcontext():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None]:
        """Remove the progress line while pytest writes the name of a test."""
        with self._progress.hidden():
            yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        """Collect the records of a test report, which may come from any process; then let pytest write the outcome."""
        self.add(report)
        if (ran := getattr(report, "fairness_ran", None)) is not None:
            self._tests_ran.add(ran)
        self._add_planned(getattr(report, "fairness_planned", {}))
        with self._progress.hidden():
            yield
        if getattr(report, "fairness_undecided", None) == VerdictName.INCONCLUSIVE:
            item_results.count_inconclusive(self._config, report)
        vars(report).pop("fairness", None)  # pytest keeps the report until the end of the run

    @pytest.hookimpl(tryfirst=True)  # before pytest writes the JUnit file
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._only_collects:
            return
        config, run, settings = self._config, self._run, self._settings

        by_baseline: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            by_baseline[record["baseline"]].append(record)
        for name, records in sorted(by_baseline.items()):
            with self._attempt(session):
                self._lines += self._write_baseline(name, records)
        counts, results, targets = self._final_counts(), self._results_with_creep(), self.targets
        self._retried = counts.get("retried") or 0
        self._document = report = report_document(
            results,
            tool_version=__version__,
            target=self.target_names(run.targets.description),
            target_version=settings.target_version,
            commit=commit_description(settings.root),
            targets={name: run.targets.named(name).name for name in settings.targets},
            started=run.started,
            seconds=time.time() - run.started,
            requests=counts,
            failures=failure_counts(run.engines.counts_by_owner()),
            oldest_reused=self._oldest_reused() if counts["reused"] else None,
            notes=self._notes_on(session, results),
        )
        item_results.note_reused_answers(config, reused_answers(report))
        if results:
            with self._attempt(session):
                history.store_last_run(run.store, report, targets, settings.trials)
        if results and not settings.replay:
            with self._attempt(session):
                History(run.store).add(report, targets, self._servers())
        with self._attempt(session):
            run.nights.add(record["night"] for record in self.records if "night" in record)
        for path in self._reports:
            with self._attempt(session):
                if path.name.lower().endswith(files.COMMENT):
                    options = self._accept_options(replay=self.answers_to_accept()[0])
                    text = markdown.github_comment(report, options, root_from_here(config))
                    files.write_text(path, text, "--fairness-report")
                    continue
                shows_trends = path.suffix.lower() == ".html" and settings.store.exists()
                trends = History(run.store).trends(targets, self._servers()) if shows_trends else {}
                files.write(report, path, trends, folder_in_repository(config))
        with self._attempt(session):
            markdown.append_step_summary(report)
        if self._bundle is not None and results:
            with self._attempt(session):
                self._lines += self._write_bundle(self._bundle, report)
        config.hook.pytest_fairness_report(report=report, config=config)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> Generator[None]:
        """Show each error message only once while pytest writes its summary."""
        stats = terminalreporter.stats
        errors = stats.get("error", [])
        if errors:
            stats["error"] = merged(errors)
        try:
            return (yield)
        finally:
            if errors:
                stats["error"] = errors

    def write_summary(self, terminalreporter: TerminalReporter) -> None:
        """Show the tables, the top contributors to failures, and the suggested rebaseline command."""
        lines = [*self._lines, Line("")] if self._lines else []
        if self._document is not None:
            needs_replay, rebaseline_requests = self.answers_to_accept()
            lines += terminal.summary(
                self._document,
                terminalreporter._tw.fullwidth,
                options=self._accept_options(replay=needs_replay),
                root=root_from_here(self._config),
                all_items=self.all_items(),
                rebaseline_requests=rebaseline_requests,
                retried=self._retried,
                verbose=self._config.get_verbosity() > 0,
            )
        if lines:
            terminalreporter.write_sep("=", "fairness")
        for line in lines:
            terminalreporter.write_line(line.text, **line.markup)
        self._annotate(terminalreporter)

    def pytest_unconfigure(self) -> None:
        """Unload the models that this process serves.

        Free the records and the report, so that the garbage collections at the end search fewer objects.
        """
        self._document = None
        self._records.clear()
        self._owners.clear()
        for model in self._models.values():
            if model is not None:
                model.close()

    # Workers of pytest-xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the run's identifier, the addresses of the models that this process serves, and a flag.

        The flag says whether the worker must send its header.
        """
        settings = self._settings
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
        self.announce(header or Header())

    # Request counts

    def _add_planned(self, planned: Mapping[str, bool]) -> None:
        for key, recorded in planned.items():
            # A response that one worker records during the run looks recorded to workers that plan later. It was
            # recorded before the run only if all workers found it.
            self._planned[key] = recorded and self._planned.get(key, True)

    def _counts_so_far(self) -> dict[str, float]:
        return total_counts(self._run.engines.counts_by_owner())

    def _final_counts(self) -> dict[str, float | None]:
        # Workers send their planned requests on test reports; without workers, this process has planned all requests.
        self._add_planned(self._run.engines.newly_planned())
        total = self._counts_so_far()
        planned, reused = len(self._planned), sum(self._planned.values())
        if total["planned"] > planned:
            # The run was interrupted before most of these reports arrived.
            planned, reused = int(total["planned"]), int(total["reused"])
        # The answers of batches are recorded before the requests are planned, but were sent by this run.
        reused = min(reused, max(0, planned - int(total["sent"])))
        cost = total["cost"] if "cost" in total and not total["uncounted"] else None
        return {**total, "planned": planned, "reused": reused, "cost": cost}

    def _oldest_reused(self) -> float | None:
        with suppress(FairnessError):
            return self._run.engines.oldest_of(key for key, recorded in self._planned.items() if recorded)
        return None

    # Baselines

    def _write_baseline(self, name: str, records: Sequence[Record]) -> list[Line]:
        """Write the new entries of a baseline, if there are any; return the summary's lines about the baseline.

        Raises:
            BaselineError: there are new entries, but the old files are damaged or the new files cannot be written.
        """
        settings, rebaseline = self._settings, self._config.getoption("fairness_rebaseline")
        folder = settings.baselines
        siblings: Mapping[str, bool] = next((record["siblings"] for record in records if record.get("siblings")), {})
        new = {record["result"]["id"]: record for record in records if record.get("entry")}
        try:
            old = read_baseline(folder, name)
        except BaselineError:
            if new:
                raise
            return []  # each item of the probe has reported the error
        file = records[0]["result"]["nodeid"].partition("::")[0]
        own = {
            item
            for item, entry in (old.items if old else {}).items()
            if entry.file in (None, file) or not (settings.root / entry.file).is_file()
        }
        without_item = sorted(own - set(siblings)) if siblings else []
        is_complete = bool(siblings) and all(skipped or item in new for item, skipped in siblings.items())
        lines = []
        if new:
            update_baseline(
                folder,
                name,
                {item: Entry.from_json(record["entry"]) for item, record in new.items()},
                self._rows(new.values()),
                remove=without_item if is_complete else (),
                keep_answers=settings.baseline_responses,
            )
            written = read_baseline(folder, name)
            for item, entry in (written.items if written else {}).items():
                if item in new:
                    new[item]["result"]["baseline"] = entry.for_reports()
            lines += _entry_lines(name, new, old, written)
            if written and (pattern := ignoring_pattern(written.answers_path)):
                text = f"git ignores {written.answers_path.name} ({pattern}), so other checkouts lack it: commit it"
                lines.append(Line(printable(text), {"yellow": True}))
        if rebaseline:
            lines += _unjudgeable_item_lines(name, [record for record in records if not record.get("entry")])
        command = None
        if not is_complete:
            command = rebaseline_command([file], self._accept_options(), root_from_here(self._config))
        return [*lines, *_orphaned_entry_lines(name, without_item, command)]

    def _rows(self, records: Iterable[Record]) -> list[Row]:
        return [
            Row(labels, trial, text, judged, refused)
            for key in sorted({record["answers"] for record in records})
            for labels, trial, text, judged, refused in self._run.store.cache.get_answers(key)
        ]

    def _write_bundle(self, path: Path, report: Mapping[str, Json]) -> list[Line]:
        from pytest_fairness.run.bundle import Mode, RecordedItem, RecordedTarget, write_bundle

        getoption = self._config.getoption
        items = [
            RecordedItem(
                record["result"]["nodeid"],
                record["result"]["id"],
                RecordedTarget(record["target"] or "", record["identity"]) if "identity" in record else None,
            )
            for record in self.records
        ]
        mode: Mode = "baselines" if getoption("fairness_rebaseline") else "verdicts"
        if getoption("fairness_measure"):
            mode = "measurements"
        problems = write_bundle(path, report, items, self._run, mode)
        text = f"wrote {path}. Check it with: {shlex.join(['python', '-m', 'pytest_fairness', 'verify', str(path)])}"
        return [*(Line(f"bundle: {problem}", {"yellow": True}) for problem in problems), Line(text)]

    # Parts of the end

    @property
    def _only_collects(self) -> bool:
        return bool(self._config.getoption("collectonly") or self._config.getoption("setuponly", False))

    @contextmanager
    def _attempt(self, session: pytest.Session) -> Iterator[None]:
        """Return a context for what can fail (full disk, damaged file); report a failure and continue."""
        try:
            yield
        except FairnessError as error:
            line = Line(str(error), {"red": True})
            if line in self._lines:  # an earlier action met the same obstacle, such as a server that is away
                return
            self._lines.append(line)
            if self._config.pluginmanager.get_plugin("terminalreporter") is None:
                sys.stderr.write(without_commands(f"{error}\n"))
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _annotate(self, terminalreporter: TerminalReporter) -> None:
        plugins = self._config.pluginmanager
        if os.environ.get("GITHUB_ACTIONS") == "true" and not plugins.has_plugin(ANNOTATING_PLUGIN):
            file = terminalreporter._tw._file
            if self._document is not None and isinstance(file, GuardedFile):
                file.write_commands(github_commands(self._document, folder_in_repository(self._config)))

    def _notes_on(self, session: pytest.Session, results: Sequence[ItemResult]) -> list[RunNote]:
        """Return the notes on the run; if no test failed, also set the session's exit code.

        The exit code becomes `NO_TESTS_COLLECTED` if no audit ran and no other test was collected; if not, it becomes
        `TESTS_FAILED` if a note makes the run fail.
        """
        if self._settings.shard is not None:
            return [document.on_shard(str(self._settings.shard))]
        if self._settings.batch_submit:
            return [document.ON_BATCHES]
        asked_default = self._header.uses_default_target and bool(results or self._tests_ran)
        notes = [RunNote("default-target", f"{DEFAULT.format('audited')}.")] if asked_default else []
        judged = [result for result in results if result.verdict.name.outcome != "error"]
        tests_without_result = self._tests_ran - {result.nodeid for result in results}
        ran = len(judged) + len(tests_without_result)
        here = self._config.invocation_params.dir
        on_number = document.on_number_of_audits(
            ran,
            selected=self._header.audits,
            errors=len(results) - len(judged),
            min_audits=self._settings.min_audits,
            folders=", ".join(str(relative_path(path, here)) for path in self._settings.probes),
            ended_early=session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED),
        )
        notes += [on_number] if on_number else []
        notes += [RunNote("data-file", f"{text}.") for text in self._header.file_notes]
        notes += document.on_answer_files(results)
        notes += document.on_extra_fields(results)
        notes += document.on_limits(results)
        day = datetime.fromtimestamp(self._run.started, UTC).date().isoformat()
        notes += document.on_reviews(results, day, fails="review" in self._settings.fail_on)
        notes += self._on_orphans(results) if judged and not self._config.getoption("fairness_measure") else []
        notes += document.on_creep(results, fails=self._settings.creep == "fail")
        if self._settings.creep == "fail" and any(result.baseline for result in results):
            notes += [document.on_unknown_creep()] if is_shallow(self._settings.baselines) else []
        notes += document.on_shared_changes(results, fails="level_change" in self._settings.fail_on)
        notes += [RunNote("history", text) for text in self._on_history(judged)]
        notes += self._on_inconclusive_runs(
            [result for result in judged if result.verdict.name is VerdictName.INCONCLUSIVE]
        )
        if session.exitstatus == pytest.ExitCode.OK:
            if not ran and session.testscollected <= self._header.audits:
                session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
            elif any(note.fails for note in notes):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return notes

    def _results_with_creep(self) -> list[ItemResult]:
        """Return the results, each with the sum of the accepted changes of its baseline."""
        if self._config.getoption("fairness_measure"):
            return self.results
        keys = [(record["baseline"], record["result"]["id"]) for record in self.records]
        current: dict[tuple[str, str], Entry] = {}
        for name in {name for name, _ in keys}:
            with suppress(BaselineError):  # the items of the probe have reported the error
                baseline = read_baseline(self._settings.baselines, name)
                current |= {(name, item): entry for item, entry in (baseline.items if baseline else {}).items()}
        known = creep_of(self._settings.baselines, current) if current else {}
        return [replace(result, creep=known.get(key)) for key, result in zip(keys, self.results, strict=True)]

    def _on_history(self, judged: Sequence[ItemResult]) -> list[str]:
        items = [
            (result.comparison.standard_error, result.tolerance, 1 / result.runs.needed)
            for result in judged
            if result.runs and result.comparison
        ]
        text = expected_failures(items, used=True)
        return [*self._run.nights.notes(), *([f"{text}."] if text else [])]

    def _on_orphans(self, results: Sequence[ItemResult]) -> list[RunNote]:
        fails, folder, base = "orphans" in self._settings.fail_on, self._settings.baselines, self._run.base
        if base is not None:
            renamed = base.renamed((result.nodeid.partition("::")[0], result.id) for result in results)
            removed = self._orphans(base.folder, renamed)
            return document.on_base(base.name, results, removed, empty=base.is_empty, fails=fails)
        if self._config.getini("fairness_baselines") and not folder.exists():
            return [document.on_missing_folder(folder.name, fails=fails)]
        return document.on_orphans(self._orphans(folder), fails=fails)

    def _orphans(self, folder: Path, renamed: Collection[tuple[str, str]] = ()) -> list[str]:
        """Return the baselines that belong to no item, as `probe: item`, or as `probe` if no item is left.

        The `renamed` ones, by name and item, belong to an item of another name. An entry of a probe file that this run
        did not select is not judged. A baseline whose probe file is gone belongs to the probe of the same name, if
        there is one.
        """
        settings, all_targets = self._settings, not self._config.getoption("fairness_target")
        known: dict[str, set[str]] = defaultdict(set)
        for name, item in renamed:
            known[name].add(item)
        files = set()
        for record in self.records:
            known[record["baseline"]] |= {record["result"]["id"], *(record.get("siblings") or ())}
            files.add(record["result"]["nodeid"].partition("::")[0])
        names = cache(self._probe_names)

        def is_lost(name: str, probe: str, file: str) -> bool:
            """Return whether no item is left for an entry of this file: its probe was read, or the file is gone."""
            if (settings.root / file).is_file():
                return file in files and not file.endswith(
                    ".py"
                )  # of a test file, only some tests may have been selected
            return name in known or probe not in names()

        found = []
        for path in sorted(folder.glob("*.json")):
            name, probe, target = path.stem, *path.stem.rpartition("@")[::2]
            try:
                baseline = read_baseline(folder, name)
            except BaselineError:  # the items of the probe report the error
                continue
            if baseline is None or (probe and target not in settings.targets and not all_targets):
                continue
            of_probe = {f"{probe}@{each}" for each in settings.targets}
            if name in of_probe - known.keys() and of_probe & known.keys():
                continue  # the run has selected items of other targets only
            lost = (item for item in sorted(baseline.items.items()) if item[0] not in known.get(name, ()))
            without = [item for item, entry in lost if entry.file and is_lost(name, probe or name, entry.file)]
            found += [name] if len(without) == len(baseline.items) else [f"{name}: {item}" for item in without]
        return found

    def _probe_names(self) -> set[str]:
        names = set()
        for folder in self._settings.probes:
            for path in (folder, *folder.rglob("*")):
                if path.suffix.lower() in PROBE_SUFFIXES:
                    names.add(path.stem)
                    with suppress(FairnessError):
                        names.add(self._run.load(path).name)
        return names

    def _on_inconclusive_runs(self, results: Sequence[ItemResult]) -> list[RunNote]:
        if not results:
            return []
        targets = self.targets
        target_of = {(result.probe, result.id): targets[result.probe, result.id] for result in results}
        with suppress(FairnessError):  # the items that need the store have reported the error
            # The current run counts, too, but is not in the history yet.
            open_items = History(self._run.store).always_inconclusive(target_of, INCONCLUSIVE_RUNS - 1)
            return document.on_inconclusive_runs(
                [result for result in results if (result.probe, result.id) in open_items],
                INCONCLUSIVE_RUNS,
                fails="inconclusive_runs" in self._settings.fail_on,
            )
        return []

    def _servers(self) -> dict[str, str]:
        """Return the addresses of the targets in the settings, by target name.

        A target is left out if it has no server, or if its name contains the address.
        """
        targets = [self._run.targets.named(name) for name in self._settings.targets or (None,)]
        return {target.name: address for target in targets if (address := getattr(target, "address", None)) is not None}

    def _accept_options(self, *, replay: bool = False) -> list[str]:
        return accept_options(
            self._config, self._settings, uses_default_target=self._header.uses_default_target, replay=replay
        )


def report_paths(config: pytest.Config) -> list[Path]:
    """Return the paths of `--fairness-report`; raise `pytest.UsageError` if a format cannot be written."""
    paths = [config.invocation_params.dir / path for path in config.getoption("fairness_report")]
    for path in paths:
        try:
            files.require_writable(path)
        except FairnessError as error:
            raise pytest.UsageError(str(error)) from error
    return paths


def _bundle_path(config: pytest.Config) -> Path | None:
    written: str | None = config.getoption("fairness_bundle")
    if written is None:
        return None
    if not written.lower().endswith(".zip"):
        raise pytest.UsageError(f"--fairness-bundle {written}: the name must end in .zip. Write {written}.zip.")
    for option in ("fairness_shard", "fairness_batch"):
        if config.getoption(option) not in (None, "wait", "collect"):
            raise pytest.UsageError("--fairness-bundle needs verdicts, which this run does not give. Leave it out.")
    if config.getoption("fairness_against") is not None:
        raise pytest.UsageError(
            "--fairness-bundle holds the baselines of the working tree, but --fairness-against judges by others. Make "
            "the bundle without --fairness-against."
        )
    return config.invocation_params.dir / written


# Lines about new baselines in the terminal summary.


def _entry_lines(name: str, records: Mapping[str, Record], old: Baseline | None, new: Baseline | None) -> list[Line]:
    """Return lines about the new entries of a baseline: old and new value of each changed entry.

    `records` has the items with new entries, by id; `old` and `new` are the baseline before and after the entries were
    written. Unchanged entries are only counted.
    """
    before = old.items if old else {}
    after = {item: entry for item, entry in (new.items if new else {}).items() if item in records}
    changed = {item: entry for item, entry in sorted(after.items()) if entry != before.get(item)}
    unchanged = [Line(f"{counted(len(after) - len(changed), 'baseline')} of {printable(name)} unchanged")]
    if not changed:
        return unchanged
    lines = [Line(f"new baselines of {printable(name)}:")]
    for item, entry in changed.items():
        was = number(before[item].value) if item in before else "none"
        lines.append(Line(f"  {printable(item)}: {was} -> {number(entry.value)}{_run_to_run_phrase(records[item])}"))
    return [*lines, *(unchanged if len(changed) < len(after) else [])]


def _unjudgeable_item_lines(name: str, records: Sequence[Record]) -> list[Line]:
    results = [ItemResult.from_json(record["result"]) for record in records]
    return [
        Line(
            f"no baseline written for {printable(result.id)} of {printable(name)}: "
            f"{printable(result.measurement.concerns[0].message)}",
            {"yellow": True},
        )
        for result in results
        if result.measurement is not None and not result.measurement.judgeable
    ]


def _run_to_run_phrase(record: Record) -> str:
    """Return a phrase with the standard deviation between runs; an empty text if the standard deviation is unknown.

    The phrase also suggests a larger tolerance if the tolerance is below two standard deviations.
    """
    spread = record["entry"].get("run_to_run")
    if spread is None:
        return ""
    least, tolerance = 2 * spread["sd"], record["result"]["tolerance"]
    advice = (
        "" if tolerance >= least else f"; the tolerance {number(tolerance)} is too small, {number(least)} is enough"
    )
    return f" (standard deviation between {spread['runs']} runs {number(spread['sd'])}{advice})"


def _orphaned_entry_lines(name: str, entries: Sequence[str], command: Sequence[str] | None) -> list[Line]:
    """Return lines about a baseline's entries whose items no longer exist."""
    if not entries:
        return []
    text = f"baselines of {printable(name)} that belong to no item of the probe: {', '.join(map(printable, entries))}"
    if command is None:
        return [Line(f"{text} (removed)", {"yellow": True})]
    return [
        Line(f"{text}. To remove them, rebaseline the whole probe:", {"yellow": True}),
        Line(shlex.join(command)),
    ]
