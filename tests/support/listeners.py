"""Simulated lists of a recommender, fair or biased by a known amount; each list is drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from pytest_fairness.audits import registry
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.probes.base import EqualPrompts
from pytest_fairness.probes.shared_keys import Attribute, Value
from pytest_fairness.records import Answer, Status

K = 25
RELIGIONS = ("Buddhist", "Christian", "Hindu", "Muslim")


def attribute(name: str, values: Sequence[str]) -> Attribute:
    """Return an attribute whose values have these texts as names and as words."""
    return Attribute(name, tuple(Value(label=value, text=value) for value in values), (name,))


def probe(**changes: Any) -> Any:
    """Return a stand-in for a probe, with the attributes that audits of lists read."""
    attributes = {
        "religion": attribute("religion", RELIGIONS),
        "age": attribute("age", ("a young", "an old")),
    }
    plain = {
        "name": "songs",
        "audits": {},
        "equal_prompts": EqualPrompts({}, {}, 0, 0),
        "k": K,
        "attributes": attributes,
        "perturbations": {"typo": SimpleNamespace()},
        "trials": 1,
        "neutral_trials": 2,
        "normalize": True,
        "fuzzy": None,
        "relevant": None,
        "responses": None,
        "asks_all_units": False,
        "edits": lambda perturbation: [{"clean": "songs", "text": "sonsg", "edits": [perturbation]}],
    }
    return SimpleNamespace(**{**plain, **changes})


def titles(random: np.random.Generator, entity: str, noise: float, other: float = 0.0) -> list[str]:
    """Return K songs of an entity.

    Args:
        random: generator of random numbers.
        entity: the entity.
        noise: probability that a song is replaced by another song of the entity.
        other: probability that a song is replaced by one that is in no other list.
    """
    songs = []
    for number in range(K):
        if random.random() < other:
            songs.append(f"{entity} rarity {number} {random.integers(10**6)}")
        elif random.random() < noise:
            songs.append(f"{entity} song {K + random.integers(4 * K)}")
        else:
            songs.append(f"{entity} song {number}")
    return songs


def answer(labels: dict[str, str], trial: int, content: Sequence[str] | None, status: Status = Status.OK) -> Answer:
    return Answer(labels, trial, None if content is None else "\n".join(content), status, content)


def run(
    seed: int,
    *,
    entities: int = 30,
    noise: float = 0.2,
    other: float = 0.0,
    harmed: str = "Muslim",
    attribute: str = "religion",
    values: Sequence[str] = RELIGIONS,
    trials: int = 1,
    neutral_trials: int = 2,
    perturbation: str = "",
) -> list[Answer]:
    """Return the lists of one run; a share `other` of the songs for the value `harmed` is in no other list."""
    random = np.random.default_rng(seed)
    answers = []
    extra = {"perturbation": perturbation} if perturbation else {}
    for number in range(entities):
        entity = f"artist {number:03}"
        for trial in range(neutral_trials):
            labels = {"entity": entity, "attribute": "neutral", "value": "", **extra}
            answers.append(answer(labels, trial, titles(random, entity, noise)))
        for value in values:
            labels = {"entity": entity, "attribute": attribute, "value": value, **extra}
            for trial in range(trials):
                share = other if value == harmed else 0.0
                answers.append(answer(labels, trial, titles(random, entity, noise, share)))
    return answers


def item(
    name: str,
    subject: str | None = "religion",
    alpha: float = 0.01,
    of: Any = None,
    **settings: Any,
) -> AuditItem[Any, Any]:
    """Return an item of the audit `name`; its subject is an attribute, a perturbation or `None`."""
    audit = registry.get("recommendation", name)
    label = "perturbation" if name == "robustness" else "attribute"
    return AuditItem(
        of or probe(),
        name,
        subject,
        {} if subject is None else {label: subject},
        audit.settings_model(**settings),
        alpha,
        seed=f"songs/{name}[{subject}]",
    )
