"""`python -m pytest_fairness`: what needs no pytest."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness import __version__
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.records import Answer, Json, Request, Response
from pytest_fairness.settings import DEFAULT_TARGET, RunSettings

if TYPE_CHECKING:
    from pytest_fairness.probe import Probe


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code: 0, or 2 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="python -m pytest_fairness", description="Fairness regression testing.")
    parser.add_argument("--version", action="version", version=f"pytest-fairness {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    export = commands.add_parser(
        "export",
        help="write the recorded answers of a probe as JSON Lines",
        description="Write the recorded answers of a probe as JSON Lines: labels, trial, target, text, time.",
    )
    export.add_argument("probe", type=Path, help="probe file")
    export.add_argument("--target", help="whose answers (default: everybody's)")
    export.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="endpoint of an openai: target")
    export.add_argument("--target-version", help="as fairness_target_version in the ini")
    export.add_argument("--store", type=Path, help="file of recorded responses (default: .fairness/responses.sqlite)")
    export.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    export.set_defaults(run=_export)
    schema = commands.add_parser("schema", help="print the JSON Schema of probe files")
    schema.set_defaults(run=_schema)
    calibrate = commands.add_parser(
        "calibrate",
        help="see what the limits of a probe get wrong on labelled outputs",
        description="Score outputs that people labelled acceptable or problematic by the audits of a probe; print the "
        "error rates of its limits, of others, and the limit that keeps both errors low.",
    )
    calibrate.add_argument(
        "labelled", type=Path, help="CSV or JSON Lines file: the columns that the probe's kind reads, and `label`"
    )
    calibrate.add_argument("--probe", type=Path, required=True, help="probe file")
    calibrate.add_argument("--json", action="store_true", help="print everything as JSON")
    calibrate.set_defaults(run=_calibrate)
    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except FairnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read this has seen enough; Python would complain once more when it closes its output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _export(chosen: argparse.Namespace) -> None:
    lines = list(_recorded(chosen))
    try:
        with nullcontext(sys.stdout) if chosen.output is None else chosen.output.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise FairnessError(f"{chosen.output}: cannot be written ({error.strerror}).") from error


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


def _calibrate(chosen: argparse.Namespace) -> None:
    from pytest_fairness import probe as probes
    from pytest_fairness.audit import registry
    from pytest_fairness.report import limits
    from pytest_fairness.run.calibrate import calibrate

    probe = probes.load(chosen.probe, registry.settings_models(), root=Path.cwd())
    found = [each.to_json() for each in calibrate(probe, chosen.labelled)]
    print(json.dumps(found, indent=2) if chosen.json else limits.text(found))


def _schema(_chosen: argparse.Namespace) -> None:
    from pytest_fairness.audit import registry
    from pytest_fairness.probe import schema_text

    print(schema_text(registry.settings_models()).rstrip())


if __name__ == "__main__":
    sys.exit(main())
