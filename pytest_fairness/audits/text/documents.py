"""Usable answers as documents: lists of words, their counts, and the documents of two runs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.anonymizer import Anonymizer
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.text.groups import Groups, comparable, numbered
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Json

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHOWN_WORDS = 10
"""Words of each group that the detail `top_words` shows."""
MINIMUM_DOCUMENTS_OF_A_WORD = 3
"""Documents that must hold a word for it to be tested."""


@dataclass(frozen=True)
class Documents:
    """Usable answers as lists of words.

    Attributes:
        words: (documents) the words of each document, anonymised.
        marked: (documents,) whether it is of the marked group.
        strata: (documents,) number of its stratum.
        stratum_names: the strata by their numbers.
        embeddings: (documents) their vectors as `Answer` has them; all `None` where nothing was embedded.
    """

    words: tuple[tuple[str, ...], ...]
    marked: NDArray[np.bool_]
    strata: NDArray[np.int64]
    stratum_names: tuple[str, ...]
    embeddings: tuple[bytes | None, ...] = ()

    @classmethod
    def of(cls, probe: GenerationProbe, groups: Groups) -> Documents:
        """Read the usable answers of both groups, without those in strata that hold one group only.

        Labels are permuted within strata: where all labels are the same, no permutation differs from what was observed.

        Raises:
            NotMeasurable: a group has fewer than `MINIMUM_DOCUMENTS` such answers, or none holds a word.
        """
        kept = comparable(groups)
        anonymize = anonymizer(probe)
        names, strata = numbered([groups.strata[index] for index in kept])
        documents = tuple(tuple(anonymize.words(text_of(groups.answers[index]))) for index in kept)
        marked = np.array([groups.marked[index] for index in kept], dtype=np.bool_)
        for side, name in ((marked, groups.marked_name), (~marked, groups.unmarked_name)):
            if not any(document for document, own in zip(documents, side, strict=True) if own):
                raise NotMeasurable(
                    f"no answer for {name} holds a word besides the identity terms; see `anonymize` in the probe file"
                )
        return cls(
            words=documents,
            marked=marked,
            strata=strata,
            stratum_names=names,
            embeddings=tuple(groups.answers[index].embedding for index in kept),
        )

    @classmethod
    def of_answers(cls, probe: GenerationProbe, item: AuditItem[Any], answers: Sequence[Answer]) -> Documents:
        """Read the usable answers of an item; see `of`."""
        return cls.of(probe, Groups.of(probe, item, answers))

    @property
    def cells(self) -> NDArray[np.int64]:
        """(documents,) number of the document's group within its stratum."""
        return self.strata * 2 + self.marked

    def counts(self, minimum_documents: int = 1) -> tuple[list[str], csr_array]:
        """Return the vocabulary and the sparse counts of the documents; see `count_words`."""
        return count_words(self.words, minimum_documents)


def join_runs(current: Documents, baseline: Documents) -> tuple[Documents, NDArray[np.bool_]]:
    """Return the documents of both runs, their strata matched by name, and whether each is of the current run."""
    names, strata = numbered([run.stratum_names[number] for run in (current, baseline) for number in run.strata])
    both = Documents(
        words=(*current.words, *baseline.words),
        marked=np.concatenate([current.marked, baseline.marked]),
        strata=strata,
        stratum_names=names,
        embeddings=(*current.embeddings, *baseline.embeddings),
    )
    return both, np.repeat([True, False], [len(current.words), len(baseline.words)])


def text_of(answer: Answer) -> str:
    """Return the text of a usable answer."""
    # An item a line: words of two items are no neighbours, and identity terms do not span them.
    return "\n".join(answer.content) if isinstance(answer.content, list) else str(answer.content)


def anonymizer(probe: GenerationProbe) -> Anonymizer:
    """Return the anonymizer of a probe, which removes axis values, the probe's own terms and first names."""
    if probe.removed_terms is None:
        return Anonymizer((), enabled=False)
    values = [value for axis in probe.axes.values() for value in (axis.unmarked, *axis.marked)]
    return Anonymizer([*values, *probe.removed_terms], names=probe.removed_names)


def count_words(documents: Sequence[Sequence[str]], minimum_documents: int = 1) -> tuple[list[str], csr_array]:
    """Return the vocabulary of the documents, sorted, and their sparse (documents, words) counts.

    Args:
        documents: the words of each document.
        minimum_documents: words that occur in fewer documents are left out.
    """
    # Deferred, as scipy is not needed to load a probe.
    from scipy.sparse import csr_array

    numbers: dict[str, int] = {}
    found = [numbers.setdefault(word, len(numbers)) for document in documents for word in document]
    # scikit-learn takes 32-bit indices only.
    columns = np.array(found, dtype=np.int32)
    rows = np.repeat(np.arange(len(documents), dtype=np.int32), [len(document) for document in documents])
    counts = csr_array((np.ones(len(columns)), (rows, columns)), shape=(len(documents), len(numbers)))
    counts.sum_duplicates()
    vocabulary = sorted(numbers)
    holders = np.bincount(counts.indices, minlength=len(numbers))
    order = [numbers[word] for word in vocabulary if holders[numbers[word]] >= minimum_documents]
    words = [word for word in vocabulary if holders[numbers[word]] >= minimum_documents]
    return words, csr_array(counts[:, np.array(order, dtype=np.int32)])


def holding_documents(counts: csr_array) -> NDArray[np.int64]:
    """Return (words,) how many documents hold the word."""
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)


def require_words(number: int) -> None:
    """Raise `NotMeasurable` for fewer than two tested words."""
    if number < 2:
        raise NotMeasurable("the answers share fewer than two words that occur in three documents")


def strongest_words(words: Sequence[str], weights: NDArray[np.float64]) -> dict[str, list[dict[str, Json]]]:
    """Return the words with the largest weights for either group, the strongest first: the detail `top_words`.

    Args:
        words: the vocabulary.
        weights: (words,) weights, negative for words of the unmarked group.
    """
    return {
        side: [
            {"word": words[index], "weight": float(strength[index])}
            for index in tie_order(words, strength)[:SHOWN_WORDS]
            if strength[index] > 0
        ]
        for side, strength in (("marked", weights), ("unmarked", -weights))
    }


def tie_order(words: Sequence[str], strength: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return indices by falling strength; ties are in the order of their words, so that reports are reproducible."""
    return np.lexsort((np.asarray(words), -np.round(strength, 12))).astype(np.int64)
