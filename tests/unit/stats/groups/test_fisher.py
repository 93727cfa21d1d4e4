"""Fisher's exact test against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from pytest_fairness.stats.groups import fisher

counts = st.tuples(st.integers(0, 60), st.integers(0, 60))


@given(counts, counts)
def test_the_p_value_is_that_of_scipy(first: tuple[int, int], second: tuple[int, int]) -> None:
    assert fisher.p_value(first, second) == pytest.approx(
        fisher_exact(np.array([first, second])).pvalue, rel=1e-9, abs=1e-12
    )


def test_large_groups_are_no_problem() -> None:
    tables = (300, 9_700), (420, 9_580)
    assert fisher.p_value(*tables) == pytest.approx(fisher_exact(np.array(tables)).pvalue, rel=1e-6)
