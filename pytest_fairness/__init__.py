"""Fairness regression tests of language models and of applications built on them, as a pytest plugin."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_fairness.version import __version__

if TYPE_CHECKING:
    from pytest_fairness.run import Audited, audit

__all__ = ["Audited", "__version__", "audit"]


def __getattr__(name: str) -> Any:
    # Imported on first use: pytest imports this package at every start.
    if name in ("Audited", "audit"):
        return getattr(import_module("pytest_fairness.run"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
