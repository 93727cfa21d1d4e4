"""Of whom is asked: one small file a target, behind one protocol."""

from __future__ import annotations

from pytest_fairness.targets.base import Target
from pytest_fairness.targets.registry import check_spec, open_target, serve_local

__all__ = ["Target", "check_spec", "open_target", "serve_local"]
