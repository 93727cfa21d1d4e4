"""Reading and writing of report files; the suffix selects the format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from pytest_fairness import extensions
from pytest_fairness.atomic import replace_file
from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json
from pytest_fairness.reports import markdown
from pytest_fairness.reports.ci.annotations import code_quality

SUFFIXES = (".json", ".html", ".md")
CODE_QUALITY = ".codequality.json"
"""Last part of the name of a report file in GitLab's Code Quality format."""
_NAME_A_REPORT = "Name a report that `pytest --fairness --fairness-report report.json` wrote."
MAX_DIGITS = 15
"""Maximum number of characters (digits and sign) of an integer that is read; longer integers become floats."""

Trends = Mapping[tuple[str, str], Sequence[Mapping[str, Json]]]
"""History of each item, by probe and item id; see `html.report`."""


def require_writable(path: Path, option: str = "--fairness-report") -> None:
    """Raise an error if the path's format cannot be written; called before any request is sent.

    Args:
        path: the file to write.
        option: name of the option that set the path, for error messages.

    Raises:
        FairnessError: the suffix is unknown, or the format needs packages that are not installed.
    """
    built_in = [suffix.removeprefix(".") for suffix in SUFFIXES]
    own = {f".{name}": entry for name, entry in extensions.declared("reports", built_in).items()}
    if entry := own.get(path.suffix.lower()):
        extensions.load(entry)
    elif path.suffix.lower() not in SUFFIXES:
        known = ", ".join([*SUFFIXES, CODE_QUALITY, *sorted(own)])
        raise FairnessError(f"{option} {path.name}: the suffix selects the format and must be one of {known}.")
    if path.suffix.lower() == ".html":
        # Deferred: templates and charts take time to import, and few runs write an HTML report.
        from pytest_fairness.reports.html import page

        try:
            page.require_extra()
        except FairnessError as error:
            raise FairnessError(f"{option} {path.name}: {error}") from error


def write(
    document: Mapping[str, Json], path: Path, trends: Trends, folder: str = "", option: str = "--fairness-report"
) -> None:
    """Write a report document in the format of the path's suffix; create missing folders.

    Args:
        document: the report document.
        path: the file to write.
        trends: history of the items.
        folder: path from the root of the repository to pytest's rootdir.
        option: name of the option that set the path, for error messages.

    Raises:
        FairnessError: the file cannot be written; an existing file stays unchanged.
    """
    match path.suffix.lower():
        case ".html":
            from pytest_fairness.reports import html

            text = html.report(document, trends)
        case ".md":
            text = markdown.report(document)
        case ".json" if path.name.lower().endswith(CODE_QUALITY):
            text = code_quality(document, folder)
        case ".json":
            text = _json(document)
        case suffix:
            text = extensions.load(extensions.declared("reports")[suffix.removeprefix(".")])(document)
    write_text(path, text, option)


def write_text(path: Path, text: str, option: str) -> None:
    """Write the text of a report to a file; create missing folders.

    Args:
        path: the file to write.
        text: the report.
        option: name of the option that set the path, for error messages.

    Raises:
        FairnessError: the file cannot be written; an existing file stays unchanged.
    """
    try:
        # Python escapes a lone surrogate in the same way as JSON; the other formats contain no surrogates.
        replace_file(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        reason = error.strerror or error
        raise FairnessError(f"{option} {path}: the report cannot be written ({reason}). Name another file.") from error


def _json(document: Mapping[str, Json]) -> str:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    # JSON permits the control character DEL unescaped; a terminal that prints the file should not receive it.
    return text.replace("\x7f", "\\u007f") + "\n"


def read(path: Path) -> dict[str, Json]:
    """Return the report document of a JSON report.

    Raises:
        FairnessError: the file cannot be read, or violates the schema.
    """
    try:
        document = json.loads(path.read_bytes(), parse_int=_whole_number)
    except OSError as error:
        raise FairnessError(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise FairnessError(f"{path}: not valid JSON ({error}). {_NAME_A_REPORT}") from error
    # Deferred: jsonschema takes time to import.
    from jsonschema import Draft7Validator

    try:
        violation = next(Draft7Validator(json.loads(schema_text())).iter_errors(document), None)
    except RecursionError:
        raise FairnessError(
            f"{path}: not a report of pytest-fairness: the JSON is nested too deeply. {_NAME_A_REPORT}"
        ) from None
    if violation is not None:
        where = "" if violation.json_path == "$" else f"{violation.json_path}: "
        reason = violation.message[:200]
        raise FairnessError(f"{path}: not a report of pytest-fairness: {where}{reason}. {_NAME_A_REPORT}")
    report: dict[str, Json] = document
    return report


def _whole_number(digits: str) -> float:
    """Return the integer; a float if `digits` has over `MAX_DIGITS` characters, as huge integers cause errors later."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def schema_text() -> str:
    """Return the JSON Schema of the JSON report."""
    return (files("pytest_fairness.reports") / "report.schema.json").read_text("utf-8")
