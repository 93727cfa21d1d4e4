"""Command `swaps`: the prompts of a probe, swapped for each group."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from pytest_fairness.commands.shared.output import write
from pytest_fairness.errors import FairnessError

SUFFIXES = (".csv", ".md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("probe", type=Path, help="probe file with the key `swap`")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help="file to write, which ends in .csv or .md (default: text on standard output)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Show each prompt of a probe with its swapped versions, one for each group.

    A prompt that cannot be swapped is shown with the reason. No request is sent.
    """
    from pytest_fairness import kinds, probes
    from pytest_fairness.commands.shared.configuration import configured_scorers, project_root
    from pytest_fairness.probes import GenerationProbe
    from pytest_fairness.reports import swap_listing

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
        lines = swap_listing.as_text(probe.swapped, groups, width)
        write((f"{line}\n" for line in lines), None)
        return
    if output.suffix.casefold() == ".csv":
        write([swap_listing.as_csv(probe.swapped, groups)], output)
    else:
        write((f"{line}\n" for line in swap_listing.as_markdown(probe.swapped, groups)), output)
    print("; ".join([f"{output}: {swap_listing.summary(probe.swapped)[0]}", *swap_listing.summary(probe.swapped)[1:]]))
