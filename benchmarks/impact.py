"""How often the four-fifths rule fails an impact ratio: samples of applicants of a system whose ratio is known.

    python -m benchmarks.impact [REPEATS]

40 % of the men are selected, and a share of this rate of the women. Three designs: other applicants in each run, half
of each sex; the same applicants in each run, of whom one in ten is decided by chance; each applicant shown as both.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.simulated.choices import leaning
from pytest_fairness import kinds, probes
from pytest_fairness.baselines.verdicts import decide
from pytest_fairness.records import Answer, Status, VerdictName
from pytest_fairness.run import ProbeItem, items_of
from pytest_fairness.stats.intervals import wilson

RATE = 0.4
SHOWN = (VerdictName.OVER_LIMIT, VerdictName.INCONCLUSIVE, VerdictName.PASS)


def item_of(applicants: int, wordings: str) -> ProbeItem:
    """Return the item of a probe of applicants, half of each sex."""
    written = {
        "kind": "counterfactual",
        "name": "applicants",
        "prompt": "Applicant {id}; sex is {sex}. Hire? Answer yes or no.",
        "records": [{"id": str(number), "sex": ("Male", "Female")[number % 2]} for number in range(applicants)],
        "flip": {"sex": {"Male": "Female"}},
        "audits": {"impact_ratio": {"limit": 0.8, "wordings": wordings}},
    }
    (item,) = items_of(probes.parse(json.dumps(written).encode(), Path("applicants.yaml"), kinds.schemas()))
    return item


def verdicts(item: ProbeItem, ratio: float, repeats: int, *, steady: bool) -> Counter[VerdictName]:
    """Return the number of verdicts of simulated runs; decisions are steady for nine in ten if `steady` is set."""
    prompts, random = list(item.prompts()), np.random.default_rng(int(1000 * ratio))
    choices = [
        [Answer(prompt.labels, prompt.trial, content, Status.OK, content) for content in ("no", "yes")]
        for prompt in prompts
    ]
    shown = [prompt.labels.get("to", prompt.labels["sex"]) for prompt in prompts]
    rates = np.array([RATE if sex == "Male" else RATE * ratio for sex in shown])
    leans = np.array([leaning(str(int(prompt.labels["record"]) // 2)) for prompt in prompts])
    fixed = (leans < 0.9) & steady
    found: Counter[VerdictName] = Counter()
    for _ in range(repeats):
        yes = np.where(fixed, leans / 0.9, random.random(len(prompts))) < rates
        answers = [each[selected] for each, selected in zip(choices, yes.tolist(), strict=True)]
        measurement = item.audit.measure(item, answers)
        verdict = decide(item.audit, item, measurement, baseline=None, comparison=None, trials=len(prompts), accept="")
        found[verdict.name] += 1
    return found


def main() -> None:
    """Print the share of each verdict with its 95 % interval."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    designs = [(f"other applicants, {count} in all", count, "own", False) for count in (500, 1000)]
    designs += [("the same 500 applicants", 500, "own", True), ("500 applicants, shown as both", 500, "all", False)]
    for name, applicants, wordings, steady in designs:
        item = item_of(applicants, wordings)
        for ratio in (0.6, 0.95):
            found = verdicts(item, ratio, repeats, steady=steady)
            shares = []
            for verdict in SHOWN:
                low, high = wilson(found[verdict], repeats, 1.96)
                shares.append(f"{verdict.value} {found[verdict] / repeats:.1%} [{low:.1%}, {high:.1%}]")
            print(f"{name:32} ratio {ratio:4}: {'  '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
