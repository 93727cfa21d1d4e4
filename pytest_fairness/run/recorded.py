"""Lookup of the recorded answers to a probe's prompts, from all targets or from one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pytest_fairness.answers import reading
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Prompt, Request, Response
from pytest_fairness.run.run import Run

Recorded = tuple[str, Prompt, Response]
"""Identity of the target, the prompt, and the response."""


def recorded(run: Run, probe: Probe, only: str | None = None) -> list[Recorded]:
    """Return the recorded answers to a probe's prompts, ordered by target; send nothing.

    Args:
        run: run whose store is read.
        probe: probe with prompts.
        only: target whose answers to return, as the user types its name or as the store records it; default: all
            targets.

    Raises:
        FairnessError: the store does not exist.
        AnswersMissing: the store holds no such answer.
    """
    if not run.settings.store.exists():
        raise FairnessError(
            f"{run.settings.store}: no such file; nothing is recorded there. Give pytest's store with --store."
        )
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
            whose, others = (
                f" of {only}",
                f" It holds answers of {'; '.join(sorted(by_target))}: give one with --target.",
            )
        cure = others or " Run `pytest --fairness` on the probe first."
        raise AnswersMissing(f"no answers{whose} to {probe.path} are recorded in {run.settings.store}.{cure}")
    return found


def _of_name(run: Run, name: str, recorded_of: Collection[str]) -> set[str]:
    """Return the identities of the recorded targets to which a name refers.

    The name may be the identity itself. Otherwise it refers to the target that the settings give this name, in all of
    its versions; otherwise to the targets with this name at any address.
    """
    if name in recorded_of:
        return {name}
    identity = run.targets.named().identity
    if found := {target for target in recorded_of if target == identity or target.startswith(f"{identity} version ")}:
        return found
    return {target for target in recorded_of if target.startswith(f"{name} at ")}


def _answers_of(probe: Probe, known: Mapping[Request, Response]) -> Iterator[tuple[Prompt, Response]]:
    """Yield the prompts of a probe that have a recorded response, including follow-up prompts."""
    # All recorded trials: the probe's own number may have been changed since.
    trials = max((request.trial for request in known if request.trial < MAX_TRIALS), default=0) + 1
    prompts = list(probe.prompts(trials))
    answers: list[Answer] = []
    while found := [(prompt, known[prompt.request]) for prompt in prompts if prompt.request in known]:
        answers += [reading.answer(prompt, response) for prompt, response in found]
        yield from found
        prompts = probe.follow_ups(answers)
