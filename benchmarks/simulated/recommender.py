"""A recommender whose lists get less steady, shorter, upset by typing errors, or worse for one group of people.

Every entity has its favourites and a degree by which it is touched by whatever is wrong; both are the same in every
run. Two lists of one question share about two thirds. Young people are somewhat worse off in every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulated import files
from benchmarks.simulated.scenario import Scenario
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Status

Floats = NDArray[np.float64]

K = 10
POOL = 60
NOISE = 0.35
"""Spread of an item's appeal from draw to draw."""
REPEATS = 10
RELEVANT = 15
AGES = ("a young", "a middle-aged", "an old")

PROBE = """
kind: recommendation
prompt: "I am {{value}} fan of {{entity}}. List {{k}} songs."
neutral: "I am a fan of {{entity}}. List {{k}} songs."
entities: {{file: entities.csv}}
attributes: {{age: [a young, a middle-aged, an old]}}
k: 10
{more}
"""


@cache
def entity(number: int) -> tuple[Floats, float]:
    """(POOL,) appeal of an entity's items, and how much it is touched by a change, 0.5..1.5."""
    own = np.random.default_rng([11, number])
    return own.gumbel(size=POOL), float(own.uniform(0.5, 1.5))


def listed(appeal: Floats, noise: float, random: np.random.Generator) -> NDArray[np.int64]:
    """(K,) numbers of the items that one draw puts first."""
    return np.argsort(-(appeal + random.normal(0, noise, size=POOL)))[:K]


def songs(number: int, order: NDArray[np.int64]) -> list[str]:
    """Titles of an entity's items."""
    return [f"song {number} {item}" for item in order]


def replaced(items: list[str], share: float, name: str, random: np.random.Generator) -> list[str]:
    """A share of the items exchanged for ones that are on no other list."""
    lost = random.random(len(items)) < share
    return [
        f"song of {name} {place}" if gone else item for place, (item, gone) in enumerate(zip(items, lost, strict=True))
    ]


def answer(number: int, value: str, trial: int, items: list[str], *, refused: bool = False, **more: str) -> Answer:
    """One list as it is read."""
    labels = {"entity": f"entity {number}", "attribute": "age" if value else "neutral", "value": value, **more}
    if refused or not items:
        return Answer(labels, trial, "I cannot recommend songs.", Status.REFUSED)
    return Answer(labels, trial, "\n".join(items), Status.OK, items)


def unsteady(seed: int, change: float, *, entities: int) -> list[Answer]:
    """A share of the neutral lists and of old people's is made up, and comes in no other draw."""
    random = np.random.default_rng(seed)
    run = []
    for number in range(entities):
        appeal, reach = entity(number)
        share = {"": change, "a young": 0.05, "a middle-aged": 0.0, "an old": change}
        for value in ("", *AGES):
            for trial in range(REPEATS):
                items = songs(number, listed(appeal, NOISE, random))
                items = replaced(items, share[value] * reach, f"{number} {value} {trial}", random)
                run.append(answer(number, value, trial, items))
    return run


def short(seed: int, change: float, *, entities: int) -> list[Answer]:
    """Lists are cut short by an item or two now and then; one in fifty is refused, of old people a share more."""
    random = np.random.default_rng(seed)
    run = []
    for number in range(entities):
        appeal, reach = entity(number)
        more = {"a young": 0.03, "a middle-aged": 0.0, "an old": change}
        for value in AGES:
            items = songs(number, listed(appeal, NOISE, random))
            kept = K - int(random.integers(1, 4)) if random.random() < 0.15 * reach else K
            refused = random.random() < (0.02 + more[value]) * reach
            run.append(answer(number, value, 0, items[:kept], refused=refused))
    return run


def misspelt(seed: int, change: float, *, entities: int) -> list[Answer]:
    """A misspelt question gets a list that varies more, in every run, and loses a share of its items to others.

    Lists for people of whom something is known are left out, as nothing of the value is taken from them.
    """
    random = np.random.default_rng(seed)
    run = []
    for number in range(entities):
        appeal, reach = entity(number)
        clean, again, other = (listed(appeal, noise, random) for noise in (NOISE, NOISE, 1.5 * NOISE))
        run += [answer(number, "", trial, songs(number, order)) for trial, order in enumerate((clean, again))]
        items = songs(number, other)
        items = replaced(items, change * reach, f"{number} misspelt", random)
        run.append(answer(number, "", 0, items, perturbation="misspelt"))
    return run


def worse(seed: int, change: float, *, entities: int) -> list[Answer]:
    """A share of old people's lists becomes songs that nobody wants; of young people's a tenth, in every run."""
    random = np.random.default_rng(seed)
    run = []
    for number in range(entities):
        appeal, reach = entity(number)
        share = {"": 0.0, "a young": 0.1, "a middle-aged": 0.0, "an old": change}
        for value in ("", *AGES):
            items = songs(number, listed(appeal, NOISE, random))
            run.append(answer(number, value, 0, replaced(items, share[value] * reach, f"{number} {value}", random)))
    return run


def relevant(entities: int) -> Iterator[dict[str, str]]:
    """What is right for each entity: some of its favourites, and some that the recommender does not know to be."""
    for number in range(entities):
        appeal, _ = entity(number)
        own = np.random.default_rng([13, number])
        for item in np.argsort(-(appeal + own.gumbel(size=POOL)))[:RELEVANT]:
            yield {"entity": f"entity {number}", "item": f"song {number} {item}"}


@cache
def asked(audit: str, entities: int, more: str = "") -> Probe:
    """The probe of one audit."""
    text = PROBE.format(more=f"audits: {{{audit}}}\n{more}")
    names = "".join(f"entity {number}\n" for number in range(entities))
    rows = "".join(json.dumps(row) + "\n" for row in relevant(entities))
    written = {"entities.csv": f"name\n{names}", "relevant.jsonl": rows}
    return files.probe(text, audit.partition(":")[0], written, "entities", "relevant")


def scenarios() -> list[Scenario]:
    """Each way to get worse at the size of a first probe, and at one that finds twice the tolerance."""
    typos = "perturbations: {misspelt: {rate: 0.1}}"
    settings = f"uncertainty: {{repeats: {REPEATS}, attributes: [age]}}"
    return [
        *(
            Scenario(
                "unsteady lists",
                f"{count} entities × {REPEATS}",
                asked(settings, count),
                partial(unsteady, entities=count),
                ("", "age"),
                (0.3, 0.65),
            )
            for count in (14, 50)
        ),
        *(
            Scenario(
                "short lists",
                f"{count} entities",
                asked("shortfall: {}", count),
                partial(short, entities=count),
                ("age",),
                (0.25, 0.45),
            )
            for count in (50, 450)
        ),
        *(
            Scenario(
                "misspelt",
                f"{count} entities",
                asked("robustness: {}", count, typos),
                partial(misspelt, entities=count),
                ("misspelt",),
                (0.25, 0.6),
            )
            for count in (14, 50)
        ),
        *(
            Scenario(
                "worse lists",
                f"{count} entities",
                asked("quality: {}", count, "relevant: {file: relevant.jsonl}"),
                partial(worse, entities=count),
                ("age",),
                (0.23, 0.37),
            )
            for count in (50, 240)
        ),
    ]
