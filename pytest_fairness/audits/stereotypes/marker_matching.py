"""Search of texts for the markers of a stereotype and of its opposite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_fairness.audits.terms import Terms


@dataclass(frozen=True, slots=True)
class Found:
    """The markers that one text contains, each once, in the order of the marker lists."""

    stereotype: tuple[str, ...]
    anti_stereotype: tuple[str, ...]

    @property
    def count(self) -> int:
        """Return the number of different markers."""
        return len(self.stereotype) + len(self.anti_stereotype)

    def ratio(self, least: int) -> float | None:
        """Return the share of stereotype markers, 0..1; `None` if the text has no marker or fewer than `least`."""
        return len(self.stereotype) / self.count if self.count >= max(1, least) else None


class Markers:
    """Searcher of texts for the markers of a case.

    Args:
        stereotype, anti_stereotype: words, phrases and stems; see `Terms`.
    """

    def __init__(self, stereotype: Sequence[str], anti_stereotype: Sequence[str]) -> None:
        self._lists = (tuple(stereotype), tuple(anti_stereotype))
        self._terms = Terms([*stereotype, *anti_stereotype])

    def found(self, text: str) -> Found:
        """Return the markers in a text."""
        there = {*self._terms.found(text)}
        first, second = (tuple(marker for marker in markers if marker in there) for markers in self._lists)
        return Found(first, second)


def texts_by_marker(found: Iterable[Found], side: str) -> dict[str, int]:
    """Return how many texts contain each marker of one list (`side`), the most frequent marker first."""
    counts: dict[str, int] = {}
    for each in found:
        for marker in getattr(each, side):
            counts[marker] = counts.get(marker, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
