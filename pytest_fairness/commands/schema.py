"""Command `schema`: JSON Schema of probe files, for editors."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments, because the command takes no arguments."""


def run(_arguments: argparse.Namespace) -> None:
    """Print the JSON Schema of probe files."""
    from pytest_fairness import kinds
    from pytest_fairness.probes import schema_text

    print(schema_text(kinds.schemas()).rstrip())
