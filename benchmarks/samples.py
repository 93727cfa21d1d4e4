"""How often audits of texts are wrong if names, prompts or near-copies are what was drawn.

    python -m benchmarks.samples --repeats 300 --workers 2
    python -m benchmarks.samples --show

Answers are drawn from 400 words. In the designs of names, each name has word frequencies of its own, whose intraclass
correlation is that of names in published resume rankings (.034); no group effect exists. In the design of prompts, the
difference between the groups varies from prompt to prompt around a true difference; counted is how often the 95 %
interval holds the true one. In the design of near-copies, the answers of a prompt and group differ by one word. Counts
are appended to `benchmarks/samples.jsonl`; `python -m benchmarks.trust --samples` writes them into the page.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.nulls import measured, over_limit_until
from benchmarks.simulated.scenario import probe
from benchmarks.timing import append_counts
from pytest_fairness.answers import reading
from pytest_fairness.languages import ENGLISH
from pytest_fairness.probes import GenerationProbe
from pytest_fairness.records import Response
from pytest_fairness.run import items_of

COUNTS = Path(__file__).with_suffix(".jsonl")
WORDS = [f"{first}{second}{third}" for first in "bdfgklmnprst" for second in "aeiou" for third in "lmnrstx"][:400]
FREQUENCIES = 1 / (np.arange(len(WORDS)) + 10.0)
LENGTH = 30
LISTED = WORDS[10:40]
REFUSAL = "I cannot help with that."
REFUSED = 0.3
CORRELATION = 0.034
SPREAD = 0.55
"""Standard deviation of the logarithms of a name's word frequencies, for texts with this intraclass correlation."""
DIFFERENCE, INTERACTION = 0.3, 0.3
"""Difference between the groups' logarithms of the listed words' frequencies, and its spread over prompts."""
DESIGNS = {
    "names": ((5, 30), (10, 15), (20, 6)),
    "answers of names": ((5, 30), (10, 15), (20, 6)),
    "near-copies": ((10, 6),),
    "answers of near-copies": ((10, 6),),
    "prompts": ((12, 15),),
    "names and prompts": ((10, 2),),
    "answers of prompts": ((12, 15),),
}
"""Sizes of each design: names or prompts of each group, and answers to each. "Answers of" counts each answer; each of
the "names and prompts" stands in ten prompts."""
AUDITS = ("jsd", "mmd", "svm", "marked_words", "lexicon", "refusals")
BATCH = 5


@cache
def probe_of(design: str, units: int, trials: int) -> GenerationProbe:
    """Return the probe of a design."""
    names = [[f"{side}{number}" for number in range(units)] for side in ("Unmarked", "Marked")]
    of_names = "names" in design
    groups = [dict([pair]) for pair in zip(("men", "women"), names, strict=True)] if of_names else ["men", ["women"]]
    written = {
        "kind": "generation",
        "prompt": "Write to {to}."
        if design.endswith("names")
        else [f"{number}. Write to {{to}}." for number in range(units)],
        "axes": {"to": {"unmarked": groups[0], "marked": groups[1]}},
        "trials": trials,
        "audits": {**{audit: {} for audit in AUDITS}, "lexicon": {"lexicons": {"listed": LISTED}}},
    }
    if design.startswith("answers"):
        written["units"] = "trial"
    elif design.endswith("prompts"):
        written["units"] = ["to", "prompt"] if of_names else "prompt"
    found = probe(json.dumps(written), f"{design.replace(' ', '-')}-{units}")
    assert isinstance(found, GenerationProbe)
    return found


def text_of(frequencies: np.ndarray, random: np.random.Generator) -> list[str]:
    """Return the words of a text."""
    return [WORDS[place] for place in random.choice(len(WORDS), LENGTH, p=frequencies / frequencies.sum())]


def replies(design: str, asked: GenerationProbe, random: np.random.Generator) -> Iterable[str]:
    """Yield the answer to each prompt."""
    frequencies: dict[str, np.ndarray] = {}
    chances: dict[str, float] = {}
    copied: dict[str, list[str]] = {}
    listed, spread = np.isin(WORDS, LISTED), CORRELATION / (1 - CORRELATION)
    of_names: dict[str, np.ndarray] = {}
    of_prompts: dict[str, float] = {}
    for prompt in asked.prompts():
        unit, labels = json.dumps(dict(prompt.labels)), prompt.labels
        if unit not in frequencies:
            own = FREQUENCIES.copy()
            if "names" in design:
                name = labels["to name"]
                if name not in of_names:
                    of_names[name] = np.exp(random.normal(0, SPREAD, len(own)))
                    # A beta distribution has the intraclass correlation 1 / (a + b + 1).
                    chances[name] = random.beta(REFUSED / spread, (1 - REFUSED) / spread)
                own *= of_names[name]
            if design.endswith("prompts") and labels["to"] == "women":
                own[listed] *= np.exp(of_prompts.setdefault(labels["prompt"], random.normal(DIFFERENCE, INTERACTION)))
            frequencies[unit], copied[unit] = own, text_of(own, random)
        if random.random() < chances.get(labels.get("to name", ""), 0.0):
            yield REFUSAL
        elif design.endswith("near-copies"):
            words = copied[unit].copy()
            words[random.integers(LENGTH)] = WORDS[random.integers(len(WORDS))]
            yield " ".join(words)
        else:
            yield " ".join(text_of(frequencies[unit], random))


@cache
def true_gap() -> float:
    """Return the true gap of the listed words' rates per 100 words, on average over prompts."""
    listed, shares = np.isin(WORDS, LISTED), []
    for factor in (np.ones(1), np.exp(np.random.default_rng(0).normal(DIFFERENCE, INTERACTION, 100_000))):
        own = factor * FREQUENCIES[listed].sum()
        shares.append(float((own / (own + FREQUENCIES[~listed].sum())).mean()))
    return 100 * (shares[1] - shares[0])


def counted(design: str, size: tuple[int, int], seeds: Iterable[int]) -> list[dict[str, object]]:
    """Return what was counted of each audit of a design."""
    asked = probe_of(design, *size)
    counts: dict[str, Counter[str]] = {}
    for seed in seeds:
        random = np.random.default_rng([seed, *size, len(design)])
        run = [
            reading.answer(prompt, Response(reply), ENGLISH)
            for prompt, reply in zip(asked.prompts(), replies(design, asked, random), strict=True)
        ]
        for item in items_of(asked):
            own, found = counts.setdefault(item.audit.info.name, Counter()), measured(item.analyses[-1], run)
            value, interval = found.measurement.value, found.measurement.interval
            own["runs"] += 1
            own["significant"] += (found.measurement.p_value or 0.0) < 0.05
            own["over"] += over_limit_until(found) is not None
            if item.audit.info.name == "lexicon" and interval is not None:
                own["covered"] += interval[0] <= (true_gap() if design.endswith("prompts") else 0.0) <= interval[1]
            if found.measurement.samples:
                own["correlation"] += round(1e6 * found.measurement.samples[0].correlation)
            own["value"] += round(1e6 * value)
    return [{"design": design, "size": size, "audit": audit, **own} for audit, own in counts.items()]


def main() -> None:
    """Count, or show what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--design", choices=DESIGNS, help="only this design")
    parser.add_argument("--show", action="store_true", help="count nothing")
    arguments = parser.parse_args()
    if not arguments.show:
        seeds = range(arguments.first, arguments.first + arguments.repeats)
        jobs = [
            (design, size, seeds[start : start + BATCH])
            for start in range(0, len(seeds), BATCH)
            for design, sizes in DESIGNS.items()
            for size in sizes
            if arguments.design in (None, design)
        ]
        with (
            ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool,
            COUNTS.open("a", encoding="utf-8") as file,
        ):
            append_counts([pool.submit(partial(counted, *job)) for job in jobs], file)
    for (design, size, audit), own in read().items():
        rates = ", ".join(f"{name} {own[name] / own['runs']:.3f}" for name in ("significant", "over", "covered"))
        print(
            f"{design}, {size}, {audit}: {own['runs']} runs, {rates}, rho {own['correlation'] / own['runs'] / 1e6:.3f}"
        )


SHOWN = {
    "names": "names with word frequencies of their own, no difference between groups",
    "answers of names": "the names, each answer counted (`units: trial`)",
    "near-copies": "10 prompts, answers that differ by a word, no difference",
    "answers of near-copies": "the near-copies, each answer counted",
    "prompts": "a difference that varies from prompt to prompt (`units: prompt`)",
    "answers of prompts": "the prompts, each answer counted",
    "names and prompts": "names, and a difference that varies from prompt to prompt",
}


def table() -> list[list[str]]:
    """Return a row for each design and size: the shares of runs with p < .05 and over-limit, and the coverage."""
    rows, counts = [], read()
    for design, size in dict.fromkeys((design, size) for design, size, _ in counts):
        own = {audit: counts[design, size, audit] for audit in AUDITS}
        null = not design.endswith("prompts")
        shown = [audit for audit in AUDITS if not (audit == "refusals" and design.endswith("copies"))] if null else []
        cells = [
            f"{own[audit]['significant'] / own[audit]['runs']:.0%}; {own[audit]['over'] / own[audit]['runs']:.0%}"
            if audit in shown
            else ""
            for audit in AUDITS
        ]
        covered = f"{own['lexicon']['covered'] / own['lexicon']['runs']:.0%}"
        rows.append([SHOWN[design], size, str(own["jsd"]["runs"]), *cells, covered])
    rows.sort(key=lambda row: [*SHOWN.values()].index(row[0]))
    head = ["design", "names or prompts × answers", "runs", *(f"`{audit}`" for audit in AUDITS)]
    return [[*head, "intervals of `lexicon` that hold the true value"], *rows]


def read() -> Mapping[tuple[str, str, str], Counter[str]]:
    """Return the counts by design, size and audit."""
    found: dict[tuple[str, str, str], Counter[str]] = {}
    for line in COUNTS.read_text("utf-8").splitlines():
        row = json.loads(line)
        key = row.pop("design"), " × ".join(map(str, row.pop("size"))), row.pop("audit")
        found.setdefault(key, Counter()).update(row)
    return found


if __name__ == "__main__":
    main()
