"""Usable answers as documents (lists of words), their word counts, and the joined documents of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.anonymizer import Anonymizer
from pytest_fairness.audits.text.groups import Groups, comparable, sides_and_strata
from pytest_fairness.audits.text.tokens import Tokens
from pytest_fairness.backends import map_chunks
from pytest_fairness.chunks import chunks_of
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.generation import first_names
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Answers
from pytest_fairness.stats.arrays import numbered
from pytest_fairness.stats.resampling import randomness
from pytest_fairness.stats.resampling.bundles import LARGEST_UNBUNDLED, Bundles

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGEST_COMPARED = 200_000
"""Largest number of documents of two runs together that are compared; the comparison holds labels of all documents for
hundreds of permutations in memory."""
AT_ONCE = 2**14
"""Number of texts that are split into words at a time."""
MINIMUM_DOCUMENTS_OF_A_WORD = 3
"""Number of documents in which a word must occur to be tested."""


@dataclass(frozen=True)
class Documents:
    """Usable answers as lists of words.

    Attributes:
        words: words of each document, without identity terms.
        marked: (documents,) whether the document belongs to the marked group.
        strata: (documents,) stratum number of each document.
        stratum_names: name of each stratum, by its number.
        embeddings: embedding of each document; `None` if the document has none.
        current: (documents,) whether the document belongs to the current run; all `True` for a single run.
    """

    words: Tokens
    marked: NDArray[np.bool_]
    strata: NDArray[np.int64]
    stratum_names: tuple[str, ...]
    embeddings: tuple[bytes | None, ...]
    current: NDArray[np.bool_]

    @classmethod
    def of(cls, groups: Groups) -> Documents:
        """Return the usable answers of both groups as documents, without answers in strata that hold only one group.

        A stratum with one group is left out because a permutation of group labels within it changes nothing.

        Raises:
            NotMeasurable: a group has fewer than `MINIMUM_DOCUMENTS` usable answers in strata with both groups, or none
                of the group's documents contains a word.
        """
        indices = comparable(groups)
        anonymize = anonymizer(groups.probe)
        texts = chunks_of((text_of(groups.answers[index]) for index in indices), AT_ONCE)
        documents = Tokens.joined(own for _, own in map_chunks(_tokens, texts, anonymize))
        marked, strata, names = sides_and_strata(groups, indices)
        for side, name in ((marked, groups.marked_name), (~marked, groups.unmarked_name)):
            if not documents.lengths[side].any():
                raise NotMeasurable(
                    f"the answers for {name} have no words besides identity terms, such as the names of the groups; "
                    "check that these texts are the answers, and that `anonymize` does not remove too many terms"
                )
        return cls(
            words=documents,
            marked=marked,
            strata=strata,
            stratum_names=names,
            embeddings=tuple(groups.answers[index].embedding for index in indices),
            current=np.ones(len(indices), dtype=np.bool_),
        )

    @property
    def cells(self) -> NDArray[np.int64]:
        """Return, for each document, the index of its cell (group within stratum); shape (documents,)."""
        return self.strata * 2 + self.marked

    @cached_property
    def bundles(self) -> Bundles | None:
        """Return the bundles: sets of documents whose labels are permuted together, to save time.

        Return `None` for at most `LARGEST_UNBUNDLED` documents, and for the joined documents of two runs.
        """
        if len(self.marked) <= LARGEST_UNBUNDLED or not self.current.all():
            return None
        return Bundles.of(self.marked, self.strata, randomness.generator("bundles"))

    def only(self, indices: NDArray[np.int64]) -> Documents:
        """Return the documents with these indices."""
        return replace(
            self,
            words=self.words.only(indices),
            marked=self.marked[indices],
            strata=self.strata[indices],
            embeddings=tuple(self.embeddings[index] for index in indices),
            current=self.current[indices],
        )


def _tokens(texts: Sequence[str], anonymize: Anonymizer) -> Tokens:
    return Tokens.of(map(anonymize.words, texts))


def join_runs(current: Documents, baseline: Documents) -> Documents:
    """Return the documents of both runs together; strata of the two runs that have the same name become one stratum."""
    names, strata = numbered([run.stratum_names[number] for run in (current, baseline) for number in run.strata])
    return Documents(
        words=Tokens.joined([current.words, baseline.words]),
        marked=np.concatenate([current.marked, baseline.marked]),
        strata=strata,
        stratum_names=names,
        embeddings=(*current.embeddings, *baseline.embeddings),
        current=np.repeat([True, False], [len(current.words), len(baseline.words)]),
    )


def require_comparable(current: Documents, baseline: Documents) -> None:
    """Raise `NotMeasurable` if two runs have more than `LARGEST_COMPARED` documents together."""
    number = len(current.marked) + len(baseline.marked)
    if number > LARGEST_COMPARED:
        raise NotMeasurable(
            f"the run and its baseline have {number:,} texts together; at most {LARGEST_COMPARED:,} can be compared. "
            "Lower `trials`, then rebaseline"
        )


def text_of(answer: Answer) -> str:
    """Return the text of a usable answer; the text of a list has one line for each item."""
    # One line for each item, so that words of two items are not neighbours, and no identity term spans two items.
    return "\n".join(answer.content) if isinstance(answer.content, list) else str(answer.content)


def plain_texts(probe: GenerationProbe, answers: Answers) -> list[str | None]:
    """Return the words of each answer, without identity terms, as one text.

    The text is `None` if the answer is unusable, or if no word is left.
    """
    anonymize = anonymizer(probe)
    return [" ".join(anonymize.words(text_of(answer))) or None if answer.usable else None for answer in answers]


def anonymizer(probe: GenerationProbe) -> Anonymizer:
    """Return the probe's anonymizer.

    The anonymizer removes the values of axes, swapped terms, the terms that the probe lists, and first names. It
    removes nothing if the probe switches the anonymizer off.
    """
    if probe.removed_terms is None:
        return Anonymizer((), probe.language, enabled=False)
    values = [value for axis in probe.axes.values() for value in axis.values]
    # A first name that is also a word, such as Grace, is removed only where it is written as a name.
    names = {term for term in probe.swapped_terms if term[0].isupper() and term.casefold() in first_names.ALSO_WORDS}
    return Anonymizer(
        [*values, *probe.removed_terms],
        probe.language,
        phrases=sorted(probe.swapped_terms - names),
        names=probe.removed_names | first_names.name_forms(names),
    )


def documents_by_word(counts: csr_array) -> NDArray[np.int64]:
    """Return the number of documents that contain each word; shape (words,)."""
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)


def require_words(number: int) -> None:
    """Raise `NotMeasurable` if fewer than two words can be tested."""
    if number < 2:
        raise NotMeasurable(
            "too few words to test: fewer than two words occur in at least three answers. Raise `trials`, or ask for "
            "longer texts"
        )
