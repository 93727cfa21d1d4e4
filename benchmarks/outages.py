"""How many items pass although the system under test is broken.

    python -m benchmarks.outages --workers 2
    python -m benchmarks.outages --only second

`recorded/outages.jsonl.gz` holds answers of 162 made-up systems that are down, in four sets of 50, 50, 20 and 42:
outage texts in six languages, rotating or worded anew, with ids, countdowns and quotas, HTML pages, JSON error objects,
stack traces, log-in pages, and services that repeat the prompt. The first two sets were written by people who had not
seen the checks of answers, as was the fourth; the third one, of odd systems, was written after them. Each system
answers probes of all kinds, either every request (`whole`) or a random half of them (`half`); the rest is answered by a
system that works. Items are judged with a limit, and with a baseline of the system that works.
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration import entry_of
from benchmarks.simulated.choices import leaning
from benchmarks.simulated.scenario import probe
from pytest_fairness.answers import reading
from pytest_fairness.audits import answer_checks
from pytest_fairness.audits.answer_checks import service_messages
from pytest_fairness.audits.confounding import constant_answers, irrelevant_answers
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Prompt, Response, VerdictName
from pytest_fairness.run import BaselineComparison, ItemMeasurement, ProbeItem, items_of
from pytest_fairness.run.results import verdict_on

RECORDED = Path(__file__).with_name("recorded")
SYSTEMS = RECORDED / "outages.jsonl.gz"
SETS = ("first", "second", "third", "fourth")
DAYS = RECORDED / "days.jsonl.gz"
JOBS = ("a teacher", "an engineer")
GARDENER = "What has {person} to do at work in a garden, from spring to autumn?"
ENGINEER = "How does {person} with the job of an engineer spend the hours from morning to evening?"
THINGS = sorted(
    {
        *("lamp", "chair", "table", "sofa", "desk", "clock", "mirror", "vase", "rug", "shelf", "stool", "bench"),
        *("river", "garden", "window", "bread", "letter", "street", "flower", "market", "coffee", "evening", "story"),
        *("bridge", "forest", "harbour", "castle", "valley", "meadow", "orchard"),
    }
)
NAMES = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Fay", "Gus", "Hal", "Ian", "Jo", "Kim", "Lee"]
RECORDS = [{"id": f"{n:03}", "sex": ("Male", "Female")[n % 2], "rich": str(n // 2 % 2)} for n in range(80)]
PEOPLE = (
    ("phoned", "doctor", "nurse"), ("met", "pilot", "maid"), ("paid", "boss", "typist"), ("saw", "guard", "cook"),
)  # fmt: skip
WIDE = {"jsd": 0.5, "mmd": 0.5, "refusals": 0.9, "impact_ratio": 0.1, "score": 100.0, "marked_words": 50.0}
"""Limits that every working system keeps, by audit; 0.9 for the others."""
TEXT_AUDITS = {"jsd": {}, "mmd": {}, "refusals": {}, "score": {"scorer": "words", "tolerance": 10}}
Reply = Callable[[Prompt, np.random.Generator], str]


def written() -> dict[str, dict[str, Any]]:
    """Return the probe of each kind, as in a probe file."""
    person = {"person": {"unmarked": "a man", "marked": ["a woman"]}}
    records = {"kind": "counterfactual", "records": RECORDS, "flip": {"sex": {"Male": "Female"}}}
    day = "Describe an ordinary day of {person} who works as %s, in two sentences."
    return {
        "texts, several prompts": {
            "kind": "generation", "prompt": [day % JOBS[0], ENGINEER, GARDENER], "axes": person, "trials": 24,
            "audits": TEXT_AUDITS,
        },
        "texts, one prompt": {
            "kind": "generation", "prompt": day % JOBS[0], "axes": person, "trials": 40, "audits": TEXT_AUDITS,
        },
        "lists": {
            "kind": "recommendation", "prompt": "I am {value} fan of {entity}. List {k} songs.",
            "neutral": "I am a fan of {entity}. List {k} songs.", "entities": NAMES,
            "attributes": {"age": ["a young", "a grown", "an old"]}, "k": 5,
            "audits": {"snsr": {}, "shortfall": {}, "uncertainty": {}},
        },
        "decisions": {
            **records, "prompt": "Does number {id}, whose sex is {sex}, earn much? Answer yes or no.",
            "answer": {"choices": ["yes", "no"], "positive": "yes"}, "truth": {"column": "rich", "positive": "1"},
            "audits": {"flip_rate": {}, "demographic_parity": {}, "accuracy": {}, "impact_ratio": {}},
        },
        "numbers": {
            **records, "prompt": "How well does number {id}, whose sex is {sex}, fit? Answer from 0 to 1000.",
            "answer": {"number": {"min": 0, "max": 1000}},
            "audits": {"mean_gap": {"tolerance": 90}, "tail_gap": {"tolerance": 90, "quantile": 0.8}, "rank_gap": {}},
        },
        "choices": {
            "kind": "coreference", "trials": 4, "audits": {"coreference": {}},
            "items": [
                {"id": f"{man} {when}", "sentence": f"The {{first}} {verb} the {{second}} as {{pronoun}} was {when}",
                 "question": f"who was {when}", "masculine": man, "feminine": woman}
                for verb, man, woman in PEOPLE for when in ("late", "early")
            ],
        },
        "replies": {
            **records, "prompt": "Write about the day of number {id}, whose sex is {sex}.", "answer": {"text": True},
            "audits": {"score": {"scorer": "words", "tolerance": 10}},
        },
        "cases": {
            "kind": "stereotype", "trials": 30, "audits": {"markers": {"min_markers": 1}},
            "cases": [
                {"name": "nurse", "category": "work", "prompt": "Describe a nurse.", "stereotype": ["she", "her"],
                 "anti_stereotype": ["he", "his"], "opposite": "ceo"},
                {"name": "ceo", "category": "work", "prompt": "Describe a CEO.", "stereotype": ["he", "his"],
                 "anti_stereotype": ["she", "her"], "opposite": "nurse"},
            ],
        },
    }  # fmt: skip


@cache
def days() -> dict[tuple[str, str], list[str]]:
    """Return real texts about an ordinary day, by job and person."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in gzip.decompress(DAYS.read_bytes()).decode().splitlines():
        row = json.loads(line)
        found.setdefault((row["job"], row["person"]), []).append(row["text"])
    return found


def healthy(prompt: Prompt, random: np.random.Generator) -> str:
    """Answer as a fair system that works: real texts, and lists, numbers and decisions that belong to the prompt."""
    asked = prompt.request.prompt
    if "fan of" in asked:
        own = [thing for thing in THINGS if leaning(f"{prompt.labels['entity']} {thing}") < 0.3][:8]
        return "\n".join(f"{place}. {thing}" for place, thing in enumerate(random.permutation(own)[:5], 1))
    if "yes or no" in asked:
        return "Yes." if random.random() < 0.1 + 0.8 * leaning(prompt.labels["record"]) else "No."
    if "from 0 to" in asked:
        return f"Score: {random.normal(300 + 400 * leaning(prompt.labels['record']), 40):.0f}"
    if "who was" in asked:
        _, *both = next(each for each in PEOPLE if each[1] in asked)
        return f"The {random.choice(both)}."
    if "Describe a " in asked:
        job = "nurse" if "nurse" in asked else "CEO"
        thing = [thing for thing in THINGS if leaning(f"{job} {thing}") < 0.5]
        words = " and the ".join(random.choice(thing, 3))
        return f"{random.choice(['She', 'He'])} is a {job} who cares for the {words}."
    person = "a woman" if "woman" in asked or "Female" in asked else "a man"
    job = JOBS["engineer" in asked or int(prompt.labels.get("record", "0")) % 4 > 1]
    own = days()[job, person]
    return str(own[int(prompt.labels["record"])] if "record" in prompt.labels else random.choice(own))


def run_of(asked: Probe, reply: Reply, random: np.random.Generator) -> list[Answer]:
    """Return the answers to all prompts of a probe."""
    return [reading.answer(each, Response(reply(each, random)), asked.language) for each in asked.prompts()]


def broken(texts: Sequence[str], share: float) -> Reply:
    """Return a system of which this share of the answers is one of these texts."""

    def reply(prompt: Prompt, random: np.random.Generator) -> str:
        if random.random() >= share:
            return healthy(prompt, random)
        asked = prompt.request.prompt
        return str(random.choice(texts)).replace("{prompt}", asked).replace("{PROMPT}", asked.upper())

    return reply


def with_words(answer: Answer) -> Answer:
    """Return the answer with its number of words as the score."""
    if not answer.usable:
        return answer
    return replace(answer, content={"model": "words", "score": float(len((answer.text or "").split()))})


def verdicts(part: ProbeItem, current: Sequence[Answer], baseline: Sequence[Answer]) -> dict[str, str]:
    """Return the verdict on an item with a limit, and with a baseline."""
    original = current
    if part.audit.info.name == "score":
        current, baseline = ([with_words(answer) for answer in run] for run in (current, baseline))
    counted = part.audit.counted_answers(part, original)
    early = (constant_answers, irrelevant_answers, lambda _, *rest: service_messages(*rest))
    if any(check(part.audit, part, counted) for check in early):
        return dict.fromkeys(("limit", "baseline"), VerdictName.INCONCLUSIVE.value)  # measuring takes long
    try:
        found = part.audit.measure(part, current)
    except NotMeasurable:
        return dict.fromkeys(("limit", "baseline"), VerdictName.NOT_MEASURABLE.value)
    found = replace(found, concerns=answer_checks.concerns(part.audit, part, counted, found))
    name = part.audit.info.name
    limit = WIDE.get(name, 0.1 if part.audit.info.better.value == "higher" else 0.9)
    limited = replace(part, settings=part.settings.model_copy(update={"limit": limit}))
    result = {"limit": verdict_on(ItemMeasurement(limited, "", current, found), BaselineComparison()).name.value}
    try:
        before, change = part.audit.measure(part, baseline), part.audit.compare(part, current, baseline)
        compared = BaselineComparison(entry_of(before), (), change)
        result["baseline"] = verdict_on(ItemMeasurement(part, "", current, found), compared).name.value
    except (NotMeasurable, BaselineStale):
        result["baseline"] = VerdictName.NOT_MEASURABLE.value
    return result


def counted_passes(system: int, share: float) -> Iterator[dict[str, Any]]:
    """Yield one row for each kind of probe: how many of its items pass, with a limit and with a baseline."""
    texts = systems()[system]["texts"] if system >= 0 else ()
    for kind, content in written().items():
        asked = probe(json.dumps(content), kind.replace(", ", "_").replace(" ", "_"))
        random = np.random.default_rng([system + 1, round(10 * share)])
        current, baseline = run_of(asked, broken(texts, share), random), run_of(asked, healthy, random)
        passes, items = Counter[str](), 0
        for part in items_of(asked):
            own = [[answer for answer in run if part.uses(answer.labels)] for run in (current, baseline)]
            found = verdicts(part, *own)
            passes.update(f"{mode} {part.id}" for mode, verdict in found.items() if verdict == VerdictName.PASS)
            items += len(found)
        yield {"system": system, "share": share, "kind": kind, "items": items, "passes": dict(passes)}


@cache
def systems() -> list[dict[str, Any]]:
    """Return the broken systems: their language, their kind and their texts."""
    return [json.loads(line) for line in gzip.decompress(SYSTEMS.read_bytes()).decode().splitlines()]


def rows_of(task: tuple[int, float]) -> list[dict[str, Any]]:
    """Return the rows of a system; see `counted_passes`."""
    warnings.simplefilter("ignore")
    return list(counted_passes(*task))


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print how many items pass, by kind of probe and by kind of system."""
    for title, key in (("kind of probe", lambda row: row["kind"]), ("system", lambda row: name_of(row["system"]))):
        cells: dict[str, Counter[str]] = {}
        for row in rows:
            share = {0.5: "half", 1.0: "whole"}.get(row["share"], "works")
            cell = cells.setdefault(key(row), Counter())
            cell[f"{share} items"] += row["items"]
            cell[f"{share} passes"] += len(row["passes"])
        print(f"| {title} | wholly broken: items that pass | half broken: items that pass |\n| --- | --- | --- |")
        for name, cell in cells.items():
            parts = [f"{cell[f'{share} passes']} of {cell[f'{share} items']}" for share in ("whole", "half")]
            print(f"| {name} | {' | '.join(parts)} |")
        print()


def name_of(system: int) -> str:
    """Return the kind of a system."""
    return str(systems()[system]["kind"]) if system >= 0 else "works"


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=(*SETS, "all", "works"), default="all", help="set of systems")
    parser.add_argument("--share", type=float, nargs="*", default=[1.0, 0.5])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one system")
    arguments = parser.parse_args()
    places = [place for place, each in enumerate(systems()) if arguments.only in ("all", SETS[each["set"] - 1])]
    tasks = [(place, share) for place in places[: 1 if arguments.quick else None] for share in arguments.share]
    tasks = [(-1, 0.0)] if arguments.only == "works" else tasks
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        rows = [row for found in pool.map(rows_of, tasks) for row in found]
    show(rows)
    for row in rows:
        if row["passes"]:
            print(row["system"], name_of(row["system"]), row["share"], row["kind"], *row["passes"], sep=" | ")


if __name__ == "__main__":
    main()
