"""Examples of an item in the HTML report: answers side by side, with highlighted words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_fairness.records import Json
from pytest_fairness.reports.html import text_diff
from pytest_fairness.reports.items.report_items import Item, mappings_in

MAX_EXAMPLES = 6

Words = Mapping[str, frozenset[str]]
"""Words that contribute to a value, by group; see `text_diff.contributing_words`."""


@dataclass(frozen=True)
class Side:
    """One group's answer in an example.

    Attributes:
        group: name of the group.
        question: text of the prompt; empty if the prompt is unknown.
        answer: the answer in pieces; empty if there is no response.
        status: status of the answer; see `records.Status`.
        before: the baseline's answer in pieces, empty if its request got no response; `None` without a baseline for the
            prompt.
    """

    group: str
    question: str
    answer: Sequence[text_diff.Piece]
    status: str
    before: Sequence[text_diff.Piece] | None


@dataclass(frozen=True)
class Example:
    """Answers that are shown side by side; `about` is a text with their common labels: `entity: baking; trial 1`."""

    about: str
    sides: Sequence[Side]


def examples_of(item: Item, words: Words | None) -> list[Example]:
    """Return the examples of an item.

    The item's details list answers. Those with the same value of `set` are one example, and are shown side by side.

    Args:
        item: item of the report document.
        words: words to highlight, by group. `None`: highlight nothing, for an item without a significant change. Empty
            mapping: highlight differences between the answer and another answer. The first answer is compared with the
            second, each further answer with the first, and the baseline's answer with the current answer.
    """
    sets: dict[Any, list[Mapping[str, Json]]] = {}
    for place, example in enumerate(mappings_in(item["details"].get("examples"))):
        sets.setdefault(str(example.get("set", f"-{place}")), []).append(example)
    return [_example(answers, words) for answers in list(sets.values())[:MAX_EXAMPLES]]


def _example(answers: Sequence[Mapping[str, Json]], words: Words | None) -> Example:
    labels = [part if isinstance(part := answer.get("labels"), Mapping) else {} for answer in answers]
    common = {name: value for name, value in labels[0].items() if all(other.get(name) == value for other in labels)}
    about = [f"{name}: {value}" for name, value in common.items()]
    trial = answers[0].get("trial")
    about += [f"trial {trial + 1}"] if isinstance(trial, int) else []
    return Example("; ".join(about), [_side(answers, place, words) for place in range(len(answers))])


def _side(answers: Sequence[Mapping[str, Json]], place: int, words: Words | None) -> Side:
    """Return the answer at index `place`, with contributing words or differences highlighted; see `examples_of`."""
    answer, other = answers[place], answers[1 if place == 0 and len(answers) > 1 else 0]
    group, current = str(answer.get("group", "example")), _text(answer, "text")

    def pieces(text: str, against: str) -> list[text_diff.Piece]:
        if words == {}:
            return text_diff.highlight_differences(text, against)
        by_group = words or {}
        return text_diff.highlight(text, by_group.get(group, frozenset()) | by_group.get("", frozenset()))

    return Side(
        group,
        _text(answer, "prompt"),
        pieces(current, _text(other, "text")),
        str(answer.get("status", "ok")),
        pieces(_text(answer, "before"), current) if "before" in answer else None,
    )


def _text(example: Mapping[str, Json], name: str) -> str:
    value = example.get(name)
    return value if isinstance(value, str) else ""
