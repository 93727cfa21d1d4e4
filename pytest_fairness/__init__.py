"""Fairness regression testing of language models and of applications built on them, as a pytest plugin."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_fairness.run import Audited, audit

__all__ = ["Audited", "__version__", "audit"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported when asked for: pytest loads this package at every start.
    if name == "Audited":
        return import_module("pytest_fairness.run").Audited
    if name == "audit":
        return import_module("pytest_fairness.run").audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
