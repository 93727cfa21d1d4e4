"""Findings of audits in words, from which reports make suggestions for a failed item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.records import ItemResult, Json

MOST_WORDS = 8
"""Largest number of words of one group that a finding names."""
LONGEST_NAME = 100
LONGEST_WORD = 40
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*(?: [^\W_]+(?:['’-][^\W_]+)*){0,3}")


@dataclass(frozen=True)
class Finding:
    """Finding of an audit in a failed item.

    Attributes:
        description: which group gets what, as one or two sentences.
        instruction: text for a system prompt that counters the finding; empty where the item sends no system prompt.
        words: words that answers for one group hold more often, for a filter behind the model.
        trainable: whether the probe's answers can be made into a balanced sample for fine-tuning.
    """

    description: str
    instruction: str
    words: Sequence[str] = ()
    trainable: bool = False


def details_of(result: ItemResult) -> dict[str, Json]:
    """Return the details of a result's measurement and comparison."""
    return {
        name: value for each in (result.measurement, result.comparison) if each for name, value in each.details.items()
    }


def axis_of(result: ItemResult) -> str:
    """Return what the groups of an item differ by: `race`, or the attribute that the item is about."""
    named = result.labels.get("attribute") or next(iter(result.labels), None)
    return shortened(named).replace("+", " and ").replace("_", " ") if named else "who is spoken of"


def subject_of(result: ItemResult) -> str:
    """Return what an item is about: the values of its labels."""
    return ", ".join(map(shortened, result.labels.values())) or shortened(result.id)


def shortened(name: str) -> str:
    """Return a name at a length that fits into a sentence."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def plain_words(found: Iterable[Json]) -> list[str]:
    """Return the first different entries that are words or short phrases; a model may have written anything else."""
    words = [word for word in found if isinstance(word, str) and len(word) <= LONGEST_WORD and _WORD.fullmatch(word)]
    return list(dict.fromkeys(words))[:MOST_WORDS]


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: `hair, oil and skin`."""
    shown = words[: 2 * MOST_WORDS]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def strongest(weights: Mapping[str, float], share: float = 0.25) -> dict[str, float]:
    """Return the entries whose absolute weight is at least a share of the largest: weaker ones may be chance."""
    largest = max(map(abs, weights.values()), default=0.0)
    return {name: weight for name, weight in weights.items() if abs(weight) >= share * largest}
