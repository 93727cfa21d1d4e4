"""`python -m pytest_fairness export`: the recorded answers of a probe, for another tool."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.commands.output import write
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.records import Answer, Json, Request, Response
from pytest_fairness.settings import DEFAULT_TARGET, RunSettings

if TYPE_CHECKING:
    from pytest_fairness.probe import Probe


def declare(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("probe", type=Path, help="probe file")
    parser.add_argument("--target", help="whose answers (default: everybody's)")
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="endpoint of an openai: target")
    parser.add_argument("--target-version", help="as fairness_target_version in the ini")
    parser.add_argument("--store", type=Path, help="file of recorded responses (default: .fairness/responses.sqlite)")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")


def run(chosen: argparse.Namespace) -> None:
    """Write the recorded answers of a probe as JSON Lines: labels, trial, target, text, time."""
    write([json.dumps(line) + "\n" for line in _recorded(chosen)], chosen.output)


def _recorded(chosen: argparse.Namespace) -> Iterator[dict[str, Json]]:
    from pytest_fairness import probe as probes
    from pytest_fairness.run import Run

    root = Path.cwd()
    settings = RunSettings(
        root=root,
        target=chosen.target or DEFAULT_TARGET,
        base_url=chosen.base_url,
        target_version=chosen.target_version,
        replay=True,
    )
    with Run(replace(settings, store=root / (chosen.store or settings.store))) as run:
        probe = run.load(chosen.probe)
        if probe.responses is not None:
            for answer in probes.rows(probe):
                yield {"labels": dict(answer.labels), "trial": answer.trial, "text": answer.text}
            return
        if not run.settings.store.exists():
            raise FairnessError(f"{run.settings.store}: nothing is recorded there. Give the --store that pytest used.")
        only = run.open_target().identity if chosen.target else None
        recorded: dict[str, dict[Request, Response]] = {}
        for each in run.store.everything():
            if only in (None, each.target):
                recorded.setdefault(each.target, {})[each.request] = each.response
        lines = [line for target in sorted(recorded) for line in _answers_of(target, probe, recorded[target])]
        if not lines:
            whose = f" of {chosen.target}" if chosen.target else ""
            raise AnswersMissing(f"no answers{whose} to {chosen.probe} are recorded in {run.settings.store}.")
        yield from lines


def _answers_of(target: str, probe: Probe, recorded: Mapping[Request, Response]) -> Iterator[dict[str, Json]]:
    from pytest_fairness import probe as probes
    from pytest_fairness.probe.stages import MAX_TRIALS
    from pytest_fairness.response import reading

    # As many trials as were ever asked for, whatever the probe says now.
    trials = max((request.trial for request in recorded if request.trial < MAX_TRIALS), default=0) + 1
    prompts = probes.prompts(probe, trials)
    answers: list[Answer] = []
    while found := [(prompt, recorded[prompt.request]) for prompt in prompts if prompt.request in recorded]:
        for prompt, response in found:
            answers.append(reading.answer(prompt, response))
            yield {
                "labels": dict(prompt.labels),
                "trial": prompt.trial,
                "target": target,
                "text": response.text,
                "finish_reason": response.finish_reason,
                "created": response.created,
            }
        prompts = probes.follow_ups(probe, answers)
