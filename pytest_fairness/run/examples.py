"""Examples of an item's answers for reports: current answers of several groups, and the baseline's answers."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_fairness.records import Answer, Json, Prompt, reply_in
from pytest_fairness.run.measuring.measurements import ItemMeasurement

SHOWN = 2
"""Maximum number of sets of example answers for each item."""
LONGEST = 4000
"""Maximum number of characters of an answer or a prompt."""


def examples(measured: ItemMeasurement, baseline: Iterable[Answer]) -> list[dict[str, Json]]:
    """Return the answers that the item's audit selects as examples; reports show the answers of a set side by side.

    Args:
        measured: measurement of the current run, with its answers.
        baseline: answers of the baseline.

    Returns:
        A dictionary for each answer. Its keys are `set` (number of the answer's set), `group`, `labels`, `trial`,
        `prompt` (`None` for answers in a file), `text` (`None` without a response), `status` and, if the baseline has
        an answer to the same prompt, `before` (the baseline's answer).
    """
    item = measured.item
    selection = item.probe.reading.selection
    calls = selection is not None and selection.tool is not None
    chosen = item.audit.examples(item, measured.measurement, measured.counted_answers)[:SHOWN]
    if not chosen:
        return []
    shown = {_key(answer) for side_by_side in chosen for _, answer in side_by_side}
    more = "\n… (further turns follow)" if item.probe.follow_ups.are_turns else ""
    prompts = {
        key: prompt.request.shown_prompt + more
        for prompt in (item.prompts() if item.asks else ())
        if (key := _key(prompt)) in shown
    }
    before = {key: _shown(answer, calls=calls) for answer in baseline if (key := _key(answer)) in shown}
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
                    "prompt": _shortened(prompts.get(key)),
                    "text": _shortened(_shown(answer, calls=calls)),
                    "status": answer.status.value,
                    **({"before": _shortened(before[key])} if key in before else {}),
                }
            )
    return found


def _key(of: Answer | Prompt) -> tuple[tuple[tuple[str, str], ...], int]:
    return tuple(sorted(of.labels.items())), of.trial


def _shown(answer: Answer, *, calls: bool) -> str | None:
    """Return the text of an answer for reports; with `calls`, tool calls are written as text."""
    reply = reply_in(answer.text) if calls and answer.text is not None else None
    return answer.text if reply is None else reply.shown


def _shortened(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[:LONGEST]}…"
