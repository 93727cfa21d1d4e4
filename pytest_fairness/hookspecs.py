"""Hooks of pytest-fairness, for conftest files and other plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_fairness.records import Measurement


@pytest.hookspec
def pytest_fairness_measured(item: pytest.Item, measurement: Measurement) -> None:
    """Called after an audit was measured, before its verdict.

    Under pytest-xdist the hook is called in the worker that runs the item.

    Args:
        item: the test item: that of a probe's audit, or the Python test that called `fairness_check`.
        measurement: estimate, standard error, 95 % interval, p-value, numbers of answers, and details.
    """


@pytest.hookspec
def pytest_fairness_report(report: Mapping[str, Any], config: pytest.Config) -> None:
    """Called once at the end of a run, after baselines and report files were written.

    Under pytest-xdist the hook is called in the controller.

    Args:
        report: the report document, as `--fairness-report report.json` writes it; see the JSON report's schema.
        config: pytest's configuration.
    """
