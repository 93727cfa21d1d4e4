"""Warnings on English prompts with quoted or reported speech: a person should read their swapped versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_fairness.languages.swaps.data_files import either
from pytest_fairness.languages.swaps.reading import Replacement

_REPORT = "says said tells told claims claimed mentions mentioned states stated insists insisted admits admitted wrote"
_REPORTED = re.compile(
    rf"\b(?P<subject>\w+) (?:also |just |then |has |had )?{either(_REPORT.split())}\b[^.?!\n]*\b(?:he|she)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)['\u2018][^'’\n]+['’](?!\w)")


def warnings_on(text: str, replacements: Sequence[Replacement]) -> Iterator[str]:
    """Yield a warning for replaced terms in a quotation, and for a report of what a third person says."""
    terms_at = {item.start for item in replacements if item.is_term}
    if any(match.start() <= start < match.end() for match in _QUOTED.finditer(text) for start in terms_at):
        yield "terms in a quotation are replaced, too"
    if any(match.start("subject") in terms_at for match in _REPORTED.finditer(text)):
        yield "the prompt reports what a third person says"
