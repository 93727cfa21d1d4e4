"""Last lines of the terminal summary: request counts, notes and the commands that accept the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.document import reused_age
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.items.report_items import Item, status
from pytest_fairness.reports.shell_layout import shell_lines
from pytest_fairness.reports.terminal.forecast import money
from pytest_fairness.reports.terminal.lines import Line, paragraph

SHOWN_MESSAGES = 3
TOO_FEW_AUDITS = ("no-audit", "few-audits")


def request_counts(document: Mapping[str, Json], width: int, retried: float, above: Sequence[Line]) -> list[Line]:
    """Return lines with the counts of requests, retries and tokens, and the errors that no line `above` shows."""
    requests = document["requests"]
    failed = f", {requests['failed']:,} failed" if requests["failed"] else ""
    tokens = ""
    if requests["prompt_tokens"] or requests["completion_tokens"]:  # not every target reports tokens
        tokens = f"; {requests['prompt_tokens']:,} prompt and {requests['completion_tokens']:,} completion tokens"
    retries = f" ({retried:,.0f} retr{'y' if retried == 1 else 'ies'})" if retried else ""
    cost = "" if requests["cost"] is None else f"; cost {money(requests['cost'])}"
    reused = f"{requests['reused']:,} reused{reused_age(document)}"
    sent = f"requests: {requests['sent']:,} sent{retries}, {reused}{failed}{tokens}{cost}"
    return paragraph(sent, width) + _failures(requests, width, above)


def _failures(requests: Mapping[str, Json], width: int, above: Sequence[Line]) -> list[Line]:
    """Return the error messages of failed requests that `above` does not show, the most frequent message first."""
    shown = " ".join(" ".join(line.text.split()) for line in above)
    failures = [
        failure
        for failure in requests.get("failures", [])
        if printable(failure["message"]).removesuffix("…") not in shown  # long messages are cut
    ]
    lines = [
        line
        for failure in failures[:SHOWN_MESSAGES]
        for line in paragraph(
            printable(f"{counted(failure['count'], 'request')} failed: {failure['message']}"), width, {"red": True}
        )
    ]
    if len(failures) > SHOWN_MESSAGES:
        more = counted(len(failures) - SHOWN_MESSAGES, "more message")
        lines.append(Line(f"  … and {more} in the HTML and JSON reports"))
    return lines


def notes(document: Mapping[str, Json], width: int) -> list[Line]:
    """Return the lines of the notes on the run: red for notes on too few audits, yellow for other notes."""
    return [
        line
        for note in document.get("notes", ())
        for line in paragraph(note["text"], width, {"red" if note["kind"] in TOO_FEW_AUDITS else "yellow": True})
    ]


def next_steps(
    items: Sequence[Item], accept: Callable[[Sequence[Item]], list[str] | None], rebaseline_requests: str, width: int
) -> list[Line]:
    """Return advice on failed items: how to make a missing baseline, to accept a change, or to get below a limit.

    `accept` returns the command that accepts the values of items; `rebaseline_requests` says which requests the command
    sends, and is empty if the command sends none.
    """
    lines: list[Line] = paragraph(rebaseline_requests, width) if rebaseline_requests and accept(items) else []
    new = [item for item in items if item["verdict"] == VerdictName.NO_BASELINE]
    if command := accept(new):
        has = "has" if len(new) == 1 else "have"
        text = f"{counted(len(new), 'item')} {has} no baseline and no limit. To record the values as the baseline:"
        lines += _command(text, command, width)
    if any(status(item) == VerdictName.OVER_LIMIT for item in items):
        text = (
            "Some items are over their limit, which a new baseline does not change. Fix the target, or change the "
            "audit's `limit` in the probe."
        )
        lines += paragraph(text, width)
    if command := accept([item for item in items if item["verdict"] != VerdictName.NO_BASELINE]):
        lines += _command("To accept the current values as the new baseline:", command, width)
    return lines


def _command(text: str, command: Sequence[str], width: int) -> list[Line]:
    return [*paragraph(text, width), *(Line(line, {"bold": True}) for line in shell_lines(command, width))]
