"""Listing of swapped prompts: every prompt with its versions side by side, and the prompts that are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_fairness.plurals import counted
from pytest_fairness.probes.generation.swap_settings import PLACEBO
from pytest_fairness.probes.generation.swapped_prompts import SwappedPrompts, listed_reasons
from pytest_fairness.reports import markdown
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.tables import csv_format
from pytest_fairness.reports.text_layout import pad, width_of, wrap

SHOWN_TEXT = 3
"""Maximum number of lines of a prompt that is left out."""


def as_text(found: SwappedPrompts, groups: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of the listing for a terminal.

    Args:
        found: the prompts.
        groups: the compared groups; the first is the unmarked group.
        width: number of columns.
    """
    names = [*groups, PLACEBO]
    room = max(width_of(printable(name)) for name in names) + 4
    for each in found.prompts:
        written = f", original: {each.group}" if each.group in groups else ""
        yield f"line {each.row.line}{printable(written)}"
        for name in names:
            if name in each.versions:
                indent = f"  {pad(printable(name), room - 2)}"
                yield from wrap(printable(each.versions[name]), width, indent=indent, hanging=" " * room)
        for warning in each.warnings:
            yield from wrap(printable(f"! {warning}"), width, indent="  ", hanging="    ")
        yield ""
    for left in found.left_out:
        yield from wrap(printable(f"line {left.row.line} left out: {left.reason}"), width, hanging="  ")
        yield from wrap(printable(left.row.text), width, indent="  ", lines=SHOWN_TEXT)
    if found.left_out:
        yield ""
    for sentence in summary(found):
        yield from wrap(printable(sentence), width, hanging="  ")


def as_markdown(found: SwappedPrompts, groups: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the listing as Markdown tables; see `as_text` for the arguments."""
    names = [*groups, PLACEBO]
    yield from (f"{markdown.escaped(sentence)}\n" for sentence in summary(found))
    rows = [
        [
            str(each.row.line),
            *(markdown.escaped(each.versions.get(name, "")) for name in names),
            markdown.escaped("; ".join(each.warnings)),
        ]
        for each in found.prompts
    ]
    yield from markdown.table(["line", *map(markdown.escaped, names), "flagged"], rows)
    if found.left_out:
        yield ""
        left = [[str(each.row.line), *map(markdown.escaped, (each.row.text, each.reason))] for each in found.left_out]
        yield from markdown.table(["line", "left out", "reason"], left)


def as_csv(found: SwappedPrompts, groups: Sequence[str]) -> str:
    """Return the listing as CSV with a row for each prompt, in the order of the file; arguments as in `as_text`."""
    names = [*groups, PLACEBO]
    rows: list[tuple[int, list[str | None]]] = [
        (each.row.line, [each.row.text, each.group, *map(each.versions.get, names), "; ".join(each.warnings), ""])
        for each in found.prompts
    ]
    rows += [(each.row.line, [each.row.text, "", *("" for _ in names), "", each.reason]) for each in found.left_out]
    heads = ["line", "text", "original", *names, "flagged", "left_out"]
    return csv_format.text(heads, [[line, *cells] for line, cells in sorted(rows, key=lambda row: row[0])])


def summary(found: SwappedPrompts) -> list[str]:
    """Return sentences with the numbers of prompts with versions, prompts left out, and prompts not examined."""
    flagged = sum(bool(each.warnings) for each in found.prompts)
    placebos = sum(PLACEBO in each.versions for each in found.prompts)
    asked = f"{counted(len(found.prompts), 'prompt')} with versions: {placebos} with a placebo, {flagged} flagged"
    sentences = [asked]
    if found.left_out:
        sentences.append(f"{counted(len(found.left_out), 'prompt')} left out: {listed_reasons(found)}")
    if found.not_examined:
        sentences.append(
            f"{counted(found.not_examined, 'further prompt')} of the file not examined: the sample is complete"
        )
    return sentences
