"""Half widths of intervals."""

from __future__ import annotations

import pytest

from pytest_fairness.stats.intervals import half_width


@pytest.mark.parametrize(
    ("interval", "half"),
    [
        (None, None),
        ((None, 1.0), None),
        ((0.1, 0.3), 0.1),
        ((1e9, 1e9 + 2e-7), 0.0),
        ((-1e-13, 1e-13), 0.0),
        ((0.0, 2e-11), 1e-11),
        ((-float("inf"), float("inf")), float("inf")),
    ],
)
def test_half_of_an_interval_is_0_for_a_rounding_error(
    interval: tuple[float | None, float | None] | None, half: float | None
) -> None:
    assert half_width(interval) == (half if half is None else pytest.approx(half))
