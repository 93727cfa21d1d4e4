"""What all engines of all processes of a run counted, put together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from pytest_fairness.records import Json

Tally = Mapping[str, Json]
"""An engine's counts; see `Engine.progress`. Under `FAILURES`, the failed requests that it sent, by message."""

FAILURES = "failures"


def together(tallies: Mapping[str, Tally]) -> dict[str, float]:
    """The counts of a run.

    Each process plans the same questions and finds the same ones recorded, but asks a part of them only; it has an
    engine for each target.

    Args:
        tallies: by owner, which is `process/engine`.
    """
    total: Counter[str] = Counter(sent=0, answered=0, failed=0)
    of_process: dict[str, Counter[str]] = defaultdict(Counter)
    for owner, tally in tallies.items():
        counts = {name: count for name, count in tally.items() if name != FAILURES}
        total.update(counts)
        of_process[owner.partition("/")[0]].update(counts)
    for name in ("planned", "reused"):
        total[name] = max((counts[name] for counts in of_process.values()), default=0)
    # What a process finds recorded in the middle of a run may have been sent by another one.
    total["reused"] = min(total["reused"], max(0, total["planned"] - total["sent"]))
    total["settled"] = min(total["planned"], total["reused"] + total["answered"] + total["failed"])
    return dict(total)


def failures(tallies: Mapping[str, Tally]) -> dict[str, int]:
    """Return how many requests of a run failed, by message, the most frequent first."""
    total: Counter[str] = Counter()
    for tally in tallies.values():
        total.update(tally.get(FAILURES, {}))
    return dict(sorted(total.items(), key=lambda pair: (-pair[1], pair[0])))
