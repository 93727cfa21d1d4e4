"""Usable answers as documents (lists of words), their word counts, and the joined documents of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.audits.anonymizer import Anonymizer
from pytest_fairness.audits.text.groups import Groups, sampled, sides_and_strata
from pytest_fairness.audits.text.tokens import Tokens
from pytest_fairness.backends import map_chunks
from pytest_fairness.chunks import chunks_of
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.generation import first_names
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Answers
from pytest_fairness.stats.arrays import Bools, Ints, numbered

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
    marked: Bools
    strata: Ints
    stratum_names: tuple[str, ...]
    embeddings: tuple[bytes | None, ...]
    current: Bools

    @classmethod
    def of(cls, groups: Groups) -> Documents:
        """Return the usable answers of both groups as documents, without answers in strata that hold only one group.

        Of many answers, a sample is taken; see `sampled`.

        A stratum with one group is left out because a permutation of group labels within it changes nothing.

        Raises:
            NotMeasurable: a group has fewer than `MINIMUM_DOCUMENTS` usable answers in strata with both groups, or none
                of the group's documents contains a word.
        """
        indices = sampled(groups)
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
    def cells(self) -> Ints:
        """Return, for each document, the number of its cell (group within stratum); shape (documents,)."""
        return self.strata * 2 + self.marked

    def only(self, indices: Ints) -> Documents:
        """Return the documents with these indices, which must be in ascending order."""
        if len(indices) == len(self.marked):
            return self
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
        current=np.repeat([True, False], [len(current.marked), len(baseline.marked)]),
    )


@dataclass(frozen=True)
class Runs:
    """Documents of the current run and of the baseline, alone and together."""

    current: Documents
    baseline: Documents
    both: Documents

    @classmethod
    def of(cls, current: Documents, baseline: Documents) -> Runs:
        """Return the documents of two runs."""
        return cls(current, baseline, join_runs(current, baseline))


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
        # The probe's own terms are removed even if they are generic, such as "person".
        phrases=[*sorted(probe.swapped_terms - names), *probe.removed_terms],
        names=probe.removed_names | first_names.name_forms(names),
    )


def documents_by_word(counts: csr_array) -> Ints:
    """Return the number of documents that contain each word; shape (words,)."""
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)


def require_words(number: int) -> None:
    """Raise `NotMeasurable` if fewer than two words can be tested."""
    if number < 2:
        raise NotMeasurable(
            "too few words to test: fewer than two words occur in at least three answers. Raise `trials`, or ask for "
            "longer texts"
        )
