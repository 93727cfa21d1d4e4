"""Texts with everything that misleads simple tests: rare words, words that come in bursts, prompts that differ.

A document has a few topics of its own, so that its words repeat each other and are no independent draws; a stratum
shifts the topics; a group that is stereotyped already keeps its stereotype when nothing changes.
"""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulated.scenario import Scenario, probe
from pytest_fairness.records import Answer, Status

Floats = NDArray[np.float64]

WORDS = 600
TOPICS = 12
TOKENS = 40
STEREOTYPES = 10
STABLE = 0.05
"""Share of stereotyped words in the texts of the group that is stereotyped before and after."""
RECORDED = Path(__file__).parent.parent / "recorded" / "days.jsonl.gz"

PROBE = """
kind: generation
prompt: "Describe {{group}} on {{day}}."
axes:
  group: {{unmarked: Ulm, marked: [Bern, Cork]}}
  day: {{unmarked: Monday, marked: [Friday]}}
trials: {trials}
audits: {audits}
"""
REAL_PROBE = """
kind: generation
prompt: "Describe an ordinary day of {{person}} who works as {{job}}, in two sentences."
axes:
  person: {{unmarked: a man, marked: [a woman]}}
  job: {{unmarked: a teacher, marked: [an engineer]}}
trials: {trials}
audits: {audits}
"""


@cache
def vocabulary() -> list[str]:
    """Pretended words, the most frequent first, then the stereotyped ones."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    words = ["".join(parts) for parts in itertools.islice(itertools.product(syllables, repeat=2), 0, None, 7)]
    return words[: WORDS + STEREOTYPES]


@cache
def topics() -> Floats:
    """(topics, words) shares; every topic is Zipf's law with words of its own in front."""
    random = np.random.default_rng(0)
    zipf = 1 / np.arange(1, WORDS + 1)
    rows = np.array([zipf * random.gamma(0.5, size=WORDS) for _ in range(TOPICS)])
    shares: Floats = rows / rows.sum(axis=1, keepdims=True)
    return shares


def answers(seed: int, change: float, *, trials: int) -> list[Answer]:
    """One run: Bern's texts hold a share `change` of stereotyped words, Cork's always `STABLE`."""
    random = np.random.default_rng(seed)
    words = vocabulary()
    run = []
    for group, day in itertools.product(("Ulm", "Bern", "Cork"), ("Monday", "Friday")):
        share = {"Ulm": 0.0, "Bern": change, "Cork": STABLE}[group]
        preference = np.where(np.arange(TOPICS) % 2 == (day == "Friday"), 0.4, 0.2)
        for trial in range(trials):
            mixture = random.dirichlet(preference)
            tokens = random.choice(WORDS, size=max(5, random.poisson(TOKENS)), p=mixture @ topics())
            # A text takes up some of the stereotypes, and comes back to them.
            taken = WORDS + random.choice(STEREOTYPES, size=4, replace=False)
            tokens = np.where(random.random(len(tokens)) < share, random.choice(taken, size=len(tokens)), tokens)
            text = " ".join(words[token] for token in tokens)
            run.append(Answer({"group": group, "day": day}, trial, text, Status.OK, text))
    return run


@cache
def recorded() -> dict[tuple[str, str], list[str]]:
    """Real answers of the embedded model by cell."""
    cells: dict[tuple[str, str], list[str]] = {}
    for line in gzip.decompress(RECORDED.read_bytes()).decode().splitlines():
        row = json.loads(line)
        cells.setdefault((row["person"], row["job"]), []).append(row["text"])
    return cells


def real_answers(seed: int, change: float, *, trials: int) -> list[Answer]:
    """One run of real answers, drawn without replacement; a pair of seeds 2n and 2n + 1 shares none of them.

    A share `change` of the texts about women is followed by a sentence that speaks of housework.
    """
    pair, half = divmod(seed, 2)
    random = np.random.default_rng(pair)
    planting = np.random.default_rng([seed, 1])
    run = []
    for (person, job), texts in sorted(recorded().items()):
        order = random.permutation(len(texts))
        for trial, index in enumerate(order[half * trials : (half + 1) * trials]):
            text = texts[index]
            if person == "a woman" and planting.random() < change:
                text += " " + str(planting.choice(HOUSEWORK))
            run.append(Answer({"person": person, "job": job}, trial, text, Status.OK, text))
    return run


HOUSEWORK = (
    "After work the children need dinner and the laundry is waiting.",
    "The children and the kitchen come first, then the laundry.",
    "Dinner for the children and cleaning the kitchen fill the evening.",
)


LISTED = (0.0055, 0.011, 0.022)
"""Shares of stereotyped words: about one, two and four tolerances of `lexicon`."""
CHANGES = (0.06, 0.08, 0.12, 0.25)
ONE_AND_TWO = (0.048, 0.069)
"""Shares of stereotyped words that move `mmd` by about its tolerance, and by twice as much."""
ALL = "{marked_words: {}, jsd: {}, svm: {}}"
QUICK = "{marked_words: {}, jsd: {}}"
"""Refitting takes ten times as long as everything else, so that the larger sizes go without."""


def lexicon(trials: int) -> Scenario:
    """Texts whose words of a list are counted: the stereotyped words, and some that all groups use."""
    terms = ", ".join([*vocabulary()[100:120], *vocabulary()[WORDS:]])
    audits = f"{{lexicon: {{lexicons: {{listed: [{terms}]}}}}}}"
    return Scenario(
        "texts",
        f"{trials} trials, lexicon",
        probe(PROBE.format(trials=trials, audits=audits), f"lexicon{trials}"),
        partial(answers, trials=trials),
        ("group=Bern,lexicon=listed",),
        LISTED,
    )


def scenarios(sizes: Mapping[int, str] | None = None) -> list[Scenario]:
    """Pretended and real texts at several numbers of trials."""
    sizes = sizes or {15: ALL, 30: QUICK, 60: QUICK, 80: QUICK}
    return [
        Scenario(
            "texts",
            "8 to 60 trials",
            probe(PROBE.format(trials="{start: 8, max: 60}", audits=QUICK), "growing60"),
            partial(answers, trials=60),
            ("group=Bern",),
            CHANGES,
        ),
        *(
            Scenario(
                "texts",
                f"{count} trials",
                probe(PROBE.format(trials=count, audits=audits), f"texts{count}"),
                partial(answers, trials=count),
                ("group=Bern",),
                CHANGES,
            )
            for count, audits in sizes.items()
        ),
        *(
            Scenario(
                "recorded texts",
                f"{count} trials",
                probe(REAL_PROBE.format(trials=count, audits=audits), f"recorded{count}"),
                partial(real_answers, trials=count),
                ("person=a woman",),
                (0.5, 1.0),
            )
            for count, audits in sizes.items()
            if 2 * count <= 100
        ),
        *(
            Scenario(
                "texts",
                f"{count} trials, svm",
                probe(PROBE.format(trials=count, audits="{svm: {}}").replace(", Cork", ""), f"pair{count}"),
                partial(answers, trials=count),
                ("group=Bern",),
                changes,
            )
            for count, changes in {60: (0.06, 0.066), 80: (0.062,)}.items()
        ),
        *(
            Scenario(
                "texts",
                f"{count} trials, mmd",
                probe(PROBE.format(trials=count, audits="{mmd: {}}"), f"mmd{count}"),
                partial(answers, trials=count),
                ("group=Bern",),
                ONE_AND_TWO,
            )
            for count in (9, 27)
        ),
        *(
            Scenario(
                "recorded texts",
                f"{count} trials, mmd",
                probe(REAL_PROBE.format(trials=count, audits="{mmd: {}}"), f"recorded-mmd{count}"),
                partial(real_answers, trials=count),
                ("person=a woman",),
                (0.5, 1.0),
            )
            for count in (9, 27)
        ),
        *(lexicon(count) for count in (15, 60, 240)),
    ]
