"""Seeded random generators."""

from __future__ import annotations

from pytest_fairness.stats import resampling


def test_a_seed_gives_the_numbers_that_baselines_were_recorded_with() -> None:
    assert resampling.generator("a test").integers(0, 10**6, 3).tolist() == [524535, 55417, 773384]
    assert resampling.generator("another test").integers(0, 10**6, 3).tolist() != [524535, 55417, 773384]
