"""Answers that show what an item measured: the same question for two groups, today's answer and the baseline's."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_fairness.records import Answer, Json, Prompt
from pytest_fairness.run.measuring.measurements import ItemMeasurement

SHOWN = 2
"""Sets of answers an item."""
LONGEST = 4000
"""Characters of an answer or a question."""


def examples(measured: ItemMeasurement, baseline: Iterable[Answer]) -> list[dict[str, Json]]:
    """The most telling answers, one after the other; those that stand side by side have the same `set`.

    Args:
        measured: this run.
        baseline: the answers of the baseline.

    Returns:
        mappings of `set`, `group`, `labels`, `trial`, `prompt` (`None` where nobody was asked), `text` (`None` where
        nothing came back), `status`, and `before`, the baseline's answer to the same question, where it has one.
    """
    item = measured.item
    chosen = item.audit.examples(item.probe, item, measured.measurement, measured.about)[:SHOWN]
    if not chosen:
        return []
    shown = {_key(answer) for side_by_side in chosen for _, answer in side_by_side}
    questions = item.prompts() if item.asks else ()
    asked = {key: prompt.request.prompt for prompt in questions if (key := _key(prompt)) in shown}
    before = {key: answer.text for answer in baseline if (key := _key(answer)) in shown}
    found = []
    for number, side_by_side in enumerate(chosen, start=1):
        for group, answer in side_by_side:
            key = _key(answer)
            found.append(
                {
                    "set": number,
                    "group": group,
                    "labels": dict(answer.labels),
                    "trial": answer.trial,
                    "prompt": _cut(asked.get(key)),
                    "text": _cut(answer.text),
                    "status": answer.status.value,
                    **({"before": _cut(before[key])} if key in before else {}),
                }
            )
    return found


def _key(of: Answer | Prompt) -> tuple[tuple[tuple[str, str], ...], int]:
    return tuple(sorted(of.labels.items())), of.trial


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[:LONGEST]}…"
