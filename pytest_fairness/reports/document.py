"""The report document (schema 1): the JSON structure from which all reports are made.

`docs/report.schema.json` describes each field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from pytest_fairness.audits.findings import Finding
from pytest_fairness.plurals import counted
from pytest_fairness.records import ItemResult, Json, without_nonfinite
from pytest_fairness.reports.formatting import age
from pytest_fairness.reports.items.report_items import target_name
from pytest_fairness.reports.run_notes import RunNote
from pytest_fairness.reports.suggestions.suggestions import suggestions

SCHEMA_VERSION = 1
REQUEST_COUNTS = ("planned", "sent", "reused", "failed", "prompt_tokens", "completion_tokens")


def report_document(
    results: Iterable[ItemResult],
    *,
    tool_version: str,
    target: str,
    started: float | str,
    seconds: float,
    requests: Mapping[str, float | None],
    targets: Mapping[str, str] | None = None,
    target_version: str | None = None,
    commit: str | None = None,
    failures: Mapping[str, int] | None = None,
    oldest_reused: float | None = None,
    notes: Iterable[RunNote] = (),
) -> dict[str, Json]:
    """Return the report document of one run. The order of the results does not matter.

    Args:
        results: the results of all selected audit items.
        tool_version: version of pytest-fairness.
        target: the audited target, as the user named it.
        started: start of the run, in seconds since the epoch or as ISO 8601 in UTC.
        seconds: duration of the run.
        requests: the numbers of requests and tokens named in `REQUEST_COUNTS` (0 if a name is missing), and `cost`.
        targets: each audited target, by the name that the user gave it (`NAME=TARGET`); empty or `None` without names.
        target_version: version that the user has set for the target; `None` if not set.
        commit: id of the tested project's commit, and whether there were uncommitted changes; `None` if unknown.
        failures: number of failed requests by error message, the most frequent first.
        oldest_reused: arrival time of the oldest reused response, in seconds since the epoch; `None` without reuse.
        notes: notes on the whole run.
    """
    ordered = sorted(results, key=lambda result: (result.nodeid, result.probe, result.id))
    if not isinstance(started, str):
        started = _date(started)
    methods = {result.audit: result.method for result in ordered}
    purposes = {result.probe: result.purpose.strip() for result in ordered if result.purpose}
    counts: dict[str, Json] = {name: int(requests.get(name) or 0) for name in REQUEST_COUNTS}
    return {
        "schema": SCHEMA_VERSION,
        "tool": f"pytest-fairness {tool_version}",
        "target": target,
        "target_version": target_version,
        "commit": commit,
        "started": started,
        "seconds": round(seconds, 3),
        "requests": {
            **counts,
            "cost": without_nonfinite(requests.get("cost")),
            "failures": [{"message": message, "count": count} for message, count in (failures or {}).items()],
            "oldest_reused": None if oldest_reused is None else _date(oldest_reused),
        },
        "notes": [note.to_json() for note in notes],
        "summary": {
            **_counts(ordered),
            "by_probe": _counts_by(ordered, lambda result: result.probe),
            "by_audit": _counts_by(ordered, lambda result: result.audit),
            "by_category": _counts_by(ordered, lambda result: result.category),
            **({"by_target": _by_target(ordered, targets)} if targets else {}),
        },
        "purposes": purposes,
        "methods": {name: dict(method) for name, method in sorted(methods.items()) if method},
        "items": [_item(result) for result in ordered],
    }


def reused_age(document: Mapping[str, Json]) -> str:
    """Return the age of the oldest reused response at the start of the run: ` (oldest 3 h)`; empty without reuse."""
    oldest = document["requests"].get("oldest_reused")
    if oldest is None:
        return ""
    seconds = (datetime.fromisoformat(document["started"]) - datetime.fromisoformat(oldest)).total_seconds()
    return f" (oldest {age(seconds)})"


def reused_answers(document: Mapping[str, Json]) -> str:
    """Return `0 requests sent: 160 answers of earlier runs`; empty if most answers are of this run."""
    requests = document["requests"]
    if requests["reused"] <= requests["sent"]:
        return ""
    of_earlier = f"{counted(requests['reused'], 'answer')} of earlier runs{reused_age(document)}"
    return f"{counted(requests['sent'], 'request')} sent: {of_earlier}"


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _item(result: ItemResult) -> dict[str, Json]:
    item = result.to_json()
    if result.finding is not None and result.outcome == "failed":
        item["details"]["suggestions"] = suggestions(item, Finding(**result.finding), result.system)
    return item


def _by_target(results: Sequence[ItemResult], targets: Mapping[str, str]) -> dict[str, Json]:
    by_name = {name: [result for result in results if target_name(result.id) == name] for name in targets}
    return {
        name: {
            "target": targets[name],
            **_counts(by_name[name]),
            "by_audit": _counts_by(by_name[name], lambda result: result.audit),
        }
        for name in sorted(targets)
    }


def _counts(results: Sequence[ItemResult]) -> dict[str, Json]:
    outcomes = [result.outcome for result in results]
    judged = len(results) - outcomes.count("measured")
    return {
        "total": len(results),
        "passed": outcomes.count("passed"),
        "failed": outcomes.count("failed"),
        "known": outcomes.count("known"),
        "inconclusive": outcomes.count("inconclusive"),
        "errors": outcomes.count("error"),
        "measured": outcomes.count("measured"),
        "pass_rate": outcomes.count("passed") / judged if judged else None,
    }


def _counts_by(results: Sequence[ItemResult], name_of: Callable[[ItemResult], str | None]) -> dict[str, Json]:
    groups: dict[str, list[ItemResult]] = defaultdict(list)
    for result in results:
        name = name_of(result)
        if name is not None:
            groups[name].append(result)
    return {name: _counts(groups[name]) for name in sorted(groups)}
