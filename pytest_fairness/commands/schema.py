"""`python -m pytest_fairness schema`: the JSON Schema of probe files, for editors."""

from __future__ import annotations

import argparse


def declare(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes: nothing."""


def run(_chosen: argparse.Namespace) -> None:
    """Print the JSON Schema of probe files."""
    from pytest_fairness import kinds
    from pytest_fairness.probes import schema_text

    print(schema_text(kinds.schemas()).rstrip())
