"""Request counts of a whole run, added up over its engines and processes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from pytest_fairness.records import Json

RequestCounts = Mapping[str, Json]
"""Counts of one engine; see `Engine.progress`. The entry `FAILURES` holds the number of failed requests by error
message."""

FAILURES = "failures"


def total_counts(counts_by_owner: Mapping[str, RequestCounts]) -> dict[str, float]:
    """Return the request counts of a run, combined from the counts of its engines.

    All processes plan the same requests and find the same recorded answers, so `planned` and `reused` are the largest
    counts of one process. The other counts are added up, because each process sends only a part of the requests.

    Args:
        counts_by_owner: counts of each engine, by owner. An owner is named `process/engine`; an engine asks one target.
    """
    total: Counter[str] = Counter(sent=0, answered=0, failed=0)
    by_process: dict[str, Counter[str]] = defaultdict(Counter)
    for owner, recorded in counts_by_owner.items():
        counts = {name: count for name, count in recorded.items() if name != FAILURES}
        total.update(counts)
        by_process[owner.partition("/")[0]].update(counts)
    for name in ("planned", "reused"):
        total[name] = max((counts[name] for counts in by_process.values()), default=0)
    # An answer that one process finds recorded during the run may have been requested by another process.
    total["reused"] = min(total["reused"], max(0, total["planned"] - total["sent"]))
    total["settled"] = min(total["planned"], total["reused"] + total["answered"] + total["failed"])
    return dict(total)


def failure_counts(counts_by_owner: Mapping[str, RequestCounts]) -> dict[str, int]:
    """Return the number of failed requests of a run by error message, the most frequent first."""
    total: Counter[str] = Counter()
    for counts in counts_by_owner.values():
        total.update(counts.get(FAILURES, {}))
    return dict(sorted(total.items(), key=lambda pair: (-pair[1], pair[0])))
