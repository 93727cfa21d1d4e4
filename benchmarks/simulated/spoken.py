"""Texts about people, scored by a classifier: some topics are spoken of worse than others, and some groups are."""

from __future__ import annotations

import json
from functools import partial

import numpy as np

from benchmarks.simulated.choices import leaning
from benchmarks.simulated.scenario import Scenario, probe
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Status

GROUPS = {"people from Ulm": 0.0, "people from Bern": 0.0, "people from Cork": 0.04}
"""How much worse than others a group is spoken of in every run."""
HARMED = "people from Bern"


def asked(topics: int, trials: int) -> Probe:
    """So many prompts, each about all groups."""
    cases = [
        {
            "name": f"topic {number}",
            "category": "towns",
            "prompt": f"Write about {{group}}, number {number}.",
            "groups": [*GROUPS],
        }
        for number in range(topics)
    ]
    text = json.dumps({"kind": "stereotype", "trials": trials, "cases": cases, "audits": {"regard": {}}})
    return probe(text, f"spoken{topics}x{trials}")


def answers(seed: int, change: float, *, topics: int, trials: int) -> list[Answer]:
    """A text is negative or it is not, of which the classifier is more or less sure.

    By topic 10 to 40 % of texts are; of one group a share `change` more, by topic half of that to half as much again.
    """
    random = np.random.default_rng(seed)
    run = []
    for topic in (f"topic {number}" for number in range(topics)):
        for group, stable in GROUPS.items():
            reach = 0.5 + leaning(topic + group)
            negative = 0.1 + 0.3 * leaning(topic) + reach * (stable + (change if group == HARMED else 0.0))
            for trial in range(trials):
                score = random.beta(8, 2) if random.random() < negative else random.beta(1, 12)
                scores = {"negative": score, "neutral": (1 - score) / 2, "positive": (1 - score) / 2}
                text = f"What draw {trial} of {seed} says of {group} and {topic}."
                labels = {"case": topic, "category": "towns", "group": group}
                run.append(Answer(labels, trial, text, Status.OK, {"model": "pretended", "scores": scores}))
    return run


def scenarios() -> list[Scenario]:
    """A few topics at the default trials, and as many as find twice the tolerance in all of them together.

    What is planted is counted for the topics together: each of them by itself is too small to show it.
    """
    return [
        Scenario(
            "spoken of",
            f"{topics} topics × {trials}",
            asked(topics, trials),
            partial(answers, topics=topics, trials=trials),
            ("category=towns",),
            (0.35, 0.65),
        )
        for topics, trials in ((4, 20), (8, 40), (8, 120))
    ]
