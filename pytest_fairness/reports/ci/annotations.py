"""Annotations of failures at lines of files, as GitHub's workflow commands and GitLab's Code Quality report."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.formatting import printable, without_commands
from pytest_fairness.reports.items.findings import finding
from pytest_fairness.reports.items.report_items import (
    KNOWN,
    NO_LONGER_FAILS,
    UNEXPECTED_PASS,
    Item,
    outcome,
    severity,
    status,
)

MAX_ANNOTATIONS = 10
"""Maximum number of errors, and of notices, that GitHub shows as annotations for one step."""

FAILING = ("failed", "error")
"""Outcomes of items that fail the run."""

_SEVERITIES: Mapping[str, str] = {
    VerdictName.ERROR: "critical",
    VerdictName.NOT_MEASURABLE: "major",
    VerdictName.REGRESSION: "major",
    VerdictName.OVER_LIMIT: "major",
    VerdictName.STALE_BASELINE: "minor",
    VerdictName.NO_BASELINE: "minor",
    UNEXPECTED_PASS: "minor",
    KNOWN: "info",
    NO_LONGER_FAILS: "info",
}
"""GitLab's severity (info, minor, major, critical or blocker) of each status."""


class Annotation(NamedTuple):
    """Annotation at a line of a file: a failure, or a remark on an item marked `xfail`.

    Attributes:
        item: the item of the report document.
        file: path from the root of the repository.
        line: line in the file, from 1.
        text: the finding as one line.
    """

    item: Item
    file: str
    line: int
    text: str


def github_commands(document: Mapping[str, Json], folder: str = "") -> list[str]:
    """Return a workflow command `::error file=…,line=…,title=…::…` for each failure, the worst failure first.

    Items marked `xfail` that fail as expected, or no longer fail, get a `::notice`. Items with the same finding share
    one command, which states their number. The result has at most `MAX_ANNOTATIONS` errors and as many notices.

    Args:
        document: the report document.
        folder: path from the root of the repository to pytest's rootdir.
    """
    by_text: dict[str, list[Annotation]] = {}
    for annotation in _annotations(document, folder):
        by_text.setdefault(annotation.text, []).append(annotation)
    commands: dict[str, list[str]] = {"error": [], "notice": []}
    for same in by_text.values():
        kind = "error" if outcome(same[0].item) in FAILING else "notice"
        commands[kind].append(_command(kind, same[0], len(same)))
    return [*commands["error"][:MAX_ANNOTATIONS], *commands["notice"][:MAX_ANNOTATIONS]]


def code_quality(document: Mapping[str, Json], folder: str = "") -> str:
    """Return the failures in GitLab's Code Quality format, a JSON list; see `github_commands` for the arguments.

    Items marked `xfail` that fail as expected, or no longer fail, are listed with the severity `info`.
    """
    entries = [
        {
            "description": f"{_title(annotation.item)}: {annotation.text}",
            "check_name": f"fairness/{annotation.item['audit']}",
            # GitLab compares the fingerprints of two branches: they must not contain numbers, which change in each run.
            "fingerprint": hashlib.sha256(
                json.dumps([annotation.item["nodeid"], annotation.item["id"], annotation.item["verdict"]]).encode()
            ).hexdigest(),
            "severity": _SEVERITIES[status(annotation.item)],
            "location": {"path": annotation.file, "lines": {"begin": annotation.line}},
        }
        for annotation in _annotations(document, folder)
    ]
    return json.dumps(entries, ensure_ascii=False, indent=2) + "\n"


def _annotations(document: Mapping[str, Json], folder: str) -> Iterator[Annotation]:
    for item in sorted(document["items"], key=severity):
        if outcome(item) in FAILING or item.get("expected_failure"):
            file = posixpath.normpath(posixpath.join(folder, item["nodeid"].partition("::")[0]))
            text = printable(finding(item, document["methods"].get(item["audit"], {})))
            yield Annotation(item, file, item.get("line") or 1, text)


def _title(item: Item) -> str:
    known = "known " if outcome(item) == "known" else ""
    return f"{known}{item['verdict']}: {printable(item['id'])}"


def _command(kind: str, annotation: Annotation, count: int) -> str:
    title = _title(annotation.item) + (f" and {count - 1} more" if count > 1 else "")
    place = {"file": annotation.file, "line": str(annotation.line), "title": title}
    properties = ",".join(
        f"{name}={_escaped_property(without_commands(printable(value)))}" for name, value in place.items()
    )
    return f"::{kind} {properties}::{_escaped(without_commands(annotation.text))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
