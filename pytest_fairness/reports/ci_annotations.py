"""Annotations of failures at lines of files: GitHub's workflow commands and GitLab's Code Quality report."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.findings import finding
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.report_items import Item, outcome, severity

MAX_ANNOTATIONS = 10
"""Maximum number of errors that GitHub shows as annotations for one step."""

_SEVERITIES = {
    VerdictName.ERROR: "critical",
    VerdictName.NOT_MEASURABLE: "major",
    VerdictName.REGRESSION: "major",
    VerdictName.OVER_LIMIT: "major",
    VerdictName.STALE_BASELINE: "minor",
    VerdictName.NO_BASELINE: "minor",
}
"""Severities of GitLab: info, minor, major, critical, blocker."""


class Failure(NamedTuple):
    """Failure at a line of a file.

    Attributes:
        item: the item of the report document.
        file: path from the root of the repository.
        line: line in the file, from 1.
        text: the finding on one line.
    """

    item: Item
    file: str
    line: int
    text: str


def github_commands(document: Mapping[str, Json], folder: str = "") -> list[str]:
    """Return a workflow command `::error file=…,line=…,title=…::…` for each failure, the worst first.

    Failures with the same finding become one command, which contains the number of these failures.

    Args:
        document: the report document.
        folder: path from the root of the repository to pytest's rootdir.
    """
    same: dict[str, list[Failure]] = {}
    for failure in _failures(document, folder):
        same.setdefault(failure.text, []).append(failure)
    return [_command(own[0], len(own)) for own in same.values()][:MAX_ANNOTATIONS]


def code_quality(document: Mapping[str, Json], folder: str = "") -> str:
    """Return the failures in GitLab's Code Quality format, a JSON list; see `github_commands` for the arguments."""
    entries = [
        {
            "description": f"{failure.item['verdict']}: {printable(failure.item['id'])}: {failure.text}",
            "check_name": f"fairness/{failure.item['audit']}",
            # Without numbers, which change in each run: GitLab compares the fingerprints of two branches.
            "fingerprint": hashlib.sha256(
                json.dumps([failure.item["nodeid"], failure.item["id"], failure.item["verdict"]]).encode()
            ).hexdigest(),
            "severity": _SEVERITIES[VerdictName(failure.item["verdict"])],
            "location": {"path": failure.file, "lines": {"begin": failure.line}},
        }
        for failure in _failures(document, folder)
    ]
    return json.dumps(entries, ensure_ascii=False, indent=2) + "\n"


def _failures(document: Mapping[str, Json], folder: str) -> Iterator[Failure]:
    for item in sorted(document["items"], key=severity):
        if outcome(item) in ("failed", "error"):
            file = posixpath.normpath(posixpath.join(folder, item["nodeid"].partition("::")[0]))
            text = printable(finding(item, document["methods"].get(item["audit"], {})))
            yield Failure(item, file, item.get("line") or 1, text)


def _command(failure: Failure, count: int) -> str:
    item = failure.item
    title = f"{item['verdict']}: {item['id']}" + (f" and {count - 1} more" if count > 1 else "")
    place = {"file": failure.file, "line": str(failure.line), "title": printable(title)}
    properties = ",".join(f"{name}={_escaped_property(value)}" for name, value in place.items())
    return f"::error {properties}::{_escaped(failure.text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
