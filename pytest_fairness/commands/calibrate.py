"""`python -m pytest_fairness calibrate`: what the limits of a probe get wrong on labelled outputs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def declare(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "labelled", type=Path, help="CSV or JSON Lines file: the columns that the probe's kind reads, and `label`"
    )
    parser.add_argument("--probe", type=Path, required=True, help="probe file")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(chosen: argparse.Namespace) -> None:
    """Score outputs that people labelled acceptable or problematic by the audits of a probe.

    Printed are the error rates of its limits, of others, and the limit that keeps both errors low.
    """
    from pytest_fairness import kinds, probes
    from pytest_fairness.reports.terminal import calibration
    from pytest_fairness.run.calibrate import calibrate

    probe = probes.load(chosen.probe, kinds.schemas(), root=Path.cwd())
    found = [each.to_json() for each in calibrate(probe, chosen.labelled)]
    print(json.dumps(found, indent=2) if chosen.json else calibration.text(found))
