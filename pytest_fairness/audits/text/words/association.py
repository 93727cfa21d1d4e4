"""Words that one group's texts use more, or less, than another's: weighted log-odds with a Dirichlet prior.

A word is significant if its |z| exceeds the critical value: a quantile of the permutation distribution of the largest
|z| of all words (Westfall and Young 1993). Documents are permuted, so that the repetition of words within a document is
taken into account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.audits.text.documents import MINIMUM_DOCUMENTS_OF_A_WORD
from pytest_fairness.audits.text.words.group_counts import GroupCounts
from pytest_fairness.audits.text.words.growth import detection_details
from pytest_fairness.audits.text.words.languages import language_details
from pytest_fairness.audits.text.words.settings import MarkedWordsSettings
from pytest_fairness.audits.text.words.usage import SIDES, order_by_strength
from pytest_fairness.backends import map_chunks
from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.resampling import randomness, relabelling, significance
from pytest_fairness.stats.texts.excess_divergence import OPERATIONS
from pytest_fairness.stats.texts.log_odds import Sizes, log_odds, z_scores
from pytest_fairness.stats.texts.share_growth import NeededDocuments

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PERMUTATIONS = 1999
SHOWN_Z = 1.96
"""Words with a larger |z| are listed even if they are not significant; 1.96 is the usual critical value."""
CHUNK = 2**20
"""Largest number of values in memory at the same time while statistics are computed."""


@dataclass(frozen=True)
class Contrast:
    """Counts of the tested words in the texts of two groups on one axis, and the prior of their log-odds.

    Attributes:
        columns: (documents, tested words) counts.
        lengths: (documents,) number of words of each document.
        used: (words,) counts of all words, from which the prior is computed.
        prior: (tested words,) counts of the prior.
        mass: sum of the prior's counts over all words.
    """

    columns: csr_array
    lengths: Floats
    used: Floats
    prior: Floats
    mass: float

    @classmethod
    def of(cls, corpus: GroupCounts, number: int, settings: MarkedWordsSettings) -> Contrast:
        """Return the contrast of one axis: its counts and prior; `number` is the index of the axis in the corpus."""
        counts = corpus.counts[number]
        used: Floats = corpus.pooled if settings.prior == "pooled" else np.asarray(counts.sum(axis=0), np.float64)
        prior = prior_counts(used, settings)
        return cls(
            counts[:, corpus.columns],
            np.asarray(counts.sum(axis=1), np.float64),
            used,
            prior[corpus.columns],
            float(prior.sum()),
        )

    def log_odds_arguments(self, labels: Bools) -> tuple[Floats, Floats, Floats, Sizes]:
        """Return the arguments of `log_odds`: each group's counts of the tested words, the prior, and the sizes.

        The counts of each group have a row for each labelling.

        Args:
            labels: (labellings, documents) whether the document belongs to the marked group.
        """
        rows = labels.astype(np.float64)
        first, first_size = (self.columns.T @ rows.T).T, rows @ self.lengths
        return first, self.occurrences - first, self.prior, (first_size, self.size - first_size, self.mass)

    @property
    def chunk_size(self) -> int:
        """Return the number of labellings whose statistics are in memory at the same time."""
        return max(1, CHUNK // max(self.columns.shape))

    @cached_property
    def occurrences(self) -> Floats:
        """Return the number of occurrences of each tested word in all documents; shape (tested words,)."""
        return np.asarray(self.columns.sum(axis=0), dtype=np.float64)

    @cached_property
    def size(self) -> float:
        """Return the number of words of all documents together."""
        return float(self.lengths.sum())


@dataclass(frozen=True)
class Association:
    """Association of words with the marked group, in comparison with one unmarked group.

    Attributes:
        z: (tested words,) log-odds ratio divided by its standard deviation; above 0 if the marked group uses the word
            more.
        ratio: (tested words,) log-odds ratio.
        threshold: critical value of the largest |z|, at the test's alpha.
        p_value: p-value of the largest |z|.
        documents_needed: number of documents of the smaller group in which a word must occur to be significant, if no
            other document has the word.
    """

    z: Floats
    ratio: Floats
    threshold: float
    p_value: float
    documents_needed: NeededDocuments

    @classmethod
    def of(
        cls, corpus: GroupCounts, number: int, settings: MarkedWordsSettings, alpha: float, random: np.random.Generator
    ) -> Association:
        """Return the association of all tested words on one axis, tested with group labels permuted within strata.

        Args:
            corpus: word counts.
            number: index of the axis in the corpus.
            settings: settings of the prior.
            alpha: significance level of the test of all words together.
            random: random generator.
        """
        documents, contrast = corpus.documents[number], Contrast.of(corpus, number, settings)
        marked = documents.marked
        labels, exact = relabelling.relabellings(marked, documents.strata, PERMUTATIONS, random)
        rows = contrast.chunk_size * max(1, OPERATIONS // (contrast.chunk_size * max(1, contrast.columns.nnz)))
        chunks = (labels[start : start + rows] for start in range(0, len(labels), rows))
        largest = np.concatenate([found for _, found in map_chunks(_largest_z, chunks, contrast)])
        observed = contrast.log_odds_arguments(marked[None])
        (z,), (ratio,) = z_scores(*observed), log_odds(*observed)[0]
        threshold = significance.threshold(largest, alpha)
        smaller = min(int(documents.marked.sum()), int((~documents.marked).sum()))
        held = np.arange(1.0, smaller + 1)
        prior_of_new = prior_counts(np.append(held, contrast.used.sum()), settings)[:-1]
        half = np.array(contrast.size / 2)
        new = z_scores(held, np.zeros_like(held), prior_of_new, (half, half, contrast.mass))
        seen = (new > threshold) & (held >= MINIMUM_DOCUMENTS_OF_A_WORD)
        return cls(
            z=z,
            ratio=ratio,
            threshold=threshold,
            p_value=significance.p_value(largest, float(np.abs(z).max()), exact=exact),
            documents_needed=NeededDocuments(int(held[np.argmax(seen)]) if seen.any() else None, smaller),
        )


def _largest_z(labels: Bools, contrast: Contrast) -> Floats:
    """Return the largest |z| of all words, for each labelling."""
    parts = (labels[start : start + contrast.chunk_size] for start in range(0, len(labels), contrast.chunk_size))
    return np.concatenate([np.abs(z_scores(*contrast.log_odds_arguments(part))).max(axis=1) for part in parts])


def associations(corpus: GroupCounts, settings: MarkedWordsSettings, alpha: float, seed: str) -> list[Association]:
    """Return the association on each axis of the corpus; see `Association.of`."""
    return [
        Association.of(corpus, number, settings, alpha, randomness.generator(f"{seed}/{axis}"))
        for number, axis in enumerate(corpus.groups)
    ]


def association_details(corpus: GroupCounts, tests: Sequence[Association]) -> dict[str, Json]:
    """Return the details of a measurement: associated words, and how many texts must have a new word to detect it."""
    return {
        "threshold": max(test.threshold for test in tests),
        **detection_details([test.documents_needed for test in tests]),
        "vocabulary": len(corpus.tested_words),
        "words": _associated_words(corpus, tests),
        **language_details(next(iter(corpus.groups.values())).probe),
    }


def significant_words(details: Mapping[str, Json]) -> dict[str, float]:
    """Return the z-score of each significant word, from the details of a measurement."""
    return {word["word"]: word["z"] for word in details["words"] if word["significant"]}


def _associated_words(corpus: GroupCounts, tests: Sequence[Association]) -> list[dict[str, Json]]:
    """Return the words that are significant, or whose |z| exceeds `SHOWN_Z`, on every axis; the largest |z| first.

    For an intersection of axes, the word's z must also have the same sign on every axis.
    """
    scores = np.stack([test.z for test in tests])
    alike = np.abs(np.sign(scores).sum(axis=0)) == len(tests)
    significant = alike & np.all([np.abs(test.z) > test.threshold for test in tests], axis=0)
    shown = alike & (significant | np.all(np.abs(scores) > SHOWN_Z, axis=0))
    usage = corpus.usage
    z, ratio = (usage.signed(each) for each in (scores.sum(axis=0), np.mean([test.ratio for test in tests], axis=0)))
    return [
        {
            "word": corpus.tested_words[index],
            "z": float(z[index]),
            "log_odds": float(ratio[index]),
            "side": SIDES[int(usage.sides[index] < 0)],
            **dict(zip(SIDES, usage.uses[:, index].tolist(), strict=True)),
            "documents": int(usage.texts[:, index].sum()),
            "texts": dict(zip(SIDES, usage.shares[:, index].tolist(), strict=True)),
            "significant": bool(significant[index]),
        }
        for index in order_by_strength(corpus.tested_words, np.abs(z))
        if shown[index]
    ]


def z_of_words(corpus: GroupCounts, settings: MarkedWordsSettings) -> Floats:
    """Return each tested word's z-score, summed over the axes; shape (tested words,)."""
    scores = [
        z_scores(*Contrast.of(corpus, number, settings).log_odds_arguments(documents.marked[None]))[0]
        for number, documents in enumerate(corpus.documents)
    ]
    return np.asarray(np.sum(scores, axis=0))


def prior_counts(used: Floats, settings: MarkedWordsSettings) -> Floats:
    """Return the counts of the prior, from the number of occurrences of each word; shape (words,)."""
    match settings.prior:
        case "pooled" | "pair":
            return used
        case "mass":
            return used * float(settings.prior_mass / used.sum())
        case "uniform":
            return np.full_like(used, settings.prior_mass / len(used))
