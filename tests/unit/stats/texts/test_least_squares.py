"""Left-out predictions of a least squares classifier, against classifiers that are trained anew without each unit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import norm

from pytest_fairness.stats import resampling, two_samples
from pytest_fairness.stats.two_samples import Classifier
from tests.support.oracles import vector

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def units(seed: int, n: int, dimensions: int, strata: int = 3) -> tuple[Floats, Ints, Bools]:
    """Features of words in texts, strata of unequal size, and groups of unequal size in each."""
    random = np.random.default_rng(seed)
    stratum = np.arange(n) % strata
    features = random.poisson(0.7, size=(n, dimensions)) + stratum[:, None] * (np.arange(dimensions) == 0)
    return features.astype(float), stratum.astype(np.int64), random.random(n) < 0.4


def classifier(features: Floats, strata: Ints) -> Classifier:
    kinds = np.unique(features, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    return Classifier.of(csr_array(features), strata, kinds)


def labels_of(marked: Bools, strata: Ints) -> Floats:
    return two_samples.centred_labels(marked[None], strata, np.ones((1, len(marked)), dtype=np.bool_))


def trained_anew(features: Floats, strata: Ints, labels: Floats, penalty: float) -> Floats:
    """Score each unit by ridge regression on the units that are unlike it."""
    scores = np.zeros(len(labels))
    for unit in range(len(labels)):
        training = ~(features == features[unit]).all(axis=1)
        mates = training & (strata == strata[unit])
        if not mates.any():
            continue
        rows, targets = features[training].copy(), labels[training].copy()
        for stratum in np.unique(strata[training]):
            own = strata[training] == stratum
            rows[own] -= rows[own].mean(axis=0)
            targets[own] -= targets[own].mean()
        weights = np.linalg.solve(rows.T @ rows + penalty * np.eye(rows.shape[1]), rows.T @ targets)
        scores[unit] = (features[unit] - features[mates].mean(axis=0)) @ weights
    return scores


@pytest.mark.parametrize(("n", "dimensions"), [(20, 40), (60, 8), (24, 3)])
def test_scores_are_those_of_classifiers_trained_without_the_unit_and_its_equals(n: int, dimensions: int) -> None:
    features, strata, marked = units(1, n, dimensions)
    features[[3, 4, 9]] = features[3]
    model, labels = classifier(features, strata), labels_of(marked, strata)
    assert model.dual == (n <= dimensions)
    expected = trained_anew(features, strata, labels[:, 0], model.penalty)
    np.testing.assert_allclose(model.scores(labels)[:, 0], expected, atol=1e-8)


def test_a_stratum_of_equal_units_has_nothing_to_compare_them_with() -> None:
    features, strata, marked = units(2, 21, 30)
    features[strata == 1] = features[1]
    model, labels = classifier(features, strata), labels_of(marked, strata)
    scores = model.scores(labels)[:, 0]
    assert not scores[strata == 1].any()
    np.testing.assert_allclose(scores, trained_anew(features, strata, labels[:, 0], model.penalty), atol=1e-8)


def test_kernel_and_scatter_matrix_give_the_same_weights() -> None:
    features, strata, marked = units(3, 30, 20)
    wide = np.hstack([features, np.zeros((30, 20))])
    labels = labels_of(marked, strata)
    narrow_model, wide_model = classifier(features, strata), classifier(wide, strata)
    assert (narrow_model.dual, wide_model.dual) == (False, True)
    np.testing.assert_allclose(narrow_model.scores(labels), wide_model.scores(labels), atol=1e-9)
    np.testing.assert_allclose(narrow_model.weights(labels[:, 0]), wide_model.weights(labels[:, 0])[:20], atol=1e-9)


def test_what_only_strata_differ_in_is_no_difference_of_groups() -> None:
    """Nine of ten units of either stratum are of one group; strata have words of their own."""
    random = np.random.default_rng(4)
    strata = np.repeat([0, 1], 60)
    marked = np.tile(np.arange(60) < 6, 2) ^ (strata == 1)
    features = random.poisson(0.5, size=(120, 50)).astype(float)
    features[:, 0] = 5.0 * strata
    labels, _ = resampling.relabellings(marked, strata, 400, random)
    null = classifier(features, strata).distances(labels)
    assert null.mean() == pytest.approx(0, abs=0.1)


def test_groups_of_unequal_size_have_the_distance_of_equal_ones() -> None:
    """A stereotype in every other marked text, and noise, which lowers its distance a little."""
    random = np.random.default_rng(5)
    for sizes in ((300, 300), (120, 480), (480, 120)):
        marked = np.repeat([True, False], sizes)
        features = random.poisson(0.3, size=(600, 20)).astype(float)
        features[:, 0] = marked & (random.random(600) < 0.5)
        strata = np.zeros(600, dtype=np.int64)
        found = classifier(features, strata).distances(np.stack([marked, random.permutation(marked)]))
        share = sizes[0] / 600
        assert found[0] == pytest.approx(0.5 / np.sqrt(0.25 * share), abs=0.35)
        assert found[1] == pytest.approx(0, abs=0.4)


def test_units_that_are_not_used_have_no_answer_to_be_right() -> None:
    features, strata, marked = units(6, 60, 80)
    model = classifier(features, strata)
    used = np.random.default_rng(6).random((1, 60)) < 0.5
    labels = two_samples.centred_labels(marked[None], strata, used)[:, 0]
    scores = model.scores(labels[:, None])[:, 0]
    sums = [labels[strata == stratum].sum() for stratum in range(3)]
    np.testing.assert_allclose(sums, 0, atol=1e-12)
    assert not labels[~used[0]].any()
    assert model.distances(marked[None], used)[0] * (scores @ labels) > 0


def test_many_labellings_are_scored_as_one_by_one() -> None:
    features, strata, marked = units(7, 40, 60)
    batch = two_samples.CHUNK // 40
    model = classifier(features, strata)
    labels, _ = resampling.relabellings(marked, strata, batch + 10, np.random.default_rng(7))
    together = model.distances(labels)
    for place in (0, batch - 1, batch, batch + 9):  # in both batches
        np.testing.assert_allclose(together[place], model.distances(labels[place : place + 1])[0], atol=1e-10)


def test_separable_units_are_told_apart_without_error_and_equal_ones_not_at_all() -> None:
    marked = np.repeat([True, False], 10)
    strata = np.zeros(20, dtype=np.int64)
    random = np.random.default_rng(8)
    features = np.column_stack([marked * 3.0, random.random(20)])
    assert classifier(features, strata).distances(marked[None])[0] > 5
    assert classifier(np.ones((20, 5)), strata).distances(marked[None])[0] == 0


def test_texts_of_two_vocabularies_are_told_apart_as_by_a_support_vector_machine() -> None:
    case = vector("svm", "separable")
    documents = case["input"]["docs"]
    words = sorted({word for document in documents for word in document.split()})
    counts = np.array([[document.split().count(word) for word in words] for document in documents], dtype=float)
    strata = np.zeros(len(counts), dtype=np.int64)
    # Every document is a unit of its own there, though texts repeat.
    model = Classifier.of(csr_array(counts), strata, np.array(case["input"]["groups"], dtype=np.int64))
    found = model.distances(np.array(case["input"]["y"], dtype=bool)[None])
    assert norm.cdf(found[0] / 2) == pytest.approx(case["expected"]["balanced_accuracy"], abs=0.05)
