"""Command `export`: writes recorded answers as JSON Lines, or tables of measurements and words."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_fairness.commands.shared import recorded as recorded_answers
from pytest_fairness.commands.shared.output import add_table_arguments, write
from pytest_fairness.commands.shared.recorded import replay_run, replay_settings
from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    recorded_answers.add_arguments(
        parser,
        source="probe file; with --measurements or --words, a probe file or a JSON report (default: the last run)",
    )
    add_table_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
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
    from pytest_fairness.reports.tables.data_table import require_writable
    from pytest_fairness.reports.tables.measurements import measurements
    from pytest_fairness.run.word_tables import is_of_probe_file, words_of_run

    for path in filter(None, (arguments.measurements, arguments.words)):
        require_writable(path)
    document = _document(arguments)
    described = f"the run of {document['started']} against {document['target']}"
    if arguments.measurements is not None:
        measurements(document).write(arguments.measurements)
        _print_to_stderr(f"{arguments.measurements}: {len(document['items'])} items of {described}")
    if arguments.words is not None:
        found = words_of_run(document, replay_settings(arguments))
        found.write(arguments.words)
        _print_to_stderr(f"{arguments.words}: {len(found)} rows for the words of {described}")
        if any(not is_of_probe_file(item) for item in document["items"]):
            _print_to_stderr(
                "left out: the words of Python tests, which have no probe file. Call corpus.jsd(...).words() in the "
                "test to get them."
            )


def _document(arguments: argparse.Namespace) -> Mapping[str, Json]:
    """Return the report document from which the tables are made.

    The document is the given JSON report or, without a report, that of the last run; with a probe file, it has only the
    items of this probe. `--target`, if given, replaces the key `target` of each item.

    Raises:
        FairnessError: the report cannot be read, no run is stored, or the last run had no item of the probe.
    """
    from pytest_fairness.asking.store.store import Store
    from pytest_fairness.reports import files
    from pytest_fairness.run.last_run import last_run

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
    from pytest_fairness.run.recorded import recorded

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
