"""Comparisons of two runs from the estimated change, and reversals of a gap between two groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_fairness.plurals import significant
from pytest_fairness.records import Answer, Answers, Comparison, Json, Pair, Reversal
from pytest_fairness.stats.intervals import normal


def comparison(
    value: float,
    standard_error: float,
    p_value: float,
    *,
    degrees_of_freedom: float | None = None,
    reversal: Reversal | None = None,
    pairs: Sequence[Pair] = (),
    pair: Pair | None = None,
    details: Mapping[str, Json],
) -> Comparison:
    """Return the comparison of two runs, with the confidence interval of the change; see `Comparison`."""
    return Comparison(
        value=value,
        interval=normal.interval(value, standard_error, degrees_of_freedom=degrees_of_freedom),
        standard_error=standard_error,
        p_value=p_value,
        degrees_of_freedom=degrees_of_freedom,
        reversal=reversal,
        pairs=pairs,
        pair=pair,
        details=details,
    )


def group_reversal(high: str, low: str, current: float, baseline: float, p_value: float) -> Reversal:
    """Return the reversal of the gap between two groups.

    Args:
        high, low: names of the groups; `high` has the larger value in the current run.
        current, baseline: gap of each run, `high` minus `low`; the baseline's gap is below 0.
        p_value: two-sided p-value of the null hypothesis that nothing changed.
    """
    return Reversal.with_bonferroni(
        value=current,
        p_value=p_value,
        description=f"{high} was {significant(-baseline)} below {low} and is {significant(current)} above",
    )


def with_same_wording(current: Answers, baseline: Answers, unit: Callable[[Answer], str]) -> tuple[Answers, Answers]:
    """Return the current answers, and the baseline's answers to prompts with the same wording (label `wording`).

    Args:
        current, baseline: answers of the two runs.
        unit: function that returns the name of an answer's unit, such as its question; a unit has one wording in a run.
    """
    wordings = {unit(answer): answer.labels.get("wording") for answer in current}
    baseline = [answer for answer in baseline if wordings.get(unit(answer)) == answer.labels.get("wording")]
    return current, baseline
