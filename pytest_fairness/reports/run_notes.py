"""Notes on a whole run, such as a warning that too few audits ran."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_fairness.audits.answer_checks.confounding import CONFOUNDING
from pytest_fairness.audits.info import Direction
from pytest_fairness.plurals import counted, joined
from pytest_fairness.records import ItemResult, Json, RowsWithoutGroup

Kind = Literal[
    "default-target",
    "no-audit",
    "few-audits",
    "inconclusive-runs",
    "rows-without-group",
    "confounding",
    "data-file",
    "extra-fields",
    "level-change",
    "limit",
    "orphaned-baselines",
    "shard",
    "batches",
]


@dataclass(frozen=True)
class RunNote:
    """A note on a run.

    Attributes:
        kind: identifier for programs that read the JSON report.
        text: the note in full sentences.
        fails: whether the note makes the run fail.
    """

    kind: Kind
    text: str
    fails: bool = False

    def to_json(self) -> dict[str, Json]:
        """Return the note as plain JSON for the report document."""
        return {"kind": self.kind, "text": self.text}


def texts(document: Mapping[str, Json]) -> list[str]:
    """Return the texts of a report document's notes; an empty list for reports of earlier versions."""
    return [note["text"] for note in document.get("notes", ())]


def on_number_of_audits(
    ran: int, *, selected: int, errors: int, min_audits: int, folders: str, ended_early: bool = False
) -> RunNote | None:
    """Return the note on a run with no audit, or with fewer audits than `min_audits`; `None` if enough audits ran.

    Args:
        ran: number of items that were measured, plus the number of Python tests that ran and have no item.
        selected: number of audits that pytest selected.
        errors: number of selected audits that could not be measured.
        min_audits: minimum number of audits that must run.
        folders: paths of the folders with probes, as one text.
        ended_early: whether the run fails anyway, because pytest was interrupted, or items failed or had errors.
    """
    if ran >= max(1, min_audits):
        return None
    if ran:
        text = f"only {counted(ran, 'audit')} ran; the ini option `fairness_min_audits` requires {min_audits:,}."
        return RunNote("few-audits", text, fails=True)
    if selected:
        skipped = selected - errors
        parts = [f"{errors:,} could not be measured"] if errors else []
        parts += [f"{skipped:,} {'was' if skipped == 1 else 'were'} skipped or not reached"] if skipped > 0 else []
        why = f"of {counted(selected, 'selected audit')}, {' and '.join(parts)}"
    elif ended_early:
        why = "pytest stopped before the first audit"
    else:
        why = f"no probe was selected; the folders with probes are {folders} (ini option `fairness_probes`)"
    cure = (
        f" The run fails because the ini option `fairness_min_audits` requires {min_audits:,} (default: 1 in CI and in "
        "projects with a probe folder). To run no audits, run pytest without --fairness."
    )
    return RunNote(
        "no-audit", f"no audit ran: {why}.{cure if min_audits and not ended_early else ''}", fails=min_audits > 0
    )


def on_shard(shard: str) -> RunNote:
    """Return the note on a run that sent only the requests of one shard, such as `2/5`."""
    return RunNote(
        "shard",
        f"shard {shard}: this run sent the requests of its shard and gave no verdicts. After the runs of all shards, "
        "merge their stores with `python -m pytest_fairness merge`, then get verdicts with `pytest --fairness "
        "--fairness-replay`.",
    )


ON_BATCHES = RunNote(
    "batches",
    "batches: this run submitted its requests in batches and gave no verdicts. For answers and verdicts, run "
    "`pytest --fairness --fairness-batch-collect` with the same store; providers answer within 24 hours.",
)
"""Note on a run that submitted its requests in batches."""


def on_inconclusive_runs(results: Sequence[ItemResult], runs: int, *, fails: bool) -> list[RunNote]:
    """Return a note for each repeatedly inconclusive item, with the advice from the reason of the item's verdict.

    Args:
        results: results of the items that were inconclusive in each of the last `runs` runs.
        runs: number of runs, including this one.
        fails: whether the notes make the run fail.
    """
    which = "this run" if runs == 1 else f"each of the last {runs} runs"
    return [
        RunNote(
            "inconclusive-runs",
            f"{result.probe} {result.id} was inconclusive in {which}, so it would not detect a regression: "
            f"{_advice(result)}",
            fails,
        )
        for result in results
    ]


def on_answer_files(results: Sequence[ItemResult]) -> list[RunNote]:
    """Return notes on answer files: rows that name no group of the probe, and columns that predict the group."""
    left_out = {
        result.probe: RowsWithoutGroup(**counts)
        for result in results
        if result.measurement and (counts := result.measurement.details.get("rows_without_group"))
    }
    predicting = dict.fromkeys(
        f"{result.probe}: {note}."
        for result in results
        if result.measurement
        for note in result.measurement.details.get(CONFOUNDING, ())
    )
    return [
        RunNote("rows-without-group", f"{probe}: {rows}.{f' {rows.remedy}.' if rows.unknown else ''}")
        for probe, rows in left_out.items()
    ] + [RunNote("confounding", text) for text in predicting]


def on_extra_fields(results: Sequence[ItemResult]) -> list[RunNote]:
    """Return a note for each probe whose requests have further fields (`sampling.extra`)."""
    fields = {result.probe: result.extra_fields for result in results if result.extra_fields}
    return [
        RunNote(
            "extra-fields",
            f"{probe}: the requests have further fields (`sampling.extra`): "
            f"{', '.join(f'{name}: {json.dumps(value, ensure_ascii=False)}' for name, value in own.items())}.",
        )
        for probe, own in fields.items()
    ]


def on_orphans(found: Sequence[str], *, fails: bool) -> list[RunNote]:
    """Return a note on baselines that belong to no item, such as `gifts: refusals[name=Lou]`; nothing without any."""
    if not found:
        return []
    text = (
        f"{counted(len(found), 'baseline')} without an item, so that nothing is compared: {joined(found)}. "
        "If a probe, an attribute or a target was renamed, rename the baseline, too; else delete it, or rebaseline the "
        "whole probe."
    )
    return [RunNote("orphaned-baselines", text, fails)]


def on_missing_folder(folder: str, *, fails: bool) -> RunNote:
    """Return the note on a folder of baselines that the ini file names, but that does not exist."""
    text = f"the folder of baselines {folder} (ini fairness_baselines) does not exist, so that nothing is compared."
    return RunNote("orphaned-baselines", text, fails)


def on_shared_changes(results: Sequence[ItemResult], *, fails: bool) -> list[RunNote]:
    """Return a note for each large change of a probe's answers since the baseline that all groups share.

    Args:
        results: results of the run.
        fails: whether the notes make the run fail.
    """
    texts: dict[tuple[str, str, str], str] = {}
    for result in results:
        target = result.id.partition("@")[2]
        for change in result.comparison.shared_changes if result.comparison is not None else ():
            place = f"{result.probe}@{target}" if target else result.probe
            texts.setdefault(
                (result.probe, target, change.quantity),
                f"{place}: answers changed for everybody since the baseline: {change.text}. Differences between "
                "groups do not show it: look at the answers, then accept them with --fairness-rebaseline.",
            )
    return [RunNote("level-change", text, fails) for text in texts.values()]


def on_limits(results: Sequence[ItemResult]) -> list[RunNote]:
    """Return a note for each place with a limit that is the worst possible value, so that no value exceeds it."""
    notes: dict[str, str] = {}
    for result in results:
        if result.limit is None or not result.method:
            continue
        low, high = result.method["value_range"]
        loss = Direction(result.method["better"]).loss
        if loss(result.limit) >= max(loss(-math.inf if low is None else low), loss(math.inf if high is None else high)):
            place = f"{result.nodeid.partition('::')[0]}:{result.line}"
            notes[place] = (
                f"{place}: no value of {result.audit} exceeds the limit {result.limit:g}, so that the limit passes "
                "whatever is answered. Write the worst value that you accept."
            )
    return [RunNote("limit", text) for text in notes.values()]


def _advice(result: ItemResult) -> str:
    """Return what would decide the item: the part of the verdict's reason after `; `, or the whole reason."""
    reason = result.verdict.reason
    return reason.partition("; ")[2] or reason
