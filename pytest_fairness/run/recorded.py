"""The recorded answers of a probe, whoever gave them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pytest_fairness.answers import reading
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Prompt, Request, Response
from pytest_fairness.run.run import Run

Recorded = tuple[str, Prompt, Response]
"""Whose answer it is, the question, and the answer."""


def recorded(run: Run, probe: Probe, only: str | None = None) -> list[Recorded]:
    """Every recorded answer to what a probe asks, target by target.

    Args:
        run: whose store is read; nothing is asked.
        probe: one that asks.
        only: whose answers, a target as it is typed or as it was recorded; everybody's where not given.

    Raises:
        FairnessError: there is no store.
        AnswersMissing: it holds no such answer.
    """
    if not run.settings.store.exists():
        raise FairnessError(f"{run.settings.store}: nothing is recorded there. Give the --store that pytest used.")
    by_target: dict[str, dict[Request, Response]] = {}
    for each in run.store.all_recorded():
        by_target.setdefault(each.target, {})[each.request] = each.response
    found = [
        (target, prompt, response)
        for target in sorted(by_target if only is None else _of_name(run, only, by_target))
        for prompt, response in _answers_of(probe, by_target[target])
    ]
    if not found:
        whose, others = "", ""
        if only is not None and by_target:
            whose, others = f" of {only}", f" It holds answers of {'; '.join(sorted(by_target))}."
        raise AnswersMissing(f"no answers{whose} to {probe.path} are recorded in {run.settings.store}.{others}")
    return found


def _of_name(run: Run, name: str, recorded_of: Collection[str]) -> set[str]:
    """Whom a name means: who was recorded under it, or answers to it here, or has it at whatever address."""
    if name in recorded_of:
        return {name}
    identity = run.targets.named().identity
    if found := {target for target in recorded_of if target == identity or target.startswith(f"{identity} version ")}:
        return found
    return {target for target in recorded_of if target.startswith(f"{name} at ")}


def _answers_of(probe: Probe, known: Mapping[Request, Response]) -> Iterator[tuple[Prompt, Response]]:
    # As many trials as were ever asked for, whatever the probe says now.
    trials = max((request.trial for request in known if request.trial < MAX_TRIALS), default=0) + 1
    prompts = list(probe.prompts(trials))
    answers: list[Answer] = []
    while found := [(prompt, known[prompt.request]) for prompt in prompts if prompt.request in known]:
        answers += [reading.answer(prompt, response) for prompt, response in found]
        yield from found
        prompts = probe.follow_ups(answers)
