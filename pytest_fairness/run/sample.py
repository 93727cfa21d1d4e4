"""Balanced sample for fine-tuning: every group gets the same number of recorded answers, from all groups.

Recorded answers are exchanged between prompts that differ only in the group. The idea is similar to counterfactual
data augmentation (Zhao et al. 2018; Lu et al. 2020; Zmigrod et al. 2019), which trains on both versions of a text.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pytest_fairness.answers import reading
from pytest_fairness.audits.anonymizer import Anonymizer
from pytest_fairness.errors import FairnessError
from pytest_fairness.kinds import KINDS, kind_of
from pytest_fairness.probes import Probe
from pytest_fairness.probes.conversations import TURN
from pytest_fairness.probes.exchange import Position
from pytest_fairness.records import Answer, Json, Message, Prompt, Request, Response, calls_in
from pytest_fairness.run.run import Run
from pytest_fairness.stats.resampling import randomness


@dataclass(frozen=True)
class Sample:
    """Sample for fine-tuning, and the numbers of recorded answers that were used and left out.

    Attributes:
        lines: one chat per answer: `{"messages": [...]}` with the roles `system` (if set), `user` and `assistant`, and
            the `tools` of the probe. Later turns of conversations are left out.
        answers: number of recorded answers to prompts that differ only in the group.
        unusable: number of these answers that are refused or unreadable.
        named: number of these answers that name a group, so that they cannot be given to another group.
        wrong: number of these answers that are known to be wrong.
    """

    lines: list[dict[str, Json]]
    answers: int
    unusable: int
    named: int
    wrong: int


def balanced(run: Run, probe: Probe, recorded: Sequence[tuple[Prompt, Response]]) -> Sample:
    """Return a sample that pairs each group's prompts with the same number of answers.

    The answers of each group come from all groups, as evenly as possible.

    Args:
        run: run whose settings name the model that recognises refusals, if the probe uses such a model.
        probe: probe of a kind whose answers can be exchanged.
        recorded: prompts of the probe with their recorded responses, of one target.

    Raises:
        FairnessError: answers to this kind of probe cannot be exchanged, or no prompt has usable answers for all
            groups.
    """
    exchange = kind_of(probe).exchange
    if exchange is None:
        possible = ", ".join(name for name, kind in KINDS.items() if kind.exchange is not None)
        raise FairnessError(
            f"{probe.source.path}: answers to probes of kind {probe.kind} cannot be exchanged. Use a probe of kind "
            f"{possible}."
        )
    group_names = exchange.group_names(probe)
    names = Anonymizer(group_names, probe.language) if group_names else None
    sets: dict[Hashable, dict[Hashable, list[Response]]] = defaultdict(lambda: defaultdict(list))
    requests: dict[Position, Request] = {}
    excluded = {"unusable": 0, "named": 0, "wrong": 0}
    seen = 0
    answers = run.answers.classified(
        probe, [reading.answer(prompt, response, probe.language) for prompt, response in recorded]
    )
    for (prompt, response), answer in zip(recorded, answers, strict=True):
        position = exchange.position(probe, prompt.labels)
        if position is None or TURN in prompt.labels:
            continue
        seen += 1
        requests.setdefault(position, prompt.request)
        own = sets[position[0]][position[1]]
        if not answer.usable:
            excluded["unusable"] += 1
        elif names is not None and _names_a_group(answer, names):
            excluded["named"] += 1
        elif exchange.is_wrong(probe, answer):
            excluded["wrong"] += 1
        else:
            own.append(response)
    lines = [
        _chat_line(requests[name, group], response)
        for name, groups in sets.items()
        if len(groups) > 1
        for group, response in _answers_for_groups(groups, f"sample/{name}")
    ]
    if not lines:
        raise FairnessError(
            f"{probe.source.path}: no sample can be drawn: for each prompt, at least one group has no usable, "
            f"correct answer without the name of a group. Of {seen} answers, "
            f"{excluded['unusable']} are refused or unreadable, {excluded['named']} name a group, and "
            f"{excluded['wrong']} are wrong. Record more answers, for instance with --fairness-trials."
        )
    return Sample(lines, seen, **excluded)


def _names_a_group(answer: Answer, names: Anonymizer) -> bool:
    text = answer.text or ""
    return names.masked(text, "\0") != unicodedata.normalize("NFKC", text)


def _answers_for_groups(groups: dict[Hashable, list[Response]], seed: str) -> list[tuple[Hashable, Response]]:
    """Assign answers to groups at random; return (group, answer) pairs.

    All groups get the same number of answers: the number of answers that the smallest group has. The answers of each
    group come from all groups, as evenly as possible.
    """
    size = min(map(len, groups.values()))
    random = randomness.generator(seed)
    kept = {group: random.permutation(len(own))[:size].tolist() for group, own in groups.items()}
    order, shift = list(groups), int(random.integers(len(groups)))
    pairs = []
    for place, source in enumerate(order):
        for number, index in enumerate(kept[source]):
            # The answers with the same number go to different groups, so that each group gets one of them.
            pairs.append((order[(place + number + shift) % len(order)], groups[source][index]))
    return sorted(pairs, key=lambda pair: order.index(pair[0]))


def _chat_line(request: Request, response: Response) -> dict[str, Json]:
    reply: dict[str, Json] = dict(Message("assistant", response.text).to_json())
    if calls := calls_in(response.tool_calls):
        reply["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_text},
            }
            for number, call in enumerate(calls)
        ]
    tools = request.tool_definitions
    messages = [*(message.to_json() for message in request.messages), reply]
    return {"messages": messages, **({} if tools is None else {"tools": tools})}
