"""Report files: which format a name stands for, and how they are written and read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness import extensions
from pytest_fairness.atomic import replace_file
from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json
from pytest_fairness.reports import markdown

if TYPE_CHECKING:
    from jsonschema import ValidationError

SUFFIXES = (".json", ".html", ".md")
LONGEST_NUMBER = 16
"""Digits from which on no whole number is a count."""

Trends = Mapping[tuple[str, str], Sequence[Mapping[str, Json]]]
"""Each item's points over the last runs, by probe and item; see `html.report`."""


def require(path: Path) -> None:
    """See that a report can be made under this name, before anything is asked.

    Raises:
        FairnessError: no report has this suffix, or what its format takes is not installed.
    """
    own = {f".{name}": entry for name, entry in extensions.declared("reports").items()}
    for suffix in own.keys() & set(SUFFIXES):
        extensions.require_new("reports", suffix.removeprefix("."))
    if entry := own.get(path.suffix.lower()):
        extensions.load(entry)
    elif path.suffix.lower() not in SUFFIXES:
        known = ", ".join([*SUFFIXES, *sorted(own)])
        raise FairnessError(f"--fairness-report {path.name}: a report's suffix is its format, one of {known}.")
    if path.suffix.lower() == ".html":
        # Deferred, as templates and pictures take time to import and few runs write a page.
        from pytest_fairness.reports.html import page

        try:
            page.require()
        except FairnessError as error:
            raise FairnessError(f"--fairness-report {path.name}: {error}") from error


def write(document: Mapping[str, Json], path: Path, trends: Trends) -> None:
    """Write a report document in the format that its name says, its folder made if need be.

    Raises:
        FairnessError: the file cannot be written; one that was there before still is.
    """
    match path.suffix.lower():
        case ".html":
            from pytest_fairness.reports import html

            text = html.report(document, trends)
        case ".md":
            text = markdown.report(document)
        case ".json":
            text = _json(document)
        case suffix:
            text = extensions.load(extensions.declared("reports")[suffix.removeprefix(".")])(document)
    try:
        # A lone surrogate's escape in Python is its escape in JSON too; in the other formats there is none left.
        replace_file(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        reason = error.strerror or error
        raise FairnessError(f"--fairness-report {path}: the report cannot be written ({reason}).") from error


def _json(document: Mapping[str, Json]) -> str:
    """Return a report document as indented JSON."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    # JSON permits the control character DEL unescaped; a terminal that prints the file should not receive it.
    return text.replace("\x7f", "\\u007f") + "\n"


def read(path: Path) -> dict[str, Json]:
    """The report document in a JSON report.

    Raises:
        FairnessError: there is none, or it is not what a run of this version writes; the message says where.
    """
    try:
        document = json.loads(path.read_bytes(), parse_int=_whole_number)
    except OSError as error:
        raise FairnessError(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise FairnessError(
            f"{path}: is not JSON ({error}). Give what `pytest --fairness --fairness-report report.json` wrote."
        ) from error
    try:
        faults = [f"{_where(fault.json_path)}{fault.message[:200]}" for fault in islice(_errors(document), 1)]
    except RecursionError:
        faults = ["it is nested too deep"]
    if faults:
        raise FairnessError(f"{path}: is no report of pytest-fairness: {faults[0]}")
    found: dict[str, Json] = document
    return found


def _whole_number(digits: str) -> float:
    """Return the number; one beyond all counts as a float, which is infinite rather than an error later on."""
    return int(digits) if len(digits) < LONGEST_NUMBER else float(digits)


def _where(path: str) -> str:
    return "" if path == "$" else f"{path}: "


def schema_text() -> str:
    """The JSON Schema of the JSON report."""
    return (files("pytest_fairness.reports") / "report.schema.json").read_text("utf-8")


def _errors(document: Json) -> Iterator[ValidationError]:
    from jsonschema import Draft7Validator

    return Draft7Validator(json.loads(schema_text())).iter_errors(document)
