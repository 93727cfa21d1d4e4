"""Audit `marked_words`: words that one group's texts use more, and words that became more typical since the baseline.

The method comes from Monroe, Colaresi and Quinn 2008 ("Fightin' Words"), as used by Cheng, Durmus and Jurafsky 2023
("Marked Personas"). With their critical value, |z| > 1.96, at least one word is significant in most comparisons of a
group with itself; see `Contrast.test` for the critical value of this audit. Against a baseline, the audit tests whether
the difference between the groups' shares of documents with a word grew; see `Growth`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from pytest_fairness.audits import documents, info
from pytest_fairness.audits.base import WordRows
from pytest_fairness.audits.documents import (
    SIDES,
    Documents,
    Groups,
    TextItem,
    Usage,
    anonymizer,
    groups_by_axis,
    is_compared,
    sampled,
    text_of,
)
from pytest_fairness.audits.info import LARGEST_H_OF_WORDS, AuditInfo, Direction, cohens_h_of_shares
from pytest_fairness.audits.rules import GrownWords
from pytest_fairness.audits.texts import TextAudit, concerns_of_texts
from pytest_fairness.audits.word_counts import MINIMUM_DOCUMENTS_OF_A_WORD, WordCounts
from pytest_fairness.backends import map_chunks
from pytest_fairness.errors import NotMeasurable, joined
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import (
    Answers,
    Comparison,
    Concern,
    Evidence,
    Explanation,
    Json,
    Measurement,
    SampleSize,
)
from pytest_fairness.stats import intervals, resampling
from pytest_fairness.stats.excess_divergence import OPERATIONS
from pytest_fairness.stats.resampling import Bools, Floats
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

    def prior_counts(self, used: Floats) -> Floats:
        """Return the prior's count of each word, from the (words,) numbers of uses of all words."""
        match self.prior:
            case "pooled" | "pair":
                return used
            case "mass":
                return used * float(self.prior_mass / used.sum())
            case "uniform":
                return np.full_like(used, self.prior_mass / len(used))


# Words that one group's texts use more, or less, than another's: weighted log-odds with a Dirichlet prior.
#
# A word is significant if its |z| exceeds the critical value: a quantile of the permutation distribution of the
# largest |z| of all words (Westfall and Young 1993). Documents are permuted, so that the repetition of words within
# a document is taken into account.

SHOWN_Z = 1.96
"""Words with a larger |z| are listed even if they are not significant; 1.96 is the usual critical value."""
CHUNK = 2**20
"""Largest number of values in memory at the same time while statistics are computed."""


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


@dataclass(frozen=True)
class Contrast:
    """Counts of the tested words in the texts of two groups on one axis, and the prior of their log-odds.

    Attributes:
        documents: documents of the marked group and of the axis' unmarked group.
        counts: sparse (documents, tested words) counts.
        lengths: (documents,) number of words of each document.
        used: (words,) counts of all words, from which the prior is computed.
        prior: (tested words,) counts of the prior.
        mass: sum of the prior's counts over all words.
        axis: name of the axis.
    """

    documents: Documents
    counts: csr_array
    lengths: Floats
    used: Floats
    prior: Floats
    mass: float
    axis: str

    def log_odds_arguments(self, labels: Bools) -> tuple[Floats, Floats, Floats, Sizes]:
        """Return the arguments of `log_odds` for each (labellings, documents) mask of the marked group.

        They are each group's counts of the tested words, with a row for each labelling, the prior, and the sizes.
        """
        rows = labels.astype(np.float64)
        first, first_size = (self.counts.T @ rows.T).T, rows @ self.lengths
        others = self.counts.sum(axis=0) - first
        return first, others, self.prior, (first_size, self.lengths.sum() - first_size, self.mass)

    @property
    def z(self) -> Floats:
        """Return the z-score of each tested word with the observed labels."""
        scores: Floats = z_scores(*self.log_odds_arguments(self.documents.marked[None]))[0]
        return scores

    def largest_z(self, labels: Bools) -> Floats:
        """Return the largest |z| of all words for each (labellings, documents) mask of the marked group."""
        rows = self.rows_at_once
        parts = (labels[start : start + rows] for start in range(0, len(labels), rows))
        return np.concatenate([np.abs(z_scores(*self.log_odds_arguments(part))).max(axis=1) for part in parts])

    @property
    def rows_at_once(self) -> int:
        """Return the number of labellings whose statistics are in memory at the same time."""
        return max(1, CHUNK // max(self.counts.shape))

    def test(self, settings: MarkedWordsSettings, alpha: float, random: np.random.Generator) -> Association:
        """Test all words together at `alpha`, with group labels permuted within strata."""
        marked, z = self.documents.marked, self.z
        labels, exact = resampling.relabellings(marked, self.documents.strata, resampling.PERMUTATIONS, random)
        rows = self.rows_at_once * max(1, OPERATIONS // (self.rows_at_once * max(1, self.counts.nnz)))
        chunks = (labels[start : start + rows] for start in range(0, len(labels), rows))
        largest = np.concatenate(list(map_chunks(partial(_largest_z, contrast=self), chunks)))
        threshold = resampling.threshold(largest, alpha)
        # A new word that occurs once in each of 1, 2, … documents of the smaller group.
        smaller, half = min(int(marked.sum()), int((~marked).sum())), np.array(self.lengths.sum() / 2)
        held = np.arange(1.0, smaller + 1)
        prior_of_new = settings.prior_counts(np.append(held, self.used.sum()))[:-1]
        new = z_scores(held, np.zeros_like(held), prior_of_new, (half, half, self.mass))
        seen = (new > threshold) & (held >= MINIMUM_DOCUMENTS_OF_A_WORD)
        return Association(
            z=z,
            ratio=log_odds(*self.log_odds_arguments(marked[None]))[0][0],
            threshold=threshold,
            p_value=resampling.p_value(largest, float(np.abs(z).max()), exact=exact),
            documents_needed=NeededDocuments(int(held[np.argmax(seen)]) if seen.any() else None, smaller),
        )


def _largest_z(labels: Bools, contrast: Contrast) -> Floats:
    """Return `Contrast.largest_z`; other processes can import this function."""
    return contrast.largest_z(labels)


@dataclass(frozen=True)
class Corpus:
    """Compared documents of an item and, if the prior pools all groups, the words of the probe's other groups.

    The compared documents are the answers of the marked and the unmarked groups. A tested word occurs in at least three
    documents, of which at least one is compared.

    Attributes:
        groups: answers of the marked group and of the axis' unmarked group, by axis.
        usage: uses of the tested words in the compared documents; a document that is compared on several axes counts
            once.
        contrasts: tested words of the two groups, for each axis and, of each, for each kind of clusters.
        samples: sizes of the samples of each axis.
    """

    groups: Mapping[str, Groups]
    usage: Usage
    contrasts: list[Contrast]
    samples: tuple[SampleSize, ...]

    @classmethod
    def of(cls, item: TextItem[MarkedWordsSettings], answers: Answers) -> Corpus:
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
        vocabulary, counts = WordCounts.joined([*(each.words for each in documents), WordCounts.of(others)])
        # An answer that is compared on several axes counts once.
        once = np.unique(compared, return_index=True)[1]
        own, rest = (WordCounts(vocabulary, each) for each in (counts[once], counts[len(compared) :]))
        columns = np.flatnonzero((own.holding > 0) & (own.holding + rest.holding >= MINIMUM_DOCUMENTS_OF_A_WORD))
        require_words(len(columns))
        used = np.asarray(own.counts.sum(axis=0) + rest.counts.sum(axis=0), np.float64)
        contrasts, start = [], 0
        for axis, each in zip(by_axis, documents, strict=True):
            of_axis, start = counts[start : start + len(each.marked)], start + len(each.marked)
            uses = used if item.settings.prior == "pooled" else np.asarray(of_axis.sum(axis=0), np.float64)
            prior = item.settings.prior_counts(uses)
            for tested_by in each.by_sample():
                of_units = of_axis if tested_by.clusters is None else tested_by.clusters.membership @ of_axis
                lengths, tested = np.asarray(of_units.sum(axis=1), np.float64), of_units[:, columns]
                contrasts.append(
                    Contrast(tested_by.merged(), tested, lengths, uses, prior[columns], float(prior.sum()), axis)
                )
        marked = np.concatenate([each.marked for each in documents])[once]
        samples = tuple(size for each in documents for size in each.sample_sizes())
        return cls(by_axis, Usage.of(own, marked, [vocabulary[index] for index in columns]), contrasts, samples)

    @property
    def names(self) -> tuple[str, str]:
        return names_of(self.groups)

    def words(self, tests: Sequence[Association]) -> list[dict[str, Json]]:
        """Return words that are significant, or whose |z| exceeds `SHOWN_Z`, with the same sign on every axis."""
        scores, usage = np.stack([test.z for test in tests]), self.usage
        alike = np.abs(np.sign(scores).sum(axis=0)) == len(tests)
        significant = alike & np.all([np.abs(test.z) > test.threshold for test in tests], axis=0)
        shown = alike & (significant | np.all(np.abs(scores) > SHOWN_Z, axis=0))
        means = scores.sum(axis=0), np.mean([test.ratio for test in tests], axis=0)
        z, ratio = (usage.signed(each) for each in means)
        return [
            {
                "word": usage.words[index],
                "z": float(z[index]),
                "log_odds": float(ratio[index]),
                "side": SIDES[int(usage.sides[index] < 0)],
                **dict(zip(SIDES, usage.uses[:, index].tolist(), strict=True)),
                "documents": int(usage.texts[:, index].sum()),
                "texts": dict(zip(SIDES, usage.shares[:, index].tolist(), strict=True)),
                "significant": bool(significant[index]),
            }
            for index in documents.order_by_strength(usage.words, np.abs(z))
            if shown[index]
        ]


def names_of(groups: Mapping[str, Groups]) -> tuple[str, str]:
    """Return the names of the marked group and of all unmarked groups."""
    first, *_ = groups.values()
    return first.marked_name, ", ".join(each.unmarked_name for each in groups.values())


def require_words(number: int) -> None:
    """Raise `NotMeasurable` if fewer than two words can be tested."""
    if number < 2:
        raise NotMeasurable(
            "too few words to test: fewer than two words occur in at least three answers. Raise `trials`, or ask for "
            "longer texts"
        )


def detection_details(documents_needed: Sequence[NeededDocuments]) -> dict[str, Json]:
    """Return the share and the number of a group's texts that must contain a new word to detect it."""
    needed = largest_needed(documents_needed)
    return {"smallest_share": smallest_share(needed), "documents_needed": list(needed)}


# Words that became more typical of one group's texts since the baseline.
#
# The test counts the documents that contain a word; see `stats.words.ShareGrowth`. Log-odds with a prior from all
# texts are not suited to this test: they hardly change even if a fifth of one group's texts now contain a new word
# once.

LISTED_WORDS = 20


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
        both = Documents.joined(*documents.of_runs(Documents.of(current), Documents.of(baseline)))
        vocabulary, counts = both.words.frequent()
        require_words(len(vocabulary))
        try:
            shares = ShareGrowth.of(counts.astype(np.bool_).astype(np.float64), both.marked, both.strata, both.current)
        except ValueError as error:
            raise NotMeasurable(f"the baseline cannot be compared: {error}. Rebaseline") from error
        labels, exact = resampling.relabellings(both.current, both.cells, resampling.PERMUTATIONS, random)
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
        beyond = (self.statistics > self.threshold + intervals.ROUNDING_OF_SUMS) & (growth > intervals.ROUNDING_OF_SUMS)
        return {
            (self.vocabulary[index], SIDES[side]): {
                "growth": float(growth[side, index]),
                "statistic": float(self.statistics[side, index]),
                **{name: shares[group, ::-1, index].tolist() for group, name in enumerate(SIDES)},
            }
            for side, index in np.argwhere(beyond)
        }


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
    words, smallest = grown_words(tests), min_share - intervals.ROUNDING_OF_SUMS
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


# The audit.

NAMED_WORDS = 3
"""Largest number of words that a phrase names."""


class MarkedWords(TextAudit[MarkedWordsSettings]):
    """Audit of words that the marked group's texts use significantly more or less, family-wise over all words."""

    info = AuditInfo(
        name="marked_words",
        title="Words that mark a group",
        question="Which words does one group get more often than the other?",
        formula="δ = ln[(y₁ + α) / (n₁ + α₀ − y₁ − α)] − ln[(y₂ + α) / (n₂ + α₀ − y₂ − α)];  "
        "z = δ / √(1/(y₁ + α) + 1/(y₂ + α));  y = occurrences of the word in a group’s texts, n = number of words of "
        "these texts, α = prior count of the word, α₀ = sum of the prior counts",
        meaning="Number of words whose |z| exceeds the critical value: the (1 − alpha) quantile of the largest |z| "
        "with permuted labels. Tolerance: number of words that may grow. A word grows if the groups' shares of texts "
        "with the word differ more than in the baseline.",
        source="Monroe, Colaresi and Quinn 2008, “Fightin’ Words”; Cheng, Durmus and Jurafsky 2023, “Marked Personas”; "
        "Westfall and Young 1993 on testing many words at once",
        better=Direction.LOWER,
        unit="significant words",
        tolerance=0,
        tolerance_of_value=False,
        best_is_decidable=True,
        value_range=(0, math.inf),
        charts={"words": "marked_words", "grown": "grown_words"},
        effect=LARGEST_H_OF_WORDS,
    )
    version = 8
    settings_model = MarkedWordsSettings
    grows_with_size = True
    most_documents = documents.MOST_DOCUMENTS
    rule = GrownWords()

    def uses(self, item: TextItem[MarkedWordsSettings], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to a compared group or, with a pooled prior, to any group."""
        return item.settings.prior == "pooled" or is_compared(item, labels)

    def counted_answers(self, item: TextItem[MarkedWordsSettings], answers: Answers) -> Answers:
        return [answer for answer in answers if is_compared(item, answer.labels)]

    def measure(self, item: TextItem[MarkedWordsSettings], answers: Answers) -> Measurement:
        """Return the number of words whose |z| exceeds the critical value."""
        corpus = Corpus.of(item, answers)
        tests = [
            contrast.test(item.settings, item.alpha, resampling.generator(f"{item.seed}/measure/{contrast.axis}"))
            for contrast in corpus.contrasts
        ]
        details = {
            "threshold": max(test.threshold for test in tests),
            **detection_details([test.documents_needed for test in tests]),
            "vocabulary": len(corpus.usage.words),
            "words": corpus.words(tests),
            **documents.language_details(item.probe),
        }
        groups, shares = corpus.groups.values(), [word["texts"] for word in details["words"] if word["significant"]]
        return Measurement(
            value=float(len(shares)),
            interval=None,
            standard_error=None,
            p_value=max(test.p_value for test in tests),
            n={name: count for each in groups for name, count in each.usable.items()},
            missing={name: count for each in groups for name, count in each.missing.items()},
            details=details,
            evidence=Evidence(
                smallest_share=details["smallest_share"],
                needed_documents=tuple(details["documents_needed"]),
                effect_basis=tuple(cohens_h_of_shares(each["marked"], each["unmarked"]) for each in shares),
            ),
            samples=corpus.samples,
        )

    def compare(self, item: TextItem[MarkedWordsSettings], current: Answers, baseline: Answers) -> Comparison:
        """Return the number of words that became more typical of a group, significantly and by at least `min_share`."""
        groups, before = groups_by_axis(item, current), groups_by_axis(item, baseline)
        tests = [
            Growth.of(now, before[axis], item.alpha, resampling.generator(f"{item.seed}/compare/{axis}"))
            for axis, now in groups.items()
        ]
        details = growth_details(tests, names_of(groups), item.settings.min_share)
        evidence = Evidence(
            smallest_share=details["smallest_share"], needed_documents=tuple(details["documents_to_stand_out"])
        )
        p_value = max(test.p_value for test in tests)
        return Comparison(float(len(details["grown"])), p_value=p_value, details=details, evidence=evidence)

    def unread_worsening(
        self,
        item: TextItem[MarkedWordsSettings],
        measurement: Measurement,
        shares: Mapping[str, float],
        scale: float,
        *,
        other_side: bool = False,
    ) -> float:
        """Return 1 word if the unread texts alone can hold a new word in `min_share` of a group's texts, else 0."""
        return float(max(shares.values()) >= item.settings.min_share)

    def concerns(
        self, item: TextItem[MarkedWordsSettings], answers: Answers, measurement: Measurement
    ) -> list[Concern]:
        groups = groups_by_axis(item, answers).values()
        return [*dict.fromkeys(each for own in groups for each in concerns_of_texts(own, self.most_documents))]

    def word_rows(self, item: TextItem[MarkedWordsSettings], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        corpus = Corpus.of(item, answers)
        z, significant = sum(each.z for each in corpus.contrasts), set(map(str.casefold, significant_words(details)))
        rows = corpus.usage.rows("z", np.asarray(z), corpus.names, significant)
        written: WordRows = documents.as_written(rows, item.probe, self.counted_answers(item, answers))
        return written

    def explanation(self, item: TextItem[MarkedWordsSettings], measurement: Measurement) -> Explanation:
        words = significant_words(measurement.details)
        phrase = f"{measurement.value:.0f} {_word_or_words(measurement.value)} significant in this run alone"
        return Explanation.of(phrase, _content_first(words, item), words)

    def explanation_of_change(self, item: TextItem[MarkedWordsSettings], comparison: Comparison) -> Explanation:
        """Name the words that grew, with the share of texts that contain them, by group.

        If the answers of the baseline are missing, the phrase only says how the number of significant words changed.
        """
        details = comparison.details
        if "grown" not in details:
            change = f"the number of significant words changed by {comparison.value:+.0f}"
            return Explanation(change=f"{change} (without the baseline's answers, these words cannot be named)")
        words = _content_first((str(word["word"]) for word in details["grown"]), item)
        return replace(Explanation.of(names=words), change=_describe_growth(details))

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return each word's z-score (log-odds ratio divided by its standard deviation)."""
        return {word["word"]: word["z"] for word in measurement.details["words"]}


def significant_words(details: Mapping[str, Json]) -> dict[str, float]:
    return {word["word"]: word["z"] for word in details["words"] if word["significant"]}


def _content_first(words: Iterable[str], item: TextItem[MarkedWordsSettings]) -> list[str]:
    language = documents.language_of(documents.language_details(item.probe))
    return sorted(words, key=language.is_function_word)


def _describe_growth(details: Mapping[str, Json]) -> str:
    groups = details["groups"]
    names = {"marked": groups["marked"], "unmarked": f"the unmarked group ({groups['unmarked']})"}
    grown = {side: [word for word in details["grown"] if word["side"] == side] for side in SIDES}
    smallest = f"{100 * details['min_share']:.3g} percentage points"
    phrases = [
        f"{len(own)} {_word_or_words(len(own))} grew for {names[side]}: {_words_with_shares(own)}"
        for side, own in grown.items()
        if own
    ] or [f"no word grew by {smallest} or more"]
    if less := details["grown_by_less"]:
        phrases.append(f"words that grew significantly, but by less than {smallest}: {_words_with_shares(less)}")
    return "; ".join(phrases)


def _word_or_words(number: float) -> str:
    return "word" if number == 1 else "words"


def _words_with_shares(words: Sequence[Mapping[str, Any]]) -> str:
    """List words with the shares of texts that contain them, by group (named for the first word only) and run."""
    return joined([word.text for word in info.grown_words(words, {})], NAMED_WORDS)
