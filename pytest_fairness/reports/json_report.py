"""The report as JSON: the document itself."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pytest_fairness.records import Json


def text(document: Mapping[str, Json]) -> str:
    """A report document as indented JSON."""
    written = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    # JSON allows this one control character as it stands; a terminal that shows the file need not.
    return written.replace("\x7f", "\\u007f") + "\n"
