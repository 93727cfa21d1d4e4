"""What a reader must know of a run beside its verdicts: whom it audited, whether any audit ran, what stays open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_fairness.records import ItemResult, Json
from pytest_fairness.reports.formatting import counted

Kind = Literal["default-target", "no-audit", "few-audits", "inconclusive-runs"]


@dataclass(frozen=True)
class Note:
    """One sentence or two about a run.

    Attributes:
        kind: for programs that read the JSON report.
        text: complete.
        fails: whether the run fails for it.
    """

    kind: Kind
    text: str
    fails: bool = False

    def to_json(self) -> dict[str, Json]:
        """Return the note as it stands in the report document."""
        return {"kind": self.kind, "text": self.text}


def texts(document: Mapping[str, Json]) -> list[str]:
    """Return the texts of a report document's notes; a report of an earlier version has none."""
    return [note["text"] for note in document.get("notes", ())]


def on_number_of_audits(
    ran: int, *, selected: int, errors: int, min_audits: int, folders: str, ended_early: bool = False
) -> Note | None:
    """Return the note on a run in which no audit ran, or fewer than must; `None` where enough ran.

    Args:
        ran: audits that came to a verdict.
        selected: audits that pytest selected.
        errors: of these, could not be measured.
        min_audits: fewest that must run.
        folders: where probes are looked for.
        ended_early: whether pytest stopped before all selected items were reached.
    """
    if ran >= max(1, min_audits):
        return None
    if ran:
        text = f"only {counted(ran, 'audit')} ran, and `fairness_min_audits` asks for {min_audits:,}."
        return Note("few-audits", text, fails=True)
    if selected:
        left = selected - errors
        parts = [f"{errors:,} could not be measured"] if errors else []
        parts += [f"{left:,} {'was' if left == 1 else 'were'} skipped or not reached"] if left > 0 else []
        why = f"of {counted(selected, 'audit')} that {'was' if selected == 1 else 'were'} selected "
        why += " and ".join(parts)
    elif ended_early:
        why = "pytest stopped before the first one"
    else:
        why = f"none was selected; probes are looked for in {folders} (ini `fairness_probes`)"
    cure = (
        f" The run fails, as at least {min_audits:,} must run: ini `fairness_min_audits`, by default 1 where there are "
        "probe folders and in CI. Where no audit is wanted, run pytest without --fairness."
    )
    return Note("no-audit", f"no audit ran: {why}.{cure if min_audits else ''}", fails=min_audits > 0)


def on_inconclusive_runs(results: Sequence[ItemResult], runs: int, *, fails: bool) -> list[Note]:
    """Return a note for each item that was inconclusive run after run, with what it needs.

    Args:
        results: of these items.
        runs: how many runs these are, this one included.
        fails: whether the run fails for them.
    """
    since = "this run" if runs == 1 else f"each of the last {runs} runs"
    return [
        Note(
            "inconclusive-runs",
            f"{result.probe} {result.id} was inconclusive in {since}, so it would not find a worsening: "
            f"{_what_it_needs(result)}",
            fails,
        )
        for result in results
    ]


def _what_it_needs(result: ItemResult) -> str:
    """Return the end of a reason, which says why there is no decision and what it needs; the numbers come before it."""
    reason = result.verdict.reason
    return reason.partition("; ")[2] or reason
