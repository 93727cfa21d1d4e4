"""`python -m pytest_fairness export`: the recorded answers of a probe, for another tool."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from pytest_fairness.commands.output import write
from pytest_fairness.commands.recorded import declare, reading
from pytest_fairness.records import Json

__all__ = ["declare", "run"]


def run(chosen: argparse.Namespace) -> None:
    """Write the recorded answers of a probe as JSON Lines: labels, trial, target, text, time."""
    write([json.dumps(line) + "\n" for line in _recorded(chosen)], chosen.output)


def _recorded(chosen: argparse.Namespace) -> Iterator[dict[str, Json]]:
    from pytest_fairness import kinds
    from pytest_fairness.run.recorded import recorded

    with reading(chosen) as run:
        probe = run.load(chosen.probe)
        if probe.responses is not None:
            for answer in kinds.rows(probe):
                yield {"labels": dict(answer.labels), "trial": answer.trial, "text": answer.text}
            return
        for target, prompt, response in recorded(run, probe, chosen.target):
            yield {
                "labels": dict(prompt.labels),
                "trial": prompt.trial,
                "target": target,
                "text": response.text,
                "finish_reason": response.finish_reason,
                "created": response.created,
            }
