"""What the commands about recorded answers have in common."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.options import DEFAULT_TARGET, RunSettings

if TYPE_CHECKING:
    from pytest_fairness.run import Run


def declare(parser: argparse.ArgumentParser) -> None:
    """Say what such a command takes."""
    parser.add_argument("probe", type=Path, help="probe file")
    parser.add_argument("--target", help="whose answers (default: everybody's)")
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="endpoint of an openai: target")
    parser.add_argument("--target-version", help="as fairness_target_version in the ini")
    parser.add_argument("--store", type=Path, help="file of recorded responses (default: .fairness/responses.sqlite)")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")


def reading(chosen: argparse.Namespace) -> Run:
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
