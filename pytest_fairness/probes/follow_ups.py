"""Base class of follow-up prompts, which depend on earlier answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pytest_fairness.records import Answer, Prompt


class FollowUps:
    """Follow-up prompts of a probe; this base class has none.

    Class attributes:
        possible: whether answers can lead to follow-up prompts.
        are_turns: whether follow-up prompts are the next turns of conversations, so that nearly every answer leads to a
            follow-up prompt.
    """

    possible: ClassVar[bool] = False
    are_turns: ClassVar[bool] = False

    def next_prompts(self, answers: Sequence[Answer]) -> list[Prompt]:
        """Return the follow-up prompts that the answers so far require; an empty list once the answers are complete."""
        return []

    def measured(self, answers: Sequence[Answer]) -> list[Answer]:
        """Return the answers that audits measure, from the answers to all prompts and follow-up prompts."""
        return list(answers)
