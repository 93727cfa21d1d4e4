"""Findings: descriptions of the bias in failed items, with instructions and words that may help to reduce the bias."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.records import ItemResult, Json

MOST_WORDS = 8
"""Largest number of words of each group that a finding names."""
LONGEST_NAME = 100
LONGEST_WORD = 40
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*(?: [^\W_]+(?:['’-][^\W_]+)*){0,3}")


@dataclass(frozen=True)
class Finding:
    """Finding of an audit in a failed item.

    Attributes:
        description: how the answers for the groups differ, in one or two sentences.
        instruction: text for a system prompt that counters the bias; empty if the item sends no system prompt.
        words: words that occur more often in answers for one group; a filter can remove them from the model's output.
        trainable: whether a balanced sample for fine-tuning can be made from the probe's answers.
    """

    description: str
    instruction: str
    words: Sequence[str] = ()
    trainable: bool = False


def details_of(result: ItemResult) -> dict[str, Json]:
    """Return the details of a result's measurement and comparison in one dictionary."""
    return {
        name: value for each in (result.measurement, result.comparison) if each for name, value in each.details.items()
    }


def axis_of(result: ItemResult) -> str:
    """Return a phrase with the attributes by which the item's groups differ, such as `race and gender`.

    Return `who is spoken of` if the item's labels name no attribute.
    """
    attribute = result.labels.get("attribute") or next(iter(result.labels), None)
    return shortened(attribute).replace("+", " and ").replace("_", " ") if attribute else "who is spoken of"


def subject_of(result: ItemResult) -> str:
    """Return the values of an item's labels, such as `Black, woman`; without labels, the item's id."""
    return ", ".join(map(shortened, result.labels.values())) or shortened(result.id)


def shortened(name: str) -> str:
    """Return a name, cut with “…” after `LONGEST_NAME` characters."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def plain_words(entries: Iterable[Json]) -> list[str]:
    """Return the first `MOST_WORDS` distinct entries that are words or short phrases.

    Other entries are left out, because the output of a model may contain any text.
    """
    words = [word for word in entries if isinstance(word, str) and len(word) <= LONGEST_WORD and _WORD.fullmatch(word)]
    return list(dict.fromkeys(words))[:MOST_WORDS]


def listed(words: Sequence[str]) -> str:
    """Return the first 2 × `MOST_WORDS` words joined by commas and “and”: `hair, oil and skin`."""
    shown = words[: 2 * MOST_WORDS]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def strongest(weights: Mapping[str, float], share: float = 0.25) -> dict[str, float]:
    """Return the entries whose absolute weight is at least `share` of the largest absolute weight.

    Entries with smaller weights may be due to chance.
    """
    largest = max(map(abs, weights.values()), default=0.0)
    return {name: weight for name, weight in weights.items() if abs(weight) >= share * largest}
