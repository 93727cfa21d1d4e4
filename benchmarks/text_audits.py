"""How long the audits of texts take to measure a run and to compare it with another one, and how much memory.

    python -m benchmarks.text_audits --audits jsd svm --texts 100 1000 10000

Texts are pretended ones of 40 words, half of them of either group, in two strata. Each audit and size runs in a process
of its own.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from benchmarks.simulated import texts
from benchmarks.simulated.scenario import probe
from pytest_fairness.run import items_of

AUDITS = ("jsd", "marked_words", "mmd", "svm")
GOALS = {100: (1.0, 800.0), 1000: (5.0, 800.0), 10000: (30.0, 800.0)}
"""Number of texts to the most seconds of processor time and MB of each audit; of 100 texts, of all audits together."""


@dataclass(frozen=True)
class Cost:
    """Time and memory of one item.

    Attributes:
        seconds: of processor time, without imports.
        megabytes: most memory of the process, the texts included.
    """

    seconds: float
    megabytes: float


def main() -> None:
    """Measure, print, and end with 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", choices=AUDITS, nargs="+", default=AUDITS)
    parser.add_argument("--texts", type=int, nargs="+", default=[*GOALS])
    given = parser.parse_args()
    missed = False
    for count in given.texts:
        goal, megabytes = GOALS.get(count, (float("inf"), float("inf")))
        costs = {}
        for audit in given.audits:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                costs[audit] = pool.submit(taken, audit, count).result()
            print(f"{count} texts, {audit}: {costs[audit].seconds:.2f} s, {costs[audit].megabytes:.0f} MB")
        seconds = [cost.seconds for cost in costs.values()]
        took = sum(seconds) if count == min(GOALS) else max(seconds)
        used = max(cost.megabytes for cost in costs.values())
        missed |= took > goal or used > megabytes
        what = "together" if count == min(GOALS) else "the slowest"
        print(f"{count} texts: {what} {took:.2f} s (at most {goal:g}), {used:.0f} MB (at most {megabytes:g})")
    sys.exit(missed)


def taken(audit: str, count: int) -> Cost:
    """Measure and compare runs of so many texts once."""
    (part, *_) = items_of(probe(texts.PROBE.format(trials=count // 4, audits=f"{{{audit}: {{}}}}"), "text-audits"))
    runs = [[a for a in texts.answers(seed, 0.05, trials=count // 4) if part.uses(a.labels)] for seed in (1, 2)]
    small = [[a for a in run if a.trial < 8] for run in runs]
    part.audit.measure(part, small[0])
    part.audit.compare(part, *small)
    start = time.process_time()
    part.audit.measure(part, runs[0])
    part.audit.compare(part, *runs)
    return Cost(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
