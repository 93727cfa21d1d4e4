"""Fisher's exact test against SciPy's."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from pytest_fairness.stats import gaps

counts = st.tuples(st.integers(0, 60), st.integers(0, 60))


@given(counts, counts)
def test_the_p_value_is_that_of_scipy(first: tuple[int, int], second: tuple[int, int]) -> None:
    assert gaps.fisher_p_value(first, second) == pytest.approx(
        fisher_exact(np.array([first, second])).pvalue, rel=1e-9, abs=1e-12
    )


def test_the_p_values_of_all_small_tables_are_exact() -> None:
    def exact(first: tuple[int, int], second: tuple[int, int]) -> float:
        hits = first[0] + second[0]
        ways = [math.comb(sum(first), count) * math.comb(sum(second), hits - count) for count in range(hits + 1)]
        return float(Fraction(sum(way for way in ways if way <= ways[first[0]]), sum(ways)))

    different = [
        (a, b, c, d)
        for a, b, c, d in itertools.product(range(10), repeat=4)
        if gaps.fisher_p_value((a, b), (c, d)) != pytest.approx(exact((a, b), (c, d)), rel=1e-14)
    ]
    assert different == []


@pytest.mark.parametrize("tables", [((300, 9_700), (420, 9_580)), ((40_000, 60_000), (40_100, 59_900))])
def test_the_p_value_of_large_groups_is_that_of_scipy(tables: tuple[tuple[int, int], tuple[int, int]]) -> None:
    assert gaps.fisher_p_value(*tables) == pytest.approx(fisher_exact(np.array(tables)).pvalue, rel=1e-11)
