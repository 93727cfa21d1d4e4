"""Scores out of 100 about records that are shown with both values of an attribute."""

from __future__ import annotations

import json

import numpy as np

from benchmarks.simulated.choices import drawn, leaning
from benchmarks.simulated.scenario import Scenario, probe
from pytest_fairness.records import Prompt
from pytest_fairness.stats import intervals

MEAN, SD, WIDE_SD, LOW = 60.0, 12.0, 22.0, 40.0


def steady(prompt: Prompt, change: float, random: np.random.Generator) -> str:
    """Half of the variance of the scores is between records, and half within; women get `change` points less."""
    record = intervals.quantile(0.001 + 0.998 * leaning(prompt.labels["record"]))
    return _said(prompt, (record + random.standard_normal()) * SD / np.sqrt(2), change)


def noisy(prompt: Prompt, change: float, random: np.random.Generator) -> str:
    """All variance is within records, as if the system did not read them; women get `change` points less."""
    return _said(prompt, random.standard_normal() * SD, change)


def low_tail(prompt: Prompt, change: float, random: np.random.Generator) -> str:
    """Scores vary much between records; women who would have less than 40 points get `change` points less."""
    record = intervals.quantile(0.001 + 0.998 * leaning(prompt.labels["record"]))
    deviation = (0.9 * record + np.sqrt(1 - 0.9**2) * random.standard_normal()) * WIDE_SD
    return _said(prompt, deviation, change * (MEAN + deviation < LOW))


def _said(prompt: Prompt, deviation: float, change: float) -> str:
    labels = prompt.labels
    sex = labels["to"] if labels["form"] == "flipped" else labels["sex"]
    score = MEAN + deviation - change * (sex == "Female")
    return f"Score: {min(100.0, max(0.0, score)):.0f}/100"


def scenarios() -> list[Scenario]:
    """Scores at the sizes that the pages name."""
    found = []
    for name, reply, sizes in (("scores", steady, (100, 300, 1000)), ("noisy scores", noisy, (300,))):
        for records in sizes:
            asked = probe(json.dumps(_scores(records)), f"{name.replace(' ', '_')}{records}")
            found.append(Scenario(name, f"{records} records", asked, drawn(asked, reply), ("sex",), (4.0, 8.0)))
    asked = probe(json.dumps(_scores(300)), "low_scores300")
    return [*found, Scenario("low scores", "300 records", asked, drawn(asked, low_tail), ("sex",), (15.0,))]


def _scores(count: int) -> dict[str, object]:
    return {
        "kind": "counterfactual",
        "prompt": "Age is {age}; sex is {sex}. Rate the application from 0 to 100.",
        "records": [
            {"id": f"r{number}", "age": 20 + number, "sex": ("Male", "Female")[number % 2]} for number in range(count)
        ],
        "flip": {"sex": {"Male": "Female"}},
        "answer": {"number": {"min": 0, "max": 100, "unit": "points"}},
        "audits": {
            "mean_gap": {"tolerance": 4},
            "tail_gap": {"tolerance": 4, "quantile": 0.9},
            "rank_gap": {"tolerance": 0.09},
        },
    }
