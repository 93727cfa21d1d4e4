"""Audit `mmd`: unbiased squared maximum mean discrepancy between the distributions of two groups' texts.

Every text is compared with every other text, by words and by character n-grams, or by sentence embeddings. Two groups
are apart where texts of one group are more alike than texts of both, whether half of the texts changed or all of them,
in a few words or in style.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from pytest_fairness.audits.base import AuditItem, Preparation
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text import kernels
from pytest_fairness.audits.text.documents import Documents, anonymizer, strongest_words, text_of
from pytest_fairness.audits.text.groups import Groups
from pytest_fairness.audits.text.two_sample import (
    DocumentFeatures,
    Estimate,
    Relabelled,
    RunChange,
    TwoSampleAudit,
    equal_size,
    joined_documents,
)
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.field_types import EMBEDDER
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Json, Measurement
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.resampling import relabelling
from pytest_fairness.stats.texts import mmd

ERROR_PERMUTATIONS = 499
"""Permutations whose standard deviation is wanted, and no tail."""


class MmdSettings(AuditSettings):
    """Squared maximum mean discrepancy."""

    embeddings: Annotated[str, Field(pattern=EMBEDDER)] | None = Field(
        default=None,
        description="The model of sentence embeddings whose cosine says how alike two texts are: openai:MODEL or "
        "transformers:ID_OR_PATH. Default: none, but words and character n-grams.",
    )


@dataclass(frozen=True)
class VectorDocuments(DocumentFeatures):
    """Documents with vectors, whose inner products are the similarity that the item measures."""

    vectors: mmd.Features

    @classmethod
    def of(cls, settings: MmdSettings, documents: Documents, current: Bools) -> VectorDocuments:
        """Return the documents with term weights, or with their embeddings where the settings name a model.

        Raises:
            NotMeasurable: a document was not embedded.
        """
        if settings.embeddings is None:
            return cls(documents, current, kernels.text_features(documents.words))
        pairs = zip(documents.embeddings, documents.words, strict=True)
        if missing := sum(vector is None and bool(words) for vector, words in pairs):
            raise NotMeasurable(f"{missing} answers were not embedded")
        return cls(documents, current, kernels.embedding_features(documents.embeddings))


class Mmd(TwoSampleAudit[MmdSettings, VectorDocuments]):
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
        charts={"top_words": "word_weights"},
    )
    version: ClassVar[int] = 1
    settings_model: ClassVar[type[AuditSettings]] = MmdSettings
    swap_batches: ClassVar[Sequence[int]] = (500, 500, 500, 499)

    def preparation(self, probe: GenerationProbe, item: AuditItem[MmdSettings]) -> Preparation | None:
        """Return the model of embeddings, if the settings name one; it reads answers without identity terms."""

        def texts(answers: Sequence[Answer]) -> list[str | None]:
            anonymize = anonymizer(probe)
            return [" ".join(anonymize.words(text_of(answer))) or None if answer.usable else None for answer in answers]

        model = item.settings.embeddings
        return None if model is None else Preparation(model, texts)

    def fingerprint(self, probe: GenerationProbe, item: AuditItem[MmdSettings]) -> dict[str, str]:
        """Return the model of embeddings, if the settings name one."""
        return {} if item.settings.embeddings is None else {"embeddings": item.settings.embeddings}

    def features(self, item: AuditItem[MmdSettings], documents: Documents) -> VectorDocuments:
        """Return the documents with their vectors."""
        return VectorDocuments.of(item.settings, documents, np.ones(len(documents.words), dtype=np.bool_))

    def statistic(self, features: VectorDocuments, marked: Bools) -> Floats:
        """Return the squared discrepancy of each labelling."""
        return mmd.estimates(features.vectors, features.strata, marked, ~marked)[:, None]

    def tested(self, features: VectorDocuments, statistic: Floats) -> Floats:
        """Return the squared discrepancy; texts that are all alike give 0, whatever rounding leaves."""
        tested: Floats = np.round(statistic[..., 0], 12)
        return tested

    def estimate(self, item: AuditItem[MmdSettings], run: Relabelled[VectorDocuments]) -> Estimate:
        """Return the squared discrepancy with its error."""
        value = float(self.tested(run.features, run.observed))
        return Estimate.normal(value, _error(run.features, run.null[:, 0]))

    def value(self, probe: GenerationProbe, item: AuditItem[MmdSettings], answers: Sequence[Answer]) -> float:
        """Return the squared discrepancy without its test; see `Audit.value`."""
        return self._observed(self.features(item, Documents.of_answers(probe, item, answers)))

    def explain(
        self,
        item: AuditItem[MmdSettings],
        groups: Groups,
        run: Relabelled[VectorDocuments],
        random: np.random.Generator,
    ) -> dict[str, Json]:
        """Return the null's spread, the discrepancy of each stratum and the words whose weight differs most."""
        features = run.features
        by_stratum = mmd.within_strata(features.vectors, features.strata, features.marked, ~features.marked)
        return {
            "null_sd": float(run.null.std()),
            "by_stratum": {features.documents.stratum_names[each]: value for each, value in by_stratum.items()},
            "top_words": strongest_words(*_term_weights(features.documents)),
        }

    def distance(self, features: VectorDocuments, selected: Bools) -> Floats:
        """Return the squared discrepancy of each selection."""
        marked, unmarked = selected & features.marked, selected & ~features.marked
        return mmd.estimates(features.vectors, features.strata, marked, unmarked)

    def change(
        self, item: AuditItem[MmdSettings], current: Documents, baseline: Documents, random: np.random.Generator
    ) -> RunChange[VectorDocuments]:
        """Return the change of the estimate; the test weights terms alike in both runs."""
        values, errors = [], []
        for run in (current, baseline):
            features = self.features(item, run)
            labels, _ = relabelling.relabellings(features.marked, features.strata, ERROR_PERMUTATIONS, random)
            values.append(self._observed(features))
            errors.append(_error(features, self.statistic(features, labels)[:, 0]))
        joined = joined_documents(current, baseline)
        both = VectorDocuments.of(item.settings, joined.documents, joined.current)
        return RunChange(Estimate.normal(values[0] - values[1], math.hypot(*errors)), both, equal_size(both, random))

    def _observed(self, features: VectorDocuments) -> float:
        """Return the squared discrepancy of one run."""
        return float(self.tested(features, self.statistic(features, features.marked[None])[0]))

    def describe(self, measurement: Measurement) -> str:
        """Return the value as a phrase."""
        return f"squared discrepancy {measurement.value:.3g}"

    def word_values(self, item: AuditItem[MmdSettings], documents: Documents) -> tuple[str, Mapping[str, float]]:
        """Return each word's difference of mean TF-IDF weights; see `TextAudit.word_values`."""
        terms, weights = _term_weights(documents)
        return "difference of mean TF-IDF weights", dict(zip(terms, weights.tolist(), strict=True))


def _error(features: VectorDocuments, null: Floats) -> float:
    """Return the standard error of one run's estimate, given the estimates of relabelled documents."""
    marked = features.marked
    return mmd.standard_error(features.vectors, features.strata, marked, ~marked, float(null.std()))


def _term_weights(documents: Documents) -> tuple[Sequence[str], Floats]:
    """Return the words and the differences of their mean TF-IDF weights."""
    tfidf = kernels.words(documents.words)
    return tfidf.terms, mmd.contributions(tfidf.weights, documents.strata, documents.marked, ~documents.marked)
