"""Scores of texts by any scorer; a text that the scorer fails to score gets a message in place of its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pytest_fairness.errors import ModelError
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.python_import import raised_at

SCORE = "score"
"""Label of a scorer that names no labels."""
LARGEST = 1e100
"""Largest absolute value of a score, so that sums of squared scores do not overflow."""
SHOWN = 60
"""Maximum number of characters of a wrong score that a message shows."""


class Scorer(Protocol):
    """Protocol of scorers, which give each text a score for each of their labels."""

    @property
    def identity(self) -> str:
        """Return the name and version of the scorer.

        Scores are cached under this identity. If the identity changes, baselines become stale.
        """

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels for which the scorer gives scores, in lower case.

        Raises:
            ModelError: the scorer cannot be used.
        """

    @property
    def cached(self) -> bool:
        """Return whether scores are kept in the store, because computing them takes longer than reading them."""

    def scores(self, texts: Sequence[str]) -> Sequence[Any]:
        """Return the scores of each text: a mapping of labels to numbers or, with a single label, a number.

        An exception in place of a score stands for a text that cannot be scored.

        Raises:
            ModelError: the scorer cannot be used.
        """


def scores_of(scorer: Scorer, texts: Sequence[str], needed: Sequence[str]) -> list[dict[str, float] | str]:
    """Return the scores of each text by label; a message in place of the scores of a text that cannot be scored.

    If the scorer raises an exception for several texts, each text is scored alone.

    Args:
        scorer: the scorer.
        texts: the texts.
        needed: labels that need a score; a text without a finite score for one of them counts as not scored.

    Raises:
        ModelError: the scorer cannot be used, or returns another number of scores than it got texts.
    """
    try:
        scored = list(scorer.scores(texts))
    except ModelError:
        raise
    except BaseException as error:  # a scorer that exits or skips must end neither the run nor the test
        if stops_the_run(error):
            raise
        if len(texts) == 1:
            return [_error_message(error)]
        return [score for text in texts for score in scores_of(scorer, [text], needed)]
    if len(scored) != len(texts):
        raise ModelError(f"{scorer.identity} returned {len(scored)} scores for {len(texts)} texts. Correct the scorer.")
    return [_checked(scores, scorer.labels, needed) for scores in scored]


def stops_the_run(error: BaseException) -> bool:
    """Return whether an exception must stop the run or the test: Ctrl-C, or the exception of `pytest.fail`.

    pytest-timeout calls `pytest.fail` at a time limit.
    """
    return isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Failed"


def _checked(scores: object, labels: Sequence[str], needed: Sequence[str]) -> dict[str, float] | str:
    """Return the finite scores by label, or a message that says why there is no finite score for a needed label."""
    if isinstance(scores, BaseException):
        return _error_message(scores)
    named = scores if isinstance(scores, Mapping) else dict.fromkeys(labels[:1], scores)
    values = {str(label).casefold(): value for label, value in named.items()}
    numbers = {label: _number(values.get(label)) for label in labels}
    wrong = next((label for label in needed if numbers[label] is None), None)
    if wrong is not None:
        if wrong not in values:
            return f"returned no score for the label {wrong!r}"
        written = one_line(repr(values.get(wrong)), SHOWN)
        return f"returned {written}, which is not a finite number (of at most {LARGEST:g})"
    return {label: number for label, number in numbers.items() if number is not None}


def _number(value: Any) -> float | None:
    """Return a number as a float; `None` for NaN, for numbers beyond ±`LARGEST`, and for other values."""
    if not hasattr(value, "__float__"):  # texts would be read by `float`
        return None
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 - numbers of other packages may raise anything
        return None
    return number if abs(number) <= LARGEST else None


def _error_message(error: BaseException) -> str:
    return f"raised {type(error).__name__}{raised_at(error)}: {one_line(error)}"
