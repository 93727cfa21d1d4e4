"""Data files in a probe's folder, and the values of their fields."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_serializer, field_validator

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.field_types import ProbeFile, require_suffix
from pytest_fairness.records import Json


class DataFile(ProbeModel):
    """Data file in the probe's folder.

    Class attributes:
        suffixes: file suffixes of the formats that can be read.
        holds: plural noun for the file's rows in messages, such as "records".
    """

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".jsonl", ".ndjson", ".json", ".xlsx", ".parquet")
    holds: ClassVar[str] = "data"

    file: ProbeFile = Field(
        description="CSV (.csv), JSON Lines (.jsonl, .ndjson), JSON (.json), Excel (.xlsx) or Parquet (.parquet) file "
        "in the probe's folder."
    )

    @field_validator("file")
    @classmethod
    def _has_known_suffix(cls, file: Path) -> Path:
        require_suffix(file, cls.suffixes, cls.holds)
        return file

    @field_serializer("file")
    def _content(self, file: Path) -> str:
        """Serialize the file as a digest, because stored measurements depend on its content, not on its path."""
        return sha256(file.read_bytes()).hexdigest()


def as_items(written: Json) -> list[str] | None:
    """Return the items in a field: a list of texts, a JSON list in a text, or one text; `None` for any other value."""
    if isinstance(written, str) and written.lstrip().startswith("["):
        try:
            written = json.loads(written)
        except (ValueError, RecursionError):
            return [written.strip()]
    if isinstance(written, str):
        return [written.strip()] if written.strip() else []
    if isinstance(written, list) and all(isinstance(item, str) for item in written):
        return [item.strip() for item in written if item.strip()]
    return None


def as_line(value: Json) -> str:
    """Return a field as one line of text; an empty text for a missing value."""
    if value is None:
        return ""
    return " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
