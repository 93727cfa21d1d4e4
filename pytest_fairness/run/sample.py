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
from pytest_fairness.audits.base import Probe
from pytest_fairness.audits.lists.normalization import NEUTRAL
from pytest_fairness.audits.text.anonymizer import Anonymizer
from pytest_fairness.errors import FairnessError
from pytest_fairness.probes.counterfactual.model import AGAIN, OWN
from pytest_fairness.records import Answer, Json, Prompt, Request, Response
from pytest_fairness.stats import resampling

Place = tuple[Hashable, Hashable]
"""The set of exchangeable questions that one belongs to, and its group in that set."""

KINDS = ("generation", "recommendation", "counterfactual")


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
    """Deal the answers of exchangeable questions to one another: as many to each, as equally from each as goes.

    Args:
        probe: of a kind in `KINDS`.
        found: its questions with their recorded answers, of one target.

    Raises:
        FairnessError: no sample can be made of this kind of probe, or nothing is left to make it of.
    """
    if probe.kind not in KINDS:
        raise FairnessError(
            f"{probe.path}: answers to probes of kind {probe.kind} cannot be exchanged; there are {', '.join(KINDS)}"
        )
    names = _names(probe)
    sets: dict[Hashable, dict[Hashable, list[str]]] = defaultdict(lambda: defaultdict(list))
    questions: dict[Place, Request] = {}
    lost = {"unusable": 0, "named": 0, "wrong": 0}
    looked_at = 0
    for prompt, response in found:
        place = _place(probe, prompt)
        if place is None:
            continue
        looked_at += 1
        questions.setdefault(place, prompt.request)
        fault = _fault(probe, reading.answer(prompt, response), names)
        own = sets[place[0]][place[1]]
        if fault is None:
            own.append(response.text)
        else:
            lost[fault] += 1
    lines = [
        _line(questions[name, group], text)
        for name, groups in sets.items()
        for group, text in _dealt(groups, f"{probe.name}/sample/{name}")
    ]
    if not lines:
        raise FairnessError(
            f"{probe.path}: no set of questions has an answer for each group that could be given to the others: of "
            f"{looked_at} answers {lost['unusable']} are refused or unreadable, {lost['named']} name a group, "
            f"{lost['wrong']} are not the true one"
        )
    return Sample(lines, looked_at, **lost)


def _place(probe: Probe, prompt: Prompt) -> Place | None:
    """Where a question belongs; `None` for one whose answer is not to be learned from."""
    labels = prompt.labels
    if probe.kind == "generation":
        return labels.get("prompt", ""), tuple(labels[axis] for axis in probe.axes)
    if probe.kind == "recommendation":
        if {"perturbation", "form", "requery"} & labels.keys():
            return None
        return labels["entity"], (labels["attribute"], "" if labels["attribute"] == NEUTRAL else labels["value"])
    if labels["form"] == AGAIN:
        return None
    return labels["record"], OWN if labels["form"] == OWN else (labels["attribute"], labels["to"])


def _fault(probe: Probe, answer: Answer, names: Anonymizer | None) -> str | None:
    """Why an answer is not to be given to others: `unusable`, `named` or `wrong`."""
    if not answer.usable:
        return "unusable"
    text = answer.text or ""
    if names is not None and names.masked(text, "\0") != unicodedata.normalize("NFKC", text):
        return "named"
    truth = probe.truth if probe.kind == "counterfactual" else None
    if truth is not None and "truth" in answer.labels:
        right = (answer.content == probe.positive) == (answer.labels["truth"] == truth.positive)
        return None if right else "wrong"
    return None


def _names(probe: Probe) -> Anonymizer | None:
    """What names a group in a text; nothing where answers are lists or choices."""
    if probe.kind != "generation":
        return None
    return Anonymizer([value for axis in probe.axes.values() for value in axis.values])


def _dealt(groups: dict[Hashable, list[str]], seed: str) -> list[tuple[Hashable, str]]:
    """Each group with the answers that it is given: as many as the group with the fewest has."""
    size = min(map(len, groups.values()))
    random = resampling.generator(seed)
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
