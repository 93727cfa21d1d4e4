"""Comment on a pull request: the result in words, the failed items, and the command that accepts new values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports import markdown
from pytest_fairness.reports.document import reused_answers
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.items.findings import finding
from pytest_fairness.reports.items.report_items import (
    KNOWN,
    NO_LONGER_FAILS,
    UNEXPECTED_PASS,
    Item,
    known_failures,
    outcome,
    severity,
    status,
    verdict_word,
)
from pytest_fairness.reports.markdown import MAX_LENGTH, SIGNS, escaped, table
from pytest_fairness.reports.shell_layout import shell_lines
from pytest_fairness.reports.suggestions.shell_commands import accept_command

MARKER = "<!-- pytest-fairness -->"
"""First line of the comment, by which a workflow finds the comment of an earlier run."""
SHOWN = 10
MAX_FINDING = 300
LINE_WIDTH = 100

_SENTENCES: Mapping[str, str] = {
    VerdictName.REGRESSION: "got worse",
    VerdictName.OVER_LIMIT: "over the limit",
    VerdictName.STALE_BASELINE: "with a stale baseline",
    VerdictName.NO_BASELINE: "without a baseline",
    VerdictName.ERROR: "without a result",
    VerdictName.NOT_MEASURABLE: "not measurable",
    UNEXPECTED_PASS: "passing although marked xfail",
    VerdictName.INCONCLUSIVE: "inconclusive",
    KNOWN: "failing as expected",
    NO_LONGER_FAILS: "passing although marked xfail",
    VerdictName.PASS: "passed",
}


def comment(document: Mapping[str, Json], options: Sequence[str] = (), root: str = "") -> str:
    """Return the comment on a pull request, in Markdown.

    Args:
        document: the report document.
        options: options of the suggested command, which select the same requests as this run.
        root: path from the user's working directory to pytest's rootdir, such as `..`.
    """
    items = sorted(document["items"], key=severity)
    worse = [item for item in items if outcome(item) == "failed" and item["verdict"] != VerdictName.NO_BASELINE]
    lines = [
        MARKER,
        f"### {_headline(items, escaped(reused_answers(document)))}",
        "",
        f"Audited: {escaped(document['target'])}. {_sentence(items)}",
        "",
    ]
    lines += _failure_table(worse, document)
    lines += _errors(items)
    command = accept_command(items, options, root)
    if command is not None:
        text = "To accept the current values as the new baseline, run this and commit the baselines:"
        lines += [text, markdown.code("\n".join(shell_lines(command, LINE_WIDTH))), ""]
    lines += ["<details>", "<summary>All checks</summary>", ""]
    tail = ["", "</details>"]
    used = sum(len(line) + 1 for line in [*lines, *tail])
    return "\n".join([*lines, markdown.report(document, MAX_LENGTH - used).rstrip("\n"), *tail]) + "\n"


def _headline(items: Sequence[Item], reused: str) -> str:
    counts = _counts(items)
    known = f"; {escaped(text)}" if (text := known_failures(items)) else ""
    nothing = reused or ("nothing new got worse" if known else "nothing got worse")
    failed = sum(outcome(item) == "failed" and item["verdict"] != VerdictName.NO_BASELINE for item in items)
    if not items:
        return f"{SIGNS['error']} Fairness: no audit ran"
    if failed:
        return f"{SIGNS['failed']} Fairness: {_of(failed, items)} failed{known}"
    if errors := sum(outcome(item) == "error" for item in items):
        return f"{SIGNS['error']} Fairness: {_of(errors, items)} without a result{known}"
    if new := counts[VerdictName.NO_BASELINE]:
        return f"{SIGNS['failed']} Fairness: {_of(new, items)} without a baseline{known}"
    if inconclusive := counts[VerdictName.INCONCLUSIVE]:
        return f"{SIGNS['inconclusive']} Fairness: {nothing}; {inconclusive} inconclusive{known}"
    return f"{SIGNS['passed']} Fairness: {nothing}{known}"


def _of(number: int, items: Sequence[Item]) -> str:
    return f"{number} of {counted(len(items), 'check')}"


def _sentence(items: Sequence[Item]) -> str:
    """Return the number of checks by verdict, in words."""
    counts = _counts(items)
    return ", ".join(f"{counts[name]} {words}" for name, words in _SENTENCES.items() if counts[name]) + "."


def _counts(items: Sequence[Item]) -> Counter[str]:
    return Counter(map(status, items))


def _failure_table(items: Sequence[Item], document: Mapping[str, Json]) -> list[str]:
    """Return the lines of a table with the findings of the first `SHOWN` items; an empty list without items."""
    if not items:
        return []
    rows = []
    for item in items[:SHOWN]:
        method = document["methods"].get(item["audit"], {})
        text = printable(finding(item, method))
        text = text if len(text) <= MAX_FINDING else f"{text[:MAX_FINDING]}…"
        name = f"{method['title']} ({item['audit']})" if method.get("title") else item["id"]
        rows.append(
            [f"{SIGNS['failed']} {verdict_word(item)[2:]}", escaped(name), escaped(text), escaped(item["probe"])]
        )
    more = [f"… and {len(items) - SHOWN} more, below.", ""] if len(items) > SHOWN else []
    return [*table(("verdict", "check", "finding", "probe"), rows), "", *more]


def _errors(items: Sequence[Item]) -> list[str]:
    """Return a line for each reason of an error, with the number of checks that have this reason."""
    reasons: dict[str, int] = defaultdict(int)
    for item in items:
        if outcome(item) == "error":
            reasons[printable(item["reason"].removeprefix(f"{item['id']}: "))[:MAX_FINDING]] += 1
    lines = [f"- {SIGNS['error']} {counted(count, 'check')}: {escaped(reason)}" for reason, count in reasons.items()]
    return [*lines[:SHOWN], ""] if lines else []
