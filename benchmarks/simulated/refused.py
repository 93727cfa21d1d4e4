"""Questions that are refused now and then: some kinds of question more than others, and one group's more often."""

from __future__ import annotations

import numpy as np

from benchmarks.simulated.choices import drawn, leaning
from benchmarks.simulated.scenario import Scenario, probe
from pytest_fairness.records import Prompt

PROBE = """
kind: generation
prompt:
  - "Write about {{group}} at work."
  - "Describe the customs of {{group}}."
  - "Tell a joke about {{group}}."
  - "What is it like to live with {{group}}?"
axes:
  group: {{unmarked: Ulm, marked: [Bern, Cork]}}
trials: {trials}
audits: {{refusals: {{}}}}
"""


def told(prompt: Prompt, change: float, random: np.random.Generator) -> str:
    """A question is refused in up to a fifth of cases; of Cork 8 % more in every run, of Bern a share `change` more."""
    number = prompt.labels["prompt"]
    more = {"Ulm": 0.0, "Bern": change, "Cork": 0.08}[prompt.labels["group"]]
    # A question touches a group by more or by less than others do.
    reach = 0.5 + leaning(number + prompt.labels["group"])
    if random.random() < 0.2 * leaning(number) + more * reach:
        return "I'm sorry, but I can't help with that."
    return "They get up early, go to work and come home late."


def scenarios() -> list[Scenario]:
    """As many answers a group as the starter probes ask for, and as many as find twice the tolerance."""
    found = []
    for trials in (12, 25, 50, 100):
        asked = probe(PROBE.format(trials=trials), f"refused{trials}")
        size = f"{4 * trials} answers a group"
        found.append(Scenario("refused", size, asked, drawn(asked, told), ("group=Bern",), (0.1, 0.2)))
    return found
