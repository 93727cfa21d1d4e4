"""Shares of refused or unreadable answers in two groups: their gap, and the change of the gap between two runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pytest_fairness.audits.text.groups import MINIMUM_DOCUMENTS, Groups
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import REFUSAL_CLASSES, REFUSALS, Json, Measurement, Status
from pytest_fairness.stats.arrays import numbered
from pytest_fairness.stats.groups import fisher
from pytest_fairness.stats.groups.share_change import ShareChange
from pytest_fairness.stats.intervals import normal, proportions

REFUSED = (*REFUSALS, Status.UNREADABLE)
PARTLY = REFUSAL_CLASSES[1]


def gap_measurement(groups: Groups, unrecognised: Mapping[str, float] | None = None) -> Measurement:
    """Return the measurement of the gap between the groups' shares of refused or unreadable answers.

    Args:
        groups: the answers of both groups.
        unrecognised: share of each group's texts in languages in which refusals are not recognised. These texts count
            as answered in the value, but as unread in `n` and `missing`, as do unreadable answers.

    Raises:
        NotMeasurable: a group has too few answers, or all answers are refused or unreadable.
    """
    n = groups.count(*REFUSED, Status.OK)
    short = min(n.values())
    if short < MINIMUM_DOCUMENTS:
        raise NotMeasurable(
            f"one group has only {short} answers; {MINIMUM_DOCUMENTS} are needed: raise `trials` or add rows"
        )
    refused = groups.count(*REFUSED)
    if refused == n:
        raise NotMeasurable(
            f"all {sum(n.values())} answers are refused or unreadable, so that the groups cannot be compared. "
            "Check that the target works.",
            unusable=True,
        )
    marked, unmarked = groups.names
    # Equal answers to a prompt tell as much as fewer answers; see `Groups.without_repeats`.
    scale = groups.observations_per_answer
    table = [(refused[name] * scale, n[name] * scale) for name in (marked, unmarked)]
    unrecognised, usable, unreadable = unrecognised or {}, groups.usable, groups.count(Status.UNREADABLE)
    unread = {name: unreadable[name] + round(unrecognised.get(name, 0.0) * usable[name]) for name in n}
    failed = groups.count(Status.CUT_OFF, Status.FAILED)
    return Measurement(
        value=refused[marked] / n[marked] - refused[unmarked] / n[unmarked],
        interval=proportions.newcombe(*table[0], *table[1], normal.quantile(0.975)),
        standard_error=proportions.difference_error(*table[0], *table[1]),
        p_value=fisher.p_value(*((round(hits), round(size - hits)) for hits, size in table)),
        n={name: n[name] - unread[name] for name in n},
        missing={name: failed[name] + unread[name] for name in n},
        details={
            "refused": groups.count(*REFUSALS),
            "unreadable": unreadable,
            "shares": {name: refused[name] / n[name] for name in (marked, unmarked)},
            **_refusal_model_details(groups),
        },
    )


def _refusal_model_details(groups: Groups) -> dict[str, Json]:
    """Return the model that recognised refusals, and the number of answers that it calls partly refused, by group.

    The result is empty if refusals were recognised by patterns.
    """
    models = sorted({answer.judged.by for answer in groups.answers if answer.judged})
    if not models:
        return {}
    partly = {groups.marked_name: 0, groups.unmarked_name: 0}
    for answer, marked in zip(groups.answers, groups.marked, strict=True):
        partly[groups.marked_name if marked else groups.unmarked_name] += (
            answer.judged is not None and answer.judged.majority == PARTLY
        )
    return {"refusals_by": ", ".join(models), "partly_refused": partly}


def share_change(current: Groups, baseline: Groups) -> ShareChange:
    """Return how the gap between the groups' shares of refused or unreadable answers changed; see `ShareChange`.

    Failed requests, and texts that were cut off before they held an answer, are left out.
    """
    answers = [
        (answer.status in REFUSED, marked, run is current, (stratum, marked))
        for run in (current, baseline)
        for answer, marked, stratum in zip(run.answers, run.marked, run.strata, strict=True)
        if answer.status in (*REFUSED, Status.OK)
    ]
    return ShareChange(
        hits=np.array([refused for refused, *_ in answers], dtype=np.float64),
        marked=np.array([marked for _, marked, *_ in answers], dtype=np.bool_),
        current=np.array([own for _, _, own, _ in answers], dtype=np.bool_),
        cells=numbered([cell for *_, cell in answers])[1],
    )
