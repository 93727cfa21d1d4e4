"""Targets (systems under test), which implement the protocol `Target`; one module or folder for each kind of target."""

from __future__ import annotations

from pytest_fairness.targets.base import Target
from pytest_fairness.targets.registry import check_spec, open_target, serve

__all__ = ["Target", "check_spec", "open_target", "serve"]
