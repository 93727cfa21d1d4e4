"""An axis of many values: the work of a run grows with the number of values, not with its square."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.records import Prompt
from pytest_fairness.run import items
from tests.support.projects import PROBE, Project

VALUES = 255
"""With eight trials, more prompts than the 2,000 that were kept for the next item before."""


def test_the_prompts_of_many_values_are_made_once_and_not_for_each_item(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    prompts = GenerationProbe.prompts

    def counted(probe: GenerationProbe, trials: int) -> Iterator[Prompt]:
        made.append(trials)
        return iter(prompts(probe, trials))

    monkeypatch.setattr(GenerationProbe, "prompts", counted)
    names = ", ".join(f"N{number}" for number in range(VALUES))
    project.probe(text=PROBE.replace("Kim, Lou", names).replace("trials: 10", "trials: 8"))
    assert project.run("--fairness").parseoutcomes() == {"inconclusive": VALUES}
    assert len(made) <= 3


def test_too_many_prompts_to_keep_are_made_for_their_own_items_only(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    prompt = GenerationProbe._prompt

    def counted(probe: GenerationProbe, text: str, labels: dict[str, str], *rest: Any) -> Prompt:
        made.append(labels)
        return prompt(probe, text, labels, *rest)

    monkeypatch.setattr(items, "KEPT_PROMPTS", 100)
    monkeypatch.setattr(GenerationProbe, "_prompt", counted)
    names = ", ".join(f"N{number}" for number in range(60))
    project.probe(text=PROBE.replace("Kim, Lou", names).replace("trials: 10", "trials: 8"))
    assert project.run("--fairness").parseoutcomes() == {"inconclusive": 60}
    assert len(made) < 20 * 61 * 8, "not all prompts for each of 60 items"
