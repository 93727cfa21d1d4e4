"""Command `measure`: estimates and effect sizes from a file of answers, without a probe."""

from __future__ import annotations

import argparse
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_fairness.commands.shared.output import add_table_arguments
from pytest_fairness.errors import FairnessError
from pytest_fairness.options import RunSettings
from pytest_fairness.version import __version__

if TYPE_CHECKING:
    from pytest_fairness.probes import Probe
    from pytest_fairness.records import ItemResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    from pytest_fairness.audits.registry import AUDITS, NEED_SETTINGS

    parser.add_argument("answers", type=Path, help="CSV or JSON Lines file with one answer per row")
    parser.add_argument("--group", required=True, metavar="COLUMN", help="column with the group of each answer")
    parser.add_argument(
        "--unmarked", required=True, metavar="GROUP", help="group that the other groups are compared with"
    )
    parser.add_argument(
        "--marked",
        action="append",
        default=[],
        metavar="GROUP",
        help="group to compare with the `--unmarked` group; may be repeated (default: all other groups)",
    )
    parser.add_argument("--text", required=True, metavar="COLUMN", help="column with the text of each answer")
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


def run(arguments: argparse.Namespace) -> None:
    """Measure how the answers in a file differ between groups, without a probe, a baseline or a verdict.

    For each audit, print the estimate with its 95 % confidence interval, the p-value, and the effect size as a number
    and in words.
    """
    from pytest_fairness.plurals import counted
    from pytest_fairness.probes import table
    from pytest_fairness.reports import files
    from pytest_fairness.reports.document import report_document
    from pytest_fairness.reports.run_notes import RunNote, on_answer_files
    from pytest_fairness.reports.tables.data_table import require_writable
    from pytest_fairness.reports.tables.measurements import measurements
    from pytest_fairness.reports.terminal.summary import measured_summary
    from pytest_fairness.run.answer_file import AnswerFile
    from pytest_fairness.run.word_tables import words_of_file

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
    results = list(_results(found.probe, str(arguments.write_probe or arguments.answers)))
    document = report_document(
        results,
        tool_version=__version__,
        target=str(arguments.answers),
        started=started,
        seconds=time.time() - started,
        requests={},
        notes=[RunNote("data-file", f"{arguments.answers} {note}.") for note in table.notes(arguments.answers)]
        + on_answer_files(results),
    )
    for line in measured_summary(document, shutil.get_terminal_size().columns):
        print(line.text)
    for path in arguments.report:
        files.write(document, path, {}, option="--report")
        print(f"wrote {path}")
    if arguments.measurements is not None:
        measurements(document).write(arguments.measurements)
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
    """Return advice on items that could not be measured: leave out their groups, or name another column."""
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


def _results(probe: Probe, file: str) -> Iterator[ItemResult]:
    """Measure the items of a probe, and yield their results; their node ids begin with `file`."""
    from pytest_fairness.run import Run, error_result, items_of, measured_only

    with TemporaryDirectory() as folder:
        settings = replace(RunSettings(root=Path.cwd()), store=Path(folder) / "responses.sqlite")
        with Run(settings) as measuring:
            for item in items_of(probe):
                nodeid = f"{file}::{item.id}"
                try:
                    yield measured_only(measuring.measurer.measure(item, None), nodeid)
                except FairnessError as error:
                    yield error_result(item, error, nodeid)


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
