"""Are audits of records right? A system without bias many times over, and one that is biased by a known amount.

    python benchmarks/flips.py [REPEATS] [RECORDS]

Prints how often each audit fails where nothing is wrong, which alpha bounds, and how often 95 % intervals hold what is
true.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pytest_fairness import kinds, probes
from pytest_fairness.answers import reading
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.languages import ENGLISH
from pytest_fairness.probes import CounterfactualProbe
from pytest_fairness.records import Answer, Measurement, Prompt, Response, VerdictName
from pytest_fairness.run import ProbeItem, items_of

FAILURES = (VerdictName.REGRESSION, VerdictName.OVER_LIMIT)


def probe_of(records: int) -> CounterfactualProbe:
    """A probe of records that are balanced by sex and income."""
    written = {
        "kind": "counterfactual",
        "name": "simulated",
        "prompt": "Age is {age}; sex is {sex}; relationship is {relationship}. More than $50,000? Answer yes or no.",
        "records": [
            {
                "id": str(number),
                "age": 20 + number,
                "sex": ("Male", "Female")[number % 2],
                "relationship": ("Husband", "Wife")[number % 2],
                "income": ("<=50K", ">50K")[number // 2 % 2],
            }
            for number in range(records)
        ],
        "flip": {"sex": {"Male": "Female"}, "with": {"relationship": {"Husband": "Wife"}}},
        "truth": {"column": "income", "positive": ">50K"},
        "audits": {
            "flip_rate": {"limit": 0.1},
            **{name: {"limit": 0.2} for name in ("demographic_parity", "equalized_odds", "accuracy")},
        },
    }
    probe = probes.parse(json.dumps(written).encode(), Path("simulated.yaml"), kinds.schemas())
    assert isinstance(probe, CounterfactualProbe)
    return probe


def answers_of(
    prompts: Sequence[Prompt], chances: dict[str, float], bias: float, random: np.random.Generator
) -> list[Answer]:
    """One run: everybody has a chance of "yes"; men have `bias` more of it, women less, by half of it each."""
    found = []
    for prompt in prompts:
        labels = prompt.labels
        sex = labels.get("to", labels["sex"])
        chance = chances[labels["record"]] + (bias / 2 if sex == "Male" else -bias / 2)
        found.append(reading.answer(prompt, Response("Yes." if random.random() < chance else "No."), ENGLISH))
    return found


def measured(part: ProbeItem, answers: Sequence[Answer]) -> Measurement:
    """The measurement of the item's own answers."""
    return part.audit.measure(part, [answer for answer in answers if part.uses(answer.labels)])


def unbiased(repeats: int, probe: CounterfactualProbe, random: np.random.Generator) -> dict[str, Counter[str]]:
    """Verdicts by item, of runs without bias that are compared with an earlier run of the same system."""
    prompts, parts = list(probe.prompts()), items_of(probe)
    verdicts: dict[str, Counter[str]] = {part.id: Counter() for part in parts}
    for _ in range(repeats):
        chances = {record.id: float(random.choice([0.02, 0.5, 0.98], p=[0.45, 0.1, 0.45])) for record in probe.records}
        baseline, current = (answers_of(prompts, chances, 0.0, random) for _ in range(2))
        for part in parts:
            runs = [[answer for answer in run if part.uses(answer.labels)] for run in (current, baseline)]
            verdict = decide(
                part.audit,
                part,
                measured(part, current),
                baseline=BaselineEntry(measured(part, baseline).value),
                comparison=part.audit.compare(part, *runs),
                trials=None,
                accept="",
            )
            verdicts[part.id][verdict.name] += 1
    return verdicts


def planted(repeats: int, probe: CounterfactualProbe, bias: float, random: np.random.Generator) -> dict[str, list[int]]:
    """How many intervals hold the planted flip rate, direction and parity gap, and how many there are.

    The chance of "yes" is a half and half of the bias more or less. Two answers to the same prompt then differ with
    (1 - bias²) / 2, and two to flipped ones with (1 + bias²) / 2.
    """
    prompts = list(probe.prompts())
    parts = {part.audit_name: part for part in items_of(probe)}
    chances = {record.id: 0.5 for record in probe.records}
    held = {"flip_rate": [0, 0], "share": [0, 0], "directional": [0, 0], "demographic_parity": [0, 0]}

    def note(name: str, interval: Sequence[float] | None, truth: float) -> None:
        assert interval is not None
        held[name][0] += interval[0] <= truth <= interval[1]
        held[name][1] += 1

    for _ in range(repeats):
        answers = answers_of(prompts, chances, bias, random)
        flips = measured(parts["flip_rate"], answers)
        note("flip_rate", flips.interval, bias**2)
        note("share", flips.details["share_interval"], (1 + bias**2) / 2)
        n, directional = flips.details["records"], flips.details["directional"]
        half = 1.96 * np.sqrt((flips.details["share"] - directional**2) / n)
        note("directional", (directional - half, directional + half), bias)
        note("demographic_parity", measured(parts["demographic_parity"], answers).interval, bias)
    return held


def main() -> None:
    """Run both, and print the counts."""
    repeats, records = (int(text) for text in (*sys.argv[1:], "100", "200")[:2])
    probe, random = probe_of(records), np.random.default_rng(1)
    print(f"{records} records, {repeats} repeats\n\nwithout bias, compared with an earlier run, limit 0.1 or 0.2:")
    failures = 0
    for item, verdicts in unbiased(repeats, probe, random).items():
        failures += sum(verdicts[name] for name in FAILURES)
        print(f"  {item}: {', '.join(f'{count} {name}' for name, count in sorted(verdicts.items()))}")
    print(f"  failures: {failures} of {4 * repeats} items; alpha allows {probe.alpha:.0%} of the runs\n")
    print("men 30 points likelier to get a yes; how many 95 % intervals hold what was planted:")
    for name, (held, count) in planted(repeats, probe, 0.3, random).items():
        print(f"  {name}: {held} of {count}")


if __name__ == "__main__":
    main()
