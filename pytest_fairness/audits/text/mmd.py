"""How far apart two groups' texts are as distributions: the unbiased squared maximum mean discrepancy (MMD).

Every text is compared with every other one, by words and by character n-grams, or by sentence embeddings. Two groups
are apart where texts of one group are more alike than texts of both, whether half of the texts changed or all of them,
in a few words or in style.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text import kernels, text_audit
from pytest_fairness.audits.text.two_runs import SUBSAMPLES, joined
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.field_types import EMBEDDER
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Comparison, Json, Measurement
from pytest_fairness.stats import mmd, normal, resampling

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

PERMUTATIONS = 1999
BATCHES = (500, 500, 500, 499)
"""The same number of swaps of run labels."""
ERROR_PERMUTATIONS = 499
"""Permutations whose standard deviation is wanted, and no tail."""
SHOWN_WORDS = 10
"""Words a side."""


class MmdSettings(AuditSettings):
    """Squared maximum mean discrepancy."""

    embeddings: Annotated[str, Field(pattern=EMBEDDER)] | None = Field(
        default=None,
        description="The model of sentence embeddings whose cosine says how alike two texts are: openai:MODEL or "
        "transformers:ID_OR_PATH. Default: none, but words and character n-grams.",
    )


class Mmd(text_audit.ContrastAudit[MmdSettings]):
    """Squared maximum mean discrepancy of a marked and the unmarked group (0: alike; at most 2)."""

    info = AuditInfo(
        name="mmd",
        title="Different distribution of texts",
        question="Do the two groups get texts of the same distribution?",
        formula="MMD² = mean k(x₁, x₂) + mean k(y₁, y₂) − 2 mean k(x, y), x₁ and x₂ different texts of one group, y₁ "
        "and y₂ of the other;  k = mean cosine of TF-IDF weights of words and of character n-grams",
        meaning="0 is alike, whatever the number of texts; chance may take it a little below. Differences that are "
        "opposite in two strata do not cancel.",
        source="Gretton, Borgwardt, Rasch, Schölkopf and Smola 2012, “A Kernel Two-Sample Test”",
        better=Direction.LOWER,
        tolerance=0.01,
        value_range=(-2, 2),
        limit_range=(0, 2),
    )
    version: ClassVar[int] = 1
    settings_model: ClassVar[type[AuditSettings]] = MmdSettings

    def embedder(self, settings: MmdSettings) -> str | None:
        """See `Audit.embedder`."""
        return settings.embeddings

    def texts_to_embed(
        self, probe: GenerationProbe, item: AuditItem[MmdSettings], answers: Sequence[Answer]
    ) -> list[str | None]:
        """Return the words that are left of each usable answer: what is embedded tells groups by no identity term."""
        anonymize = text_audit.anonymizer(probe)
        return [
            " ".join(anonymize.words(text_audit.text_of(answer))) or None if answer.usable else None
            for answer in answers
        ]

    def fingerprint(self, probe: GenerationProbe, item: AuditItem[MmdSettings]) -> dict[str, str]:
        """The embeddings, where there are any."""
        return {} if item.settings.embeddings is None else {"embeddings": item.settings.embeddings}

    def measure(self, probe: GenerationProbe, item: AuditItem[MmdSettings], answers: Sequence[Answer]) -> Measurement:
        """Estimate and permutation test; see `Audit.measure`."""
        groups = text_audit.Groups.of(probe, item, answers)
        documents = text_audit.Documents.of(probe, groups)
        features = _features(item, documents)
        marked, strata = documents.marked, documents.strata
        value = _estimate(features, strata, marked, ~marked)
        random = resampling.generator(f"{item.seed}/measure")
        labels, exact = resampling.relabellings(marked, strata, PERMUTATIONS, random)
        null = mmd.estimates(features, strata, labels, ~labels)
        null_sd = float(null.std())
        error = mmd.standard_error(features, strata, marked, ~marked, null_sd)
        by_stratum = mmd.within_strata(features, strata, marked, ~marked)
        return Measurement(
            value=value,
            interval=normal.interval(value, error),
            standard_error=error,
            p_value=resampling.p_value(null, value, exact=exact),
            n=groups.usable,
            missing=groups.missing,
            details={
                "null_sd": null_sd,
                "by_stratum": {documents.stratum_names[each]: value for each, value in by_stratum.items()},
                "top_words": _top_words(documents),
            },
        )

    def value(self, probe: GenerationProbe, item: AuditItem[MmdSettings], answers: Sequence[Answer]) -> float:
        """The estimate without its permutation test; see `Audit.value`."""
        documents = text_audit.Documents.of_answers(probe, item, answers)
        features = _features(item, documents)
        return _estimate(features, documents.strata, documents.marked, ~documents.marked)

    def compare(
        self, probe: GenerationProbe, item: AuditItem[MmdSettings], now: Sequence[Answer], then: Sequence[Answer]
    ) -> Comparison:
        """Change of the estimate, with run labels swapped between documents of one cell; see `Audit.compare`."""
        both = [text_audit.Documents.of_answers(probe, item, run) for run in (now, then)]
        random = resampling.generator(f"{item.seed}/compare")
        (value_now, error_now), (value_then, error_then) = (_estimate_and_error(item, run, random) for run in both)
        value, error = value_now - value_then, math.hypot(error_now, error_then)
        documents, is_now = joined(both[0], both[1])
        # The test weights terms alike in both runs, so that swapped runs differ by their documents only.
        features = _features(item, documents)
        marked, strata, cells = documents.marked, documents.strata, documents.cells

        def changes(present: Bools, earlier: Bools) -> mmd.Floats:
            return mmd.estimates(features, strata, present & marked, present & ~marked) - mmd.estimates(
                features, strata, earlier & marked, earlier & ~marked
            )

        observed = changes(*resampling.equal_size(is_now, cells, SUBSAMPLES, random))
        # Batches, as the selections of many documents would take more memory than the documents.
        batches = (resampling.run_swaps(is_now, cells, count, random) for count in BATCHES)
        null = np.concatenate([changes(*batch) for batch in batches])
        return Comparison(
            value=value,
            interval=normal.interval(value, error),
            standard_error=error,
            p_value=resampling.p_value(null, float(observed.mean()), exact=False),
        )

    def describe(self, measurement: Measurement) -> str:
        """The value as a phrase."""
        return f"squared discrepancy {measurement.value:.3g}"

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Each word with the difference of its mean weight, signed."""
        return {
            word["word"]: sign * word["weight"]
            for side, sign in (("marked", 1.0), ("unmarked", -1.0))
            for word in measurement.details["top_words"][side]
        }

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """The words whose mean weight differs most, whichever side has more of them."""
        weights = self.word_weights(measurement)
        return sorted(weights, key=lambda word: (-abs(weights[word]), word))


def _estimate(features: mmd.Features, strata: Ints, first: Bools, second: Bools) -> float:
    # Texts that are all alike give 0, and not what rounding makes of it.
    return round(float(mmd.estimates(features, strata, first[None], second[None])[0]), 12)


def _features(item: AuditItem[MmdSettings], documents: text_audit.Documents) -> mmd.Features:
    """Return vectors of the documents, whose inner products are the similarity that the item measures."""
    if item.settings.embeddings is None:
        return kernels.text_features(documents.words)
    missing = sum(one is None and bool(words) for one, words in zip(documents.embeddings, documents.words, strict=True))
    if missing:
        raise NotMeasurable(f"{missing} answers were not embedded")
    return kernels.embedding_features(documents.embeddings)


def _estimate_and_error(
    item: AuditItem[MmdSettings], documents: text_audit.Documents, random: np.random.Generator
) -> tuple[float, float]:
    """Return one run's estimate, the one that `measure` gives, and its standard error."""
    features, marked, strata = _features(item, documents), documents.marked, documents.strata
    labels, _ = resampling.relabellings(marked, strata, ERROR_PERMUTATIONS, random)
    null = mmd.estimates(features, strata, labels, ~labels)
    error = mmd.standard_error(features, strata, marked, ~marked, float(null.std()))
    return _estimate(features, strata, marked, ~marked), error


def _top_words(documents: text_audit.Documents) -> dict[str, list[dict[str, Json]]]:
    """Return the words by the difference of their mean TF-IDF weight, by the side that has more, strongest first."""
    tfidf = kernels.words(documents.words)
    weights = mmd.contributions(tfidf.weights, documents.strata, documents.marked, ~documents.marked)
    return {
        side: [
            {"word": tfidf.terms[index], "weight": float(sign * weights[index])}
            for index in text_audit.tie_order(tfidf.terms, sign * weights)[:SHOWN_WORDS]
            if sign * weights[index] > 0
        ]
        for side, sign in (("marked", 1.0), ("unmarked", -1.0))
    }
