"""Systems under test, one module each, behind one protocol."""

from __future__ import annotations

from pytest_fairness.targets.base import Target
from pytest_fairness.targets.registry import check_spec, open_target, serve

__all__ = ["Target", "check_spec", "open_target", "serve"]
