"""Audit `mmd`: unbiased squared maximum mean discrepancy (MMD) between the distributions of two groups' texts.

Every text is compared with every other text, by words and character n-grams or by sentence embeddings. The groups
differ if texts of the same group are more similar to each other than texts of different groups. The audit therefore
detects differences in some texts or in all texts, in a few words or in style.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from pytest_fairness.audits.base import Preparation
from pytest_fairness.audits.effects import ETA_SQUARED
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text.documents import Documents, Runs, plain_texts
from pytest_fairness.audits.text.groups import Groups, TextItem
from pytest_fairness.audits.text.samples.sample import ERROR_PERMUTATIONS, Relabelled
from pytest_fairness.audits.text.samples.vectors import Vectors
from pytest_fairness.audits.text.two_sample import RunChange, SignedWords, TwoSampleAudit, equal_size
from pytest_fairness.audits.text.words.usage import strongest_words
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.field_types import EMBEDDER
from pytest_fairness.records import Json
from pytest_fairness.stats.intervals.estimate import Estimate


class MmdSettings(AuditSettings):
    """Settings of `mmd`: the embedding model, if any."""

    embeddings: Annotated[str, Field(pattern=EMBEDDER)] | None = Field(
        default=None,
        description="Model of sentence embeddings, openai:MODEL or transformers:ID_OR_PATH. The similarity of two "
        "texts is the cosine of their embeddings. Default: no model; words and character n-grams are compared.",
    )


class Mmd(TwoSampleAudit[MmdSettings, Vectors]):
    """Squared maximum mean discrepancy between a marked and the unmarked group (0: no difference; at most 2)."""

    info = AuditInfo(
        name="mmd",
        title="Different distribution of texts",
        question="Do the two groups get texts of the same distribution?",
        formula="MMD² = mean k(x₁, x₂) + mean k(y₁, y₂) − 2 mean k(x, y), with different texts x₁, x₂ of one group "
        "and y₁, y₂ of the other;  k = mean cosine of TF-IDF weights of words and of character n-grams",
        meaning="0 = no difference. The number of texts does not shift the value; by chance, the value can be slightly "
        "below 0. Opposite differences in two strata do not cancel.",
        source="Gretton, Borgwardt, Rasch, Schölkopf and Smola 2012, “A Kernel Two-Sample Test”",
        better=Direction.LOWER,
        tolerance=0.01,
        value_range=(-2, 2),
        limit_range=(0, 2),
        charts={"top_words": "word_weights", "function_words": "function_words"},
        effect=ETA_SQUARED,
    )
    phrase = "squared discrepancy {value:.3g}"
    word_statistic = "difference of mean TF-IDF weights"
    version = 7
    settings_model = MmdSettings
    swap_batches = (500, 500, 500, 499)

    def preparation(self, item: TextItem[MmdSettings]) -> Preparation | None:
        """Return the embedding model, which reads answers without identity terms; `None` if no model is set."""
        model = item.settings.embeddings
        return None if model is None else Preparation(model, lambda answers: plain_texts(item.probe, answers))

    def fingerprint(self, item: TextItem[MmdSettings]) -> dict[str, str]:
        """Return the name of the embedding model, if the settings name one."""
        return {} if item.settings.embeddings is None else {"embeddings": item.settings.embeddings}

    def sample(self, item: TextItem[MmdSettings], documents: Documents) -> Vectors:
        """Return the documents with vectors: embeddings if the settings name a model, otherwise TF-IDF features."""
        return Vectors(documents, embedded=item.settings.embeddings is not None)

    def explain(
        self, item: TextItem[MmdSettings], groups: Groups, run: Relabelled[Vectors], words: SignedWords
    ) -> dict[str, Json]:
        """Return details: null standard deviation, variance, each stratum's discrepancy, strongest words."""
        return {
            "null_sd": float(run.null.std()),
            "variance": run.sample.variance(),
            "by_stratum": run.sample.within_strata(),
            **strongest_words(*words, groups.probe.language),
        }

    def run_change(self, item: TextItem[MmdSettings], runs: Runs, random: np.random.Generator) -> RunChange[Vectors]:
        """Return the change of the squared discrepancy from the baseline to this run.

        The features for the test are computed from the documents of both runs together, so that terms have the same
        weight in both runs.
        """
        both = self.sample(item, runs.both)
        relabelled = [
            Relabelled(self.sample(item, run), ERROR_PERMUTATIONS, random) for run in (runs.current, runs.baseline)
        ]
        change = Estimate.difference(*(run.sample.estimate(run, random) for run in relabelled))
        return RunChange(change, both, equal_size(both.documents, random))
