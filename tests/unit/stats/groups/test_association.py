"""Association between group and column: chi-square as in SciPy, Mantel-Haenszel within strata, Cramér's V."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from pytest_fairness.stats.gaps import association


@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (4, 3)])
def test_a_single_stratum_gives_pearsons_chi_square(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(5).integers(3, 40, shape).astype(float)
    n, oracle = table.sum(), chi2_contingency(table, correction=False)
    statistic = oracle.statistic * (n - 1) / n
    found = association(table[None])
    assert found.p_value == pytest.approx(chi2.sf(statistic, oracle.dof), rel=1e-9)
    assert found.cramers_v == pytest.approx(np.sqrt(max(0, statistic - oracle.dof) / n / (min(shape) - 1)))


def test_strata_of_two_by_two_tables_give_the_mantel_haenszel_statistic() -> None:
    tables = np.random.default_rng(6).integers(1, 30, (5, 2, 2)).astype(float)
    n, rows, columns = tables.sum(axis=(1, 2)), tables.sum(axis=2), tables.sum(axis=1)
    surplus = (tables[:, 0, 0] - rows[:, 0] * columns[:, 0] / n).sum()
    variance = (rows.prod(axis=1) * columns.prod(axis=1) / n**2 / (n - 1)).sum()
    assert association(tables).p_value == pytest.approx(chi2.sf(surplus**2 / variance, 1), rel=1e-9)


def test_what_the_strata_explain_is_no_association() -> None:
    tables = np.zeros((2, 2, 2))
    tables[0, :, 0] = 40, 10  # each stratum has one value, and its own share of the groups
    tables[1, :, 1] = 10, 40
    assert association(tables).p_value == 1.0
    assert association(tables.sum(axis=0, keepdims=True)).cramers_v == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize("table", [np.ones((3, 2, 1)), np.ones((1, 1, 4)), np.ones((1, 2, 0)), np.eye(2)[None] * 0])
def test_without_a_second_group_or_value_there_is_no_association(table: np.ndarray) -> None:
    assert association(table).p_value == 1.0


def test_a_value_that_tells_the_group_has_v_1() -> None:
    assert association(np.eye(3)[None] * 200).cramers_v == pytest.approx(1.0, abs=0.01)
