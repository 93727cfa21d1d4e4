"""The report as a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pytest_fairness.atomic import replace_file
from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json


def write(document: Mapping[str, Json], path: Path) -> None:
    """Write a report document as UTF-8 JSON, its folder made if need be.

    Raises:
        FairnessError: the file cannot be written; one that was there before still is.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    try:
        # The escape of a lone surrogate is also its escape in JSON.
        replace_file(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        reason = error.strerror or error
        raise FairnessError(f"--fairness-report {path}: the report cannot be written ({reason}).") from error
