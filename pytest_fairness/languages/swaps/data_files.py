"""Data files of swaps."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def data(name: str) -> Mapping[str, Any]:
    """Return the content of the data file `data/<name>.toml`."""
    return tomllib.loads(files("pytest_fairness.languages.swaps").joinpath("data", f"{name}.toml").read_text("utf-8"))


def either(alternatives: Iterable[str]) -> str:
    """Return a regular expression that matches any of the alternatives; longer alternatives are tried first."""
    return f"(?:{'|'.join(sorted(alternatives, key=lambda pattern: (-len(pattern), pattern)))})"
