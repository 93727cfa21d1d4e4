"""Usable answers as documents (lists of words), their word counts, and the joined documents of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.audits.anonymizer import Anonymizer
from pytest_fairness.audits.text.groups import Groups, comparable, sides_and_strata
from pytest_fairness.audits.text.tokens import Tokens
from pytest_fairness.backends import map_chunks
from pytest_fairness.chunks import chunks_of
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.generation import first_names
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Answers
from pytest_fairness.stats.arrays import Bools, Ints, numbered
from pytest_fairness.stats.resampling import randomness
from pytest_fairness.stats.resampling.bundles import LARGEST_UNBUNDLED, Bundles
from pytest_fairness.stats.resampling.relabelling import RunCells

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGEST_UNBUNDLED_RUNS = 200_000
"""Largest number of documents of two runs together whose run labels are permuted one by one."""
AT_ONCE = 2**14
"""Number of texts that are split into words at a time."""
MINIMUM_DOCUMENTS_OF_A_WORD = 3
"""Number of documents in which a word must occur to be tested."""


@dataclass(frozen=True)
class Units:
    """The units whose labels are permuted: documents or, if there are many documents, bundles.

    Attributes:
        marked: (units,) whether the unit belongs to the marked group.
        strata: (units,) stratum number of each unit.
        current: (units,) whether the unit belongs to the current run; all `True` for a single run.
    """

    marked: Bools
    strata: Ints
    current: Bools

    @property
    def cells(self) -> Ints:
        """Return, for each unit, the number of its cell (group within stratum); shape (units,)."""
        return self.strata * 2 + self.marked


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
    def cells(self) -> Ints:
        """Return, for each document, the number of its cell (group within stratum); shape (documents,)."""
        return self.strata * 2 + self.marked

    @cached_property
    def bundles(self) -> Bundles | None:
        """Return the bundles: sets of documents whose labels are permuted together, to save time and memory.

        The labels of a single run's documents are groups. The labels of the joined documents of two runs are runs,
        which are permuted within cells. Return `None` for at most `LARGEST_UNBUNDLED` documents of a single run, and
        for at most `LARGEST_UNBUNDLED_RUNS` documents of two runs.
        """
        random = randomness.generator("bundles")
        if self.current.all():
            return Bundles.of(self.marked, self.strata, random) if len(self.marked) > LARGEST_UNBUNDLED else None
        return Bundles.of(self.current, self.cells, random) if len(self.marked) > LARGEST_UNBUNDLED_RUNS else None

    @cached_property
    def units(self) -> Units:
        """Return the units whose labels are permuted: the bundles or, without bundles, the documents."""
        if self.bundles is None:
            return Units(self.marked, self.strata, self.current)
        first = self.bundles.first
        return Units(self.marked[first], self.strata[first], self.current[first])

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
    names, units = _joined_units(current, baseline)
    return Documents(
        words=Tokens.joined([current.words, baseline.words]),
        marked=units.marked,
        strata=units.strata,
        stratum_names=names,
        embeddings=(*current.embeddings, *baseline.embeddings),
        current=units.current,
    )


def _joined_units(current: Documents, baseline: Documents) -> tuple[tuple[str, ...], Units]:
    """Return the names of all strata of two runs, and the groups, strata and runs of the documents of both runs."""
    names, strata = numbered([run.stratum_names[number] for run in (current, baseline) for number in run.strata])
    marked = np.concatenate([current.marked, baseline.marked])
    return names, Units(marked, strata, np.repeat([True, False], [len(current.marked), len(baseline.marked)]))


@dataclass(frozen=True)
class Runs:
    """Documents of the current run and of the baseline, alone and together.

    If there are many documents, both runs are cut to equal size (see `kept_of_many`), and `current` and `baseline`
    share the words of `both`, to save memory.
    """

    current: Documents
    baseline: Documents
    both: Documents

    @classmethod
    def of(cls, current: Documents, baseline: Documents) -> Runs:
        """Return the documents of two runs."""
        number = len(current.marked)
        if number + len(baseline.marked) <= LARGEST_UNBUNDLED_RUNS:
            return cls(current, baseline, join_runs(current, baseline))
        kept = kept_of_many(_joined_units(current, baseline)[1])
        current, baseline = current.only(kept[kept < number]), baseline.only(kept[kept >= number] - number)
        both, number = join_runs(current, baseline), len(current.marked)
        parts = both.words.part(0, number), both.words.part(number, len(both.words))
        return cls(replace(current, words=parts[0]), replace(baseline, words=parts[1]), both)


def kept_of_many(both: Units) -> Ints:
    """Return the indices of the documents that are compared, in ascending order.

    Up to `LARGEST_UNBUNDLED_RUNS` documents are all compared. If there are more, both runs are cut at random to equal
    size in each cell.

    Args:
        both: documents of both runs.
    """
    if len(both.marked) <= LARGEST_UNBUNDLED_RUNS:
        return np.arange(len(both.marked))
    cuts = RunCells.of(both.current, both.cells).cuts(1, randomness.generator("equal size"))
    return np.flatnonzero(cuts[0][0] | cuts[1][0])


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
