"""Lookup of the recorded answers to a probe's prompts, from all targets or from one target."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pytest_fairness.answers import reading
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Prompt, Request, Response
from pytest_fairness.run.run import Run

Recorded = tuple[str, Prompt, Response]
"""A target's identity, a prompt, and the target's recorded response to this prompt."""


def recorded(run: Run, probe: Probe, only: str | None = None) -> list[Recorded]:
    """Return the recorded answers to a probe's prompts, ordered by target; send no requests.

    Args:
        run: run whose store is read.
        probe: probe with prompts.
        only: name of the target whose answers are returned, as the user or the store names it; by default all targets.

    Raises:
        FairnessError: the store does not exist.
        AnswersMissing: no answers to the probe's prompts are recorded.
    """
    if not run.settings.store.exists():
        raise FairnessError(
            f"{run.settings.store}: there is no store at this path. Give the path of your store with --store."
        )
    by_target: dict[str, dict[Request, Response]] = {}
    for each in run.store.all_recorded():
        by_target.setdefault(each.target, {})[each.request] = each.response
    targets = sorted(by_target if only is None else _identities_of(run, only, by_target))
    found = [
        (target, prompt, response) for target in targets for prompt, response in _answers_of(probe, by_target[target])
    ]
    if not found:
        whose, cure = "" if only is None else f" of {only}", "Run `pytest --fairness` on the probe first."
        if by_target and not targets:
            cure = f"The store has answers of {'; '.join(sorted(by_target))}: name one of these targets with --target."
        raise AnswersMissing(f"no answers{whose} to {probe.source.path} are recorded in {run.settings.store}. {cure}")
    return found


def _identities_of(run: Run, name: str, identities: Collection[str]) -> set[str]:
    """Return the identities of the recorded targets to which a name refers; an empty set without such a target.

    The name is, in this order of priority: the identity of a recorded target; the name of the target in the settings,
    which stands for all its versions; or a name without address, which stands for the targets at all addresses.
    """
    if name in identities:
        return {name}
    identity = run.targets.named().identity
    if found := {target for target in identities if target == identity or target.startswith(f"{identity} version ")}:
        return found
    return {target for target in identities if target.startswith(f"{name} at ")}


def _answers_of(probe: Probe, known: Mapping[Request, Response]) -> Iterator[tuple[Prompt, Response]]:
    """Yield each prompt of a probe that has a recorded response, with the response; include follow-up prompts."""
    # All recorded trials count, because the probe's number of trials may have changed since they were recorded.
    trials = max((request.trial for request in known if request.trial < MAX_TRIALS), default=0) + 1
    prompts = list(probe.prompts(trials))
    answers: list[Answer] = []
    while found := [(prompt, known[prompt.request]) for prompt in prompts if prompt.request in known]:
        answers += [reading.answer(prompt, response, probe.language) for prompt, response in found]
        yield from found
        prompts = probe.follow_ups.next_prompts(answers)
