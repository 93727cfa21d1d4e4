"""Commands on answers: `measure` and `export`."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness import commands
from pytest_fairness.commands import add_table_arguments, replay_run, replay_settings, write
from pytest_fairness.commands.impact import add_impact_arguments, is_impact, run_impact
from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import age, cut, printable
from pytest_fairness.version import __version__

if TYPE_CHECKING:
    from pytest_fairness.probes import Probe
    from pytest_fairness.records import ItemResult
    from pytest_fairness.run import Run


def add_measure_arguments(parser: argparse.ArgumentParser) -> None:
    from pytest_fairness.audits.registry import AUDITS, NEED_SETTINGS

    parser.add_argument("answers", type=Path, metavar="FILE", help="CSV or JSON Lines file with one answer per row")
    parser.add_argument("--group", metavar="COLUMN", help="column with the group of each answer")
    parser.add_argument("--unmarked", metavar="GROUP", help="group that the other groups are compared with")
    parser.add_argument(
        "--marked",
        action="append",
        default=[],
        metavar="GROUP",
        help="group to compare with the `--unmarked` group; may be repeated (default: all other groups)",
    )
    parser.add_argument("--text", metavar="COLUMN", help="column with the text of each answer")
    parser.add_argument(
        "--strata",
        action="append",
        default=[],
        metavar="COLUMN",
        help="compare only answers with the same value in this column, such as the prompt; may be repeated",
    )
    parser.add_argument(
        "--audit",
        action="append",
        default=[],
        choices=[name for name in AUDITS["generation"] if name not in NEED_SETTINGS],
        help="audit to run; may be repeated (default: all)",
    )
    parser.add_argument(
        "--write-probe",
        type=Path,
        metavar="FILE",
        help="write to FILE a probe that measures the same numbers as this command",
    )
    parser.add_argument(
        "--report",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="write a report to FILE, which ends in .json, .html or .md; may be repeated",
    )
    add_table_arguments(parser)
    add_impact_arguments(parser)


def run_measure(arguments: argparse.Namespace) -> None:
    """Measure how the answers in a file differ between groups, without a probe, a baseline or a verdict.

    For each audit, print the estimate with its 95 % confidence interval, the p-value, and the effect size as a number
    and in words. With --impact-ratio, write the summary of a bias audit of applicants.
    """
    if is_impact(arguments):
        run_impact(arguments)
        return
    from pytest_fairness.probes import table
    from pytest_fairness.reports import files
    from pytest_fairness.reports.document import RunNote, on_answer_files, report_document
    from pytest_fairness.reports.tables import measurement_table, require_writable
    from pytest_fairness.reports.terminal import measured_summary
    from pytest_fairness.run import Run
    from pytest_fairness.run.answer_files import AnswerFile
    from pytest_fairness.run.history import History, store_last_run, words_of_file

    started = time.time()
    for path in arguments.report:
        files.require_writable(path, "--report")
    for path in filter(None, (arguments.measurements, arguments.words)):
        require_writable(path)
    given = AnswerFile(
        path=arguments.answers,
        group=arguments.group,
        unmarked=arguments.unmarked,
        marked=arguments.marked,
        text=arguments.text,
        strata=arguments.strata,
        audits=arguments.audit,
    )
    found = given.probe(arguments.write_probe)
    if arguments.write_probe is not None:
        _write_probe(arguments.write_probe, found.text)
    with Run(replace(RunSettings(root=Path.cwd()), store=commands.configured_store())) as run:
        results = list(_results(run, found.probe, str(arguments.write_probe or arguments.answers)))
        document = report_document(
            results,
            tool_version=__version__,
            target=str(arguments.answers),
            started=started,
            seconds=time.time() - started,
            requests={"sent": 0, "reused": 0},
            notes=[RunNote("data-file", f"{arguments.answers} {note}.") for note in table.notes(arguments.answers)]
            + on_answer_files(results),
        )
        store_last_run(run.store, document, {}, None)
        History(run.store).add(document, {})
    for line in measured_summary(document, shutil.get_terminal_size().columns):
        print(line.text)
    for path in arguments.report:
        files.write(document, path, {}, option="--report")
        print(f"wrote {path}")
    if arguments.measurements is not None:
        measurement_table(document).write(arguments.measurements)
        print(f"wrote {arguments.measurements}")
    if arguments.words is not None:
        words_of_file(document, found.probe).write(arguments.words)
        print(f"wrote {arguments.words}")
    if arguments.write_probe is not None:
        print(f"wrote {arguments.write_probe}. To measure the same numbers with this probe, run:")
        print(shlex.join(["pytest", "--fairness-measure", str(arguments.write_probe)]))
    if failed := sum(result.measurement is None for result in results):
        text = f"{failed} of {counted(len(results), 'item')} could not be measured; the reasons are above."
        raise FairnessError(f"{text} {_remedy(arguments, results, found.columns)}")


def _remedy(arguments: argparse.Namespace, results: Sequence[ItemResult], columns: Sequence[str]) -> str:
    groups = [next(iter(result.labels.values())) for result in results]
    measured = dict.fromkeys(
        group for group, result in zip(groups, results, strict=True) if result.measurement is not None
    )
    if measured.keys() != {*groups} and measured:
        lost = ", ".join(repr(group) for group in dict.fromkeys(groups) if group not in measured)
        others = shlex.join(part for group in measured for part in ("--marked", group))
        return f"To leave out {lost}, add {others}."
    used = {arguments.group, arguments.text, *arguments.strata}
    others = ", ".join(repr(column) for column in columns if column not in used)
    more = f"; the other columns are {others}" if others else ""
    return f"Check that --text names the column of the answers: it names {arguments.text!r}{more}."


def _results(run: Run, probe: Probe, file: str) -> Iterator[ItemResult]:
    """Measure the items; a line on the terminal says which one, and about how long the others will take."""
    from pytest_fairness.run import error_result, items_of, measured_only

    items, started = items_of(probe), time.monotonic()
    for place, item in enumerate(items):
        if sys.stderr.isatty():
            left = (time.monotonic() - started) / place * (len(items) - place) if place else 0
            estimate = f", about {age(left)} left" if place else ""
            line = printable(f"measuring {place + 1} of {len(items)}: {item.id}{estimate}")
            print(f"\r\033[K{cut(line, shutil.get_terminal_size().columns - 1)}", end="", file=sys.stderr, flush=True)
        nodeid = f"{file}::{item.id}"
        try:
            yield measured_only(run.measurer.measure(item, None), nodeid)
        except FairnessError as error:
            yield error_result(item, error, nodeid)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _write_probe(path: Path, text: str) -> None:
    if path.suffix not in (".yaml", ".yml"):
        raise FairnessError(
            f"--write-probe {path}: the name of a probe file must end in .yaml or .yml. Change the name."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise FairnessError(
            f"{path}: the file exists and stays unchanged. Choose another name, or delete the file."
        ) from None
    except OSError as error:
        raise FairnessError(f"{path}: cannot be written ({error.strerror}). Name another file.") from error


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    commands.add_recorded_arguments(
        parser,
        source="probe file; with --measurements or --words, a probe file or a JSON report (default: the last run)",
    )
    add_table_arguments(parser)


def run_export(arguments: argparse.Namespace) -> None:
    """Write the recorded answers of a probe as JSON Lines, or tables of the measurements and words of a run."""
    if arguments.measurements is not None or arguments.words is not None:
        _write_tables(arguments)
    elif arguments.probe is None or arguments.probe.suffix == ".json":
        raise FairnessError(
            "export: the command does not say what to export. Name a probe file to export its recorded answers, or "
            "give --measurements FILE or --words FILE to export tables of the last run."
        )
    else:
        write([json.dumps(line) + "\n" for line in _answers(arguments)], arguments.output)


def _write_tables(arguments: argparse.Namespace) -> None:
    from pytest_fairness.reports.tables import measurement_table, require_writable
    from pytest_fairness.run.history import is_of_probe_file, words_of_run

    for path in filter(None, (arguments.measurements, arguments.words)):
        require_writable(path)
    document = _document(arguments)
    described = f"the run of {document['started']} against {document['target']}"
    if arguments.measurements is not None:
        measurement_table(document).write(arguments.measurements)
        _print_to_stderr(f"{arguments.measurements}: {len(document['items'])} items of {described}")
    if arguments.words is not None:
        found = words_of_run(document, replay_settings(arguments))
        found.write(arguments.words)
        _print_to_stderr(f"{arguments.words}: {len(found)} rows for the words of {described}")
        if any(not is_of_probe_file(item) for item in document["items"]):
            _print_to_stderr(
                "left out: words of items without a probe file. In a Python test, call corpus.jsd(...).words(); of a "
                "file of answers, use `measure` with --words FILE."
            )


def _document(arguments: argparse.Namespace) -> Mapping[str, Json]:
    """Return the report document from which the tables are made: a JSON report, or that of the last run.

    With a probe file, it has only the items of this probe. `--target`, if given, replaces the key `target` of each
    item.

    Raises:
        FairnessError: the report cannot be read, no run is stored, or the last run had no item of the probe.
    """
    from pytest_fairness.asking.store import Store
    from pytest_fairness.reports import files
    from pytest_fairness.run.history import last_run

    source: Path | None = arguments.probe
    if source is not None and source.suffix == ".json":
        report = files.read(source)
        return {**report, "items": [{**item, "target": arguments.target} for item in report["items"]]}
    path = replay_settings(arguments).store
    document: dict[str, Json] | None = None
    if path.exists():
        with Store(path) as store:
            document = last_run(store)
    if document is None:
        raise FairnessError(
            f"{path}: this store holds no run. Run `pytest --fairness` first, name another store with --store, "
            "or name a JSON report. To get tables of a file of answers, use `measure` with --measurements FILE."
        )
    if arguments.target is not None:
        document["items"] = [{**item, "target": arguments.target} for item in document["items"]]
    if source is None:
        return document
    with replay_run(arguments) as run:
        name = run.load(source).name
    items = [item for item in document["items"] if item["probe"] == name]
    if not items:
        raise FairnessError(
            f"{source}: the last run ({document['started']}) had no item of this probe. Run "
            f"`pytest --fairness {source}` first."
        )
    return {**document, "items": items}


def _print_to_stderr(text: str) -> None:
    print(text, file=sys.stderr)


def _answers(arguments: argparse.Namespace) -> Iterator[dict[str, Json]]:
    from pytest_fairness import kinds
    from pytest_fairness.run.history import recorded

    with replay_run(arguments) as run:
        probe = run.load(arguments.probe)
        if probe.responses is not None:
            for answer in kinds.recorded_answers(probe):
                yield {"labels": dict(answer.labels), "trial": answer.trial, "text": answer.text}
            return
        for target, prompt, response in recorded(run, probe, arguments.target):
            yield {
                "labels": dict(prompt.labels),
                "trial": prompt.trial,
                "target": target,
                "text": response.text,
                "finish_reason": response.finish_reason,
                "created": response.created,
            }
