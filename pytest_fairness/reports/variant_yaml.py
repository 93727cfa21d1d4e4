"""Variants as they stand in probe files, made of words that nobody vouches for, for readers to paste."""

from __future__ import annotations

from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.terminal.layout import width_of

LONGEST = 100
_WIDTH = 78
_FOLDED = "    system: >-"
_INDENT = " " * 6


def plain(text: str) -> str:
    """A name or value for a sentence: one line, no control characters, not endlessly long."""
    shown = printable(text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def variant_yaml(name: str, instruction: str, system: str | None = None, *, existing: bool = False) -> str:
    """A variant as it stands in a probe file.

    Args:
        name: of the variant; letters, digits and `-`.
        instruction: its system prompt.
        system: the probe's own, which the variant's goes on from; `None` where it has none.
        existing: whether the probe has `variants:` already, into which it is to be put.
    """
    head = ["# Under the probe's `variants`:" if existing else "variants:", f"  {name}:"]
    instruction = " ".join(printable(instruction).split())
    if system is None:
        return "\n".join([*head, _FOLDED, *_lines(instruction, _WIDTH)])
    own = system.rstrip("\n").split("\n")
    if not all(line.replace("\t", "").isprintable() for line in own):
        # YAML would have to spell some of its characters out, and nobody could read it.
        return "\n".join(["# Put the probe's own `system` before this one.", variant_yaml(name, instruction)])
    # The indentation is spelt out, as the first line may begin with a blank.
    return "\n".join([*head, "    system: |2-", *(_INDENT + line if line else "" for line in (*own, instruction))])


def narrowed(text: str, width: int) -> str:
    """What `variant_yaml` gave, in lines of at most `width` columns where that changes nothing of what it says."""
    head, folded, rest = text.partition(f"{_FOLDED}\n")
    return text if not folded else "\n".join([head + _FOLDED, *_lines(rest, width)])


def _lines(text: str, width: int) -> list[str]:
    """The words in indented lines; none is broken, as YAML would read two words."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else _INDENT + word
        if lines and width_of(longer) > width:
            lines.append(_INDENT + word)
        else:
            lines[-1:] = [longer]
    return lines
