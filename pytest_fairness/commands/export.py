"""Command `export`: recorded answers of a probe as JSON Lines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from pytest_fairness.commands.output import write
from pytest_fairness.commands.recorded import add_arguments, replay_run
from pytest_fairness.records import Json

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> None:
    """Write the recorded answers of a probe as JSON Lines: labels, trial, target, text, finish reason, time."""
    write([json.dumps(line) + "\n" for line in _lines(arguments)], arguments.output)


def _lines(arguments: argparse.Namespace) -> Iterator[dict[str, Json]]:
    from pytest_fairness import kinds
    from pytest_fairness.run.recorded import recorded

    with replay_run(arguments) as run:
        probe = run.load(arguments.probe)
        if probe.responses is not None:
            for answer in kinds.rows(probe):
                yield {"labels": dict(answer.labels), "trial": answer.trial, "text": answer.text}
            return
        for target, prompt, response in recorded(run, probe, arguments.target):
            yield {
                "labels": dict(prompt.labels),
                "trial": prompt.trial,
                "target": target,
                "text": response.text,
                "finish_reason": response.finish_reason,
                "created": response.created,
            }
