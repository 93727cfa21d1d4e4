"""`python -m pytest_fairness`: what needs no pytest."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness import __version__
from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json
from pytest_fairness.settings import DEFAULT_TARGET, RunSettings

if TYPE_CHECKING:
    from pytest_fairness.run import Run

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code: 0, or 2 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="python -m pytest_fairness", description="Fairness regression testing.")
    parser.add_argument("--version", action="version", version=f"pytest-fairness {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    export = commands.add_parser(
        "export",
        help="write the recorded answers of a probe as JSON Lines",
        description="Write the recorded answers of a probe as JSON Lines: labels, trial, target, text, time.",
    )
    _add_answers(export, _export)
    sample = commands.add_parser(
        "sample",
        help="write a balanced sample of recorded answers to fine-tune on",
        description="Write recorded answers as chats, one a line as JSON, such that every group's questions get the "
        "answers of all groups alike.",
    )
    _add_answers(sample, _sample)
    _add_compare(commands)
    _add_history(commands)
    schema = commands.add_parser("schema", help="print the JSON Schema of probe files")
    schema.set_defaults(run=_schema)
    calibrate = commands.add_parser(
        "calibrate",
        help="see what the limits of a probe get wrong on labelled outputs",
        description="Score outputs that people labelled acceptable or problematic by the audits of a probe; print the "
        "error rates of its limits, of others, and the limit that keeps both errors low.",
    )
    calibrate.add_argument(
        "labelled", type=Path, help="CSV or JSON Lines file: the columns that the probe's kind reads, and `label`"
    )
    calibrate.add_argument("--probe", type=Path, required=True, help="probe file")
    calibrate.add_argument("--json", action="store_true", help="print everything as JSON")
    calibrate.set_defaults(run=_calibrate)
    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except FairnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read this has seen enough; Python would complain once more when it closes its output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _add_answers(command: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None]) -> None:
    """The arguments of a command about recorded answers."""
    command.add_argument("probe", type=Path, help="probe file")
    command.add_argument("--target", help="whose answers (default: everybody's)")
    command.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="endpoint of an openai: target")
    command.add_argument("--target-version", help="as fairness_target_version in the ini")
    command.add_argument("--store", type=Path, help="file of recorded responses (default: .fairness/responses.sqlite)")
    command.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    command.set_defaults(run=run)


def _add_compare(commands: Commands) -> None:
    compare = commands.add_parser(
        "compare",
        help="show what changed between two JSON reports",
        description="Show what changed between two runs: items, verdicts, values with 95 % intervals, requests.",
    )
    compare.add_argument("old", type=Path, help="JSON report of the earlier run")
    compare.add_argument("new", type=Path, help="JSON report of the later run")
    compare.add_argument("--format", choices=("terminal", "markdown", "html"), help="default: as -o ends, or terminal")
    compare.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    compare.set_defaults(run=_compare)


def _add_history(commands: Commands) -> None:
    history = commands.add_parser(
        "history",
        help="show what earlier runs measured",
        description="Show what earlier runs measured: a row an item, or of a single item a row a run.",
    )
    history.add_argument("--probe", help="of this probe only")
    history.add_argument("--item", metavar="ID", help="of this item only, as `jsd[race=Black]`")
    history.add_argument("--last", type=_positive, default=10, metavar="N", help="most runs of an item (default: 10)")
    history.add_argument("--store", type=Path, help="file of recorded responses (default: .fairness/responses.sqlite)")
    history.set_defaults(run=_history)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return number


def _compare(chosen: argparse.Namespace) -> None:
    from pytest_fairness.report import compare_text, files
    from pytest_fairness.report.compare import compare

    changes = compare(files.read(chosen.old), files.read(chosen.new))
    named = {".md": "markdown", ".html": "html"}.get(chosen.output.suffix.lower() if chosen.output else "", "terminal")
    match chosen.format or named:
        case "markdown":
            text = compare_text.markdown(changes)
        case "html":
            text = compare_text.html(changes)
        case _:
            text = compare_text.terminal(changes, shutil.get_terminal_size((120, 24)).columns)
    _write([text], chosen.output)


def _history(chosen: argparse.Namespace) -> None:
    from pytest_fairness.report.history_text import history
    from pytest_fairness.response.store import Store
    from pytest_fairness.run.history import History

    path = Path.cwd() / (chosen.store or RunSettings(Path.cwd()).store)
    if not path.exists():
        raise FairnessError(f"{path}: nothing is recorded there. Give the --store that pytest used.")
    with Store(path) as store:
        points = [
            point
            for point in History(store).points()
            if chosen.probe in (None, point["probe"]) and chosen.item in (None, point["id"])
        ]
    if not points:
        raise FairnessError(f"{path} holds no run of such an item. `pytest --fairness` adds one each time.")
    _write([history(points, chosen.last, shutil.get_terminal_size((120, 24)).columns)], None)


def _export(chosen: argparse.Namespace) -> None:
    _write([json.dumps(line) + "\n" for line in _recorded(chosen)], chosen.output)


def _write(lines: Iterable[str], output: Path | None) -> None:
    try:
        with nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise FairnessError(f"{output}: cannot be written ({error.strerror}).") from error


def _open(chosen: argparse.Namespace) -> Run:
    """A run that reads what is recorded, and asks nobody."""
    from pytest_fairness.run import Run

    root = Path.cwd()
    settings = RunSettings(
        root=root,
        target=chosen.target or DEFAULT_TARGET,
        base_url=chosen.base_url,
        target_version=chosen.target_version,
        replay=True,
    )
    return Run(replace(settings, store=root / (chosen.store or settings.store)))


def _recorded(chosen: argparse.Namespace) -> Iterator[dict[str, Json]]:
    from pytest_fairness import probe as probes
    from pytest_fairness.run.recorded import recorded

    with _open(chosen) as run:
        probe = run.load(chosen.probe)
        if probe.responses is not None:
            for answer in probes.rows(probe):
                yield {"labels": dict(answer.labels), "trial": answer.trial, "text": answer.text}
            return
        for target, prompt, response in recorded(run, probe, run.open_target() if chosen.target else None):
            yield {
                "labels": dict(prompt.labels),
                "trial": prompt.trial,
                "target": target,
                "text": response.text,
                "finish_reason": response.finish_reason,
                "created": response.created,
            }


def _sample(chosen: argparse.Namespace) -> None:
    from pytest_fairness.run.recorded import recorded
    from pytest_fairness.run.sample import balanced

    with _open(chosen) as run:
        probe = run.load(chosen.probe)
        if probe.responses is not None:
            raise FairnessError(f"{chosen.probe}: a sample is made of questions and answers, and no model was asked.")
        found = recorded(run, probe, run.open_target() if chosen.target else None)
        if len(targets := sorted({target for target, _, _ in found})) > 1:
            raise FairnessError(
                f"answers of several targets are recorded: name one with --target ({', '.join(targets)})"
            )
        sample = balanced(probe, [(prompt, response) for _, prompt, response in found])
    _write([json.dumps(line) + "\n" for line in sample.lines], chosen.output)
    print(
        f"{len(sample.lines)} of {sample.answers} answers; left out: {sample.unusable} refused or unreadable, "
        f"{sample.named} that name a group, {sample.wrong} that are not the true one, and what one group has more of",
        file=sys.stderr,
    )


def _calibrate(chosen: argparse.Namespace) -> None:
    from pytest_fairness import probe as probes
    from pytest_fairness.audit import registry
    from pytest_fairness.report import limits
    from pytest_fairness.run.calibrate import calibrate

    probe = probes.load(chosen.probe, registry.settings_models(), root=Path.cwd())
    found = [each.to_json() for each in calibrate(probe, chosen.labelled)]
    print(json.dumps(found, indent=2) if chosen.json else limits.text(found))


def _schema(_chosen: argparse.Namespace) -> None:
    from pytest_fairness.audit import registry
    from pytest_fairness.probe import schema_text

    print(schema_text(registry.settings_models()).rstrip())


if __name__ == "__main__":
    sys.exit(main())
