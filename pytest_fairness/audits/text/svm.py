"""Audit `svm`: how far a linear classifier separates two groups' texts without identity terms.

Cheng, Durmus and Jurafsky 2023 ("Marked Personas") report plain accuracy for one group against all other groups. In
their data, a classifier that always predicts the larger class has an accuracy of 0.8. This audit measures the distance
d' between the scores of one marked group and the unmarked group, and shows it as the balanced accuracy of normal scores
with this distance, so that chance is 0.5. Counted accuracies cannot tell two runs apart whose texts are nearly all
recognised; d' can.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from pytest_fairness.audits.effects import COHENS_U2
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text.concerns import few_different_answers
from pytest_fairness.audits.text.documents import Documents, Runs
from pytest_fairness.audits.text.groups import Groups, TextItem
from pytest_fairness.audits.text.samples.linear_classifier import Corpus, FeatureName
from pytest_fairness.audits.text.samples.published_accuracy import published_accuracy
from pytest_fairness.audits.text.samples.sample import Relabelled
from pytest_fairness.audits.text.two_sample import RunChange, SignedWords, TwoSampleAudit, equal_size
from pytest_fairness.audits.text.words.usage import strongest_words
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.records import Answers, Concern, Json, Measurement
from pytest_fairness.stats.intervals.estimate import Estimate
from pytest_fairness.stats.intervals.separation import Separation, separation_change


class SvmSettings(AuditSettings):
    """Settings of `svm`: the features of the classifier."""

    features: FeatureName = Field(
        default="tfidf",
        description="Features of the classifier: shares of a text's words (counts), or these shares weighted by "
        "inverse document frequency (tfidf).",
    )


class Svm(TwoSampleAudit[SvmSettings, Corpus]):
    """Distance d' of a linear classifier's scores of texts that it was not trained on, as accuracy Φ(d' / 2), 0..1."""

    info = AuditInfo(
        name="svm",
        title="Texts that reveal the group",
        question="Can a simple classifier recognise which group a text is about?",
        formula="d' = (mean score of the marked group − mean score of the unmarked group) / standard deviation within "
        "groups; each text is scored by a classifier that was trained without it;  value = Φ(d' / 2), the accuracy of "
        "normal scores;  change = Φ((d' now − d' in the baseline) / 2) − 0.5",
        meaning="0.5 = chance, 1 = all texts recognised. Changes are shown as if the accuracy had been 0.5 in the "
        "baseline: 0.1 stands for half a standard deviation, from 0.5 to 0.6, and also from 0.977 to 0.988.",
        source="Cheng, Durmus and Jurafsky 2023, “Marked Personas”; Suykens and Vandewalle 1999, “Least Squares "
        "Support Vector Machine Classifiers”; Green and Swets 1966 on d'",
        better=Direction.LOWER,
        tolerance=0.12,
        value_range=(0, 1),
        limit_range=(0.5, 1),
        best=0.5,
        charts={"top_words": "word_weights", "function_words": "function_words"},
        effect=COHENS_U2,
    )
    change_phrase = "{change} (as if the baseline accuracy had been 0.5)"
    word_statistic = "weight"
    version = 7
    settings_model = SvmSettings
    grows_with_size = True

    def describe(self, measurement: Measurement) -> str:
        """Return the accuracy and d' as a phrase."""
        d_prime = measurement.details["d_prime"]
        return f"groups recognised with accuracy {measurement.value:.3g} (d' {d_prime:.2g}; chance 0.5)"

    def sample(self, item: TextItem[SvmSettings], documents: Documents) -> Corpus:
        """Return the documents as a corpus to train on."""
        return Corpus.of(documents, item.settings.features)

    def explain(
        self, item: TextItem[SvmSettings], groups: Groups, run: Relabelled[Corpus], words: SignedWords
    ) -> dict[str, Json]:
        """Return details: d', accuracy as publications report it, null distribution, strongest words."""
        null, separation, limit = run.null[:, 0], run.sample.separation_of(run), item.settings.limit
        return {
            "d_prime": separation.d_prime,
            "d_prime_error": separation.standard_error,
            **({} if limit is None else {"bounds": separation.bounds(limit, item.alpha, item.beta)}),
            **published_accuracy(run.sample, int(run.random.integers(2**31))),
            "null_mean": float(null.mean()),
            "null_sd": float(null.std()),
            "unique_share": run.sample.unique_share,
            "different_answers": run.sample.fewest_different,
            **strongest_words(*words, groups.probe.language),
        }

    def run_change(self, item: TextItem[SvmSettings], runs: Runs, random: np.random.Generator) -> RunChange[Corpus]:
        """Return the change of d' after the runs are cut to equal size, on the scale of `separation_change`."""
        both = self.sample(item, runs.both)
        cuts = equal_size(both.documents, random)
        separations = [
            both.separation_of_run(run, cut, random)
            for run, cut in zip((runs.current, runs.baseline), cuts, strict=True)
        ]
        return RunChange(separation_change(*separations), both, cuts)

    def change_of_values(self, measurement: Measurement, value: float, standard_error: float) -> Estimate:
        """Return the change on the scale of `separation_change`; see `Audit.change_of_values`."""
        current = Separation.of_accuracy(measurement.value, measurement.standard_error or 0.0)
        return separation_change(current, Separation.of_accuracy(value, standard_error))

    def concerns(self, item: TextItem[SvmSettings], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return the concerns of `TextAudit.concerns`, and a concern if too few different answers are available."""
        return [*super().concerns(item, answers, measurement), *few_different_answers(measurement)]
