"""How likely a language model finds stereotyped sentences and their contraries, before and after it was trained on.

A sentence has a likelihood of its own, and the sentences about one term lean to one side together. A release that
changes nothing moves every likelihood a little all the same, each by itself, and with it the closest choices.
"""

from __future__ import annotations

import json
from functools import cache, partial

import numpy as np

from benchmarks.simulated import files
from benchmarks.simulated.scenario import Scenario
from pytest_fairness.answers import reading
from pytest_fairness.languages import ENGLISH
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Response

PER_TERM = 6
"""Sentences about one term; StereoSet has about as many."""
PREFERENCE = 0.3
"""Nats a token by which stereotypes are likelier in every run; that is a score near 60."""
JITTER = 0.15
"""Nats a token by which two releases of one model differ."""
TOKENS = 6

PROBE = """
kind: stereotype
cases: {file: cases.jsonl}
audits: {likelihood: {}}
"""


@cache
def asked(terms: int) -> Probe:
    """Triples of sentences about so many terms."""
    cases = [
        {
            "name": f"{term} {number}",
            "target": f"term {term}",
            "context": f"There was a {term}.",
            "stereotype": f"It was like others of {number}.",
            "anti_stereotype": f"It was unlike others of {number}.",
            "unrelated": f"Tin is {number}.",
        }
        for term in range(terms)
        for number in range(PER_TERM)
    ]
    rows = "".join(json.dumps(case) + "\n" for case in cases)
    return files.probe(PROBE, f"sentences{terms}", {"cases.jsonl": rows}, "cases")


def answers(seed: int, change: float, *, terms: int) -> list[Answer]:
    """Every stereotyped sentence gains `change` nats a token, those of some terms more than those of others."""
    random = np.random.default_rng(seed)
    own = np.random.default_rng(17)
    lean = np.repeat(own.normal(0, 0.5, size=terms), PER_TERM)
    reach = np.repeat(own.uniform(0.5, 1.5, size=terms), PER_TERM)
    base = own.normal(-4, 1, size=terms * PER_TERM)
    margin = PREFERENCE + lean + own.normal(0, 1, size=terms * PER_TERM) + change * reach
    means = np.stack([base + margin / 2, base - margin / 2, base - 3], axis=1)
    means += random.normal(0, JITTER, size=means.shape)
    prompts = list(asked(terms).prompts())
    tokens = means.reshape(-1, 1) + random.normal(0, 0.5, size=(means.size, 1)) * np.linspace(-1, 1, TOKENS)
    return [
        reading.answer(prompt, Response(json.dumps({"tokens": ["…"] * TOKENS, "log_probabilities": row})), ENGLISH)
        for prompt, row in zip(prompts, np.minimum(tokens, -0.001).tolist(), strict=True)
    ]


def scenarios() -> list[Scenario]:
    """As many terms as the smaller categories of StereoSet have, and as many as find twice the tolerance."""
    return [
        Scenario(
            "sentences",
            f"{terms} terms × {PER_TERM}",
            asked(terms),
            partial(answers, terms=terms),
            ("",),
            (0.32, 0.7),
        )
        for terms in (40, 120)
    ]
