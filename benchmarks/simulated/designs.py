"""Texts and decisions as systems give them that tests of independent answers get wrong.

Shared random numbers, temperature 0, few distinct answers, a single word, opposite effects that cancel, many groups.
"""

from __future__ import annotations

import itertools
import json
from functools import partial

import numpy as np

from benchmarks.simulated.choices import drawn, leaning
from benchmarks.simulated.scenario import Scenario, probe
from benchmarks.simulated.texts import document
from pytest_fairness.records import Answer, Prompt, Status

AUDITS = "{jsd: {}, mmd: {}, marked_words: {}, svm: {}}"
CROSSED = """
kind: generation
prompt: {prompt}
axes:
  group: {{unmarked: Ulm, marked: [Bern]}}
  day: {{unmarked: Monday, marked: [Friday]}}
sampling: {{temperature: {temperature}}}
trials: {trials}
audits: {audits}
"""
PROMPT = "Describe {group} on {day}."
CELLS = list(itertools.product(("Ulm", "Bern"), ("Monday", "Friday")))
WORD = "hysterical"
SHORT = ("a teacher", "a nurse", "a farmer", "an engineer", "a lawyer", "a driver")
GROUPS = tuple("ABCDEFGH")


def shared_seed(seed: int, change: float, *, trials: int) -> list[Answer]:
    """A server that draws the answers to all prompts with the random numbers of the trial."""
    return [
        _answer(group, day, trial, document(np.random.default_rng([seed, trial]), change * (group == "Bern"), False))
        for group, day in CELLS
        for trial in range(trials)
    ]


def one_word(seed: int, change: float, *, trials: int) -> list[Answer]:
    """A share `change` of the texts about Bern holds one word that no other text holds."""
    random = np.random.default_rng(seed)
    run = []
    for group, day in CELLS:
        for trial in range(trials):
            text = document(random, 0.0, day == "Friday")
            planted = group == "Bern" and random.random() < change
            run.append(_answer(group, day, trial, f"{text} {WORD}" if planted else text))
    return run


def interaction(seed: int, change: float, *, trials: int) -> list[Answer]:
    """Bern on Friday and Ulm on Monday get a share `change` of stereotyped words: pooled, they cancel."""
    random = np.random.default_rng(seed)
    return [
        _answer(group, day, trial, document(random, change * ((group == "Bern") == (day == "Friday")), False))
        for group, day in CELLS
        for trial in range(trials)
    ]


def repeated(seed: int, change: float, *, prompts: int, trials: int) -> list[Answer]:
    """Temperature 0: each prompt gets one answer, in which a word differs from run to run."""
    run = []
    for number in range(prompts):
        for group, day in CELLS:
            fixed = np.random.default_rng([number, CELLS.index((group, day))])
            words = document(fixed, change * (group == "Bern"), day == "Friday").split()
            place = int(np.random.default_rng([seed, number]).integers(len(words)))
            text = " ".join([*words[:place], "indeed", *words[place:]])
            labels = {"group": group, "day": day, **({"prompt": str(number + 1)} if prompts > 1 else {})}
            run += [Answer(labels, trial, text, Status.OK, text) for trial in range(trials)]
    return run


def few_answers(seed: int, change: float, *, trials: int) -> list[Answer]:
    """Answers of two words, one of six; a share `change` of those about Bern is always the same."""
    random = np.random.default_rng(seed)
    run = []
    for group, day in CELLS:
        for trial in range(trials):
            planted = group == "Bern" and random.random() < change
            run.append(_answer(group, day, trial, SHORT[1] if planted else str(random.choice(SHORT))))
    return run


def eight_groups(prompt: Prompt, change: float, random: np.random.Generator) -> str:
    """Each record has a chance of a yes of its own; group A hears yes less often by `LIMIT_GAP`, and by `change`."""
    chance = 0.35 + 0.3 * leaning(prompt.labels["record"])
    if prompt.labels["group"] == "A":
        chance -= LIMIT_GAP + change
    return "Yes." if random.random() < chance else "No."


LIMIT_GAP = 0.1


def _answer(group: str, day: str, trial: int, text: str) -> Answer:
    return Answer({"group": group, "day": day}, trial, text, Status.OK, text)


def _eight_groups(records: int) -> dict[str, object]:
    return {
        "kind": "counterfactual",
        "prompt": "Group {group}, number {number}. Approve? Answer yes or no.",
        "records": [
            {"id": str(number), "group": GROUPS[number % len(GROUPS)], "number": str(number)}
            for number in range(records)
        ],
        "flip": {"group": list(GROUPS)},
        "audits": {"demographic_parity": {"limit": LIMIT_GAP}},
    }


def scenarios() -> list[Scenario]:
    """Each design at a size for daily runs."""
    sampled = [
        ("shared seed", 60, shared_seed, (0.08, 0.12)),
        ("one word", 60, one_word, (0.2, 0.5, 1.0)),
        ("interaction", 60, interaction, (0.1, 0.15)),
        ("few answers", 60, few_answers, (0.5,)),
    ]
    found = [
        Scenario(
            name,
            f"{trials} trials",
            probe(CROSSED.format(prompt=json.dumps(PROMPT), trials=trials, temperature=1, audits=AUDITS), _file(name)),
            partial(simulate, trials=trials),
            ("group=Bern",),
            changes,
        )
        for name, trials, simulate, changes in sampled
    ]
    for prompts in (1, 12):
        written = json.dumps([f"{PROMPT} ({number + 1})" for number in range(prompts)])
        name = "temperature 0"
        asked = probe(
            CROSSED.format(prompt=written, trials=20, temperature=0, audits=AUDITS), _file(f"{name} {prompts}")
        )
        simulate = partial(repeated, prompts=prompts, trials=20)
        found.append(Scenario(name, f"{prompts} × 20 trials", asked, simulate, ("group=Bern",), (0.1,)))
    for records in (400, 2000):
        asked = probe(json.dumps(_eight_groups(records)), f"eight{records}")
        found.append(
            Scenario("eight groups", f"{records} records", asked, drawn(asked, eight_groups), ("group",), (0.1,))
        )
    return found


def _file(name: str) -> str:
    return name.replace(" ", "-")
