"""Word counts of the texts that `marked_words` compares, and of the texts from which its prior is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.audits.text.documents import (
    MINIMUM_DOCUMENTS_OF_A_WORD,
    Documents,
    anonymizer,
    documents_by_word,
    require_words,
    text_of,
)
from pytest_fairness.audits.text.groups import Groups, TextItem, groups_by_axis, is_compared, sampled
from pytest_fairness.audits.text.tokens import Tokens
from pytest_fairness.audits.text.words.usage import Usage
from pytest_fairness.records import Answers
from pytest_fairness.stats.arrays import Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class GroupCounts:
    """Word counts of the compared documents and, if the prior pools all groups, of the probe's other groups.

    The compared documents are the answers of the marked and the unmarked groups. A tested word occurs in at least three
    documents, of which at least one is compared.

    Attributes:
        groups: answers of the marked group and of the axis' unmarked group, by axis.
        usage: uses of the tested words in the compared documents; a document that is compared on several axes counts
            once.
        documents: for each axis, the documents of the marked group and of the axis' unmarked group.
        counts: for each axis, the (documents, words) counts of all words in `documents`.
        pooled: (words,) counts in all documents, including the probe's other groups.
        columns: (tested words,) index of each tested word among the columns of `counts`.
        tested_words: the words that are tested.
    """

    groups: Mapping[str, Groups]
    usage: Usage
    documents: list[Documents]
    counts: list[csr_array]
    pooled: Floats
    columns: Ints
    tested_words: list[str]

    @classmethod
    def of(cls, item: TextItem[Any], answers: Answers) -> GroupCounts:
        """Return the word counts of the compared groups' answers and, for the prior, of the other groups' answers.

        Raises:
            NotMeasurable: a group has too few usable answers, or fewer than two words can be tested.
        """
        by_axis = groups_by_axis(item, answers)
        groups = list(by_axis.values())
        pooled = [answer for answer in answers if not is_compared(item, answer.labels)]
        documents = [Documents.of(each) for each in groups]
        compared = [id(each.answers[index]) for each in groups for index in sampled(each)]
        anonymize = anonymizer(item.probe)
        if any(each.repetition for each in groups):
            pooled = list({(repr(sorted(answer.labels.items())), answer.text): answer for answer in pooled}.values())
        others = (anonymize.words(text_of(answer)) for answer in pooled if answer.usable)
        words = Tokens.joined([*(each.words for each in documents), Tokens.of(others)])
        vocabulary, counts = words.counts()
        # An answer that is compared on several axes counts once.
        once = np.unique(compared, return_index=True)[1]
        own, rest = counts[once], counts[len(compared) :]
        holding = documents_by_word(own)
        columns = np.flatnonzero((holding > 0) & (holding + documents_by_word(rest) >= MINIMUM_DOCUMENTS_OF_A_WORD))
        require_words(len(columns))
        marked = np.concatenate([each.marked for each in documents])[once]
        tested_words = [vocabulary[index] for index in columns]
        ends = np.cumsum([len(each.words) for each in documents])
        return cls(
            groups=by_axis,
            usage=Usage.of(words.only(once), marked, tested_words),
            documents=documents,
            counts=[counts[end - len(each.words) : end] for each, end in zip(documents, ends, strict=True)],
            pooled=np.asarray(own.sum(axis=0) + rest.sum(axis=0), dtype=np.float64),
            columns=columns,
            tested_words=tested_words,
        )
