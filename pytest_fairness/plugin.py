"""pytest's hooks and options, nothing else; the rest is loaded only when `--fairness` is given."""

from __future__ import annotations
