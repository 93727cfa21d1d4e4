"""A balanced sample of recorded answers to fine-tune on: every group's questions get the answers of all groups alike.

Questions that differ in nothing but the group are exchangeable, and so should be their answers. Counterfactual data
augmentation (Zhao et al. 2018; Lu et al. 2020; Zmigrod et al. 2019) trains on both versions of a text; here the answers
are there already, and are dealt anew to the questions.
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
from pytest_fairness.probes.exchange import Position
from pytest_fairness.records import Answer, Json, Prompt, Request, Response
from pytest_fairness.stats.resampling import randomness


@dataclass(frozen=True)
class Sample:
    """A sample and what it was made of.

    Attributes:
        lines: `{"messages": [...]}`, one an answer: `system` where there is one, `user` and `assistant`.
        answers: recorded answers that were looked at.
        unusable: of them, were refused or cannot be read.
        named: of them, name a group, so that they are no answer to anybody else.
        wrong: of them, are not the true one.
    """

    lines: list[dict[str, Json]]
    answers: int
    unusable: int
    named: int
    wrong: int


def balanced(probe: Probe, found: Sequence[tuple[Prompt, Response]]) -> Sample:
    """Deal the answers of exchangeable prompts to one another: as many to each, as equally from each as possible.

    Args:
        probe: of a kind whose answers can be exchanged.
        found: its prompts with their recorded answers, of one target.

    Raises:
        FairnessError: answers to this kind of probe cannot be exchanged, or no answer can be.
    """
    exchange = kind_of(probe).exchange
    if exchange is None:
        possible = ", ".join(name for name, kind in KINDS.items() if kind.exchange is not None)
        raise FairnessError(
            f"{probe.path}: answers to probes of kind {probe.kind} cannot be exchanged; there are {possible}"
        )
    group_names = exchange.group_names(probe)
    names = Anonymizer(group_names) if group_names else None
    sets: dict[Hashable, dict[Hashable, list[str]]] = defaultdict(lambda: defaultdict(list))
    requests: dict[Position, Request] = {}
    excluded = {"unusable": 0, "named": 0, "wrong": 0}
    looked_at = 0
    for prompt, response in found:
        position = exchange.position(probe, prompt.labels)
        if position is None:
            continue
        looked_at += 1
        requests.setdefault(position, prompt.request)
        texts = sets[position[0]][position[1]]
        answer = reading.answer(prompt, response)
        if not answer.usable:
            excluded["unusable"] += 1
        elif names is not None and _names_a_group(answer, names):
            excluded["named"] += 1
        elif exchange.is_wrong(probe, answer):
            excluded["wrong"] += 1
        else:
            texts.append(response.text)
    lines = [
        _line(requests[name, group], text)
        for name, groups in sets.items()
        for group, text in _dealt(groups, f"{probe.name}/sample/{name}")
    ]
    if not lines:
        raise FairnessError(
            f"{probe.path}: no set of questions has an answer for each group that could be given to the others: of "
            f"{looked_at} answers {excluded['unusable']} are refused or unreadable, {excluded['named']} name a group, "
            f"{excluded['wrong']} are not the true one"
        )
    return Sample(lines, looked_at, **excluded)


def _names_a_group(answer: Answer, names: Anonymizer) -> bool:
    text = answer.text or ""
    return names.masked(text, "\0") != unicodedata.normalize("NFKC", text)


def _dealt(groups: dict[Hashable, list[str]], seed: str) -> list[tuple[Hashable, str]]:
    """Each group with the answers that it is given: as many as the group with the fewest has."""
    size = min(map(len, groups.values()))
    random = randomness.generator(seed)
    kept = {group: random.permutation(len(texts))[:size].tolist() for group, texts in groups.items()}
    order, shift = list(groups), int(random.integers(len(groups)))
    dealt = []
    for place, source in enumerate(order):
        for number, index in enumerate(kept[source]):
            # For each number the sources go round the groups once, so that each gets one answer of that number.
            dealt.append((order[(place + number + shift) % len(order)], groups[source][index]))
    return sorted(dealt, key=lambda pair: order.index(pair[0]))


def _line(request: Request, text: str) -> dict[str, Json]:
    written = [("system", request.system), ("user", request.prompt), ("assistant", text)]
    return {"messages": [{"role": role, "content": content} for role, content in written if content is not None]}
