"""Change, between two runs, of a signed difference between two groups (a gap), such as a difference between shares.

The direction of the gap is that of both runs together, which is the same for all permutations of run labels. A change
in this direction is positive. The difference between the absolute gaps is not used, because its test has little power.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.audits.comparisons import comparison
from pytest_fairness.records import Comparison, Json, Reversal
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.distance_measures import direction_unknown
from pytest_fairness.stats.resampling import significance

SWAPS = 1999
"""Number of permutations of run labels."""
ROUNDING = 9
"""The gap of both runs together is rounded to this many decimals, so that opposite gaps have no direction."""


def gap_change(
    gaps: tuple[float, float],
    value: float,
    error: tuple[float, float | None],
    *,
    null: Floats,
    absolute_change: float,
    null_absolute_changes: Floats,
    description: str,
    details: Mapping[str, Json] | None = None,
) -> Comparison:
    """Return the change with its interval and test.

    If the gap has the opposite sign in the baseline, the result also contains a reversal.

    Args:
        gaps: gap of the current run and gap of the baseline, marked minus unmarked group.
        value: the change; above 0 if the gap grew in the direction of the gap of both runs together.
        error: standard error of the change, and its degrees of freedom.
        null: (swaps,) change after permutation of run labels.
        absolute_change: absolute difference between the two gaps.
        null_absolute_changes: (swaps,) absolute difference between the two gaps after permutation of run labels.
        description: phrase that states both gaps; used if the gap has the opposite sign in the baseline.
        details: details of the comparison.
    """
    current, baseline = gaps
    standard_error, degrees = error
    reversal = Reversal.with_bonferroni(
        value=abs(current),
        p_value=significance.p_value(null_absolute_changes, absolute_change, exact=False),
        description=description,
    )
    return comparison(
        value,
        standard_error,
        significance.p_value(null, value, exact=False),
        degrees_of_freedom=degrees,
        reversal=reversal if current * baseline < 0 else None,
        details={**(details or {}), "either_side": direction_unknown(current + baseline, standard_error)},
    )
