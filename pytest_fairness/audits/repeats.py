"""Repeated answers: at temperature 0 a prompt gives one observation, however often it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_fairness.records import Concern

MINIMUM_OBSERVATIONS = 8
"""Fewest prompts of which single answers are a sample."""
ALIKE = 0.9
"""Share of the words that two answers at temperature 0 have in common (Dice) above which they count as the same answer.

Servers that calculate in batches change a word now and then.
"""
SHORT_ANSWER = 5
"""Largest number of words of an answer that is likely to be sampled twice."""


def repeats(cells: Iterable[Sequence[str]], temperature: float | None) -> bool:
    """Return whether each prompt that was asked several times got the same answer each time.

    Args:
        cells: the texts of the answers to each prompt.
        temperature: that answers were drawn with. Above 0, short answers may repeat by chance; at 0, answers that
            differ in a word are the same.
    """
    several = [texts for texts in cells if len(texts) > 1]
    return bool(several) and all(_all_alike(texts, temperature) for texts in several)


def too_few_observations(observations: int, answers: int) -> Concern:
    """Return the concern that repeated answers leave too few observations for any test."""
    return Concern(
        "repeated_answers",
        f"every trial repeats the same answer, so that {answers} answers are {observations} observations and "
        f"{MINIMUM_OBSERVATIONS} a group are needed. Set `sampling.temperature` above 0, or give several prompts",
        withholds="test",
    )


def counted_once(observations: int, answers: int) -> Concern:
    """Return the note that repeated answers count as one."""
    return Concern(
        "repeated_answers",
        f"every trial repeats the same answer, so that {answers} answers count as {observations}, one a prompt and "
        "group",
        withholds="nothing",
    )


def _all_alike(texts: Sequence[str], temperature: float | None) -> bool:
    if temperature == 0:
        words = [Counter(text.split()) for text in texts]
        return all(_overlap(words[0], each) >= ALIKE for each in words)
    return len(set(texts)) == 1 and not (temperature and len(texts[0].split()) <= SHORT_ANSWER)


def _overlap(first: Counter[str], second: Counter[str]) -> float:
    """Return Dice's coefficient of two texts' words, 0..1."""
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 1.0
