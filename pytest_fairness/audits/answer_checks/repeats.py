"""Detection of repeated answers: at temperature 0, repeated trials of a prompt are only one observation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_fairness.records import Concern

MINIMUM_OBSERVATIONS = 8
"""Smallest number of observations (prompts) of each group that a test needs if all trials repeat the same answer."""
SAME_WORDS_SHARE = 0.9
"""Two answers at temperature 0 count as the same if they share at least this part of their words (Dice's coefficient).

Servers that compute in batches change a word now and then.
"""
SHORT_ANSWER = 5
"""An answer with at most this number of words may be sampled more than once by chance."""


def repeats(cells: Iterable[Sequence[str]], temperature: float | None) -> bool:
    """Return whether prompts were sent several times, and each of these prompts got the same answer each time.

    Args:
        cells: for each prompt, the texts of its answers.
        temperature: sampling temperature of the answers. At a temperature above 0, equal short answers do not count as
            repeated, because they may be equal by chance. At 0, two answers count as the same even if a word differs.
    """
    several = [texts for texts in cells if len(texts) > 1]
    return bool(several) and all(_all_alike(texts, temperature) for texts in several)


def concern_of(observations: int, answers: int, *, enough: bool) -> Concern:
    """Return the concern that answers are repetitions, so that there are fewer observations than answers.

    Args:
        observations: number of different prompts; a prompt for two groups counts twice.
        answers: number of answers to these prompts.
        enough: whether the observations are enough for a test; each group needs `MINIMUM_OBSERVATIONS`.
    """
    message = (
        f"count as {observations}: one for each prompt and group"
        if enough
        else f"are {observations} observations; each group needs {MINIMUM_OBSERVATIONS}. Set `sampling.temperature` "
        "above 0, or give several prompts"
    )
    return Concern(
        "repeated_answers",
        f"every trial repeats the same answer, so that {answers} answers {message}",
        withholds="nothing" if enough else "test",
    )


def _all_alike(texts: Sequence[str], temperature: float | None) -> bool:
    """Return whether all answers to one prompt count as repetitions of the same answer; see `repeats`."""
    if temperature == 0:
        words = [Counter(text.split()) for text in texts]
        return all(_dice_coefficient(words[0], each) >= SAME_WORDS_SHARE for each in words)
    return len(set(texts)) == 1 and not (temperature and len(texts[0].split()) <= SHORT_ANSWER)


def _dice_coefficient(first: Counter[str], second: Counter[str]) -> float:
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 1.0
