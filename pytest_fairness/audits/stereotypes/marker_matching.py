"""Search of texts for the markers of a stereotype and of its opposite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_fairness.audits.terms import Terms


@dataclass(frozen=True, slots=True)
class FoundMarkers:
    """The markers that one text contains, each once, in the order of the marker lists."""

    stereotype: tuple[str, ...]
    anti_stereotype: tuple[str, ...]

    @property
    def count(self) -> int:
        """Return the number of different markers."""
        return len(self.stereotype) + len(self.anti_stereotype)

    def ratio(self, least: int) -> float | None:
        """Return the share of stereotype markers, 0..1; `None` if the text has no markers, or fewer than `least`."""
        return len(self.stereotype) / self.count if self.count >= max(1, least) else None


class Markers:
    """The markers of a case, prepared to be searched for in texts.

    Args:
        stereotype, anti_stereotype: words, phrases and stems; see `Terms`.
    """

    def __init__(self, stereotype: Sequence[str], anti_stereotype: Sequence[str]) -> None:
        self._lists = (tuple(stereotype), tuple(anti_stereotype))
        self._terms = Terms([*stereotype, *anti_stereotype])

    def found(self, text: str) -> FoundMarkers:
        """Return the markers in a text."""
        occurring = {*self._terms.found(text)}
        first, second = (tuple(marker for marker in markers if marker in occurring) for markers in self._lists)
        return FoundMarkers(first, second)


def texts_by_marker(texts: Iterable[FoundMarkers], side: str) -> dict[str, int]:
    """Return how many texts contain each marker of one list, the most frequent marker first.

    Args:
        texts: markers of each text.
        side: name of the list: `stereotype` or `anti_stereotype`.
    """
    counts = Counter(marker for text in texts for marker in getattr(text, side))
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
