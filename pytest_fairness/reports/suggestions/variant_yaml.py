"""Suggested variants as YAML or Python code, ready to be copied; words of models are escaped."""

from __future__ import annotations

import json
import textwrap

from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.text_layout import width_of

MAX_LENGTH = 100
_WIDTH = 78
_FOLDED = "    system: >-"
_INDENT = " " * 6


def plain(text: str) -> str:
    """Return a name or value for use in a sentence: as one line, escaped, with at most `MAX_LENGTH` characters."""
    shown = printable(text)
    return shown if len(shown) <= MAX_LENGTH else f"{shown[:MAX_LENGTH]}…"


def variant_yaml(name: str, instruction: str, system: str | None = None, *, existing: bool = False) -> str:
    """Return a variant as YAML.

    Args:
        name: name of the variant: letters, digits and `-`.
        instruction: sentences of the system prompt.
        system: the probe's own system prompt, which precedes the instruction; `None` without a system prompt.
        existing: whether the probe already has the key `variants`.
    """
    head = ["# Under the probe's `variants`:" if existing else "variants:", f"  {name}:"]
    instruction = " ".join(printable(instruction).split())
    if system is None:
        return "\n".join([*head, _FOLDED, *_lines(instruction, _WIDTH)])
    own = system.rstrip("\n").split("\n")
    if not all(line.replace("\t", "").isprintable() for line in own):
        # YAML would escape unprintable characters of the system prompt, so that the text would be unreadable.
        return "\n".join(["# Put the probe's own `system` before this text.", variant_yaml(name, instruction)])
    # The explicit indentation (`|2`) is needed if the first line starts with a blank.
    return "\n".join([*head, "    system: |2-", *(_INDENT + line if line else "" for line in (*own, instruction))])


def system_argument(instruction: str) -> str:
    """Return a system prompt as Python code: the keyword argument `system=…`."""
    lines = textwrap.wrap(" ".join(printable(instruction).split()), _WIDTH - 8, break_on_hyphens=False)
    quoted = [json.dumps(line + " " * (line is not lines[-1]), ensure_ascii=False) for line in lines]
    return "\n".join(["system=(", *(f"    {line}" for line in quoted), ")"])


def narrowed(text: str, width: int) -> str:
    """Return YAML of `variant_yaml`, wrapped to `width` columns if this does not change the meaning of the YAML."""
    head, folded, rest = text.partition(f"{_FOLDED}\n")
    return text if not folded else "\n".join([head + _FOLDED, *_lines(rest, width)])


def _lines(text: str, width: int) -> list[str]:
    """Return the words in indented lines; words are not broken, because YAML would read the parts as two words."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else _INDENT + word
        if lines and width_of(longer) > width:
            lines.append(_INDENT + word)
        else:
            lines[-1:] = [longer]
    return lines
