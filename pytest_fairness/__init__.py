"""Fairness regression testing of language models and of applications built on them, as a pytest plugin."""

from __future__ import annotations

__version__ = "0.1.0"
