"""`python -m pytest_fairness sample`: recorded answers to fine-tune on."""

from __future__ import annotations

import argparse
import json
import sys

from pytest_fairness.commands.output import write
from pytest_fairness.commands.recorded import declare, reading
from pytest_fairness.errors import FairnessError

__all__ = ["declare", "run"]


def run(chosen: argparse.Namespace) -> None:
    """Write recorded answers as chats, one a line, such that every group's questions get the answers of all alike."""
    from pytest_fairness.run.recorded import recorded
    from pytest_fairness.run.sample import balanced

    with reading(chosen) as run:
        probe = run.load(chosen.probe)
        if probe.responses is not None:
            raise FairnessError(f"{chosen.probe}: it asks nothing, and a sample is made of questions and answers.")
        found = recorded(run, probe, chosen.target)
        targets = sorted({target for target, _, _ in found})
        if len(targets) > 1:
            raise FairnessError(
                f"Answers of several targets are recorded; name one with --target: {'; '.join(targets)}"
            )
        sample = balanced(probe, [(prompt, response) for _, prompt, response in found])
    write([json.dumps(line) + "\n" for line in sample.lines], chosen.output)
    print(
        f"{len(sample.lines)} of {sample.answers} answers; left out: {sample.unusable} refused or unreadable, "
        f"{sample.named} that name a group, {sample.wrong} that are not the true one, and what one group has more of",
        file=sys.stderr,
    )
