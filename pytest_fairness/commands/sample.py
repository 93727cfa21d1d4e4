"""Command `sample`: balanced sample of recorded answers for fine-tuning."""

from __future__ import annotations

import argparse
import json
import sys

from pytest_fairness.commands.shared.output import write
from pytest_fairness.commands.shared.recorded import add_arguments, replay_run
from pytest_fairness.errors import FairnessError
from pytest_fairness.plurals import counted

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> None:
    """Write a sample of recorded answers as chats in JSON Lines.

    The sample is balanced: the prompts of each group are combined with equally many answers from all groups, also with
    answers to the prompts of other groups.
    """
    from pytest_fairness.run.recorded import recorded
    from pytest_fairness.run.sample import balanced

    with replay_run(arguments) as run:
        probe = run.load(arguments.probe)
        if probe.responses is not None:
            raise FairnessError(
                f"{arguments.probe}: a sample needs prompts, but the probe has `responses`. Name a probe with prompts."
            )
        found = recorded(run, probe, arguments.target)
        targets = sorted({target for target, _, _ in found})
        if len(targets) > 1:
            raise FairnessError(
                f"Answers of several targets are recorded. Choose one with --target: {'; '.join(targets)}"
            )
        sample = balanced(run, probe, [(prompt, response) for _, prompt, response in found])
    write([json.dumps(line) + "\n" for line in sample.lines], arguments.output)
    print(
        f"wrote {len(sample.lines)} of {sample.answers} answers; left out: "
        f"{counted(sample.unusable, 'refused or unreadable answer')}, {counted(sample.named, 'answer')} naming a "
        f"group, {counted(sample.wrong, 'wrong answer')}, and the surplus of groups with more answers than the "
        "smallest group",
        file=sys.stderr,
    )
