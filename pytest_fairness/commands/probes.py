"""Commands on probes: `schema`, `swaps` and `calibrate`."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from pytest_fairness.commands import configured_scorers, project_root, write
from pytest_fairness.errors import FairnessError


def add_schema_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments, because the command takes no arguments."""


def run_schema(_arguments: argparse.Namespace) -> None:
    """Print the JSON Schema of probe files."""
    from pytest_fairness import kinds
    from pytest_fairness.probes import schema_text

    print(schema_text(kinds.schemas()).rstrip())


SUFFIXES = (".csv", ".md")


def add_swaps_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("probe", type=Path, help="probe file with the key `swap`")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help="file to write, which ends in .csv or .md (default: text on standard output)",
    )


def run_swaps(arguments: argparse.Namespace) -> None:
    """Show each prompt of a probe with its swapped versions, one for each group.

    A prompt that cannot be swapped is shown with the reason. No request is sent.
    """
    from pytest_fairness import kinds, probes
    from pytest_fairness.probes import GenerationProbe
    from pytest_fairness.reports import command_output

    output: Path | None = arguments.output
    if output is not None and output.suffix.casefold() not in SUFFIXES:
        raise FairnessError(f"{output}: the name of the file must end in {' or '.join(SUFFIXES)}.")
    probe = probes.load(arguments.probe, kinds.schemas(), root=project_root(), scorers=configured_scorers())
    if not isinstance(probe, GenerationProbe) or probe.swap_lists is None:
        raise FairnessError(
            f"{arguments.probe}: the probe has no key `swap`, so there are no swapped prompts to list. Add `swap` to "
            "the probe, or name another probe."
        )
    groups = probe.swap_lists.axis.values
    if output is None:
        width = shutil.get_terminal_size().columns
        lines = command_output.swaps_as_text(probe.swapped, groups, width)
        write((f"{line}\n" for line in lines), None)
        return
    if output.suffix.casefold() == ".csv":
        write([command_output.swaps_as_csv(probe.swapped, groups)], output)
    else:
        write((f"{line}\n" for line in command_output.swaps_as_markdown(probe.swapped, groups)), output)
    print(
        "; ".join(
            [
                f"{output}: {command_output.swaps_summary(probe.swapped)[0]}",
                *command_output.swaps_summary(probe.swapped)[1:],
            ]
        )
    )


def add_calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "labelled",
        type=Path,
        help="CSV or JSON Lines file of outputs: the columns that the probe's kind needs, and a column `label`",
    )
    parser.add_argument("--probe", type=Path, required=True, help="probe file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run_calibrate(arguments: argparse.Namespace) -> None:
    """Measure the audits of a probe on outputs that are labelled `acceptable` or `problematic`.

    For each audit, print the error rates of the probe's limit and of other limits, and recommend a limit with few false
    positives and few false negatives, if there is one.
    """
    from pytest_fairness import kinds, probes
    from pytest_fairness.reports import command_output
    from pytest_fairness.run.answer_files import calibrate

    probe = probes.load(arguments.probe, kinds.schemas(), root=project_root(), scorers=configured_scorers())
    calibrations = [result.to_json() for result in calibrate(probe, arguments.labelled)]
    print(json.dumps(calibrations, indent=2) if arguments.json else command_output.calibration_text(calibrations))
