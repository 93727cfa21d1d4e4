"""The report as JSON: the document itself."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pytest_fairness.records import Json


def text(document: Mapping[str, Json]) -> str:
    """A report document as indented JSON."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
