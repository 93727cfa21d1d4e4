"""Checks of a baseline's stored values against its answers, so that an edited value cannot make an item pass."""

from __future__ import annotations

import math
from dataclasses import replace

from pytest_fairness.answers import reading
from pytest_fairness.baselines.entries import Entry, MeasuredBy, rounded
from pytest_fairness.baselines.reading import Baseline
from pytest_fairness.errors import BaselineError
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.version import __version__

ALLOWED_ERRORS = 0.1
"""Accepted difference between a stored and a measured value, in standard errors: numerical libraries may cause it."""


def measured_by(item: ProbeItem) -> MeasuredBy:
    """Return the version of the audit and of the reading of answers, and the item's alpha; see `MeasuredBy`."""
    return MeasuredBy(100 * reading.VERSION + item.audit.version, rounded(item.alpha))


def require_possible(item: ProbeItem, baseline: Baseline, entry: Entry) -> None:
    """Raise `BaselineError` if the stored value is outside the range of the audit's values."""
    least, most = item.audit.info.value_range
    if not least <= entry.value <= most:
        bounds = f"between {least:g} and {most:g}" if math.isfinite(least + most) else _bound(least, most)
        raise BaselineError(
            f"{baseline.summary_path}: the value of {item.id} is {entry.value:g}, but values of "
            f"{item.audit.info.name} are {bounds}. Restore the file from version control, or make a new baseline with "
            "--fairness-rebaseline.",
            fixed_by_rebaseline=True,
        )


def require_unedited(item: ProbeItem, baseline: Baseline, entry: Entry) -> None:
    """Raise `BaselineError` if the stored measurement or the hash of its answers was edited; see `Entry.seal`."""
    if entry.was_edited:
        raise BaselineError(
            f"{baseline.summary_path}: the measurement of {item.id} (value, interval, standard error, answers) "
            "or the hash of its answers was edited. Restore the file from version control, or make a new baseline with "
            "--fairness-rebaseline.",
            fixed_by_rebaseline=True,
        )


def check_stored_value(
    item: ProbeItem, baseline: Baseline, entry: Entry, remeasured: float
) -> tuple[Entry, str | None]:
    """Return the entry with the value measured from its answers, and a note if the stored value differs.

    Args:
        item: the item as `ProbeItem.for_baseline` returns it.
        baseline: the baseline that holds the entry.
        entry: the item's entry.
        remeasured: value that the audit now measures from the entry's answers.

    Raises:
        BaselineError: the stored value differs from the value of the baseline's answers, although this version of the
            package and of the audit measured both values, with the same alpha.
    """
    current = replace(entry, value=rounded(remeasured))
    allowed = max(1e-6, ALLOWED_ERRORS * (entry.standard_error or 0.0))
    if math.isclose(entry.value, remeasured, rel_tol=1e-5, abs_tol=allowed):
        return current, None
    if measured_alike(item, entry):
        raise BaselineError(
            f"{baseline.summary_path}: the value of {item.id} is {entry.value:g}, but the baseline's own answers give "
            f"{remeasured:.6g}. This file or the file of the answers ({baseline.answers_path.name}) was edited, or the "
            "files are from different commits. Restore both files from version control, or make a new baseline with "
            "--fairness-rebaseline.",
            fixed_by_rebaseline=True,
        )
    return current, (
        f"The baseline's stored value {entry.value:g} was measured by another version of pytest-fairness or of the "
        f"audit, or with another alpha. This run is compared with {remeasured:.3g}, measured again from the baseline's "
        "answers"
    )


def measured_alike(item: ProbeItem, entry: Entry) -> bool:
    """Return whether the entry was measured by this version of the package and the audit, with the same alpha.

    An entry without the audit's version and alpha counts as measured with the same version and alpha.
    """
    if entry.tool_version != __version__:
        return False  # the parsing of answers may have changed, too
    return entry.measured_by is None or entry.measured_by == measured_by(item)


def _bound(least: float, most: float) -> str:
    """Return a phrase for a range with one finite bound, such as `at least 0`."""
    return f"at least {least:g}" if math.isfinite(least) else f"at most {most:g}"
