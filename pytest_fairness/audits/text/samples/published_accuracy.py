"""Accuracy of a linear support vector machine in cross-validation, which publications report."""

from __future__ import annotations

import warnings

import numpy as np

from pytest_fairness.audits.text.samples.linear_classifier import FEWEST_DIFFERENT, Corpus

FOLDS = 5
"""Number of folds of the cross-validation."""


def published_accuracy(corpus: Corpus, seed: int) -> dict[str, float]:
    """Return the details `accuracy` and `fold_sd`: the accuracy as publications report it, and its SD over folds.

    The accuracy comes from the cross-validation of a linear support vector machine on word counts; equal documents are
    in the same fold. The standard deviation is not the standard error of the mean, because folds share training
    documents. With too few different documents to train on, `accuracy` is the larger group's share of the documents,
    and `fold_sd` is 0.
    """
    larger = float(max(corpus.documents.marked.mean(), 1 - corpus.documents.marked.mean()))
    if corpus.fewest_different < FEWEST_DIFFERENT or not corpus.vocabulary:
        return {"accuracy": larger, "fold_sd": 0.0}
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.svm import LinearSVC

    counts, marked, kinds = corpus.counts, corpus.documents.marked, corpus.kinds
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    right = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for training, test in folds.split(counts, marked, kinds):
            model = LinearSVC(random_state=seed).fit(counts[training], marked[training])
            right.append(model.predict(counts[test]) == marked[test])
    fold_sd = float(np.std([fold.mean() for fold in right], ddof=1))
    return {"accuracy": float(np.concatenate(right).mean()), "fold_sd": fold_sd}
