"""Audit `svm`: accuracy with which a linear classifier separates two groups' texts without identity terms.

Cheng, Durmus and Jurafsky 2023 ("Marked Personas") report plain accuracy for one group against all other groups. In
their data, a classifier that always predicts the larger class has an accuracy of 0.8. This audit reports the balanced
accuracy for one marked group against the unmarked group, so that chance is 0.5.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from pytest_fairness.audits.effects import COHENS_U2
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text.concerns import few_different_answers
from pytest_fairness.audits.text.documents import Documents, Runs
from pytest_fairness.audits.text.groups import Groups, TextItem
from pytest_fairness.audits.text.samples.linear_classifier import Corpus, FeatureName, null_accuracies
from pytest_fairness.audits.text.samples.published_accuracy import published_accuracy
from pytest_fairness.audits.text.samples.sample import Relabelled
from pytest_fairness.audits.text.two_sample import RunChange, TwoSampleAudit, equal_size
from pytest_fairness.audits.text.words.strongest import strongest_words
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.records import Answers, Concern, Json, Measurement
from pytest_fairness.stats.intervals.balanced_accuracy import Accuracy, accuracy_change
from pytest_fairness.stats.intervals.estimate import Estimate


class SvmSettings(AuditSettings):
    """Settings of `svm`: the features of the classifier."""

    features: FeatureName = Field(
        default="counts",
        description="Features of the classifier. counts: square roots of word counts. tfidf: word counts weighted by "
        "inverse document frequency.",
    )


class Svm(TwoSampleAudit[SvmSettings, Corpus]):
    """Balanced accuracy of a linear classifier on texts that it was not trained on, 0..1; chance is 0.5."""

    info = AuditInfo(
        name="svm",
        title="Texts that reveal the group",
        question="Can a simple classifier recognise which group a text is about?",
        formula="balanced accuracy = mean of the two groups’ shares of correctly classified texts; each text is "
        "classified by a classifier that was trained without it;  change = logistic(log-odds now − log-odds in the "
        "baseline) − 0.5",
        meaning="0.5 = chance, 1 = all texts recognised. Changes are shown as if the accuracy had been 0.5 in the "
        "baseline: 0.15 stands for a change from 0.5 to 0.65, and also from 0.89 to 0.94.",
        source="Cheng, Durmus and Jurafsky 2023, “Marked Personas”; Suykens and Vandewalle 1999, “Least Squares "
        "Support Vector Machine Classifiers”",
        better=Direction.LOWER,
        tolerance=0.15,
        value_range=(0, 1),
        limit_range=(0.5, 1),
        best=0.5,
        charts={"top_words": "word_weights", "function_words": "function_words"},
        effect=COHENS_U2,
    )
    phrase = "groups recognised with accuracy {value:.3g} (chance 0.5)"
    change_phrase = "{change} (as if the baseline accuracy had been 0.5)"
    word_statistic = "weight"
    version = 4
    settings_model = SvmSettings
    grows_with_size = True

    def sample(self, item: TextItem[SvmSettings], documents: Documents) -> Corpus:
        """Return the documents as a corpus to train on."""
        return Corpus.of(documents, item.settings.features)

    def explain(self, item: TextItem[SvmSettings], groups: Groups, run: Relabelled[Corpus]) -> dict[str, Json]:
        """Return details: accuracy as publications report it, null distribution, different answers, strongest words."""
        null = null_accuracies(run)
        return {
            **published_accuracy(run.sample, int(run.random.integers(2**31))),
            "null_mean": float(null.mean()),
            "null_sd": float(null.std()),
            "unique_share": run.sample.unique_share,
            "different_answers": run.sample.fewest_different,
            **strongest_words(*run.sample.word_weights(), groups.probe.language),
        }

    def run_change(self, item: TextItem[SvmSettings], runs: Runs, random: np.random.Generator) -> RunChange[Corpus]:
        """Return the change of the accuracy after the runs are cut to equal size, on the scale of `accuracy_change`."""
        both = self.sample(item, runs.both)
        cuts = equal_size(both.documents, random)
        accuracies = [
            both.accuracy_of_run(run, cut, random) for run, cut in zip((runs.current, runs.baseline), cuts, strict=True)
        ]
        return RunChange(accuracy_change(*accuracies), both, cuts)

    def change_of_values(self, measurement: Measurement, value: float, standard_error: float) -> Estimate:
        """Return the change on the scale of `accuracy_change`; see `Audit.change_of_values`."""
        n = sum(measurement.n.values())
        current = Accuracy(measurement.value, n, measurement.standard_error or 0.0)
        return accuracy_change(current, Accuracy(value, n, standard_error))

    def concerns(self, item: TextItem[SvmSettings], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return the concerns of `TextAudit.concerns`, and a concern if too few different answers are available."""
        return [*super().concerns(item, answers, measurement), *few_different_answers(measurement)]
