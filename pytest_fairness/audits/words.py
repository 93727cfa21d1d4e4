"""Words that one group's texts use more than another's, and words that became more typical since the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from pytest_fairness.audits import documents
from pytest_fairness.audits.documents import (
    MINIMUM_DOCUMENTS_OF_A_WORD,
    SIDES,
    Documents,
    Groups,
    TextItem,
    Usage,
    anonymizer,
    documents_by_word,
    groups_by_axis,
    is_compared,
    require_words,
    sampled,
    text_of,
)
from pytest_fairness.audits.features import Tokens
from pytest_fairness.backends import map_chunks
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import Answers, Json
from pytest_fairness.stats import resampling
from pytest_fairness.stats.excess_divergence import OPERATIONS
from pytest_fairness.stats.resampling import Bools, Floats, Ints
from pytest_fairness.stats.words import (
    NeededDocuments,
    ShareGrowth,
    Sizes,
    largest_needed,
    log_odds,
    smallest_share,
    z_scores,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Words that one group's texts use more, or less, than another's: weighted log-odds with a Dirichlet prior.
#
# A word is significant if its |z| exceeds the critical value: a quantile of the permutation distribution of the
# largest |z| of all words (Westfall and Young 1993). Documents are permuted, so that the repetition of words within
# a document is taken into account.

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
        """Return counts and prior of the axis with this index in the corpus."""
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
        """Return the arguments of `log_odds` for each (labellings, documents) mask of the marked group.

        They are each group's counts of the tested words, with a row for each labelling, the prior, and the sizes.
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
        """Test all words of the axis with this index together at `alpha`, with group labels permuted within strata."""
        documents, contrast = corpus.documents[number], Contrast.of(corpus, number, settings)
        marked = documents.marked
        labels, exact = resampling.relabellings(marked, documents.strata, PERMUTATIONS, random)
        rows = contrast.chunk_size * max(1, OPERATIONS // (contrast.chunk_size * max(1, contrast.columns.nnz)))
        chunks = (labels[start : start + rows] for start in range(0, len(labels), rows))
        largest = np.concatenate(list(map_chunks(partial(_largest_z, contrast=contrast), chunks)))
        observed = contrast.log_odds_arguments(marked[None])
        (z,), (ratio,) = z_scores(*observed), log_odds(*observed)[0]
        threshold = resampling.threshold(largest, alpha)
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
            p_value=resampling.p_value(largest, float(np.abs(z).max()), exact=exact),
            documents_needed=NeededDocuments(int(held[np.argmax(seen)]) if seen.any() else None, smaller),
        )


def _largest_z(labels: Bools, contrast: Contrast) -> Floats:
    parts = (labels[start : start + contrast.chunk_size] for start in range(0, len(labels), contrast.chunk_size))
    return np.concatenate([np.abs(z_scores(*contrast.log_odds_arguments(part))).max(axis=1) for part in parts])


def associations(corpus: GroupCounts, settings: MarkedWordsSettings, alpha: float, seed: str) -> list[Association]:
    return [
        Association.of(corpus, number, settings, alpha, resampling.generator(f"{seed}/{axis}"))
        for number, axis in enumerate(corpus.groups)
    ]


def association_details(corpus: GroupCounts, tests: Sequence[Association]) -> dict[str, Json]:
    return {
        "threshold": max(test.threshold for test in tests),
        **detection_details([test.documents_needed for test in tests]),
        "vocabulary": len(corpus.tested_words),
        "words": _associated_words(corpus, tests),
        **documents.language_details(next(iter(corpus.groups.values())).probe),
    }


def significant_words(details: Mapping[str, Json]) -> dict[str, float]:
    return {word["word"]: word["z"] for word in details["words"] if word["significant"]}


def _associated_words(corpus: GroupCounts, tests: Sequence[Association]) -> list[dict[str, Json]]:
    """Return words that are significant, or whose |z| exceeds `SHOWN_Z`, with the same sign on every axis."""
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
        for index in documents.order_by_strength(corpus.tested_words, np.abs(z))
        if shown[index]
    ]


def z_of_words(corpus: GroupCounts, settings: MarkedWordsSettings) -> Floats:
    """Return each tested word's z-score, summed over the axes."""
    scores = [
        z_scores(*Contrast.of(corpus, number, settings).log_odds_arguments(documents.marked[None]))[0]
        for number, documents in enumerate(corpus.documents)
    ]
    return np.asarray(np.sum(scores, axis=0))


def prior_counts(used: Floats, settings: MarkedWordsSettings) -> Floats:
    match settings.prior:
        case "pooled" | "pair":
            return used
        case "mass":
            return used * float(settings.prior_mass / used.sum())
        case "uniform":
            return np.full_like(used, settings.prior_mass / len(used))


# Words that became more typical of one group's texts since the baseline.
#
# The test counts the documents that contain a word; see `stats.words.ShareGrowth`. Log-odds with a prior from all
# texts are not suited to this test: they hardly change even if a fifth of one group's texts now contain a new word
# once.

LISTED_WORDS = 20
ROUNDING = 1e-9


@dataclass(frozen=True)
class Growth:
    """Test for words that became more typical of the marked group, or of one unmarked group, since the baseline.

    Attributes:
        vocabulary: words that occur in at least three documents.
        shares: shares of documents that contain each word, by group and run.
        statistics: (2, words) test statistics of growth towards the marked, and towards the unmarked group; see
            `ShareGrowth.statistics`.
        threshold: critical value of the largest statistic, at the test's alpha.
        p_value: p-value of the largest statistic.
    """

    vocabulary: list[str]
    shares: ShareGrowth
    statistics: Floats
    threshold: float
    p_value: float

    @classmethod
    def of(cls, current: Groups, baseline: Groups, alpha: float, random: np.random.Generator) -> Growth:
        """Test all words' growth together at `alpha`, with run labels permuted within group and stratum.

        Raises:
            BaselineStale: the runs have too few strata in common; see `require_common_strata`.
            NotMeasurable: a group has too few usable answers, fewer than two words can be tested, or no stratum holds
                both groups in both runs.
        """
        documents.require_common_strata(current, baseline)
        both = documents.join_runs(Documents.of(current), Documents.of(baseline))
        vocabulary, present = _documents_with_words(both)
        documents.require_words(len(vocabulary))
        try:
            shares = ShareGrowth.of(present, both.marked, both.strata, both.current)
        except ValueError as error:
            raise NotMeasurable(f"the baseline cannot be compared: {error}. Rebaseline") from error
        labels, exact = resampling.relabellings(both.current, both.cells, PERMUTATIONS, random)
        largest = shares.largest_statistics(labels)
        statistics = shares.statistics(both.current[None])[:, 0]
        return cls(
            vocabulary=vocabulary,
            shares=shares,
            statistics=statistics,
            threshold=resampling.threshold(largest, alpha),
            p_value=resampling.p_value(largest, float(statistics.max()), exact=exact),
        )

    def significant_words(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the words that grew significantly, by word and group (`marked` or `unmarked`)."""
        growth, shares = self.shares.growth, self.shares.shares
        beyond = (self.statistics > self.threshold + ROUNDING) & (growth > ROUNDING)
        return {
            (self.vocabulary[index], SIDES[side]): {
                "growth": float(growth[side, index]),
                "statistic": float(self.statistics[side, index]),
                "marked": [float(share) for share in shares[0, ::-1, index]],
                "unmarked": [float(share) for share in shares[1, ::-1, index]],
            }
            for side, index in np.argwhere(beyond)
        }


def _documents_with_words(both: Documents) -> tuple[list[str], csr_array]:
    """Return the words that enough documents contain, and the (documents, words) matrix with 1 if one does."""
    vocabulary, present = both.words.counts(MINIMUM_DOCUMENTS_OF_A_WORD)
    present.data[:] = 1
    return vocabulary, present


def growth_tests(
    current: Mapping[str, Groups], baseline: Mapping[str, Groups], alpha: float, seed: str
) -> list[Growth]:
    return [
        Growth.of(groups, baseline[axis], alpha, resampling.generator(f"{seed}/{axis}"))
        for axis, groups in current.items()
    ]


def grown_words(tests: Sequence[Growth]) -> list[dict[str, Any]]:
    """Return the words that grew significantly on every axis, always in favour of the same group.

    The largest growth comes first. A word's growth and statistic are its smallest values over the axes, and its shares
    are those of the first axis.
    """
    first, *others = (test.significant_words() for test in tests)
    words = [
        {
            "word": word,
            "side": side,
            **found,
            **{
                name: min(each[name] for each in (found, *(other[word, side] for other in others)))
                for name in ("growth", "statistic")
            },
        }
        for (word, side), found in first.items()
        if all((word, side) in other for other in others)
    ]
    return sorted(words, key=lambda word: (-round(word["growth"], 12), word["word"]))


def growth_details(tests: Sequence[Growth], names: tuple[str, str], min_share: float) -> dict[str, Json]:
    """Return the words that grew by `min_share`, and how many texts must contain a new word to detect it."""
    words, smallest = grown_words(tests), min_share - ROUNDING
    return {
        "grown": [word for word in words if word["growth"] >= smallest],
        "grown_by_less": [word for word in words if word["growth"] < smallest][:LISTED_WORDS],
        "groups": dict(zip(SIDES, names, strict=True)),
        "min_share": min_share,
        "growth_threshold": max(test.threshold for test in tests),
        **detection_details([test.shares.documents_needed(test.threshold, min_share) for test in tests]),
        # A new word in this many documents would have grown more than every other word.
        "documents_to_stand_out": list(
            largest_needed([test.shares.documents_needed(float(test.statistics.max()), min_share) for test in tests])
        ),
    }


def detection_details(documents_needed: Sequence[NeededDocuments]) -> dict[str, Json]:
    """Return the share and the number of a group's texts that must contain a new word to detect it."""
    needed = largest_needed(documents_needed)
    return {"smallest_share": smallest_share(needed), "documents_needed": list(needed)}


# Word counts of the texts that `marked_words` compares, and of the texts from which its prior is computed.


@dataclass(frozen=True)
class GroupCounts:
    """Word counts of the compared documents and, if the prior pools all groups, of the probe's other groups.

    The compared documents are the answers of the marked and the unmarked groups. A tested word occurs in at least three
    documents, of which at least one is compared.

    Attributes:
        groups: answers of the marked group and of the axis' unmarked group, by axis.
        usage: uses of the tested words in the compared documents; a document that is compared on several axes counts
            once.
        documents: for each axis, the documents of the marked group and of the axis' unmarked group.
        counts: for each axis, the (documents, words) counts of all words in `documents`.
        pooled: (words,) counts in all documents, including the probe's other groups.
        columns: (tested words,) index of each tested word among the columns of `counts`.
        tested_words: the words that are tested.
    """

    groups: Mapping[str, Groups]
    usage: Usage
    documents: list[Documents]
    counts: list[csr_array]
    pooled: Floats
    columns: Ints
    tested_words: list[str]

    @classmethod
    def of(cls, item: TextItem[Any], answers: Answers) -> GroupCounts:
        """Count the words of the compared groups' answers and, for the prior, of the other groups' answers.

        Raises:
            NotMeasurable: a group has too few usable answers, or fewer than two words can be tested.
        """
        by_axis = groups_by_axis(item, answers)
        groups = list(by_axis.values())
        pooled = [answer for answer in answers if not is_compared(item, answer.labels)]
        documents = [Documents.of(each) for each in groups]
        compared = [id(each.answers[index]) for each in groups for index in sampled(each)]
        anonymize = anonymizer(item.probe)
        if any(each.repetition for each in groups):
            pooled = list({(repr(sorted(answer.labels.items())), answer.text): answer for answer in pooled}.values())
        others = (anonymize.words(text_of(answer)) for answer in pooled if answer.usable)
        words = Tokens.joined([*(each.words for each in documents), Tokens.of(others)])
        vocabulary, counts = words.counts()
        # An answer that is compared on several axes counts once.
        once = np.unique(compared, return_index=True)[1]
        own, rest = counts[once], counts[len(compared) :]
        holding = documents_by_word(own)
        columns = np.flatnonzero((holding > 0) & (holding + documents_by_word(rest) >= MINIMUM_DOCUMENTS_OF_A_WORD))
        require_words(len(columns))
        marked = np.concatenate([each.marked for each in documents])[once]
        tested_words = [vocabulary[index] for index in columns]
        ends = np.cumsum([len(each.words) for each in documents])
        return cls(
            groups=by_axis,
            usage=Usage.of(words.only(once), marked, tested_words),
            documents=documents,
            counts=[counts[end - len(each.words) : end] for each, end in zip(documents, ends, strict=True)],
            pooled=np.asarray(own.sum(axis=0) + rest.sum(axis=0), dtype=np.float64),
            columns=columns,
            tested_words=tested_words,
        )


# Settings of the audit `marked_words`.


class MarkedWordsSettings(AuditSettings):
    """Settings of `marked_words`: the prior of the log-odds, and the smallest growth since the baseline that counts."""

    prior: Literal["pooled", "pair", "mass", "uniform"] = Field(
        default="pooled",
        description="Dirichlet prior. pooled: word counts of all groups of the probe. pair: counts of the compared "
        "groups. mass: counts of the compared groups, scaled to `prior_mass`. uniform: equal counts.",
    )
    prior_mass: float = Field(
        default=500.0,
        gt=0,
        description="Sum of the prior's counts for `mass` and `uniform`; larger values move log-odds closer to 0.",
    )
    min_share: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="A word counts as grown if the gap between the groups' shares of texts with the word grew by at "
        "least this much since the baseline.",
    )
