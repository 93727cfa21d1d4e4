"""The Markdown summary on the page of a GitHub Actions job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json
from pytest_fairness.reports import markdown

VARIABLE = "GITHUB_STEP_SUMMARY"
LONGEST = 1024 * 1024
"""Bytes of a step's summary; GitHub shows nothing at all of a longer one."""


def append(document: Mapping[str, Json]) -> None:
    """Add the summary of a run to the file that the environment names, if it names one and there is room.

    Raises:
        FairnessError: the file cannot be written.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return
    path = Path(name)
    try:
        used = path.stat().st_size if path.exists() else 0
        text = markdown.report(document).encode("utf-8", "backslashreplace")
        if used + len(text) <= LONGEST:
            with path.open("ab") as file:
                file.write(text + b"\n")
    except OSError as error:
        raise FairnessError(f"{VARIABLE} {path}: the summary cannot be written ({error.strerror}).") from error
