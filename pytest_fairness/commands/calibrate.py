"""Command `calibrate`: error rates of a probe's limits on labelled outputs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "labelled",
        type=Path,
        help="CSV or JSON Lines file of outputs: the columns that the probe's kind needs, and a column `label`",
    )
    parser.add_argument("--probe", type=Path, required=True, help="probe file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Measure the audits of a probe on outputs that are labelled `acceptable` or `problematic`.

    For each audit, print the error rates of the probe's limit and of other limits, and recommend a limit with few false
    positives and few false negatives, if there is one.
    """
    from pytest_fairness import kinds, probes
    from pytest_fairness.commands.shared.configuration import configured_scorers, project_root
    from pytest_fairness.reports.terminal import calibration
    from pytest_fairness.run.calibrate import calibrate

    probe = probes.load(arguments.probe, kinds.schemas(), root=project_root(), scorers=configured_scorers())
    calibrations = [result.to_json() for result in calibrate(probe, arguments.labelled)]
    print(json.dumps(calibrations, indent=2) if arguments.json else calibration.text(calibrations))
