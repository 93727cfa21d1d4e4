"""How long `mmd` takes to measure a run and to compare it with another one, and how much memory.

    python -m benchmarks.discrepancy --texts 100 1000 10000

Texts are pretended ones of 40 words, half of them of either group, in two strata. Each size runs in a process of its
own.
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

GOALS = {100: (1.0, 800.0), 1000: (5.0, 800.0), 10000: (30.0, 800.0)}
"""Number of texts to the most seconds of processor time and MB."""


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
    parser.add_argument("--texts", type=int, nargs="+", default=[*GOALS])
    missed = False
    for count in parser.parse_args().texts:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            cost = pool.submit(taken, count).result()
        seconds, megabytes = GOALS.get(count, (float("inf"), float("inf")))
        missed |= cost.seconds > seconds or cost.megabytes > megabytes
        took, used = f"{cost.seconds:.1f} s (at most {seconds:g})", f"{cost.megabytes:.0f} MB (at most {megabytes:g})"
        print(f"{count} texts: {took}, {used}")
    sys.exit(missed)


def taken(count: int) -> Cost:
    """Measure and compare runs of so many texts once."""
    (part, *_) = items_of(probe(texts.PROBE.format(trials=count // 4, audits="{mmd: {}}"), "discrepancy"))
    runs = [[a for a in texts.answers(seed, 0.05, trials=count // 4) if part.uses(a.labels)] for seed in (1, 2)]
    small = [[a for a in run if a.trial < 8] for run in runs]
    part.audit.compare(part.probe, part.item, *small)
    start = time.process_time()
    part.audit.measure(part.probe, part.item, runs[0])
    part.audit.compare(part.probe, part.item, *runs)
    return Cost(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
