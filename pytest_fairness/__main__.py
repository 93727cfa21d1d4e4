"""Entry point of `python -m pytest_fairness COMMAND` and of the script `pytest-fairness COMMAND`."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_fairness.commands import (
    calibrate,
    compare,
    diff,
    export,
    history,
    init,
    measure,
    merge,
    sample,
    schema,
    store,
)
from pytest_fairness.errors import FairnessError
from pytest_fairness.version import __version__

COMMANDS = {
    "init": (init, "write a first probe and a CI workflow into a project"),
    "measure": (measure, "measure a file of answers without a probe: estimates and effect sizes"),
    "export": (export, "write tables of measurements and words, or the recorded answers of a probe"),
    "sample": (sample, "write a balanced sample of recorded answers for fine-tuning"),
    "compare": (compare, "compare two JSON reports"),
    "diff": (diff, "show what changed in the baselines since a git revision"),
    "history": (history, "show the values of earlier runs"),
    "merge": (merge, "merge the stores of several jobs into one"),
    "store": (store, "show the size of the store, delete old responses, copy the store"),
    "calibrate": (calibrate, "show the error rates of a probe's limits on labelled outputs"),
    "schema": (schema, "print the JSON Schema of probe files"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 0, or 2 after an error message on standard error."""
    program = "pytest-fairness" if Path(sys.argv[0]).stem == "pytest-fairness" else "python -m pytest_fairness"
    parser = argparse.ArgumentParser(prog=program, description="Fairness regression testing.")
    parser.add_argument("--version", action="version", version=f"pytest-fairness {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (command, text) in COMMANDS.items():
        subparser = commands.add_parser(name, help=text, description=command.run.__doc__)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for the words that may follow
        import argcomplete

        argcomplete.autocomplete(parser)
    chosen = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The encoding of a console or pipe on Windows may lack letters of names and signs such as ✓.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        chosen.run(chosen)
    except FairnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The program that read the output has ended. Python would fail again when it flushes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
