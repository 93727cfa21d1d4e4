"""How much faster text audits resample than plain loops over the same numbers do, with the same results.

    python -m benchmarks.resampling

Divergence and log-odds of 1,500 documents are recomputed for 999 relabellings, by the audits' own functions and by a
loop over relabellings as one would write it with `scipy.spatial.distance.jensenshannon`; a classifier is fitted to
199 relabellings by the audit and by `sklearn.model_selection.permutation_test_score`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import jensenshannon
from sklearn.model_selection import StratifiedKFold, permutation_test_score
from sklearn.svm import SVC

from benchmarks.simulated import texts
from pytest_fairness.audits.word_counts import WordCounts
from pytest_fairness.stats import resampling, two_samples
from pytest_fairness.stats.excess_divergence import Words
from pytest_fairness.stats.words import z_scores

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEAST_RESAMPLING = 3.0
LEAST_REFITTING = 50.0
PERMUTATIONS = 999
REFITS = 199


def main() -> None:
    """Measure, print the ratios, and end with 1 if one is too low or a number differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--refitted", type=int, default=60, help="documents of the classifier")
    given = parser.parse_args()
    counts, marked = documents(given.documents)
    strata = np.zeros(len(marked), dtype=np.int64)
    labels, _ = resampling.relabellings(marked, strata, PERMUTATIONS, resampling.generator("benchmark"))
    ratios = [
        compared("divergence", lambda: divergences(labels, counts), lambda: plain_divergences(labels, counts)),
        compared("log-odds", lambda: largest_z(labels, counts), lambda: plain_largest_z(labels, counts)),
    ]
    refitting = refits(*documents(given.refitted))
    sys.exit(min(ratios) < LEAST_RESAMPLING or refitting < LEAST_REFITTING)


def documents(count: int) -> tuple[Floats, Bools]:
    """(documents, words) counts of pretended texts, and which of them are marked."""
    run = [answer for answer in texts.answers(1, 0.1, trials=count // 4) if answer.labels["group"] != "Cork"]
    _, counts = WordCounts.of(str(answer.content).split() for answer in run)
    return counts.toarray(), np.array([answer.labels["group"] == "Bern" for answer in run])


def divergences(labels: Bools, counts: Floats) -> Floats:
    """(relabellings,) divergences by the audit's own function."""
    together = Words.of(csr_array(counts), np.zeros(len(counts), dtype=np.int64), labels[0], ~labels[0], least=1)
    found: Floats = together.divergences(labels, ~labels)[:, 0]
    return found


def plain_divergences(labels: Bools, counts: Floats) -> Floats:
    """The same by a loop."""
    return np.array([jensenshannon(counts[row].sum(axis=0), counts[~row].sum(axis=0), base=2) ** 2 for row in labels])


def totals(selections: Bools, counts: Floats) -> Floats:
    """(selections, words) summed counts of the selected documents, of which each holds few of all words."""
    summed: Floats = (csr_array(counts).T @ selections.T.astype(np.float64)).T
    return summed


def largest_z(labels: Bools, counts: Floats) -> Floats:
    """(relabellings,) largest absolute z."""
    found: Floats = np.abs(z_scores(totals(labels, counts), totals(~labels, counts), counts.sum(axis=0))).max(axis=1)
    return found


def plain_largest_z(labels: Bools, counts: Floats) -> Floats:
    """The same by a loop."""
    prior = counts.sum(axis=0)
    found = []
    for row in labels:
        first, second = counts[row].sum(axis=0), counts[~row].sum(axis=0)
        found.append(np.abs(z_scores(first, second, prior)).max())
    return np.array(found)


def compared(name: str, ours: Callable[[], Floats], plain: Callable[[], Floats]) -> float:
    """How many times faster, after seeing to it that the numbers are the same."""
    own_seconds, own = timed(ours)
    plain_seconds, theirs = timed(plain)
    np.testing.assert_allclose(own, theirs, rtol=1e-7, atol=1e-12)
    ratio = plain_seconds / own_seconds
    print(
        f"{name}: {len(own)} relabellings in {own_seconds:.2f} s, by a loop {plain_seconds:.2f} s, "
        f"{ratio:.1f} times (at least {LEAST_RESAMPLING:g})"
    )
    return ratio


def refits(counts: Floats, marked: Bools) -> float:
    """How many times faster a classifier is fitted to relabellings, each document left out, than in five folds."""
    strata = np.zeros(len(marked), dtype=np.int64)
    labels, _ = resampling.relabellings(marked, strata, REFITS, resampling.generator("benchmark"))

    def own() -> Floats:
        classifier = two_samples.Classifier.of(csr_array(counts), strata, np.arange(len(marked)))
        return classifier.distances(labels)

    own_seconds, _ = timed(own)
    their_seconds, _ = timed(
        lambda: permutation_test_score(
            SVC(kernel="linear"),
            counts,
            marked,
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
            n_permutations=REFITS,
            scoring="balanced_accuracy",
            random_state=0,
        )
    )
    ratio = their_seconds / own_seconds
    print(
        f"classifier: {REFITS} relabellings in {own_seconds:.3f} s, by scikit-learn in {their_seconds:.2f} s, "
        f"{ratio:.0f} times (at least {LEAST_REFITTING:g})"
    )
    return ratio


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
