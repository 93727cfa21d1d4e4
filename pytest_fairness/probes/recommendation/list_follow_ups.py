"""Follow-up prompts: the same prompt after a short list, and the prompt with the indirect wording after a refusal.

A probe file writes the indirect wording of an attribute's value under the key `indirect`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.probes.follow_ups import FollowUps
from pytest_fairness.records import Answer, Prompt

PromptKey = tuple[tuple[tuple[str, str], ...], int]
"""Key of a prompt and its follow-up prompts: the sorted labels without `requery` and `form`, and the trial number."""


@dataclass(frozen=True)
class ListFollowUps(FollowUps):
    """Follow-up prompts of a probe of lists.

    Attributes:
        prompt: function that returns the prompt with the given labels and trial number.
        k: number of items of a complete list; a shorter list is requested again.
        requery: maximum number of repetitions after short lists.
        indirect: pairs of attribute and value for which the probe has an indirect wording.
    """

    possible = True

    prompt: Callable[[Mapping[str, str], int], Prompt]
    k: int
    requery: int
    indirect: Collection[tuple[str, str]]

    def next_prompts(self, answers: Sequence[Answer]) -> list[Prompt]:
        """Return the next follow-up prompt for each prompt whose answers require one."""
        if not self.requery and not self.indirect:
            return []
        found = map(self._next_labels, _attempts_by_prompt(answers).values())
        return [self.prompt(*labels_and_trial) for labels_and_trial in found if labels_and_trial is not None]

    def _next_labels(self, attempts: Sequence[Answer]) -> tuple[dict[str, str], int] | None:
        """Return the labels and the trial number of the next follow-up prompt; `None` if no follow-up prompt is needed.

        Args:
            attempts: the answers to a prompt and to its follow-up prompts so far.
        """
        current = [answer for answer in attempts if answer.labels.get("form") == "indirect"]
        first = attempts[0]
        if not current:
            current = list(attempts)
            value = (first.labels["attribute"], first.labels["value"])
            # A perturbed prompt with the indirect wording would be another perturbation.
            has_indirect = value in self.indirect and "perturbation" not in first.labels
            if has_indirect and all(answer.refused for answer in attempts):
                return {**first.labels, "form": "indirect"}, first.trial
        if len(current) <= self.requery and all(_is_short(answer, self.k) for answer in current):
            return {**current[0].labels, "requery": str(len(current))}, first.trial
        return None


def _attempts_by_prompt(answers: Sequence[Answer]) -> dict[PromptKey, list[Answer]]:
    """Group answers by prompt: first the answer to the prompt, then the answers to its follow-up prompts in order."""
    attempts_by_prompt: dict[PromptKey, list[Answer]] = {}
    for answer in answers:
        attempts_by_prompt.setdefault((_without_attempt(answer.labels), answer.trial), []).append(answer)
    for attempts in attempts_by_prompt.values():
        attempts.sort(key=_attempt_order)
    return attempts_by_prompt


def _without_attempt(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in labels.items() if item[0] not in ("requery", "form")))


def _attempt_order(answer: Answer) -> tuple[bool, int]:
    return "form" in answer.labels, int(answer.labels.get("requery", "0"))


def _is_short(answer: Answer, k: int) -> bool:
    return answer.usable and len({item.casefold() for item in answer.content}) < k
