"""Job summary of GitHub Actions, which shows the Markdown report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json
from pytest_fairness.reports import markdown

VARIABLE = "GITHUB_STEP_SUMMARY"
MAX_BYTES = 1024 * 1024
"""Maximum size in bytes of a step's summary; GitHub does not show larger summaries."""


def append(document: Mapping[str, Json]) -> None:
    """Append the Markdown report to the file that `$GITHUB_STEP_SUMMARY` names.

    Do nothing if this environment variable is not set, or if the file would have more than `MAX_BYTES` bytes.

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
        if used + len(text) <= MAX_BYTES:
            with path.open("ab") as file:
                file.write(text + b"\n")
    except OSError as error:
        raise FairnessError(
            f"{VARIABLE} {path}: the summary cannot be written ({error.strerror}). Set this environment variable to a "
            "file that can be written."
        ) from error
