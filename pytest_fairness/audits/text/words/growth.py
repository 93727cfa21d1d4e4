"""Words that became more typical of one group's texts since the baseline.

The test counts the documents that contain a word; see `stats.texts.share_growth`. Log-odds with a prior from all texts
are not suited to this test: they hardly change even if a fifth of one group's texts now contain a new word once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.audits.text.documents import (
    MINIMUM_DOCUMENTS_OF_A_WORD,
    Documents,
    join_runs,
    require_words,
)
from pytest_fairness.audits.text.groups import Groups, require_common_strata
from pytest_fairness.audits.text.words.usage import SIDES
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.resampling import randomness, relabelling, significance
from pytest_fairness.stats.texts.share_growth import NeededDocuments, ShareGrowth, largest_needed, smallest_share

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PERMUTATIONS = 1999
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
        """Return the test of all words' growth between two runs, with run labels permuted within group and stratum.

        Args:
            current, baseline: answers of this run and of the baseline.
            alpha: significance level of the test of all words together.
            random: random generator.

        Raises:
            BaselineStale: the runs have too few strata in common; see `require_common_strata`.
            NotMeasurable: a group has too few usable answers, fewer than two words can be tested, or no stratum holds
                both groups in both runs.
        """
        require_common_strata(current, baseline)
        both = join_runs(Documents.of(current), Documents.of(baseline))
        vocabulary, present = _documents_with_words(both)
        require_words(len(vocabulary))
        try:
            shares = ShareGrowth.of(present, both.marked, both.strata, both.current)
        except ValueError as error:
            raise NotMeasurable(f"the baseline cannot be compared: {error}. Rebaseline") from error
        labels, exact = relabelling.relabellings(both.current, both.cells, PERMUTATIONS, random)
        largest = shares.largest_statistics(labels)
        statistics = shares.statistics(both.current[None])[:, 0]
        return cls(
            vocabulary=vocabulary,
            shares=shares,
            statistics=statistics,
            threshold=significance.threshold(largest, alpha),
            p_value=significance.p_value(largest, float(statistics.max()), exact=exact),
        )

    def significant_words(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the words that grew significantly, by (word, group); the group is `marked` or `unmarked`."""
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
    """Return the words that enough documents contain, and the (documents, words) matrix of which documents do.

    The matrix has 1 if the document contains the word.
    """
    vocabulary, present = both.words.counts(MINIMUM_DOCUMENTS_OF_A_WORD)
    present.data[:] = 1
    return vocabulary, present


def growth_tests(
    current: Mapping[str, Groups], baseline: Mapping[str, Groups], alpha: float, seed: str
) -> list[Growth]:
    """Return the test of each axis; see `Growth.of`."""
    return [
        Growth.of(groups, baseline[axis], alpha, randomness.generator(f"{seed}/{axis}"))
        for axis, groups in current.items()
    ]


def grown_words(tests: Sequence[Growth]) -> list[dict[str, Any]]:
    """Return the words that grew significantly on every axis, always in favour of the same group.

    The word with the largest growth comes first. For several axes, a word's growth and statistic are its smallest
    values over the axes, and its shares are those of the first axis.
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
    """Return the details of a comparison: the words that grew, and how many texts must contain a new word to detect it.

    Args:
        tests: test of each axis.
        names: names of the marked and of the unmarked group.
        min_share: smallest growth that counts.
    """
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
    """Return details: the share and the number of a group's texts that must contain a new word to detect it.

    Args:
        documents_needed: number of documents that must contain the word, for each axis.
    """
    needed = largest_needed(documents_needed)
    return {"smallest_share": smallest_share(needed), "documents_needed": list(needed)}
