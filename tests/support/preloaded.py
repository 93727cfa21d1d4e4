"""What the server of `processes` does once, in place of each process that it forks."""

from __future__ import annotations

from pytest_fairness.languages.language import ENGLISH

REFUSALS = ENGLISH.refusals
"""The patterns of refusals: compiling them takes a third of a short run."""
