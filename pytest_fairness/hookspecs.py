"""Hooks of pytest-fairness, for conftest files and other plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_fairness.records import Measurement


@pytest.hookspec
def pytest_fairness_measured(item: pytest.Item, measurement: Measurement) -> None:
    """Receive the measurement of an item; called before the verdict is decided.

    Under pytest-xdist the hook is called in the worker that runs the item.

    Args:
        item: the test item: an item of a probe, or the Python test that called `fairness_check`.
        measurement: the item's estimate, standard error, 95 % confidence interval, p-value and numbers of answers.
    """


@pytest.hookspec
def pytest_fairness_report(report: Mapping[str, Any], config: pytest.Config) -> None:
    """Receive the report of a run; called once at the end, after baselines and report files were written.

    Under pytest-xdist the hook is called in the controller.

    Args:
        report: the content of the JSON report that `--fairness-report report.json` writes.
        config: pytest's configuration.
    """
