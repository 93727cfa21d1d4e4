"""Entry point of `python -m pytest_fairness COMMAND` and of the script `pytest-fairness COMMAND`."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from pytest_fairness.commands import answers, evidence, init, probes, results
from pytest_fairness.errors import FairnessError
from pytest_fairness.version import __version__

COMMANDS = {
    "init": (init.add_init_arguments, init.run_init, "write a first probe and a CI workflow into a project"),
    "measure": (
        answers.add_measure_arguments,
        answers.run_measure,
        "measure a file of answers without a probe: estimates and effect sizes",
    ),
    "export": (
        answers.add_export_arguments,
        answers.run_export,
        "write tables of measurements and words, or the recorded answers of a probe",
    ),
    "compare": (results.add_compare_arguments, results.run_compare, "compare two JSON reports"),
    "diff": (results.add_diff_arguments, results.run_diff, "show what changed in the baselines since a git revision"),
    "history": (results.add_history_arguments, results.run_history, "show the values of earlier runs"),
    "merge": (results.add_merge_arguments, results.run_merge, "merge the stores of several jobs into one"),
    "store": (
        results.add_store_arguments,
        results.run_store,
        "show the size of the store, delete old responses, copy the store",
    ),
    "swaps": (
        probes.add_swaps_arguments,
        probes.run_swaps,
        "show the prompts that a probe with `swap` would send for each group",
    ),
    "calibrate": (
        probes.add_calibrate_arguments,
        probes.run_calibrate,
        "show how often a probe's limits misclassify labelled outputs",
    ),
    "bundle": (
        evidence.add_bundle_arguments,
        evidence.run_bundle,
        "write a bundle of the last run, or copy one without texts of answers",
    ),
    "profile": (
        evidence.add_profile_arguments,
        evidence.run_profile,
        "write what was tested and found, for a model card or technical documentation",
    ),
    "verify": (evidence.add_verify_arguments, evidence.run_verify, "check a bundle, and measure its answers again"),
    "schema": (probes.add_schema_arguments, probes.run_schema, "print the JSON Schema of probe files"),
}


class Parser(argparse.ArgumentParser):
    """Parser whose errors about an unknown name suggest the most similar known name."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, with a suggestion for a misspelt name, and exit with 2."""
        invalid = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if invalid and (near := get_close_matches(invalid[1], re.findall(r"[\w-]+", invalid[2]), n=1)):
            message += f". Did you mean {near[0]!r}?"
        super().error(message)

    def reject(self, unknown: Sequence[str]) -> NoReturn:
        """Print an error about arguments that the parser does not know, and exit with 2."""
        options = [option for action in self._actions for option in action.option_strings]
        near = get_close_matches(unknown[0].partition("=")[0], options, n=1)
        self.error(f"unrecognized arguments: {' '.join(unknown)}{f'. Did you mean {near[0]!r}?' if near else ''}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code: 2 after an error or without a command, else what the command says."""
    program = "pytest-fairness" if Path(sys.argv[0]).stem == "pytest-fairness" else "python -m pytest_fairness"
    parser = Parser(prog=program, description="Fairness regression testing.")
    parser.add_argument("--version", action="version", version=f"pytest-fairness {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (add_arguments, run, text) in COMMANDS.items():
        subparser = commands.add_parser(name, help=text, description=run.__doc__)
        add_arguments(subparser)
        subparser.set_defaults(run=run, parser=subparser)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        import argcomplete

        argcomplete.autocomplete(parser)
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        parser.print_help(sys.stderr)
        return 2
    chosen, unknown = parser.parse_known_args(given)
    if unknown:
        chosen.parser.reject(unknown)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The encoding of a console or pipe on Windows may lack letters of names and signs such as ✓.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return chosen.run(chosen) or 0
    except FairnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The program that read the output has ended. Python would fail again when it flushes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
