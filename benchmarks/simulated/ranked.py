"""Recommended lists: every entity has its favourites, every draw varies, and some values of a person move the list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.simulated.scenario import Scenario, probe
from pytest_fairness.records import Answer, Status

K = 10
POOL = 60
NOISE = 0.35
"""Spread of an item's appeal from draw to draw; neutral lists of one entity then share about two thirds."""

CHANGES = (0.15, 0.215, 0.26, 0.32)

PROBE = """
kind: recommendation
prompt: "I am {{value}} fan of {{entity}}. List {{k}} songs."
neutral: "I am a fan of {{entity}}. List {{k}} songs."
entities: {entities}
attributes:
  age: [a young, a middle-aged, an old]
k: 10
neutral_trials: 2
audits:
  snsr: {{similarity: jaccard}}
  snsv: {{similarity: jaccard}}
  pafs: {{attribute: age}}
  uncertainty: {{repeats: 2}}
  shortfall: {{}}
"""


def answers(seed: int, change: float, *, entities: int) -> list[Answer]:
    """One run: for old people a share `change` of each list is replaced by items of their own.

    Young people's lists lose a tenth to items of their own in every run: a gap that is there before and after.
    """
    random = np.random.default_rng(seed)
    run = []
    for entity in range(entities):
        # The same entity is the same in every run.
        own = np.random.default_rng([7, entity])
        appeal = own.gumbel(size=POOL)
        reach = own.uniform(0.5, 1.5)
        for attribute, value, draws, replaced in (
            ("neutral", "", 2, 0.0),
            ("age", "a young", 1, 0.1 * reach),
            ("age", "a middle-aged", 1, 0.0),
            ("age", "an old", 1, change * reach),
        ):
            for trial in range(draws):
                order = np.argsort(-(appeal + random.normal(0, NOISE, size=POOL)))[:K]
                items = [f"song {entity} {number}" for number in order]
                items = [
                    f"other song {entity} {value} {place}" if random.random() < replaced else item
                    for place, item in enumerate(items)
                ]
                labels = {"entity": f"entity {entity}", "attribute": attribute}
                if value:
                    labels["value"] = value
                run.append(Answer(labels, trial, "\n".join(items), Status.OK, items))
    return run


def scenarios(entities: Sequence[int] = (50, 100, 300)) -> list[Scenario]:
    """Lists for several numbers of entities."""
    return [
        Scenario(
            "lists",
            "50 to 300 entities",
            probe(PROBE.format(entities="{file: entities.csv, start: 50}"), "growing300"),
            partial(answers, entities=300),
            ("age",),
            CHANGES,
        ),
        *(
            Scenario(
                "lists",
                f"{count} entities",
                probe(PROBE.format(entities=[f"entity {number}" for number in range(count)]), f"lists{count}"),
                partial(answers, entities=count),
                ("age",),
                CHANGES,
            )
            for count in entities
        ),
    ]
