"""Listing of swapped prompts: each prompt with its text for every group, and the prompts that cannot be swapped."""

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
"""Maximum number of lines that are shown of a prompt that cannot be swapped."""


def as_text(listing: SwappedPrompts, groups: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of the listing for a terminal.

    Args:
        listing: the swapped prompts of a probe.
        groups: the compared groups; the first is the unmarked group.
        width: number of columns.
    """
    names = [*groups, PLACEBO]
    room = max(width_of(printable(name)) for name in names) + 4
    for prompt in listing.prompts:
        written = f", original: {prompt.group}" if prompt.group in groups else ""
        yield f"line {prompt.row.line}{printable(written)}"
        for name in names:
            if name in prompt.versions:
                indent = f"  {pad(printable(name), room - 2)}"
                yield from wrap(printable(prompt.versions[name]), width, indent=indent, hanging=" " * room)
        for warning in prompt.warnings:
            yield from wrap(printable(f"! {warning}"), width, indent="  ", hanging="    ")
        yield ""
    for omitted in listing.left_out:
        yield from wrap(printable(f"line {omitted.row.line} left out: {omitted.reason}"), width, hanging="  ")
        yield from wrap(printable(omitted.row.text), width, indent="  ", lines=SHOWN_TEXT)
    if listing.left_out:
        yield ""
    for sentence in summary(listing):
        yield from wrap(printable(sentence), width, hanging="  ")


def as_markdown(listing: SwappedPrompts, groups: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the listing as Markdown tables; see `as_text` for the arguments."""
    names = [*groups, PLACEBO]
    yield from (f"{markdown.escaped(sentence)}\n" for sentence in summary(listing))
    rows = [
        [
            str(prompt.row.line),
            *(markdown.escaped(prompt.versions.get(name, "")) for name in names),
            markdown.escaped("; ".join(prompt.warnings)),
        ]
        for prompt in listing.prompts
    ]
    yield from markdown.table(["line", *map(markdown.escaped, names), "flagged"], rows)
    if omitted := listing.left_out:
        yield ""
        rows = [[str(prompt.row.line), *map(markdown.escaped, (prompt.row.text, prompt.reason))] for prompt in omitted]
        yield from markdown.table(["line", "left out", "reason"], rows)


def as_csv(listing: SwappedPrompts, groups: Sequence[str]) -> str:
    """Return the listing as CSV with a row for each prompt, in the order of the file; arguments as in `as_text`."""
    names = [*groups, PLACEBO]
    rows: list[tuple[int, list[str | None]]] = [
        (swap.row.line, [swap.row.text, swap.group, *map(swap.versions.get, names), "; ".join(swap.warnings), ""])
        for swap in listing.prompts
    ]
    rows += [(left.row.line, [left.row.text, "", *("" for _ in names), "", left.reason]) for left in listing.left_out]
    heads = ["line", "text", "original", *names, "flagged", "left_out"]
    return csv_format.text(heads, [[line, *cells] for line, cells in sorted(rows, key=lambda row: row[0])])


def summary(listing: SwappedPrompts) -> list[str]:
    """Return sentences with the numbers of prompts that are swapped, left out, and not examined."""
    flagged = sum(bool(prompt.warnings) for prompt in listing.prompts)
    placebos = sum(PLACEBO in prompt.versions for prompt in listing.prompts)
    swapped = f"{counted(len(listing.prompts), 'prompt')} can be swapped: {placebos} with a placebo, {flagged} flagged"
    sentences = [swapped]
    if listing.left_out:
        sentences.append(f"{counted(len(listing.left_out), 'prompt')} left out: {listed_reasons(listing)}")
    if listing.not_examined:
        sentences.append(
            f"{counted(listing.not_examined, 'further prompt')} of the file not examined: the sample is complete"
        )
    return sentences
