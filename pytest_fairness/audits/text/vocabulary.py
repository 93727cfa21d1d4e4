"""Counts of words that several audits share: which words are tested, and how many documents hold a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.errors import NotMeasurable

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MINIMUM_DOCUMENTS_OF_A_WORD = 3
"""Documents that must hold a word for it to be tested."""


def holding_documents(counts: csr_array) -> NDArray[np.int64]:
    """Return (words,) how many documents hold the word."""
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)


def require_words(number: int) -> None:
    """Raise `NotMeasurable` for fewer than two tested words."""
    if number < 2:
        raise NotMeasurable("the answers share fewer than two words that occur in three documents")
