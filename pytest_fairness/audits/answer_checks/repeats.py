"""Repeated answers and rows, which are fewer observations than answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_fairness.records import Concern

MINIMUM_OBSERVATIONS = 8
"""Smallest number of observations (prompts) of each group that a test needs if all trials repeat the same answer."""
SAME_WORDS_SHARE = 0.9
"""Two answers at temperature 0 count as the same if they share at least this part of their words (Dice's coefficient).

Servers that compute in batches change a word now and then.
"""
SHORT_ANSWER = 5
"""An answer with at most this number of words may be sampled more than once by chance."""
MOST_COPIES = 5
"""Largest number of copies of all rows of an answer file that are recognised."""
LEAST_COPIED = 8
"""Smallest number of rows whose copies are recognised."""


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


@dataclass(frozen=True)
class Copies:
    """Answers without those that copy an earlier answer to the same prompt; a group has a prompt of its own.

    Attributes:
        kept: for each cell, the places of the answers that are no copies.
        observations_per_answer: number of independent answers that tell as much about a share as one of all answers
            does: 1 / (1 + (m − 1) p) for m answers to each prompt, of which two are equal with probability p.
    """

    kept: Sequence[Sequence[int]]
    observations_per_answer: float

    @classmethod
    def of(cls, cells: Sequence[Sequence[str]]) -> Copies:
        """Return the copies among the answers of each cell (prompt and group).

        Letter case and blanks do not matter. Equal answers are no copies if they are short, or if another cell has such
        an answer too, as a refusal in fixed words: they are then equal because many answers are.
        """
        folded = [[" ".join(text.split()).casefold() for text in texts] for texts in cells]
        holding = Counter(text for texts in folded for text in {*texts})
        kept, sizes = [], Counter[tuple[int, str]]()
        for number, texts in enumerate(folded):
            places = []
            for place, text in enumerate(texts):
                own = len(text.split()) > SHORT_ANSWER and holding[text] == 1
                sizes[number, text] += own
                if not own or sizes[number, text] == 1:
                    places.append(place)
            kept.append(places)
        squares = sum(size**2 for size in sizes.values())
        return cls(kept, sizes.total() / squares if squares else 1.0)


def copies_concern(answers: int, observations: int) -> Concern:
    """Return the note that some answers are copies, so that there are fewer observations than answers."""
    message = f"answers to a prompt repeat each other, so that {answers:,} answers count as {observations:,}"
    return Concern("repeated_answers", message, withholds="nothing")


def copied_rows_concern(rows: int, times: int) -> Concern:
    """Return the note that all rows of an answer file occur several times, and count once."""
    message = f"all {rows:,} rows occur {times} times in the same order; each counts once"
    return Concern("copied_rows", message, withholds="nothing")


def times_copied(cells: Iterable[Sequence[str]]) -> int:
    """Return how often the rows of an answer file occur, if they occur several times in the same order; else 1.

    Such a file was written or joined several times. Rows that are equal by chance have another order.

    Args:
        cells: the texts of the rows with equal labels, in the order of the file.
    """
    found = [list(texts) for texts in cells]
    for times in range(MOST_COPIES, 1, -1):
        blocks = [texts[: len(texts) // times] for texts in found]
        if (
            sum(map(len, blocks)) >= LEAST_COPIED
            # If each prompt repeats one answer, the answers are repeated, not the file.
            and any(len({*block}) > 1 for block in blocks)
            and all(texts == block * times for texts, block in zip(found, blocks, strict=True))
        ):
            return times
    return 1


def _all_alike(texts: Sequence[str], temperature: float | None) -> bool:
    """Return whether all answers to one prompt count as repetitions of the same answer; see `repeats`."""
    if temperature == 0:
        words = [Counter(text.split()) for text in texts]
        return all(_dice_coefficient(words[0], each) >= SAME_WORDS_SHARE for each in words)
    return len(set(texts)) == 1 and not (temperature and len(texts[0].split()) <= SHORT_ANSWER)


def _dice_coefficient(first: Counter[str], second: Counter[str]) -> float:
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 1.0
