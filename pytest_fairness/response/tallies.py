"""What all engines of all processes of a run counted, put together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

Tally = Mapping[str, float]
"""An engine's counts; see `Engine.progress`."""


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
        total.update(tally)
        of_process[owner.partition("/")[0]].update(tally)
    for name in ("planned", "reused"):
        total[name] = max((counts[name] for counts in of_process.values()), default=0)
    # What a process finds recorded in the middle of a run may have been sent by another one.
    total["reused"] = min(total["reused"], max(0, total["planned"] - total["sent"]))
    total["settled"] = min(total["planned"], total["reused"] + total["answered"] + total["failed"])
    return dict(total)
