"""An axis of many values: the work of a run grows with the number of values, not with its square."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.records import Prompt
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
