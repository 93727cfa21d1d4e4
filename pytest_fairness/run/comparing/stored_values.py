"""Whether a baseline's stored value is what its own answers give: edited numbers never pass anything."""

from __future__ import annotations

import math
from dataclasses import replace

from pytest_fairness.baselines.entries import Entry, MeasuredBy, rounded
from pytest_fairness.baselines.reading import Baseline
from pytest_fairness.errors import BaselineError
from pytest_fairness.run.probe_items import ProbeItem
from pytest_fairness.version import __version__

ALLOWED_ERRORS = 0.1
"""Standard errors by which other versions of the numerical libraries may move a value."""


def measured_by(item: ProbeItem) -> MeasuredBy:
    """Return what a value depends on besides answers and fingerprint: the audit's version and the item's alpha."""
    return MeasuredBy(item.audit.version, rounded(item.alpha))


def require_possible(item: ProbeItem, baseline: Baseline, entry: Entry) -> None:
    """Raise `BaselineError` where the stored value is none that the audit can have."""
    least, most = item.audit.info.value_range
    if not least <= entry.value <= most:
        bounds = f"between {least:g} and {most:g}" if math.isfinite(least + most) else _bound(least, most)
        raise BaselineError(
            f"{baseline.summary_path}: the value of {item.id} is {entry.value:g}, and values of "
            f"{item.audit.info.name} are {bounds}. Take the file from version control, or make a new one with "
            "--fairness-rebaseline.",
            remade=True,
        )


def checked(item: ProbeItem, baseline: Baseline, entry: Entry, own: float) -> tuple[Entry, str | None]:
    """Return the entry with the value that its answers give today, and a note where another version measured another.

    Args:
        item: the item as its baseline is measured; see `ProbeItem.whole`.
        baseline: where the entry is from.
        entry: the item's.
        own: what the audit measures of the entry's answers today.

    Raises:
        BaselineError: the stored value is not what its answers give, and no other version measured it.
    """
    today = replace(entry, value=rounded(own))
    allowed = max(1e-6, ALLOWED_ERRORS * (entry.standard_error or 0.0))
    if math.isclose(entry.value, own, rel_tol=1e-5, abs_tol=allowed):
        return today, None
    if _measured_alike(item, entry):
        raise BaselineError(
            f"{baseline.summary_path}: the value of {item.id} is {entry.value:g}, but the baseline's own answers give "
            f"{own:.6g}. One of the two files was edited, or they are not of one commit: take both from version "
            "control, or make new ones with --fairness-rebaseline.",
            remade=True,
        )
    return today, (
        f"The baseline's value was {entry.value:g} when it was made, by another version or at another level; its "
        f"answers give {own:.3g} today, which counts"
    )


def _measured_alike(item: ProbeItem, entry: Entry) -> bool:
    """Return whether the entry was measured by this version of the package and the audit, at the same level."""
    if entry.tool_version != __version__:
        return False  # how answers are read may have changed too
    return entry.measured_by is None or entry.measured_by == measured_by(item)


def _bound(least: float, most: float) -> str:
    return f"at least {least:g}" if math.isfinite(least) else f"at most {most:g}"
