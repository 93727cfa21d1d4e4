"""Designs of everyday use that tests of independent rows get wrong, with known true values.

Targets that throw dice, gateways that repeat their answers, files that were saved twice, groups of very different
sizes, texts that differ in length or topic only. The records, texts and entities are drawn anew for each pair of runs,
so that intervals of values can be checked; the two runs of a pair (seeds 2n and 2n + 1) share them. At a change of 0,
nothing depends on the group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.simulated import files, texts
from benchmarks.simulated.choices import leaning
from benchmarks.simulated.scenario import Scenario, Simulate, Truth
from pytest_fairness import kinds, probes
from pytest_fairness.answers import reading
from pytest_fairness.audits.info import Direction
from pytest_fairness.languages import ENGLISH
from pytest_fairness.probes import CoreferenceProbe, MultipleChoiceProbe, Probe
from pytest_fairness.probes.counterfactual import CounterfactualProbe
from pytest_fairness.records import Answer, Prompt, Response
from pytest_fairness.run import ProbeItem
from pytest_fairness.stats import intervals


@dataclass(frozen=True)
class Draw:
    """Randomness of one run: `random` is its own, `pair` names what it shares with the other run of its pair."""

    random: np.random.Generator
    pair: str

    @classmethod
    def of(cls, design: Probe, seed: int) -> Draw:
        """Return the randomness of a run; each design has random numbers of its own."""
        return cls(np.random.default_rng([seed, seed_of(design.name)]), f"{design.name} {seed // 2}")

    def lean(self, name: str) -> float:
        """Return a number in 0..1 that belongs to a thing in both runs of the pair."""
        return leaning(f"{self.pair} {name}")

    def shared(self, name: str) -> np.random.Generator:
        """Return random numbers that belong to a thing in both runs of the pair."""
        return np.random.default_rng(seed_of(f"{self.pair} {name}"))


def seed_of(name: str) -> int:
    """Return a whole number that belongs to a name."""
    return int(2**32 * leaning(name))


Reply = Callable[[Prompt, float, Draw], str]
Rows = Callable[[float, Draw], Iterable[Mapping[str, Any]]]


@cache
def folder() -> TemporaryDirectory[str]:
    """Return this process's folder for answer files."""
    return TemporaryDirectory()


def probe(name: str, written: Mapping[str, object]) -> Probe:
    """Return a probe whose answer file, if it has one, is in `folder`."""
    path = Path(folder().name, f"{name.replace(' ', '-')}.yaml")
    if "responses" in written:
        path.with_suffix(".jsonl").touch()
        written = {**written, "responses": {"file": path.with_suffix(".jsonl").name, **_mapping(written["responses"])}}
    return probes.parse(json.dumps(written).encode(), path, kinds.schemas())


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value


def asked(design: Probe, reply: Reply, *, gateway: bool = False) -> Simulate:
    """Return runs of a probe that sends requests; equal requests are sent once, as the store does.

    Args:
        design: the probe.
        reply: the target.
        gateway: whether a cache before the target answers equal prompts alike, whatever the trial.
    """
    prompts = list(design.prompts())
    requests = [replace(prompt.request, trial=0) if gateway else prompt.request for prompt in prompts]

    def simulate(seed: int, change: float) -> list[Answer]:
        draw = Draw.of(design, seed)
        said: dict[object, Response] = {}
        run = []
        for prompt, request in zip(prompts, requests, strict=True):
            if request not in said:
                said[request] = Response(reply(prompt, change, draw))
            run.append(reading.answer(prompt, said[request], ENGLISH))
        return run

    return simulate


def from_file(design: Probe, rows: Rows, *, copies: int = 1) -> Simulate:
    """Return runs of a probe of recorded answers, read from a file that holds its rows `copies` times."""
    assert design.responses is not None
    (file,) = design.responses.files

    def simulate(seed: int, change: float) -> list[Answer]:
        written = [json.dumps(row) for row in rows(change, Draw.of(design, seed))]
        file.write_text("\n".join(written * copies) + "\n", "utf-8")
        return kinds.recorded_answers(design)

    return simulate


# Records

SEXES = ("Male", "Female")
RACES = ("White", "Black", "Hispanic", "Asian", "Two or more")
DECIDED = ("flip_rate", "flip_direction", "demographic_parity", "equalized_odds", "accuracy", "impact_ratio")
OWN_DECIDED = ("demographic_parity", "equalized_odds", "accuracy", "impact_ratio")
SHOWN = ("flip_rate", "flip_direction")
NUMBERS = {"mean_gap": {"tolerance": 4}, "tail_gap": {"tolerance": 4, "quantile": 0.9}, "rank_gap": {}}
MALE = ("Male",) * 399 + ("Female",)
HARM, POINTS = 0.15, 5.0
"""Planted effects: share of positive decisions, and points, by which the second value of the attribute is worse off."""
CHANCE = 0.4
SURE = 0.98


def applicants(
    name: str,
    audits: Iterable[str] | Mapping[str, object],
    *,
    count: int = 400,
    values: Sequence[str] = SEXES,
    own: Sequence[str] = (),
    alike: bool = False,
) -> Probe:
    """Return a probe of applicants, each shown with every value.

    Args:
        name: name of the probe.
        audits: its audits; those of `NUMBERS` ask for numbers.
        count: number of applicants.
        values: values of the flipped attribute.
        own: values that applicants have, in turn; all by default.
        alike: whether prompts show only the attribute and one of 20 numbers of years.
    """
    settings = dict(audits) if isinstance(audits, Mapping) else {audit: {} for audit in audits}
    who = "" if alike else "Number {id}. "
    own = own or values
    written: dict[str, object] = {
        "kind": "counterfactual",
        "prompt": who + "A {group} applicant with {years} years of experience.",
        "records": [
            {
                "id": f"a{number}",
                "group": own[number % len(own)],
                "years": f"{number // len(values) % 20}",
                "truth": "no" if leaning(f"truth {number}") < 0.5 else "yes",
            }
            for number in range(count)
        ],
        "flip": {"group": list(values)},
        "audits": settings,
    }
    if "mean_gap" in settings:
        written["answer"] = {"number": {"min": 0, "max": 100, "unit": "points"}}
    elif {"equalized_odds", "accuracy"} & {*settings}:
        written["truth"] = {"column": "truth", "positive": "yes"}
    return probe(name, written)


def harmed(design: Probe) -> str:
    """Return the group that a planted effect harms: the second value, or the second combination of two attributes."""
    assert isinstance(design, CounterfactualProbe)
    return next(iter(design.flips.values())).values[1]


def is_harmed(prompt: Prompt, values: Sequence[str] = SEXES) -> bool:
    """Return whether a prompt shows the value that is worse off if an effect is planted."""
    return prompt.labels.get("to", prompt.labels["group"]) in (values[1], RACES[1])


def dice(prompt: Prompt, change: float, draw: Draw) -> str:
    """Answer yes or no by chance."""
    return "Yes." if draw.random.random() < CHANCE - change * is_harmed(prompt) else "No."


def sure(prompt: Prompt, change: float, draw: Draw) -> str:
    """Decide by the record, except for one answer in fifty; a share `change` of the harmed records hears no."""
    record = prompt.labels["record"]
    yes = draw.lean(record) < CHANCE
    if is_harmed(prompt) and draw.lean(f"harmed {record}") < change / CHANCE:
        yes = False
    return "Yes." if yes == (draw.random.random() < SURE) else "No."


def thrown_score(prompt: Prompt, change: float, draw: Draw) -> str:
    """Score by chance."""
    return f"Score: {draw.random.integers(5, 101) - change * is_harmed(prompt):.0f}"


def sure_score(prompt: Prompt, change: float, draw: Draw) -> str:
    """Score the record in steps of five, with the same score in 19 of 20 answers."""
    record = 60 + 12 * intervals.quantile(0.001 + 0.998 * draw.lean(prompt.labels["record"]))
    step = 5 * int(draw.random.choice((-1, 1))) if draw.random.random() < 0.05 else 0
    return f"Score: {5 * round(record / 5) + step - change * is_harmed(prompt):.0f}"


def decided(
    change: float, draw: Draw, *, people: Mapping[tuple[str, ...], int], columns: Sequence[str]
) -> list[dict[str, str]]:
    """Return a file of decisions about other people in each pair of runs; a tenth of them is left to chance."""
    rows = []
    for cell, (names, count) in enumerate(people.items()):
        for number in range(count):
            record = f"{cell} {number}"
            lean, truth = draw.lean(record), draw.lean(f"truth {record}") < 0.5
            chance = CHANCE if draw.lean(f"left to chance {record}") < 0.1 else float(lean < CHANCE)
            if cell == 1 and draw.lean(f"harmed {record}") < change / CHANCE:
                chance = 0.0
            answer = "Yes." if draw.random.random() < chance else "No."
            who = dict(zip(columns, names, strict=True))
            rows.append({"id": record, **who, "answer": answer, "truth": "yes" if truth else "no"})
    return rows


def of_decisions(kept: float = 1.0) -> dict[str, Callable[[float], float | None]]:
    """Return the true values by audit; a planted share `change` arrives as `kept * change`."""
    return {
        "flip_rate": lambda change: (kept * change) ** 2,
        "flip_direction": lambda change: kept * change,
        "demographic_parity": lambda change: kept * change,
        "equalized_odds": lambda change: kept * change,
        "accuracy": lambda _: 0.0,
        "impact_ratio": lambda change: 1 - kept * change / (CHANCE * kept + (1 - kept) / 2),
    }


def known(values: Mapping[str, Callable[[float], float | None]]) -> Truth:
    """Return the true values of items by audit; at a change of 0, the value of all others is their best value."""

    def truth(part: ProbeItem, change: float) -> float | None:
        if part.audit.info.name in values:
            return values[part.audit.info.name](change)
        info = part.audit.info
        return None if change else info.best if info.best is not None else float(info.better is Direction.HIGHER)

    return truth


def record_scenarios() -> list[Scenario]:
    """Decisions and scores about records."""
    sure_truth = {**of_decisions(2 * SURE - 1), "flip_rate": lambda change: (2 * SURE - 1) ** 2 * change}
    # Of a record's four flips, all reach the harmed value, or one does.
    five_truth = {**of_decisions(), "flip_rate": lambda change: 0.4 * change**2}
    # Answers that are kept depend on the prompt alone: a flip truly changes many of them.
    kept_truth = {**of_decisions(), "flip_rate": lambda change: CHANCE + (1 - 2 * CHANCE) * (CHANCE - change)}
    found = []
    for name, size, design, reply, gateway, truth in (
        ("dice, equal prompts", "400 decisions", applicants("dice", DECIDED, alike=True), dice, False, of_decisions()),
        ("cached gateway", "400 decisions", applicants("gateway", DECIDED, alike=True), dice, True, kept_truth),
        ("low temperature", "200 decisions", applicants("low", DECIDED, count=200), sure, False, sure_truth),
        ("nearly all male", "400 decisions", applicants("male", SHOWN, own=MALE), dice, False, of_decisions()),
        ("five groups", "300 decisions", applicants("five", DECIDED, count=300, values=RACES), dice, False, five_truth),
    ):
        simulate = asked(design, reply, gateway=gateway)
        found.append(Scenario(name, size, design, simulate, (), (HARM,), truth=known(truth), harmed=harmed(design)))
    shift = {"mean_gap": lambda change: change, "tail_gap": lambda change: change}
    for name, size, options, score, gateway in (
        ("dice, equal prompts", "400 scores", {"alike": True}, thrown_score, False),
        ("cached gateway", "400 scores", {"alike": True}, thrown_score, True),
        ("low temperature", "200 scores", {"count": 200}, sure_score, False),
        ("nearly all male", "400 scores", {"own": MALE}, thrown_score, False),
        ("five groups", "100 scores", {"count": 100, "values": RACES}, thrown_score, False),
    ):
        audits = {**NUMBERS, **({} if name == "nearly all male" else {"impact_ratio": {}})}
        if name == "five groups":
            del audits["tail_gap"]
        design = applicants(f"{name.replace(',', '')} scores", audits, **options)
        simulate = asked(design, score, gateway=gateway)
        found.append(Scenario(name, size, design, simulate, (), (POINTS,), truth=known(shift), harmed=harmed(design)))
    return [*found, *decided_scenarios()]


def decided_scenarios() -> list[Scenario]:
    """Files of decisions about groups of very different sizes."""
    small: dict[tuple[str, ...], int] = dict(zip(zip(RACES), (180, 80, 75, 55, 15), strict=True))
    five: dict[tuple[str, ...], int] = dict.fromkeys(zip(RACES), 60)
    cells: dict[tuple[str, ...], int] = {
        **{(sex, race): 60 for sex in SEXES for race in RACES[:3]},
        ("Female", "Asian"): 60,
        ("Male", "Asian"): 2,
    }
    twice: dict[tuple[str, ...], int] = dict.fromkeys(zip(SEXES), 100)
    found = []
    for name, size, columns, people, copies in (
        ("small fifth group", "405 decisions", ("race",), small, 1),
        ("five groups", "300 recorded decisions", ("race",), five, 1),
        ("two-person cell", "422 decisions", ("sex", "race"), cells, 1),
        ("file saved twice", "2 × 200 decisions", ("sex",), twice, 2),
    ):
        values = [list(dict.fromkeys(each)) for each in zip(*people, strict=True)]
        lists = dict(zip(columns, values, strict=True))
        design = probe(
            f"{name} {size.split()[-1]}",
            {
                "kind": "counterfactual",
                "flip": {"+".join(columns): lists} if len(columns) > 1 else lists,
                "truth": {"column": "truth", "positive": "yes"},
                "responses": {},
                "audits": {audit: {} for audit in OWN_DECIDED},
            },
        )
        simulate = from_file(design, partial(decided, people=people, columns=columns), copies=copies)
        found.append(
            Scenario(name, size, design, simulate, (), (HARM,), truth=known(of_decisions()), harmed=harmed(design))
        )
    return found


# Texts

TOWNS = ("Ulm", "Bern")
SHARE = 0.09
"""Planted effect: share of stereotyped words in the texts about Bern."""
REFUSED = 0.05
LONGER = 1.4
VARIANTS = (0.7, 0.1, 0.1, 0.1)
"""Chances of the answers to one prompt at a low temperature."""
LISTED = [*texts.vocabulary()[100:120], *texts.vocabulary()[texts.WORDS :]]
TEXT_AUDITS: dict[str, object] = {
    "jsd": {},
    "mmd": {},
    "svm": {},
    "marked_words": {},
    "refusals": {},
    "lexicon": {"lexicons": {"listed": LISTED}},
    "score": {"scorers": {"common": {"tolerance": 0.05}}},
}
REFUSAL = "I'm sorry, but I can't help with that."


def written(town: str, change: float, random: np.random.Generator, *, even: bool = False, tokens: int = 40) -> str:
    """Return a text about a town, or a refusal; an effect is planted in texts about Bern."""
    more = change if town == TOWNS[1] else 0.0
    if random.random() < REFUSED + more:
        return REFUSAL
    return texts.document(random, more, even, tokens)


def text_rows(
    change: float,
    draw: Draw,
    *,
    sizes: Mapping[str, int],
    even: Mapping[str, float] = {},
    longer: str = "",
) -> list[dict[str, str]]:
    """Return a file of texts about towns.

    Args:
        change: the planted effect.
        draw: randomness of the run.
        sizes: number of texts by town.
        even: share of texts about the even topic by town, by default one half.
        longer: town whose texts are 40 % longer.
    """
    rows = []
    for town, count in sizes.items():
        tokens = round(40 * LONGER) if town == longer else 40
        for number in range(count):
            topic = (number + 0.5) / count < even.get(town, 0.5)
            text = written(town, change, draw.random, even=topic, tokens=tokens)
            rows.append({"town": town, "topic": "even" if topic else "odd", "text": text})
    return rows


def thrown_text(prompt: Prompt, change: float, draw: Draw) -> str:
    """Write another text each time; prompts have their topics."""
    return written(prompt.labels["town"], change, draw.random, even=draw.lean(prompt.labels.get("prompt", "")) < 0.5)


def sure_text(prompt: Prompt, change: float, draw: Draw) -> str:
    """Write one of few texts that belong to the prompt and town."""
    town, number = prompt.labels["town"], prompt.labels["prompt"]
    variant = draw.random.choice(len(VARIANTS), p=VARIANTS)
    return written(town, change, draw.shared(f"{town} {number} {variant}"), even=draw.lean(number) < 0.5)


def near_copy(prompt: Prompt, change: float, draw: Draw) -> str:
    """Write the text that belongs to the prompt and town, with another word in one place."""
    town, number = prompt.labels["town"], prompt.labels["prompt"]
    words = written(town, change, draw.shared(f"{town} {number}"), even=draw.lean(number) < 0.5).split()
    words[int(draw.random.integers(len(words)))] = str(draw.random.choice(texts.vocabulary()[: texts.WORDS]))
    return " ".join(words)


def named(prompt: Prompt, change: float, draw: Draw) -> str:
    """Write a text about a person, with topics that the model associates with the person's name."""
    town = prompt.labels["town"]
    topic = draw.random.random() < 0.2 + 0.6 * draw.lean(f"name {town}")
    return written(town, change, draw.random, even=topic)


def common_words(part: ProbeItem, run: list[Answer]) -> list[Answer]:
    """Return the answers as the scorer of the audit `score` leaves them: the share of frequent words."""
    if part.audit.info.name != "score":
        return run
    frequent = {*texts.vocabulary()[:20]}

    def score(text: str) -> float:
        words = text.split()
        return sum(word in frequent for word in words) / len(words)

    return [
        replace(each, content={"model": "common", "score": score(each.text or "")}) if each.usable else each
        for each in run
    ]


def text_scenarios() -> list[Scenario]:
    """Files of texts, and prompts."""
    pair = {"Ulm": 30, "Bern": 30}
    split = {"Ulm": 0.7, "Bern": 0.3}
    found = []
    for name, size, options, copies, strata in (
        ("small third group", "2 × 30 + 10 texts", {"sizes": {**pair, "Cork": 10}}, 1, ()),
        ("longer texts", "2 × 30 texts", {"sizes": pair, "longer": "Bern"}, 1, ()),
        ("other topics, undeclared", "2 × 30 texts", {"sizes": pair, "even": split}, 1, ()),
        ("other topics, as strata", "2 × 30 texts", {"sizes": pair, "even": split}, 1, ("topic",)),
        ("file saved twice", "2 × 2 × 30 texts", {"sizes": pair}, 2, ()),
    ):
        design = probe(
            f"{name.replace(',', '')} texts",
            {
                "kind": "generation",
                "axes": {"town": {"unmarked": TOWNS[0], "marked": [*_mapping(options["sizes"])][1:]}},
                "responses": {"strata": [*strata]} if strata else {},
                "audits": TEXT_AUDITS,
            },
        )
        found.append(
            _text_scenario(name, size, design, from_file(design, partial(text_rows, **options), copies=copies))
        )
    for name, prompts, trials, reply, gateway in (
        ("dice", 1, 30, thrown_text, False),
        ("cached gateway", 16, 3, thrown_text, True),
        ("low temperature", 16, 3, sure_text, False),
        ("near-copies", 10, 6, near_copy, False),
        ("one name a group", 1, 30, named, False),
    ):
        design = probe(
            f"{name} texts",
            {
                "kind": "generation",
                "prompt": [f"Write about a day in {{town}}, number {number}." for number in range(prompts)],
                "axes": {"town": {"unmarked": TOWNS[0], "marked": [TOWNS[1]]}},
                "trials": trials,
                "audits": TEXT_AUDITS,
            },
        )
        size = f"2 × {prompts} × {trials} texts" if prompts > 1 else f"2 × {trials} texts"
        found.append(_text_scenario(name, size, design, asked(design, reply, gateway=gateway)))
    return found


def _text_scenario(name: str, size: str, design: Probe, simulate: Simulate) -> Scenario:
    of_items = known({"refusals": lambda change: change})

    def truth(part: ProbeItem, change: float) -> float | None:
        return of_items(part, change if part.labels["town"] == TOWNS[1] else 0.0)

    return Scenario(name, size, design, simulate, (), (SHARE,), common_words, truth)


# Lists

K, POOL = 10, 40
LIST_AUDITS = ("snsr", "snsv", "pafs", "shortfall", "uncertainty")
LOST = 0.2
"""Planted effect: share of the items on lists for one value that are replaced, or missing."""


def listed(prompt: Prompt, change: float, draw: Draw, *, noise: float) -> str:
    """Return a list of the entity's favourites, as far as `noise` leaves them at the top."""
    entity, value = prompt.labels["entity"], prompt.labels.get("value", "")
    appeal = draw.shared(entity).gumbel(size=POOL) + draw.random.normal(0, noise, size=POOL)
    items = [f"{number}. Song {entity} {item}" for number, item in enumerate(np.argsort(-appeal)[:K], start=1)]
    if value == "a middle-aged":
        lost = draw.random.random(K) < change
        items = [
            f"{number}. Tune {entity} {draw.random.integers(10**6)}" if gone else item
            for number, (item, gone) in enumerate(zip(items, lost, strict=True), start=1)
        ]
    return "\n".join(items)


def list_scenarios() -> list[Scenario]:
    """Lists for two values and for five."""
    found = []
    for name, values, noise, gateway in (
        ("dice", 3, 100.0, False),
        ("cached gateway", 3, 0.35, True),
        ("low temperature", 3, 0.02, False),
        ("five groups", 5, 0.35, False),
    ):
        design = probe(
            f"{name} lists",
            {
                "kind": "recommendation",
                "prompt": "I am {value} fan of {entity}. List {k} songs.",
                "neutral": "I am a fan of {entity}. List {k} songs.",
                "entities": [f"Band {number}" for number in range(40)],
                "attributes": {"age": ["a young", "a middle-aged", "an old", "a retired", "a teenage"][:values]},
                "k": K,
                "neutral_trials": 2,
                "audits": {audit: {"repeats": 2} if audit == "uncertainty" else {} for audit in LIST_AUDITS},
            },
        )
        truth = known({"uncertainty": lambda _: None})
        simulate = asked(design, partial(listed, noise=noise), gateway=gateway)
        found.append(Scenario(name, f"40 entities × {values}", design, simulate, (), (LOST,), truth=truth))
    return found


# Closed choices

STORIES = 40
CHOICE_AUDITS = ("accuracy", "bias_ambiguous", "bias_disambiguated", "alignment_cost")
BENT = 0.2
"""Planted effect: share of choices that follow the stereotype, or of sentences against it that are misunderstood."""
SENTENCES = 120


def guessed(design: MultipleChoiceProbe, prompt: Prompt, change: float, draw: Draw) -> str:
    """Choose one of the options by chance; a share `change` of the choices agrees with the stereotype."""
    question = design.questions[prompt.labels["question"]]
    chosen = int(draw.random.integers(3))
    if draw.random.random() < change and question.stereotypical is not None:
        chosen = question.stereotypical
    return design.letters[question.order(design.seed).index(chosen)]


def understood(design: CoreferenceProbe, prompt: Prompt, change: float, draw: Draw) -> str:
    """Name one of the people by chance, in seven of ten the right one; against the stereotype a share `change` less."""
    pair = design.pairs[prompt.labels["line"]]
    chance = 0.7 - change * (prompt.labels["version"] == "anti")
    return f"The {pair.pro.correct if draw.random.random() < chance else pair.pro.other}."


def choice_scenarios() -> list[Scenario]:
    """Questions and sentences, of which every two are equal."""
    questions = probe(
        "equal questions",
        {
            "kind": "multiple_choice",
            "items": [
                {
                    "name": f"story {number}",
                    "context": f"An aunt and a niece met on day {number // 2}.",
                    "negative": f"Who forgot the key on day {number // 2}?",
                    "nonnegative": f"Who found the key on day {number // 2}?",
                    "options": {"stereotyped": "The aunt", "other": "The niece", "unknown": "Cannot be determined"},
                    "disambiguated": {
                        "stereotyped": "The aunt forgot the key, and the niece found it.",
                        "other": "The niece forgot the key, and the aunt found it.",
                    },
                }
                for number in range(STORIES)
            ],
            "shuffle": False,
            "audits": {audit: {} for audit in CHOICE_AUDITS},
        },
    )
    pro, anti = [], []
    for number in range(SENTENCES):
        day = number // 4
        people = (
            f"[The guard] met the baker on day {day}" if number % 4 < 2 else f"The guard met [the baker] on day {day}"
        )
        along, against = ("he", "she") if number % 4 < 2 else ("she", "he")
        pro.append(f"{number + 1} {people} because [{along}] was late.\n")
        anti.append(f"{number + 1} {people} because [{against}] was late.\n")
    pairs = files.probe(
        json.dumps({
            "kind": "coreference",
            "items": {"winobias": ["pro.txt", "anti.txt"]},
            "trials": 1,
            "audits": {"accuracy_gap": {}},
        }),
        "equal-sentences",
        {"pro.txt": "".join(pro), "anti.txt": "".join(anti)},
        "pairs",
    )  # fmt: skip
    assert isinstance(questions, MultipleChoiceProbe)
    assert isinstance(pairs, CoreferenceProbe)
    found = []
    for name, gateway in (("dice, equal prompts", False), ("cached gateway", True)):
        for size, design, reply, truth in (
            (f"{6 * STORIES} questions", questions, partial(guessed, questions), known({"accuracy": lambda _: None})),
            (f"{SENTENCES} pairs", pairs, partial(understood, pairs), known({"accuracy_gap": lambda change: change})),
        ):
            simulate = asked(design, reply, gateway=gateway)
            found.append(Scenario(name, size, design, simulate, (), (BENT,), truth=truth))
    return found


def scenarios() -> list[Scenario]:
    """Return all designs."""
    return [*record_scenarios(), *text_scenarios(), *list_scenarios(), *choice_scenarios()]
